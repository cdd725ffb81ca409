//! Properties of the decoding of external input: one function for each fuzz target, which panics on a violation.
//!
//! They do not depend on a fuzzer: `crates/thalweg/tests/it/fuzz_corpus` runs them as ordinary tests over
//! `corpus/TARGET`, so that bugs found once stay fixed.

pub mod arbiter;
pub mod capture_file;
pub mod config;
pub mod emulation_protocol;
pub mod experiment;
pub mod filter;
pub mod flow_export;
pub mod flow_filter;
pub mod headers;
pub mod kernel_parser;
pub mod nfcapd;
pub mod openflow;
pub mod sketch_state;
pub mod topology;
pub mod transfer_logs;
pub mod workload;
