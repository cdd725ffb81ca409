//! The table of flows, of hosts, or of pairs of hosts.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use thalweg_watch::groups::{Group, GroupRow, Grouping};
use thalweg_watch::snapshot::{FlowRow, SortBy};
use thalweg_watch::traffic::Traffic;
use thalweg_wire::{BitRate, Protocol, Timestamp};

use super::super::mouse::List;
use super::super::view::LiveView;
use super::columns::{Column, FULL_BYTES_WIDTH, FULL_RATE_WIDTH, columns};
use crate::terminal::Theme;
use crate::terminal::bar::stacked;
use crate::terminal::endpoint::Labels;
use crate::terminal::mouse::{ListHits, below_titles, title_positions};
use crate::terminal::quantity::{age, grouped, short};
use crate::terminal::screen::{cut, right, row_styles, rule};

/// Draws the table below its rule.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let (grouping, sort) = (view.query.grouping, view.query.sort);
    let summary = summary(view);
    let title = cut(title(view), usize::from(area.width).saturating_sub(summary.width() + 1));
    let block = rule(theme, Line::from(title), summary);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let count = view.row_count();
    if count == 0 {
        return frame
            .render_widget(Paragraph::new(empty_message(view)).centered().style(theme.muted()), inner);
    }
    let height = usize::from(inner.height.saturating_sub(1));
    let (visible, selected) = match grouping {
        Grouping::Flow => (view.flows.visible_rows(height, count), view.flows.index()),
        Grouping::Host | Grouping::Pair => (view.groups.visible_rows(height, count), view.groups.index()),
    };
    let columns = columns(inner.width, sort, grouping);
    let titles = columns.iter().map(|(column, width)| (*width, column.sort_key()));
    view.hits.add_list(ListHits {
        list: List::Table,
        rows: below_titles(inner),
        first: visible.start,
        count,
        titles: title_positions(inner.x, titles),
    });
    let shown = view.displayed();
    let (labels, now) = (view.labels(&shown.snapshot), shown.snapshot.now);
    let row_at = |index: usize| match grouping {
        Grouping::Flow => Shown::Flow(&view.rows[index]),
        Grouping::Host | Grouping::Pair => Shown::Group(&view.group_rows[index]),
    };
    let top = (0..count).map(|index| row_at(index).traffic().total_rate().0).max().unwrap_or(0);
    let rows = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        let painter = Painter { theme, text, labels, columns: &columns, top, now };
        painter.row(row_at(index)).style(style)
    });
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    frame.render_widget(Table::new(rows, widths).header(header(theme, &columns, sort, grouping)), inner);
}

fn title(view: &LiveView) -> Vec<Span<'static>> {
    let theme = view.theme;
    let order = if view.query.descending { "" } else { ", reversed" };
    let mut spans = vec![Span::styled(format!(" {} ", view.query.grouping.plural()), theme.strong())];
    if let Some(scope) = view.query.scope {
        let labels = view.labels(&view.displayed().snapshot);
        let text = match scope {
            Group::Host(host) => labels.host(host, 40),
            Group::Pair(low, high) => format!("{} - {}", labels.host(low, 40), labels.host(high, 40)),
        };
        spans.push(Span::styled(format!("of {text} "), theme.strong()));
    }
    spans.push(Span::raw(format!("by {}{order} ", view.query.sort.label())));
    if !view.query.filter.is_empty() {
        spans.push(Span::styled(format!("filter: {} ", view.query.filter.line()), theme.warning()));
    }
    spans
}

fn summary(view: &LiveView) -> Line<'static> {
    let (shown, matching) = (view.row_count() as u64, view.matching());
    // The last snapshot has no filter.
    let is_of_all = view.has_ended() && (!view.query.filter.is_empty() || view.query.scope.is_some());
    let text = match matching > shown && shown > 0 {
        true if is_of_all => format!("{shown} of {}", grouped(matching)),
        true => format!("first {shown} of {}", grouped(matching)),
        false => grouped(shown),
    };
    let all_flows = view.displayed().snapshot.matching;
    let partial = match view.summed_flows() {
        Some(flows) if all_flows > flows as u64 => format!(", in the first {} flows", grouped(flows as u64)),
        _ => String::new(),
    };
    Line::from(vec![
        Span::styled(" ▲", view.theme.cheetah()),
        Span::styled(" cheetah ", view.theme.muted()),
        Span::styled("── ", view.theme.muted()),
        Span::raw(format!("{text}{partial} ")),
    ])
}

fn empty_message(view: &LiveView) -> String {
    let snapshot = &view.displayed().snapshot;
    let rows = view.query.grouping.plural();
    match () {
        () if snapshot.packets == 0 && !snapshot.ended => "\nwaiting for the first packet".to_owned(),
        () if !view.query.filter.is_empty() => format!("\nno {rows} match the filter"),
        () => format!("\nno live {rows}"),
    }
}

fn header(theme: Theme, columns: &[(Column, u16)], sort: SortBy, grouping: Grouping) -> Row<'static> {
    Row::new(columns.iter().map(|(column, width)| {
        let (text, right) = column.title(*width, grouping);
        let style = if column.sort_key() == Some(sort) { theme.strong() } else { theme.muted() };
        let line = Line::from(Span::styled(text, style));
        Cell::from(if right { line.alignment(Alignment::Right) } else { line })
    }))
}

/// A row of the table.
#[derive(Clone, Copy)]
enum Shown<'a> {
    Flow(&'a FlowRow),
    Group(&'a GroupRow),
}

impl Shown<'_> {
    fn traffic(self) -> Traffic {
        match self {
            Shown::Flow(row) => row.traffic,
            Shown::Group(row) => row.traffic,
        }
    }

    fn cheetah(self) -> [bool; 2] {
        match self {
            Shown::Flow(row) => row.cheetah,
            Shown::Group(row) => row.cheetah,
        }
    }

    fn end(self, labels: Labels<'_>, end: usize, width: u16) -> String {
        match (self, end) {
            (Shown::Flow(row), 0) => labels.source(&row.key, width),
            (Shown::Flow(row), _) => labels.destination(&row.key, width),
            (Shown::Group(row), _) => {
                row.group.addresses().nth(end).map_or_else(String::new, |address| labels.host(address, width))
            }
        }
    }

    fn protocol(self) -> String {
        match self {
            Shown::Flow(row) => row.key.protocol.to_string(),
            Shown::Group(_) => String::new(),
        }
    }

    fn flags(self) -> String {
        match self {
            Shown::Flow(row) if row.key.protocol == Protocol::TCP => {
                (row.tcp_flags[0] | row.tcp_flags[1]).to_string()
            }
            Shown::Flow(_) | Shown::Group(_) => String::new(),
        }
    }
}

/// Draws rows.
struct Painter<'a> {
    theme: Theme,
    /// Theme of the text: plain in the selected row.
    text: Theme,
    labels: Labels<'a>,
    columns: &'a [(Column, u16)],
    /// Rate that fills the bar.
    top: u64,
    now: Timestamp,
}

impl Painter<'_> {
    fn row(&self, row: Shown<'_>) -> Row<'static> {
        Row::new(self.columns.iter().map(|(column, width)| Cell::from(self.cell(*column, *width, row))))
    }

    fn cell(&self, column: Column, width: u16, row: Shown<'_>) -> Line<'static> {
        let theme = self.text;
        let traffic = row.traffic();
        match column {
            Column::Mark => Line::styled(if row.cheetah() == [false; 2] { "" } else { "▲" }, theme.cheetah()),
            Column::Protocol => Line::from(row.protocol()),
            Column::End(end) => Line::from(row.end(self.labels, end, width)),
            Column::Rate(direction) => self.rate(row, direction, width),
            Column::Bar => Line::from(stacked(self.theme, traffic.rate.map(|rate| rate.0), self.top, width)),
            Column::Bytes if width >= FULL_BYTES_WIDTH => right(traffic.total_bytes().to_string()),
            Column::Bytes => right(short(traffic.total_bytes().0)),
            Column::Packets => right(short(traffic.total_packets())),
            Column::Flows => right(short(traffic.flows)),
            Column::Age => right(age(self.now - traffic.first)),
            Column::Idle => right(age(self.now - traffic.last)).style(theme.muted()),
            Column::Flags => Line::styled(row.flags(), theme.muted()),
        }
    }

    fn rate(&self, row: Shown<'_>, direction: usize, width: u16) -> Line<'static> {
        let BitRate(rate) = row.traffic().rate[direction];
        let style = match () {
            () if row.cheetah()[direction] => self.text.cheetah(),
            () if rate == 0 => self.text.muted(),
            () if direction == 0 => self.text.outward(),
            () => self.text.inward(),
        };
        let text = if width >= FULL_RATE_WIDTH { BitRate(rate).to_string() } else { short(rate) };
        right(text).style(style)
    }
}
