//! `thalweg synth`: a synthetic header trace like CAIDA's as a pcap file, with its ground truth as CSV.
//!
//! CAIDA's traces may not be redistributed. This module generates similar ones of any length: packet headers only (snap
//! length 64), raw IP, heavy-tailed flow sizes (Pareto), IPv4 and a few percent IPv6, TCP and UDP, mostly with lengths
//! of 40 to 60 and of 1500 bytes. TCP sequence numbers are consistent in both directions: each side's advance by the
//! sent bytes, acknowledgements cover all bytes the other side has sent, and nothing is lost or retransmitted. The trace
//! contains planted cheetahs and near-misses ([`PlantedKind`]). A cheetah moves more than R*T bytes of the IP layer in
//! one direction in some window of length T (section 3.2.1 of the dissertation, with any window instead of the flights
//! of its Algorithm 3).
//!
//! # Guarantees
//! - The numbers of packets and flows are exact. Both directions of a 5-tuple are one flow; no two flows share a
//!   5-tuple; within a flow no two packets are further apart than [`MAX_GAP`]; no packet follows RST or the second FIN.
//!   So any meter of biflows counts the same flows if its idle timeout exceeds that gap, its active timeout exceeds the
//!   trace, and it does not end a flow at its first FIN.
//! - Times never decrease.
//! - A window is `(t - T, t]`. The truth is exact: planted flows are counted packet by packet in a sliding window, as is
//!   every background flow that could move more than R*T/2 in one. No background flow and no near-miss exceeds R*T; the
//!   pace of background flows keeps them below 0.85 R*T (see `population`).
//! - The same options give the same bytes on every machine: the generator is xoshiro256++, powers come from the `libm`
//!   crate, the rest are integers or single IEEE 754 operations.
//!
//! # The truth
//! A header line, then a row for each direction of a flow that was planted or that moved more than R*T/2 in some window,
//! in order of the flows' ends:
//!
//! | column | meaning |
//! |---|---|
//! | `kind` | the planted kind's name; `background`; or `acknowledgements` for the other direction of a planted flow |
//! | `flow` | number of the flow in order of first packets, from 1 |
//! | `src`, `dst`, `src_port`, `dst_port`, `protocol` | key of the direction; the protocol as a number |
//! | `first_ns`, `last_ns` | times of its first and last packet, nanoseconds since 1970 |
//! | `packets`, `bytes` | of this direction; bytes of the IP layer |
//! | `max_window_bytes` | the maximum in any window of length T |
//! | `cheetah` | 1 if that is more than R*T, else 0 |
//! | `crossed_ns` | time of the packet with which a window first held more than R*T; empty if none did |
//!
//! # Cost
//! Memory: about 200 bytes per active flow (about ten thousand at CAIDA's rate) and a few MiB, for any number of
//! packets. About 0.1 us per packet.

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

/// Writes a trace to `trace`, in blocks of 1 MiB, and its ground truth to `truth`, in lines (use a buffered writer).
/// Calls `progress` with the number of packets written so far, every 65,536 packets and at the end.
///
/// # Errors
/// If the options are invalid, before anything is written, or if writing fails.
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
