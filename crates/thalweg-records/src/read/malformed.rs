//! Malformed data in a page.

/// What was expected instead of the malformed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);
