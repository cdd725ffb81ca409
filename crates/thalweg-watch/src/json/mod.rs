//! JSON that `thalweg watch` and the daemon share: flows, estimates and results of measurement tasks.

mod estimate;
mod flow;
mod task_result;

pub use estimate::{EstimateBounds, FlatEstimate};
pub use flow::FlowLine;
pub use task_result::TaskResultJson;
