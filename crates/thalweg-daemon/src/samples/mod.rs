//! Samples to capture files (Rasley et al., "Planck", SIGCOMM 2014, section 6.1).
//!
//! The last frames of each monitor port are in a ring ([`thalweg_measure::samples`]). Somebody asks for them: a person
//! by the API or by SIGUSR1, or something that happens, if the configuration names it. Then a thread of its own copies
//! the ring, infers by which ports each packet came and went, and writes a capture file. What measures does not wait.
//!
//! | file | what it has |
//! |---|---|
//! | `labels` | by which ports a packet came and went |
//! | `pcapng`, `pcap` | samples as a file |
//! | `dump` | what is asked for, and the thread that does it |
//! | `names` | what files are called, and which are kept |

mod dump;
mod labels;
mod names;
mod pcap;
mod pcapng;
#[cfg(test)]
mod tests;

pub use dump::{Cause, DumpCounters, DumpError, DumpRequest, Dumped, DumpedFile, Dumps};
pub(crate) use dump::{can_write, run_dump_thread};
