//! Flow metering and the detection of cheetah flows.
//!
//! `meter/` counts: frames become packets ([`meter::intake`]), packets are counted in flows
//! ([`meter::flow_table`]), ended flows are handed on as records ([`meter::record`]). `detect/` finds: which
//! flows are cheetahs ([`detect`]). `tasks/` summarises: what sketches say of the traffic, window by window, in a
//! fixed memory ([`tasks`]). Time and seeds are arguments; the same packets give the same output.

pub mod collector;
pub mod detect;
pub mod filter;
mod memory;
pub mod meter;
pub mod rates;
pub mod samples;
mod slot_index;
pub mod tasks;

pub use memory::MemoryError;
