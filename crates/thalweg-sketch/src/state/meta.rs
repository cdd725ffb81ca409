//! The metadata of a saved state.

use super::error::CombineError;

/// The separator between the labels of merged states.
const LABEL_SEPARATOR: &str = " + ";

/// The keys, the label and the window of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The kind of keys, such as `5tuple` or `src/24`; states with different kinds cannot be merged.
    pub key_kind: String,
    /// Any text, for example the collector's name.
    pub label: String,
    /// The start of the window, in nanoseconds since 1970; start and end are 0 without a window.
    pub start_ns: u64,
    /// The end of the window, in nanoseconds since 1970.
    pub end_ns: u64,
}

impl Meta {
    /// Whether the state has a window.
    pub fn has_window(&self) -> bool {
        (self.start_ns, self.end_ns) != (0, 0)
    }

    /// Merges `other` into this metadata: the shortest window that covers both, and each label once.
    ///
    /// # Errors
    /// If keys are of different kinds; then nothing changes.
    pub fn merge(&mut self, other: &Meta) -> Result<(), CombineError> {
        self.check(other)?;
        if other.has_window() {
            let is_first = !self.has_window();
            self.start_ns = if is_first { other.start_ns } else { self.start_ns.min(other.start_ns) };
            self.end_ns = self.end_ns.max(other.end_ns);
        }
        for label in other.label.split(LABEL_SEPARATOR).filter(|label| !label.is_empty()) {
            if !self.label.split(LABEL_SEPARATOR).any(|ours| ours == label) {
                let between = if self.label.is_empty() { "" } else { LABEL_SEPARATOR };
                self.label = format!("{}{between}{label}", self.label);
            }
        }
        Ok(())
    }

    /// Checks that the two states may be merged.
    ///
    /// # Errors
    /// If keys are of different kinds.
    pub fn check(&self, other: &Meta) -> Result<(), CombineError> {
        if self.key_kind == other.key_kind {
            return Ok(());
        }
        Err(CombineError::KeyKind { ours: self.key_kind.clone(), theirs: other.key_kind.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(label: &str, start_ns: u64, end_ns: u64) -> Meta {
        Meta { key_kind: "src".to_owned(), label: label.to_owned(), start_ns, end_ns }
    }

    #[test]
    fn a_merged_window_covers_both() {
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
    fn different_kinds_of_keys_are_not_merged() {
        let mut ours = meta("a", 1, 2);
        let theirs = Meta { key_kind: "dst".to_owned(), ..meta("b", 3, 4) };
        let expected = CombineError::KeyKind { ours: "src".to_owned(), theirs: "dst".to_owned() };
        assert_eq!(ours.merge(&theirs), Err(expected));
        assert_eq!(ours, meta("a", 1, 2));
    }
}
