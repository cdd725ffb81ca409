//! Measures Thalweg against its peers and repeats the figures of papers.
//!
//! | module | what it answers |
//! |---|---|
//! | [`meters`] | how fast is `thalweg watch` beside `nfpcapd`, `softflowd` and a plain hash map? |
//! | [`stages`] | where does the time of a packet go? |
//! | [`scaling`] | does cost grow linearly with packets, and how with live flows? |
//! | [`detectors`] | what do the published detector and ours find, miss and report falsely, and how late? |
//! | [`flood`] | what does a flood of random 5-tuples cost? |
//! | [`sketches`] | how fast are sketches, ours and others', and how far off at that speed? |
//! | [`emulator`] | how many packets a second does the emulator carry, and how does ns-3 do? |
//! | [`collector`] | how fast are packets made into rates, links, events and samples? |
//! | [`experiments`] | studies of papers, figure by figure and claim by claim, on traces of ours |
//!
//! Traces come from `thalweg synth`'s library; its truth is what everything is held against. Results are
//! Markdown to read and CSV to compute with ([`results`]).

pub mod clock;
pub mod collector;
pub mod contenders;
pub mod detectors;
pub mod emulator;
pub mod experiments;
pub mod flood;
pub mod hash_map_meter;
pub mod machine;
pub mod meters;
pub mod results;
pub mod scaling;
pub mod sketches;
pub mod stages;
pub mod statistics;
pub mod tasks;
pub mod timed;
pub mod traces;
pub mod truth;
