//! What is wrong with a page.

/// What was expected where a page has something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);
