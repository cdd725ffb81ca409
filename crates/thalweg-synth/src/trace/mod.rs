//! `thalweg synth`: a header trace like CAIDA's as a pcap file, and the truth about it as CSV.
//!
//! CAIDA's traces may not be passed on. This writes one of the same make at any length: packet headers only
//! (snap length 64), raw IP, heavy-tailed flow sizes (Pareto), IPv4 and a few percent IPv6, TCP and UDP,
//! lengths of 40 to 60 and of 1500 bytes mostly. TCP is true to its sequence numbers in both directions:
//! each side's advance by what it sent, acknowledgements name all that the other side sent so far, nothing is
//! lost or sent again. Planted among it are flows that are, or nearly are, cheetahs ([`PlantedKind`]): flows
//! that move more than R*T bytes of the IP layer, one way, in some window of length T (section
//! 3.2.1 of the dissertation, with any window instead of the flights of its Algorithm 3).
//!
//! # What holds
//! - Packets and flows are exactly as many as asked. Both directions of a 5-tuple are one flow; no two flows
//!   share a 5-tuple; within a flow no two packets are further apart than [`MAX_GAP`]; no packet follows RST
//!   or the second FIN. So any meter of biflows whose idle timeout is longer than that, whose active timeout
//!   is longer than the trace, and that does not end a flow at its first FIN, counts the same flows.
//! - Times never run backwards.
//! - A window is `(t - T, t]`. The truth is exact: planted flows are counted in a sliding window, packet by
//!   packet, and so is every background flow that could move more than R*T/2 in one. No background flow and
//!   no near-miss exceeds R*T; background flows stay below 0.85 R*T by their pace (see `population`).
//! - The same options give the same bytes on every machine: the generator is xoshiro256++, powers come from
//!   the `libm` crate, all else is integers or single IEEE 754 operations.
//!
//! # The truth
//! A header line, then a row for each direction of a flow that was planted or that moved more than R*T/2 in
//! some window, in order of the flows' ends:
//!
//! | column | meaning |
//! |---|---|
//! | `kind` | the planted kind's name; `background`; or `acknowledgements` for the other direction of a planted flow |
//! | `flow` | number of the flow in order of first packets, from 1 |
//! | `src`, `dst`, `src_port`, `dst_port`, `protocol` | the direction; the protocol as a number |
//! | `first_ns`, `last_ns` | times of its first and last packet, nanoseconds since 1970 |
//! | `packets`, `bytes` | of this direction; bytes of the IP layer |
//! | `max_window_bytes` | the most in any window of length T |
//! | `cheetah` | 1 if that is more than R*T, else 0 |
//! | `crossed_ns` | time of the packet with which a window first held more than R*T; empty if none did |
//!
//! # Cost
//! Memory for the flows under way, about 200 bytes each (some ten thousand at CAIDA's rate), and some MiB
//! besides, whatever the number of packets. About 0.1 us a packet.

mod address;
mod connection;
mod encode;
mod files;
mod flow_sizes;
mod generator;
mod options;
mod planted;
mod population;
mod schedule;
mod summary;
#[cfg(test)]
mod tests;
mod trace_writer;
mod truth;

use std::io::Write;

use files::Files;
use generator::Generator;
pub use options::{MAX_GAP, SynthOptions, SynthOptionsError};
pub use planted::PlantedKind;
pub use summary::{SynthError, SynthSummary};

/// Writes a trace to `trace`, in pieces of 1 MiB, and the truth about it to `truth`, in lines (give it a
/// buffered writer). Calls `progress` with the packets written so far, every 65,536 packets and at the end.
///
/// # Errors
/// Options that are refused, before anything is written; or a failure to write.
pub fn generate(
    options: &SynthOptions,
    trace: &mut impl Write,
    truth: &mut impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<SynthSummary, SynthError> {
    let plan = options.plan()?;
    let mut files = Files::new(options, trace, truth)?;
    let summary = Generator::new(options, &plan, &mut files).run(progress)?;
    files.finish()?;
    Ok(summary)
}
