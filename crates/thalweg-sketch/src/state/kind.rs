//! The kind of sketch of a state.

use std::fmt;

/// Kinds of sketch that can be saved; the numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// [`crate::CountMin`].
    CountMin = 1,
    /// [`crate::CountSketch`].
    CountSketch = 2,
    /// [`crate::KAry`].
    KAry = 3,
    /// [`crate::UnivMon`].
    UnivMon = 4,
    /// [`crate::HyperLogLog`].
    HyperLogLog = 5,
    /// [`crate::Spread`].
    Spread = 6,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] =
        [Kind::CountMin, Kind::CountSketch, Kind::KAry, Kind::UnivMon, Kind::HyperLogLog, Kind::Spread];

    pub(super) fn of(number: u8) -> Option<Kind> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

/// Formats as in the papers: `Count-Min`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::CountMin => "Count-Min",
            Kind::CountSketch => "Count Sketch",
            Kind::KAry => "K-ary",
            Kind::UnivMon => "UnivMon",
            Kind::HyperLogLog => "HyperLogLog",
            Kind::Spread => "Spread",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketch_kinds_have_unique_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind as u8), Some(kind));
        }
        assert_eq!((Kind::of(0), Kind::of(7)), (None, None));
    }
}
