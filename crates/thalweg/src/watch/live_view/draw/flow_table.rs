//! The flow table. Its columns depend only on the width of the screen, so nothing shifts from frame to frame.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use thalweg_wire::{BitRate, Protocol, Timestamp};

use super::super::view::LiveView;
use crate::terminal::Theme;
use crate::terminal::bar::stacked;
use crate::terminal::endpoint::{self, IPV4_WIDTH, IPV6_WIDTH};
use crate::terminal::quantity::{AGE_WIDTH, SHORT_WIDTH, age, grouped, short};
use crate::terminal::screen::{cut, right, row_styles, rule};
use thalweg_watch::snapshot::{FlowRow, SortBy};

/// Columns of `9.99 Mbit/s`.
const FULL_RATE_WIDTH: u16 = 11;
/// Columns of `9.99 MB`.
const FULL_BYTES_WIDTH: u16 = 7;
/// Columns of `icmp6`; a longer name is cut.
const PROTOCOL_WIDTH: u16 = 5;
const MIN_BAR_WIDTH: u16 = 5;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Mark,
    Protocol,
    Initiator,
    Responder,
    /// Rate from the initiator (0) or to it (1).
    Rate(usize),
    Bar,
    Bytes,
    Packets,
    Age,
    Idle,
    Flags,
}

/// Returns the columns and their widths. With a blank between columns they fill `width`.
fn columns(width: u16, sort: SortBy) -> Vec<(Column, u16)> {
    let full = width >= 104;
    let rate = if full { FULL_RATE_WIDTH } else { SHORT_WIDTH };
    let bytes = if full { FULL_BYTES_WIDTH } else { SHORT_WIDTH };
    let mut columns = vec![
        (Column::Mark, 1),
        (Column::Protocol, PROTOCOL_WIDTH),
        (Column::Initiator, IPV4_WIDTH),
        (Column::Responder, IPV4_WIDTH),
        (Column::Rate(0), rate),
        (Column::Rate(1), rate),
    ];
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
    if !narrow || sort != SortBy::Last {
        columns.push((Column::Age, AGE_WIDTH));
    }
    if !narrow || sort == SortBy::Last {
        columns.push((Column::Idle, AGE_WIDTH));
    }
    if width >= 150 {
        columns.push((Column::Flags, 8));
    }
    stretch(&mut columns, width);
    columns
}

/// Gives the spare width to the bar and to the endpoints, up to the longest IPv6 endpoint. Takes missing width from the
/// endpoints.
fn stretch(columns: &mut [(Column, u16)], width: u16) {
    let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum::<u16>() - 1;
    let (spare, missing) = (width.saturating_sub(taken), taken.saturating_sub(width));
    let each = (spare / 3).min(IPV6_WIDTH - IPV4_WIDTH);
    for (column, width) in columns {
        match column {
            Column::Initiator => *width = *width + each - missing / 2,
            Column::Responder => *width = *width + each - missing.div_ceil(2),
            Column::Bar => *width += spare - 2 * each,
            _ => {}
        }
    }
}

/// Draws the table below its rule.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let summary = summary(view);
    let title = cut(title(view), usize::from(area.width).saturating_sub(summary.width() + 1));
    let block = rule(theme, Line::from(title), summary);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if view.rows.is_empty() {
        return frame
            .render_widget(Paragraph::new(empty_message(view)).centered().style(theme.muted()), inner);
    }
    let height = usize::from(inner.height.saturating_sub(1));
    let visible = view.flows.visible_rows(height, view.rows.len());
    let selected = view.flows.index();
    let columns = columns(inner.width, view.query.sort);
    let top = view.rows.iter().map(|row| row.total_rate().0).max().unwrap_or(0);
    let now = view.displayed().snapshot.now;
    let rows = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        let painter = Painter { theme, text, columns: &columns, top, now };
        painter.row(&view.rows[index]).style(style)
    });
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let table = Table::new(rows, widths).header(header(theme, &columns, view.query.sort));
    frame.render_widget(table, inner);
}

fn title(view: &LiveView) -> Vec<Span<'static>> {
    let theme = view.theme;
    let order = if view.query.descending { "" } else { ", reversed" };
    let mut spans = vec![
        Span::styled(" flows ", theme.strong()),
        Span::raw(format!("by {}{order} ", view.query.sort.label())),
    ];
    if !view.query.filter.is_empty() {
        spans.push(Span::styled(format!("filter: {} ", view.query.filter.line()), theme.warning()));
    }
    spans
}

fn summary(view: &LiveView) -> Line<'static> {
    let (shown, matching) = (view.rows.len() as u64, view.displayed().snapshot.matching);
    // The last snapshot has no filter.
    let is_of_all = view.has_ended() && !view.query.filter.is_empty();
    let text = match matching > shown && shown > 0 {
        true if is_of_all => format!("{shown} of {}", grouped(matching)),
        true => format!("first {shown} of {}", grouped(matching)),
        false => grouped(shown),
    };
    Line::from(vec![
        Span::styled(" ▲", view.theme.cheetah()),
        Span::styled(" cheetah ", view.theme.muted()),
        Span::styled("── ", view.theme.muted()),
        Span::raw(format!("{text} ")),
    ])
}

fn empty_message(view: &LiveView) -> String {
    let snapshot = &view.displayed().snapshot;
    match () {
        () if snapshot.packets == 0 && !snapshot.ended => "\nwaiting for the first packet".to_owned(),
        () if !view.query.filter.is_empty() => "\nno flows match the filter".to_owned(),
        () => "\nno live flows".to_owned(),
    }
}

fn header(theme: Theme, columns: &[(Column, u16)], sort: SortBy) -> Row<'static> {
    Row::new(columns.iter().map(|(column, width)| {
        let full = *width >= FULL_RATE_WIDTH;
        let (text, right) = match column {
            Column::Mark => ("", false),
            Column::Protocol => ("proto", false),
            Column::Initiator => ("initiator", false),
            Column::Responder => ("responder", false),
            Column::Rate(0) => (if full { "→ rate" } else { "→ b/s" }, true),
            Column::Rate(_) => (if full { "← rate" } else { "← b/s" }, true),
            Column::Bar => ("", false),
            Column::Bytes => ("bytes", true),
            Column::Packets => ("pkts", true),
            Column::Age => ("age", true),
            Column::Idle => ("idle", true),
            Column::Flags => ("flags", false),
        };
        let sorted = matches!(
            (column, sort),
            (Column::Rate(_), SortBy::Rate)
                | (Column::Bytes, SortBy::Bytes)
                | (Column::Packets, SortBy::Packets)
                | (Column::Age, SortBy::Age)
                | (Column::Idle, SortBy::Last)
        );
        let style = if sorted { theme.strong() } else { theme.muted() };
        let line = Line::from(Span::styled(text, style));
        Cell::from(if right { line.alignment(Alignment::Right) } else { line })
    }))
}

/// Draws rows.
struct Painter<'a> {
    theme: Theme,
    /// Theme of the text: plain in the selected row.
    text: Theme,
    columns: &'a [(Column, u16)],
    /// Rate that fills the bar.
    top: u64,
    now: Timestamp,
}

impl Painter<'_> {
    fn row(&self, row: &FlowRow) -> Row<'static> {
        Row::new(self.columns.iter().map(|(column, width)| Cell::from(self.cell(*column, *width, row))))
    }

    fn cell(&self, column: Column, width: u16, row: &FlowRow) -> Line<'static> {
        let theme = self.text;
        match column {
            Column::Mark => Line::styled(if row.is_cheetah() { "▲" } else { "" }, theme.cheetah()),
            Column::Protocol => Line::from(row.key.protocol.to_string()),
            Column::Initiator => Line::from(endpoint::source(&row.key, width)),
            Column::Responder => Line::from(endpoint::destination(&row.key, width)),
            Column::Rate(direction) => self.rate(row, direction, width),
            Column::Bar => Line::from(stacked(self.theme, row.rate.map(|rate| rate.0), self.top, width)),
            Column::Bytes if width >= FULL_BYTES_WIDTH => right(row.total_bytes().to_string()),
            Column::Bytes => right(short(row.total_bytes().0)),
            Column::Packets => right(short(row.total_packets())),
            Column::Age => right(age(self.now - row.first)),
            Column::Idle => right(age(self.now - row.last)).style(theme.muted()),
            Column::Flags => Line::styled(flags(row), theme.muted()),
        }
    }

    fn rate(&self, row: &FlowRow, direction: usize, width: u16) -> Line<'static> {
        let BitRate(rate) = row.rate[direction];
        let style = match () {
            () if row.cheetah[direction] => self.text.cheetah(),
            () if rate == 0 => self.text.muted(),
            () if direction == 0 => self.text.outward(),
            () => self.text.inward(),
        };
        let text = if width >= FULL_RATE_WIDTH { BitRate(rate).to_string() } else { short(rate) };
        right(text).style(style)
    }
}

fn flags(row: &FlowRow) -> String {
    match row.key.protocol {
        Protocol::TCP => (row.tcp_flags[0] | row.tcp_flags[1]).to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_every_width_exactly() {
        for width in 60..400 {
            for sort in SortBy::ALL {
                let columns = columns(width, sort);
                let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum::<u16>() - 1;
                assert_eq!(taken, width, "{sort:?}");
                let endpoint = columns.iter().find(|(column, _)| *column == Column::Responder).unwrap().1;
                assert!((11..=IPV6_WIDTH).contains(&endpoint), "{width}: {endpoint}");
            }
        }
    }
}
