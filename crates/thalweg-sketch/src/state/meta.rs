//! What a saved state says about itself beside its numbers.

use std::fmt;

use super::error::CombineError;

/// What stands between the labels of states that were merged.
const BETWEEN_LABELS: &str = " + ";

/// Kinds of summary that can be saved; the numbers are those of the format.
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
    /// All there are.
    pub const ALL: [Kind; 6] =
        [Kind::CountMin, Kind::CountSketch, Kind::KAry, Kind::UnivMon, Kind::HyperLogLog, Kind::Spread];

    pub(super) fn of(number: u8) -> Option<Kind> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

/// As papers call it: `Count-Min`.
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

/// What was counted, when, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// What the keys are, such as `5tuple` or `src/24`: states of different ones are not put together.
    pub key_kind: String,
    /// Anything: the collector's name, for example.
    pub label: String,
    /// Beginning of the window, in nanoseconds since 1970; 0 with an end of 0 if there is none.
    pub start_ns: u64,
    /// End of the window, in nanoseconds since 1970.
    pub end_ns: u64,
}

impl Meta {
    /// Whether there is a window.
    pub fn has_window(&self) -> bool {
        (self.start_ns, self.end_ns) != (0, 0)
    }

    /// Makes it that of both: the shortest window that has both, and the labels of both, each once.
    ///
    /// # Errors
    /// If keys are of different kinds; then nothing has changed.
    pub fn merge(&mut self, other: &Meta) -> Result<(), CombineError> {
        self.check(other)?;
        if other.has_window() {
            let is_first = !self.has_window();
            self.start_ns = if is_first { other.start_ns } else { self.start_ns.min(other.start_ns) };
            self.end_ns = self.end_ns.max(other.end_ns);
        }
        for label in other.label.split(BETWEEN_LABELS).filter(|label| !label.is_empty()) {
            if !self.label.split(BETWEEN_LABELS).any(|mine| mine == label) {
                let between = if self.label.is_empty() { "" } else { BETWEEN_LABELS };
                self.label = format!("{}{between}{label}", self.label);
            }
        }
        Ok(())
    }

    /// Whether states of the two can be put together.
    ///
    /// # Errors
    /// If keys are of different kinds.
    pub fn check(&self, other: &Meta) -> Result<(), CombineError> {
        if self.key_kind == other.key_kind {
            return Ok(());
        }
        Err(CombineError::KeyKind { mine: self.key_kind.clone(), theirs: other.key_kind.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(label: &str, start_ns: u64, end_ns: u64) -> Meta {
        Meta { key_kind: "src".to_owned(), label: label.to_owned(), start_ns, end_ns }
    }

    #[test]
    fn the_window_of_both_has_both() {
        let mut whole = meta("", 0, 0);
        for (part, label, window) in [
            (meta("", 0, 0), "", (0, 0)),
            (meta("a", 20, 30), "a", (20, 30)),
            (meta("b", 10, 25), "a + b", (10, 30)),
            (meta("a", 28, 40), "a + b", (10, 40)),
            (meta("", 0, 0), "a + b", (10, 40)),
            (meta("b + c", 15, 16), "a + b + c", (10, 40)),
        ] {
            whole.merge(&part).unwrap();
            assert_eq!((whole.label.as_str(), (whole.start_ns, whole.end_ns)), (label, window));
        }
    }

    #[test]
    fn keys_of_different_kinds_stay_apart() {
        let mut mine = meta("a", 1, 2);
        let theirs = Meta { key_kind: "dst".to_owned(), ..meta("b", 3, 4) };
        let expected = CombineError::KeyKind { mine: "src".to_owned(), theirs: "dst".to_owned() };
        assert_eq!(mine.merge(&theirs), Err(expected));
        assert_eq!(mine, meta("a", 1, 2));
    }

    #[test]
    fn kinds_are_told_by_their_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind as u8), Some(kind));
        }
        assert_eq!((Kind::of(0), Kind::of(7)), (None, None));
    }
}
