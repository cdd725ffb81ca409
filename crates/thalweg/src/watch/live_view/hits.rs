//! Where the last frame drew what a mouse can hit.

use std::ops::Range;

use thalweg_watch::snapshot::SortBy;

/// Positions in the last frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// The list of the pane, if it has rows.
    pub(super) table: Option<TableHits>,
}

/// Positions of a list.
#[derive(Clone, Debug)]
pub(super) struct TableHits {
    /// Line of the column titles.
    pub(super) header: u16,
    /// Lines of the rows.
    pub(super) rows: Range<u16>,
    /// Index of the first visible row.
    pub(super) first: usize,
    /// Number of rows.
    pub(super) count: usize,
    /// Columns by which the list can be sorted.
    pub(super) columns: Vec<(Range<u16>, SortBy)>,
}

/// What is under the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// A row, by index.
    Row(usize),
    /// The title of a column that sorts.
    Title(SortBy),
}

impl Hits {
    /// Returns what is at a position.
    pub(super) fn at(&self, x: u16, y: u16) -> Option<Hit> {
        let table = self.table.as_ref()?;
        if y == table.header {
            let column = table.columns.iter().find(|(place, _)| place.contains(&x))?;
            return Some(Hit::Title(column.1));
        }
        if !table.rows.contains(&y) {
            return None;
        }
        let index = table.first + usize::from(y - table.rows.start);
        (index < table.count).then_some(Hit::Row(index))
    }
}
