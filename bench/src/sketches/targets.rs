//! Speeds aimed at, beside those measured.

use super::contender::Family;

/// An aim for one sketch of the common shape, fed with 13-byte keys by one thread.
pub(super) struct Aim {
    /// In words.
    pub(super) what: &'static str,
    pub(super) sketch: Family,
    /// Whether it notes the largest flows.
    pub(super) top: bool,
    /// Rows are counted once in so many.
    pub(super) one_in: u32,
    /// Million updates a second.
    pub(super) aim: u32,
    /// What would be remarkable.
    pub(super) far_aim: u32,
}

use Family::{CountMin, CountSketch, UnivMon};

/// All of them. Errors are to be within a tenth of the textbook's at p = 1.
pub(super) const AIMS: [Aim; 7] = [
    aim("Count Sketch", CountSketch, false, 1, [120, 150]),
    aim("Count-Min", CountMin, false, 1, [150, 200]),
    aim("Nitro Count Sketch", CountSketch, false, 16, [150, 350]),
    aim("Nitro Count Sketch", CountSketch, false, 128, [400, 1_000]),
    aim("Nitro Count Sketch with the top 100", CountSketch, true, 128, [150, 300]),
    aim("UnivMon", UnivMon, true, 1, [15, 25]),
    aim("Nitro UnivMon", UnivMon, true, 128, [150, 300]),
];

const fn aim(what: &'static str, sketch: Family, top: bool, one_in: u32, [aim, far_aim]: [u32; 2]) -> Aim {
    Aim { what, sketch, top, one_in, aim, far_aim }
}
