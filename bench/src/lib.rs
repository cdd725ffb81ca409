//! Benchmarks of Thalweg against comparable programs, and reproductions of figures from papers.
//!
//! | module | question |
//! |---|---|
//! | [`meters`] | how fast is `thalweg watch` compared with `nfpcapd`, `softflowd` and a plain hash map? |
//! | [`stages`] | how much time does each stage take per packet? |
//! | [`scaling`] | does cost grow linearly with packets, and how does it grow with live flows? |
//! | [`detectors`] | what do the published detector and ours find, miss and report falsely, and with which delay? |
//! | [`threshold`] | how fast is the simulation that finds a rate threshold? |
//! | [`isolation`] | what do 100,000 redirections by tc cost, and how fast are 10,000 changes per second? |
//! | [`flood`] | what does a flood of random 5-tuples cost? |
//! | [`sketches`] | how fast are sketches, ours and others', and how accurate at that speed? |
//! | [`in_kernel`] | what does a sketch at XDP cost per packet, with which error, compared with hash maps and another NitroSketch? |
//! | [`emulator`] | how many packets per second does the emulator process, compared with ns-3? |
//! | [`emulation_peers`] | up to which rate does real-time emulation keep up, and how accurate is it, beside Mininet and ns-3? |
//! | [`collector`] | how fast does a collector turn packets into rates, link utilisation, events and samples? |
//! | [`dashboard`] | what does the dashboard cost the daemon at 1,000 links and 10,000 flows? |
//! | [`experiments`] | figures and claims of papers, on synthetic traces |
//!
//! Traces and their ground truth come from the library of `thalweg synth`. Results are Markdown for people and CSV for
//! programs ([`results`]).

pub mod clock;
pub mod collector;
pub mod contenders;
pub mod dashboard;
pub mod detectors;
pub mod emulation_peers;
pub mod emulator;
pub mod experiments;
pub mod flood;
pub mod hash_map_meter;
pub mod in_kernel;
pub mod isolation;
pub mod machine;
pub mod meters;
pub mod results;
pub mod scaling;
pub mod sketches;
pub mod stages;
pub mod statistics;
pub mod tasks;
pub mod threshold;
pub mod timed;
pub mod traces;
pub mod truth;
pub mod veth;
