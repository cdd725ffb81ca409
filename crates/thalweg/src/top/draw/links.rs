//! The table of links.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use thalweg_api::Link;
use thalweg_wire::{BitRate, Timestamp};

use super::super::model::{ObservedLink, SortBy};
use super::super::mouse::List;
use super::super::view::TopView;
use super::rate::{FULL_RATE, SHORT_RATE, link_rate_text};
use crate::terminal::Theme;
use crate::terminal::bar::single;
use crate::terminal::endpoint::elided;
use crate::terminal::mouse::{ListHits, below_titles, title_positions};
use crate::terminal::quantity::{SHORT_WIDTH, age, grouped, percent, short};
use crate::terminal::screen::{right, row_styles, rule};

/// Columns of `10.00 Gbit/s`.
const FULL_CAPACITY: u16 = 11;
/// Columns of `100 %`.
const PERCENT: u16 = 5;
/// Columns of `changed`, which holds an age, and `never`.
const CHANGED: u16 = 7;
/// Utilisation from which a link is shown as highly loaded, and as full.
const HIGH: f64 = 0.7;
const FULL: f64 = 0.9;

/// Titles of the columns, whether at the right, and the order that a click on them sets.
const COLUMNS: [(&str, bool, Option<SortBy>); 10] = [
    ("", false, None),
    ("link", false, Some(SortBy::Name)),
    ("peer", false, None),
    ("by", false, None),
    ("util", true, Some(SortBy::Utilisation)),
    ("", false, Some(SortBy::Utilisation)),
    ("rate", true, Some(SortBy::Rate)),
    ("of", true, None),
    ("flows", true, Some(SortBy::Flows)),
    ("changed", true, Some(SortBy::Changed)),
];

/// Columns that depend on the width of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    name: u16,
    peer: u16,
    bar: u16,
    rate: u16,
    capacity: u16,
    /// 0 if it does not fit.
    changed: u16,
    /// The collector; 0 if no link is observed by more than one.
    by: u16,
}

impl Widths {
    fn of(width: u16, has_by: bool) -> Widths {
        let by = if has_by { (width / 8).clamp(8, 16) } else { 0 };
        let is_full = width >= 104 + 2 * by;
        let rate = if is_full { FULL_RATE } else { SHORT_RATE };
        let capacity = if is_full { FULL_CAPACITY } else { SHORT_WIDTH };
        let changed = if width >= 72 + 2 * by { CHANGED } else { 0 };
        // The mark, flows, and a blank after every column except the last.
        let optional =
            [changed, by].into_iter().filter(|width| *width > 0).map(|width| width + 1).sum::<u16>();
        let fixed = 1 + PERCENT + rate + capacity + SHORT_WIDTH + 7 + optional;
        let rest = width.saturating_sub(fixed);
        let name = (rest * 2 / 5).clamp(11, 30);
        let peer = (rest / 3).clamp(6, 24).min(rest - name);
        Widths { name, peer, bar: rest - name - peer, rate, capacity, changed, by }
    }

    /// Returns the widths of all columns; omitted ones have width 0.
    fn all(self) -> [u16; 10] {
        let Widths { name, peer, bar, rate, capacity, changed, by } = self;
        [1, name, peer, by, PERCENT, bar, rate, capacity, SHORT_WIDTH, changed]
    }

    /// Returns the columns that are not omitted.
    fn visible<T>(self, columns: [T; 10]) -> impl Iterator<Item = T> {
        columns.into_iter().zip(self.all()).filter(|(_, width)| *width > 0).map(|(column, _)| column)
    }
}

/// Draws the table below its rule.
pub(super) fn draw(view: &mut TopView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let block = rule(theme, title(view), Line::from(count(view)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if view.link_rows.is_empty() {
        let message = Paragraph::new(empty_message(view)).centered().style(theme.muted());
        return frame.render_widget(message, inner);
    }
    let visible = view.links.visible_rows(usize::from(inner.height.saturating_sub(1)), view.link_rows.len());
    let widths = Widths::of(inner.width, view.has_links_twice());
    let titles =
        widths.visible(widths.all()).zip(widths.visible(COLUMNS)).map(|(width, (_, _, by))| (width, by));
    view.hits.add_list(ListHits {
        list: List::Links,
        rows: below_titles(inner),
        first: visible.start,
        count: view.link_rows.len(),
        titles: title_positions(inner.x, titles),
    });
    let selected = view.links.index();
    let below = view.displayed().details.on_link.as_ref().map(|on_link| &on_link.link);
    let rows = visible.map(|index| {
        let link = &view.link_rows[index];
        let (text, style) = row_styles(theme, selected == Some(index));
        let is_below = below == Some(&ObservedLink::from(link));
        row(text, link, view.responded_at(&link.collector), is_below, widths).style(style)
    });
    let columns = widths.visible(widths.all()).map(Constraint::Length);
    frame.render_widget(Table::new(rows, columns).header(header(theme, view.sort, widths)), inner);
}

fn title(view: &TopView) -> Line<'static> {
    let order = if view.is_reversed { ", reversed" } else { "" };
    let mut spans = vec![
        Span::styled(" links ", view.theme.strong()),
        Span::raw(format!("by {}{order} ", view.sort.label())),
    ];
    if !view.link_filter.text().is_empty() {
        spans.push(Span::styled(format!("filter: {} ", view.link_filter.text()), view.theme.warning()));
    }
    Line::from(spans)
}

fn count(view: &TopView) -> String {
    let all = view.displayed().snapshot.as_ref().map_or(0, |snapshot| snapshot.links.len());
    match view.link_rows.len() {
        shown if shown == all => format!(" {} ", grouped(all as u64)),
        shown => format!(" {} of {} ", grouped(shown as u64), grouped(all as u64)),
    }
}

fn empty_message(view: &TopView) -> &'static str {
    match &view.displayed().snapshot {
        None => "\nwaiting for the daemon",
        Some(snapshot) if snapshot.collectors.is_empty() => "\nthe daemon has no collectors",
        Some(snapshot) if !snapshot.links.is_empty() => "\nno links match the filter",
        Some(snapshot) if snapshot.now().is_none() => "\nno collector responds",
        Some(_) => "\nno traffic yet, or no topology",
    }
}

fn header(theme: Theme, sort: SortBy, widths: Widths) -> Row<'static> {
    Row::new(widths.visible(COLUMNS).map(|(name, is_right, by)| {
        let style = if by == Some(sort) { theme.strong() } else { theme.muted() };
        let line = Line::styled(name, style);
        Cell::from(if is_right { line.right_aligned() } else { line })
    }))
}

fn row(theme: Theme, link: &Link, now: Option<Timestamp>, is_below: bool, widths: Widths) -> Row<'static> {
    let share = link.utilisation;
    let style = utilisation_style(theme, share);
    let capacity = match widths.capacity {
        FULL_CAPACITY => BitRate(link.capacity_bps).to_string(),
        _ => short(link.capacity_bps),
    };
    let quiet = if link.flows == 0 { theme.muted() } else { Style::new() };
    let changed = match (now, link.changed) {
        (_, None) => "never".to_owned(),
        (Some(now), Some(changed)) => age(now - changed.0),
        (None, _) => "?".to_owned(),
    };
    Row::new(widths.visible([
        Cell::from(Line::styled(if is_below { "▸" } else { "" }, theme.strong())),
        Cell::from(elided(&link.link, usize::from(widths.name))),
        Cell::from(elided(link.peer.as_deref().unwrap_or("?"), usize::from(widths.peer))),
        Cell::from(elided(&link.collector, usize::from(widths.by))),
        Cell::from(right(percent(share.max(0.0))).style(style)),
        Cell::from(Line::from(single(share, widths.bar, style))),
        Cell::from(right(link_rate_text(link, widths.rate)).style(quiet)),
        Cell::from(right(capacity).style(theme.muted())),
        Cell::from(right(short(link.flows.into())).style(quiet)),
        Cell::from(right(changed).style(theme.muted())),
    ]))
}

/// Returns green, amber or red.
fn utilisation_style(theme: Theme, share: f64) -> Style {
    match share {
        share if share >= FULL => theme.loss(),
        share if share >= HIGH => theme.warning(),
        share if share > 0.0 => theme.good(),
        _ => theme.muted(),
    }
}

impl TopView {
    /// Whether a link is observed by more than one collector, so that its name is ambiguous.
    pub(super) fn has_links_twice(&self) -> bool {
        let links = self.displayed().snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.links);
        // The daemon sorts links by switch, port and direction.
        links.windows(2).any(|pair| pair[0].link == pair[1].link)
    }

    /// Returns the packet time at which a collector last responded.
    fn responded_at(&self, collector: &str) -> Option<Timestamp> {
        self.displayed().snapshot.as_ref()?.responded_at(collector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::quantity::AGE_WIDTH;

    #[test]
    fn columns_fill_every_width_and_leave_room_for_a_bar() {
        const _: () = assert!(AGE_WIDTH <= CHANGED, "the last column holds an age");
        for (width, has_by) in (60..400).flat_map(|width| [(width, false), (width, true)]) {
            let widths = Widths::of(width, has_by);
            let all: Vec<u16> = widths.visible(widths.all()).collect();
            assert_eq!(all.iter().sum::<u16>() + all.len() as u16 - 1, width, "{widths:?}");
            assert!(widths.bar >= 4, "{width}: {widths:?}");
        }
    }
}
