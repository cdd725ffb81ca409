//! What the mouse can hit: the rows and column titles of lists, and the keys of the last line.
//!
//! While it draws a frame, a view notes where its lists and keys are. A later click is looked up there. `L` names a list of the
//! view, `S` an order of its rows.

use std::ops::Range;

use ratatui::crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use super::cursor::Step;

/// Positions in the last frame.
#[derive(Clone, Debug)]
pub(crate) struct Hits<L, S> {
    lists: Vec<ListHits<L, S>>,
    keys: Vec<KeyHit>,
}

/// The position of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListHits<L, S> {
    pub(crate) list: L,
    /// Columns and lines of the rows.
    pub(crate) rows: Rect,
    /// Index of the first visible row.
    pub(crate) first: usize,
    /// Number of rows.
    pub(crate) count: usize,
    /// Columns by which the list can be sorted. Their titles are in the line above the rows.
    pub(crate) titles: Vec<(Range<u16>, S)>,
}

/// The position of a key in the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyHit {
    pub(crate) columns: Range<u16>,
    pub(crate) line: u16,
    pub(crate) key: KeyEvent,
}

/// What is under the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit<L, S> {
    /// A row of a list, by index.
    Row(L, usize),
    /// The title of a column that sorts.
    Title(S),
    /// A key of the last line.
    Key(KeyEvent),
}

/// What the user does with the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gesture<L, S> {
    /// Turns the wheel, which moves the selection.
    Wheel(Step),
    /// Clicks, with the left button; `None` where nothing is.
    Click(Option<Hit<L, S>>),
}

impl<L, S> Default for Hits<L, S> {
    fn default() -> Self {
        Hits { lists: Vec::new(), keys: Vec::new() }
    }
}

impl<L: Copy, S: Copy> Hits<L, S> {
    /// Notes a list without titles that sort.
    pub(crate) fn add_rows(&mut self, list: L, rows: Rect, first: usize, count: usize) {
        self.add_list(ListHits { list, rows, first, count, titles: Vec::new() });
    }

    /// Notes a list.
    pub(crate) fn add_list(&mut self, list: ListHits<L, S>) {
        self.lists.push(list);
    }

    /// Notes the keys of the last line.
    pub(crate) fn set_keys(&mut self, keys: Vec<KeyHit>) {
        self.keys = keys;
    }

    /// Returns what an event means; `None` for other buttons and movements.
    pub(crate) fn gesture(&self, event: MouseEvent) -> Option<Gesture<L, S>> {
        match event.kind {
            MouseEventKind::ScrollUp => Some(Gesture::Wheel(Step::Up)),
            MouseEventKind::ScrollDown => Some(Gesture::Wheel(Step::Down)),
            MouseEventKind::Down(MouseButton::Left) => Some(Gesture::Click(self.at(event.column, event.row))),
            _ => None,
        }
    }

    fn at(&self, x: u16, y: u16) -> Option<Hit<L, S>> {
        let key = self.keys.iter().find(|key| key.line == y && key.columns.contains(&x));
        key.map(|key| Hit::Key(key.key)).or_else(|| self.lists.iter().find_map(|list| list.at(x, y)))
    }
}

impl<L: Copy, S: Copy> ListHits<L, S> {
    fn at(&self, x: u16, y: u16) -> Option<Hit<L, S>> {
        if y + 1 == self.rows.y {
            return self
                .titles
                .iter()
                .find(|(columns, _)| columns.contains(&x))
                .map(|(_, sort)| Hit::Title(*sort));
        }
        if !self.rows.contains((x, y).into()) {
            return None;
        }
        let index = self.first + usize::from(y - self.rows.y);
        (index < self.count).then_some(Hit::Row(self.list, index))
    }
}

/// Returns the part of a table below its line of titles.
pub(crate) fn below_titles(table: Rect) -> Rect {
    Rect { y: table.y.saturating_add(1), height: table.height.saturating_sub(1), ..table }
}

/// Returns where the titles that sort are, of columns with these widths and a blank between them.
pub(crate) fn title_positions<S>(
    x: u16,
    columns: impl IntoIterator<Item = (u16, Option<S>)>,
) -> Vec<(Range<u16>, S)> {
    let mut positions = Vec::new();
    let mut begin = x;
    for (width, sort) in columns {
        positions.extend(sort.map(|sort| (begin..begin + width, sort)));
        begin += width + 1;
    }
    positions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn event(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
        MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
    }

    fn click<L: Copy, S: Copy>(hits: &Hits<L, S>, x: u16, y: u16) -> Option<Hit<L, S>> {
        match hits.gesture(event(MouseEventKind::Down(MouseButton::Left), x, y)) {
            Some(Gesture::Click(hit)) => hit,
            _ => panic!("no click"),
        }
    }

    fn hits() -> Hits<char, u8> {
        let mut hits = Hits::default();
        hits.add_list(ListHits {
            list: 'a',
            rows: Rect::new(0, 3, 20, 4),
            first: 10,
            count: 12,
            titles: title_positions(0, [(4, None), (5, Some(1)), (6, Some(2))]),
        });
        hits.add_rows('b', Rect::new(0, 9, 20, 3), 0, 100);
        let key = KeyEvent::from(KeyCode::Char('q'));
        hits.set_keys(vec![KeyHit { columns: 1..7, line: 12, key }]);
        hits
    }

    #[test]
    fn a_click_hits_a_row_a_title_or_a_key() {
        let hits = hits();
        assert_eq!(click(&hits, 0, 3), Some(Hit::Row('a', 10)));
        assert_eq!(click(&hits, 19, 4), Some(Hit::Row('a', 11)));
        assert_eq!(click(&hits, 19, 5), None, "the list has 12 rows");
        assert_eq!(click(&hits, 20, 4), None, "right of the list");
        assert_eq!(
            [4, 5, 9, 10, 11].map(|x| click(&hits, x, 2)),
            [None, Some(Hit::Title(1)), Some(Hit::Title(1)), None, Some(Hit::Title(2))]
        );
        assert_eq!(click(&hits, 3, 11), Some(Hit::Row('b', 2)));
        assert_eq!(click(&hits, 6, 12), Some(Hit::Key(KeyEvent::from(KeyCode::Char('q')))));
        assert_eq!(click(&hits, 7, 12), None);
    }

    #[test]
    fn only_the_left_button_and_the_wheel_count() {
        let of = |kind| hits().gesture(event(kind, 0, 3));
        assert_eq!(of(MouseEventKind::ScrollUp), Some(Gesture::Wheel(Step::Up)));
        assert_eq!(of(MouseEventKind::ScrollDown), Some(Gesture::Wheel(Step::Down)));
        for kind in [
            MouseEventKind::Down(MouseButton::Right),
            MouseEventKind::Up(MouseButton::Left),
            MouseEventKind::Drag(MouseButton::Left),
            MouseEventKind::Moved,
        ] {
            assert_eq!(of(kind), None, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn every_position_has_a_row_of_the_list_or_none(x: u16, y: u16) {
            match click(&hits(), x, y) {
                Some(Hit::Row('a', index)) => prop_assert!((10..12).contains(&index)),
                Some(Hit::Row(_, index)) => prop_assert!(index < 3),
                _ => {}
            }
        }
    }
}
