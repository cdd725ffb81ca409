//! What a saved state says about itself beside its numbers.

use super::error::CombineError;

/// What stands between the labels of states that were merged.
const BETWEEN_LABELS: &str = " + ";

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
}
