//! Every pair keeps the path that it has: what steering is held against.

use super::Decider;

/// Decides nothing. With spanning trees by address this is PAST; the paper calls it Static (section 7.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Stay;

impl Decider for Stay {
    fn name(&self) -> &'static str {
        "static"
    }
}
