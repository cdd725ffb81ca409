//! Flow metering, detection of cheetah flows, and measurement tasks.
//!
//! - [`meter`]: frames become packets ([`meter::intake`]), packets are counted in flows ([`meter::flow_table`]), and
//!   ended flows become records ([`meter::record`]).
//! - [`detect`]: detects cheetah flows.
//! - [`collector`]: estimates flow rates and link utilisation from a monitor port.
//! - [`tasks`]: answers questions about the traffic of a window with sketches, in a fixed memory.
//!
//! Time and seeds are arguments; the same packets give the same output.

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
