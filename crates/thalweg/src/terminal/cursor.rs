//! The selected row of a list whose rows change places.
//!
//! The cursor stays with the row that was chosen, wherever it moves, so that Enter never acts on a row that
//! slipped under it. If that row goes away, the cursor stays where it was, on whatever is there now.

use ratatui::crossterm::event::KeyCode;

/// Which row is chosen, and which rows are in sight. `K` names a row.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<K> {
    /// What is chosen, if the user has moved at all, and where it was last seen.
    chosen: Option<(usize, K)>,
    /// First row in sight.
    offset: usize,
    /// Rows in sight when last drawn.
    page: usize,
}

/// Where to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Where a key moves to, if it moves at all.
pub(crate) fn step_of(code: KeyCode) -> Option<Step> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => Step::Up,
        KeyCode::Down | KeyCode::Char('j') => Step::Down,
        KeyCode::PageUp => Step::PageUp,
        KeyCode::PageDown => Step::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Step::First,
        KeyCode::End | KeyCode::Char('G') => Step::Last,
        _ => return None,
    })
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Cursor { chosen: None, offset: 0, page: 1 }
    }
}

impl<K: Clone + PartialEq> Cursor<K> {
    /// Index of the chosen row.
    pub(crate) fn index(&self) -> Option<usize> {
        self.chosen.as_ref().map(|(index, _)| *index)
    }

    /// Name of the chosen row.
    pub(crate) fn chosen(&self) -> Option<&K> {
        self.chosen.as_ref().map(|(_, key)| key)
    }

    /// Forgets the choice and goes back to the first row. Says whether there was a choice.
    pub(crate) fn reset(&mut self) -> bool {
        self.offset = 0;
        self.chosen.take().is_some()
    }

    /// Finds the chosen row again after the rows have changed.
    pub(crate) fn follow(&mut self, rows: &[K]) {
        let Some((index, key)) = &self.chosen else { return };
        let found = rows.iter().position(|row| row == key);
        self.choose(found.unwrap_or(*index), rows);
    }

    /// Moves; the first move down or up from no choice chooses the first row in sight.
    pub(crate) fn step(&mut self, step: Step, rows: &[K]) {
        let page = self.page.max(1);
        let index = match (step, self.index()) {
            (Step::First, _) => 0,
            (Step::Last, _) => usize::MAX,
            (_, None) => self.offset,
            (Step::Up, Some(index)) => index.saturating_sub(1),
            (Step::Down, Some(index)) => index + 1,
            (Step::PageUp, Some(index)) => index.saturating_sub(page),
            (Step::PageDown, Some(index)) => index + page,
        };
        self.choose(index, rows);
    }

    fn choose(&mut self, index: usize, rows: &[K]) {
        self.chosen = rows.len().checked_sub(1).map(|last| {
            let index = index.min(last);
            (index, rows[index].clone())
        });
    }

    /// The rows to draw where `height` of `rows` fit, with the chosen one among them.
    pub(crate) fn in_sight(&mut self, height: usize, rows: usize) -> std::ops::Range<usize> {
        self.page = height;
        if let Some(index) = self.index() {
            let lowest = (index + 1).saturating_sub(height);
            self.offset = self.offset.clamp(lowest, index.max(lowest));
        }
        self.offset = self.offset.min(rows.saturating_sub(height));
        self.offset..(self.offset + height).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cursor_follows_its_row_and_stays_in_place_when_the_row_goes() {
        let mut cursor = Cursor::default();
        cursor.step(Step::Down, &['a', 'b', 'c']);
        cursor.step(Step::Down, &['a', 'b', 'c']);
        assert_eq!(cursor.index(), Some(1));
        cursor.follow(&['b', 'c', 'a']);
        assert_eq!(cursor.index(), Some(0));
        cursor.follow(&['c', 'a']);
        assert_eq!(cursor.index(), Some(0));
        cursor.follow(&['x', 'c', 'a']);
        assert_eq!(cursor.index(), Some(1), "it now follows c");
        cursor.follow(&[]);
        assert_eq!(cursor.index(), None);
    }

    fn step() -> impl Strategy<Value = Step> {
        prop::sample::select(vec![
            Step::Up,
            Step::Down,
            Step::PageUp,
            Step::PageDown,
            Step::First,
            Step::Last,
        ])
    }

    proptest! {
        #[test]
        fn the_chosen_row_is_always_in_sight(
            moves in prop::collection::vec((step(), 0..50usize, 1..12usize), 1..40),
        ) {
            let mut cursor = Cursor::default();
            for (step, rows, height) in moves {
                let keys: Vec<usize> = (0..rows).collect();
                cursor.follow(&keys);
                cursor.step(step, &keys);
                let sight = cursor.in_sight(height, rows);
                prop_assert_eq!(sight.len(), height.min(rows));
                prop_assert_eq!(cursor.index().is_some(), rows > 0);
                prop_assert!(cursor.index().is_none_or(|index| sight.contains(&index)));
            }
        }
    }
}
