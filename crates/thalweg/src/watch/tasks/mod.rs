//! Results of measurement tasks in the report and in JSON lines.

pub(super) mod json;
pub(super) mod report;
