//! The columns of the table. They depend only on what a row is and on the width of the screen, so nothing shifts from frame to
//! frame.

use thalweg_watch::groups::Grouping;
use thalweg_watch::snapshot::SortBy;

use crate::terminal::endpoint::{IPV4_WIDTH, IPV6_WIDTH};
use crate::terminal::quantity::{AGE_WIDTH, SHORT_WIDTH};

/// Columns of `9.99 Mbit/s`.
pub(super) const FULL_RATE_WIDTH: u16 = 11;
/// Columns of `9.99 MB`.
pub(super) const FULL_BYTES_WIDTH: u16 = 7;
/// Columns of `icmp6`; a longer name is cut.
const PROTOCOL_WIDTH: u16 = 5;
const MIN_BAR_WIDTH: u16 = 5;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Mark,
    Protocol,
    /// The initiator (0) or the responder (1) of a flow, the host, or the first (0) or second (1) host of a pair.
    End(usize),
    /// Rate from the first end (0) or to it (1).
    Rate(usize),
    Bar,
    Bytes,
    Packets,
    /// Number of flows.
    Flows,
    Age,
    Idle,
    Flags,
}

impl Column {
    /// Returns the sort key of which the column shows the values.
    pub(super) fn sort_key(self) -> Option<SortBy> {
        match self {
            Column::Rate(_) | Column::Bar => Some(SortBy::Rate),
            Column::Bytes => Some(SortBy::Bytes),
            Column::Packets => Some(SortBy::Packets),
            Column::Flows => Some(SortBy::Flows),
            Column::Age => Some(SortBy::Age),
            Column::Idle => Some(SortBy::Last),
            Column::Mark | Column::Protocol | Column::End(_) | Column::Flags => None,
        }
    }

    /// Returns the title, and whether it is at the right.
    pub(super) fn title(self, width: u16, grouping: Grouping) -> (&'static str, bool) {
        let full = width >= FULL_RATE_WIDTH;
        match (self, grouping) {
            (Column::Mark | Column::Bar, _) => ("", false),
            (Column::Protocol, _) => ("proto", false),
            (Column::End(0), Grouping::Flow) => ("initiator", false),
            (Column::End(_), Grouping::Flow) => ("responder", false),
            (Column::End(0), _) => ("host", false),
            (Column::End(_), _) => ("peer", false),
            (Column::Rate(0), _) => (if full { "→ rate" } else { "→ b/s" }, true),
            (Column::Rate(_), _) => (if full { "← rate" } else { "← b/s" }, true),
            (Column::Bytes, _) => ("bytes", true),
            (Column::Packets, _) => ("pkts", true),
            (Column::Flows, _) => ("flows", true),
            (Column::Age, _) => ("age", true),
            (Column::Idle, _) => ("idle", true),
            (Column::Flags, _) => ("flags", false),
        }
    }
}

/// Returns the columns and their widths. With a blank between columns they fill `width`.
pub(super) fn columns(width: u16, sort: SortBy, grouping: Grouping) -> Vec<(Column, u16)> {
    let full = width >= 104;
    let rate = if full { FULL_RATE_WIDTH } else { SHORT_WIDTH };
    let bytes = if full { FULL_BYTES_WIDTH } else { SHORT_WIDTH };
    let mut columns = vec![(Column::Mark, 1)];
    match grouping {
        Grouping::Flow => columns.push((Column::Protocol, PROTOCOL_WIDTH)),
        Grouping::Host | Grouping::Pair => {}
    }
    columns.push((Column::End(0), IPV4_WIDTH));
    if grouping != Grouping::Host {
        columns.push((Column::End(1), IPV4_WIDTH));
    }
    columns.extend([(Column::Rate(0), rate), (Column::Rate(1), rate)]);
    if width >= 74 {
        columns.push((Column::Bar, MIN_BAR_WIDTH));
    }
    // On narrow screens, the sort column replaces a similar one.
    let narrow = width < 92;
    if !narrow || sort != SortBy::Packets {
        columns.push((Column::Bytes, bytes));
    }
    if !narrow || sort == SortBy::Packets {
        columns.push((Column::Packets, SHORT_WIDTH));
    }
    if grouping != Grouping::Flow {
        columns.push((Column::Flows, SHORT_WIDTH));
    }
    if !narrow || sort != SortBy::Last {
        columns.push((Column::Age, AGE_WIDTH));
    }
    if !narrow || sort == SortBy::Last {
        columns.push((Column::Idle, AGE_WIDTH));
    }
    if width >= 150 && grouping == Grouping::Flow {
        columns.push((Column::Flags, 8));
    }
    stretch(&mut columns, width);
    columns
}

/// Gives the spare width to the bar and to the ends, up to the longest IPv6 endpoint. Takes missing width from the ends.
fn stretch(columns: &mut [(Column, u16)], width: u16) {
    let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum::<u16>() - 1;
    let (spare, missing) = (width.saturating_sub(taken), taken.saturating_sub(width));
    let ends = columns.iter().filter(|(column, _)| matches!(column, Column::End(_))).count() as u16;
    let has_bar = columns.iter().any(|(column, _)| *column == Column::Bar);
    let most = if has_bar { IPV6_WIDTH - IPV4_WIDTH } else { spare };
    let each = (spare / if has_bar { 3 } else { ends }).min(most);
    let mut left = spare - ends * each;
    for (column, width) in columns {
        match column {
            Column::End(0) => {
                let cut = if ends == 1 { missing } else { missing / 2 };
                *width = *width + each - cut;
                if !has_bar {
                    *width += std::mem::take(&mut left);
                }
            }
            Column::End(_) => *width = *width + each - missing.div_ceil(2),
            Column::Bar => *width += left,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_every_width_exactly() {
        for width in 60..400 {
            for grouping in Grouping::ALL {
                for sort in SortBy::of(grouping) {
                    let columns = columns(width, *sort, grouping);
                    let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum::<u16>() - 1;
                    assert_eq!(taken, width, "{grouping:?} {sort:?}");
                    let end = columns.iter().rfind(|(column, _)| matches!(column, Column::End(_))).unwrap().1;
                    assert!((11..=IPV6_WIDTH).contains(&end), "{grouping:?} {width}: {end}");
                    let has_sort = columns.iter().any(|(column, _)| column.sort_key() == Some(*sort));
                    assert!(has_sort, "{grouping:?} {sort:?} {width}");
                }
            }
        }
    }
}
