//! Capture files of samples (Rasley et al., "Planck", SIGCOMM 2014, section 6.1).
//!
//! A ring keeps the last frames of each monitor port ([`thalweg_measure::samples`]). The API, SIGUSR1 or a configured event requests
//! a dump. A thread of its own then copies the ring, infers the ports of each packet, and writes a capture file. Collectors do not
//! wait for it.
//!
//! | file | contents |
//! |---|---|
//! | `labels` | input and output ports of a packet |
//! | `pcapng`, `pcap` | encoding of capture files |
//! | `dump` | dump requests, and the thread that carries them out |
//! | `names` | names and rotation of files |

mod dump;
mod labels;
mod names;
mod pcap;
mod pcapng;
#[cfg(test)]
mod tests;

pub use dump::{Cause, DumpCounters, DumpError, DumpRequest, Dumped, DumpedFile, Dumps};
pub(crate) use dump::{can_write, run_dump_thread};
