//! Static routing, the baseline for other deciders.

use super::Decider;

/// A decider that never reroutes. With one spanning tree per address this is PAST; the paper calls it Static (section
/// 7.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticRouting;

impl Decider for StaticRouting {
    fn name(&self) -> &'static str {
        "static"
    }
}
