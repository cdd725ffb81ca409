//! What must hold of any bytes from outside, one function for each fuzz target; each panics if it does not hold.
//!
//! They know nothing of a fuzzer: `crates/thalweg/tests/it/fuzz_corpus` runs them as ordinary tests over
//! `corpus/TARGET`, so that what was found once stays found.

pub mod capture_file;
pub mod config;
pub mod experiment;
pub mod filter;
pub mod flow_export;
pub mod flow_filter;
pub mod headers;
pub mod openflow;
pub mod sketch_state;
pub mod topology;
pub mod workload;
