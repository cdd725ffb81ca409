//! What the daemon writes as `thalweg watch` does: flows, and answers of measurement tasks.

pub mod answer;
mod flow;

pub use flow::FlowLine;
