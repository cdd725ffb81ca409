//! What measurement tasks say, in the report and in lines of JSON.

pub(super) mod json;
pub(super) mod report;
