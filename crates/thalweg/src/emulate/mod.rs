//! What `thalweg emulate` shows: the report of a run or a sweep, and what there is to choose from.

mod names;
pub mod report;

pub use names::list;
