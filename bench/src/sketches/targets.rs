//! Target speeds.

use super::contender::Family;

/// A target for one sketch of the common shape, updated with 13-byte keys by one thread.
pub(super) struct Target {
    /// Description.
    pub(super) what: &'static str,
    pub(super) sketch: Family,
    /// Whether it tracks the largest flows.
    pub(super) top: bool,
    /// 1/p: a row is updated once in this many packets.
    pub(super) one_in: u32,
    /// Million updates per second.
    pub(super) target: u32,
    /// Ambitious target.
    pub(super) ambitious: u32,
}

use Family::{CountMin, CountSketch, UnivMon};

/// All targets. Errors should be within a tenth of the textbook's at p = 1.
pub(super) const TARGETS: [Target; 7] = [
    target("Count Sketch", CountSketch, false, 1, [120, 150]),
    target("Count-Min", CountMin, false, 1, [150, 200]),
    target("Nitro Count Sketch", CountSketch, false, 16, [150, 350]),
    target("Nitro Count Sketch", CountSketch, false, 128, [400, 1_000]),
    target("Nitro Count Sketch with the top 100", CountSketch, true, 128, [150, 300]),
    target("UnivMon", UnivMon, true, 1, [15, 25]),
    target("Nitro UnivMon", UnivMon, true, 128, [150, 300]),
];

const fn target(
    what: &'static str,
    sketch: Family,
    top: bool,
    one_in: u32,
    [target, ambitious]: [u32; 2],
) -> Target {
    Target { what, sketch, top, one_in, target, ambitious }
}
