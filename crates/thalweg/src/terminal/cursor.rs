//! The selected row of a list whose rows move.
//!
//! The selection follows its row, so that Enter never acts on a row that moved under the cursor. If the row disappears, the
//! selection stays in place, on the row that is now there.

use ratatui::crossterm::event::KeyCode;

/// The selected row and the visible rows. `K` identifies a row.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<K> {
    /// The selected row with its last index; `None` until the user moves.
    selected: Option<(usize, K)>,
    /// First visible row.
    offset: usize,
    /// Number of visible rows when last drawn.
    page: usize,
}

/// A movement of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Returns the movement of a key; `None` for other keys.
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
        Cursor { selected: None, offset: 0, page: 1 }
    }
}

impl<K: Clone + PartialEq> Cursor<K> {
    /// Returns the index of the selected row.
    pub(crate) fn index(&self) -> Option<usize> {
        self.selected.as_ref().map(|(index, _)| *index)
    }

    /// Returns the selected row.
    pub(crate) fn selected(&self) -> Option<&K> {
        self.selected.as_ref().map(|(_, key)| key)
    }

    /// Clears the selection and scrolls to the first row. Returns whether a row was selected.
    pub(crate) fn reset(&mut self) -> bool {
        self.offset = 0;
        self.selected.take().is_some()
    }

    /// Finds the selected row again after the rows have changed.
    pub(crate) fn follow(&mut self, rows: &[K]) {
        let Some((index, key)) = &self.selected else { return };
        let found = rows.iter().position(|row| row == key);
        self.select(found.unwrap_or(*index), rows);
    }

    /// Moves the selection. Without one, Up and Down select the first visible row.
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
        self.select(index, rows);
    }

    /// Selects a row by index. Returns whether it was selected before.
    pub(crate) fn click(&mut self, index: usize, rows: &[K]) -> bool {
        let was_selected = self.index() == Some(index);
        self.select(index, rows);
        was_selected
    }

    fn select(&mut self, index: usize, rows: &[K]) {
        self.selected = rows.len().checked_sub(1).map(|last| {
            let index = index.min(last);
            (index, rows[index].clone())
        });
    }

    /// Returns the rows to draw if `height` of `rows` fit. Includes the selected row.
    pub(crate) fn visible_rows(&mut self, height: usize, rows: usize) -> std::ops::Range<usize> {
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
    fn the_selection_follows_its_row() {
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
        fn the_selected_row_is_always_visible(
            moves in prop::collection::vec((step(), 0..50usize, 1..12usize), 1..40),
        ) {
            let mut cursor = Cursor::default();
            for (step, rows, height) in moves {
                let keys: Vec<usize> = (0..rows).collect();
                cursor.follow(&keys);
                cursor.step(step, &keys);
                let visible = cursor.visible_rows(height, rows);
                prop_assert_eq!(visible.len(), height.min(rows));
                prop_assert_eq!(cursor.index().is_some(), rows > 0);
                prop_assert!(cursor.index().is_none_or(|index| visible.contains(&index)));
            }
        }
    }
}
