//! The table of flows on a link.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use thalweg_api::{Basis, Flow};

use super::super::model::{FlowRow, ObservedLink};
use super::super::mouse::List;
use super::super::view::{Pane, TopView};
use super::rate::{BOUND, FULL_RATE, SHORT_RATE, basis_text, bound_text, rate_text};
use crate::terminal::Theme;
use crate::terminal::endpoint::{self, IPV6_WIDTH};
use crate::terminal::mouse::below_titles;
use crate::terminal::quantity::{grouped, percent};
use crate::terminal::screen::{cut, right, row_styles, rule};

/// Columns of `icmp6`; a longer name is cut.
const PROTOCOL: u16 = 5;
/// Columns of `sequence`.
const BASIS: u16 = 8;
/// Columns of `repeated`.
const REPEATED: u16 = 8;

/// Columns that depend on the width of the screen; width 0 omits a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    endpoint: u16,
    rate: u16,
    bound: u16,
    repeated: u16,
    rest: u16,
}

impl Widths {
    fn of(width: u16) -> Widths {
        let rate = if width >= 104 { FULL_RATE } else { SHORT_RATE };
        let bound = if width >= 72 { BOUND } else { 0 };
        let repeated = if width >= 80 { REPEATED } else { 0 };
        // The mark, and a blank after every column except the last.
        let optional =
            [bound, repeated].into_iter().filter(|width| *width > 0).map(|width| width + 1).sum::<u16>();
        let fixed = 1 + PROTOCOL + rate + BASIS + 5 + optional;
        let endpoint = (width.saturating_sub(fixed) / 2).min(IPV6_WIDTH);
        Widths { endpoint, rate, bound, repeated, rest: width.saturating_sub(fixed + 2 * endpoint) }
    }

    fn all(self) -> Vec<u16> {
        let Widths { endpoint, rate, bound, repeated, rest } = self;
        let columns = [1, PROTOCOL, endpoint, endpoint + rest.min(1), rate, bound, BASIS, repeated];
        columns.into_iter().filter(|width| *width > 0).collect()
    }
}

/// Draws the table below its rule.
pub(super) fn draw(view: &mut TopView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let is_full_pane = view.pane == Pane::OnLink;
    let count = count(view);
    let title = cut(title(view), usize::from(area.width).saturating_sub(count.width() + 1));
    let block = rule(theme, Line::from(title), count);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if view.flow_rows.is_empty() {
        let message = Paragraph::new(empty_message(view)).centered().style(theme.muted());
        return frame.render_widget(message, inner);
    }
    let (height, rows) = (usize::from(inner.height.saturating_sub(1)), view.flow_rows.len());
    let visible = if is_full_pane { view.flows.visible_rows(height, rows) } else { 0..height.min(rows) };
    view.hits.add_rows(List::Flows, below_titles(inner), visible.start, rows);
    let selected = if is_full_pane { view.flows.index() } else { None };
    let widths = Widths::of(inner.width);
    let rows = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        row(text, &view.flow_rows[index], widths).style(style)
    });
    let columns = widths.all().into_iter().map(Constraint::Length);
    frame.render_widget(Table::new(rows, columns).header(header(theme, widths)), inner);
}

/// Returns the link whose flows are shown or requested.
fn link_of(view: &TopView) -> Option<&ObservedLink> {
    view.selected_link().or_else(|| Some(&view.displayed().details.on_link.as_ref()?.link))
}

fn title(view: &TopView) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(" flows ", view.theme.strong())];
    if let Some(link) = link_of(view) {
        spans.push(Span::raw(format!("on {} ", link.link)));
        if view.has_links_twice() {
            spans.push(Span::styled(format!("by {} ", link.collector), view.theme.muted()));
        }
    }
    if !view.flow_filter.is_empty() {
        spans.push(Span::styled(format!("filter: {} ", view.flow_filter.line()), view.theme.warning()));
    }
    spans
}

fn count(view: &TopView) -> Line<'static> {
    let theme = view.theme;
    let on_link = view.displayed().details.on_link.as_ref();
    let (shown, total) = (view.flow_rows.len() as u64, on_link.map_or(0, |on_link| on_link.total));
    let text = match () {
        () if shown == 0 || shown == total => grouped(shown),
        () if on_link.is_some_and(|on_link| on_link.filter == view.flow_filter) => {
            format!("first {} of {}", grouped(shown), grouped(total))
        }
        () => format!("{} of {}", grouped(shown), grouped(total)),
    };
    let mut spans = vec![Span::styled(" ▲", theme.cheetah()), Span::styled(" cheetah ", theme.muted())];
    if view.flow_rows.iter().any(|row| row.flow.redirected) {
        spans.push(Span::styled(" ▽", theme.cheetah()));
        spans.push(Span::styled(" isolated ", theme.muted()));
    }
    spans.push(Span::styled("── ", theme.muted()));
    spans.push(Span::raw(format!("{text} ")));
    Line::from(spans)
}

fn empty_message(view: &TopView) -> &'static str {
    let answered = view.displayed().details.on_link.as_ref();
    match answered.filter(|on_link| link_of(view) == Some(&on_link.link)) {
        _ if link_of(view).is_none() => "",
        None => "\nloading",
        Some(on_link) if !on_link.flows.is_empty() || !on_link.filter.is_empty() => {
            "\nno flows match the filter"
        }
        Some(_) => "\nno flows on this link",
    }
}

fn header(theme: Theme, widths: Widths) -> Row<'static> {
    let columns = [
        ("", false, true),
        ("proto", false, true),
        ("source", false, true),
        ("destination", false, true),
        ("rate", true, true),
        ("bound", true, widths.bound > 0),
        ("basis", false, true),
        ("repeated", true, widths.repeated > 0),
    ];
    Row::new(columns.into_iter().filter(|(_, _, is_shown)| *is_shown).map(|(name, is_right, _)| {
        let line = Line::styled(name, theme.muted());
        Cell::from(if is_right { line.right_aligned() } else { line })
    }))
}

fn row(theme: Theme, row: &FlowRow, widths: Widths) -> Row<'static> {
    let (key, flow) = (&row.key, &row.flow);
    let rate = flow.rate.rate_bps;
    let rate_style = match rate {
        _ if flow.cheetah => theme.cheetah(),
        Some(rate) if rate > 0.0 => theme.outward(),
        _ => theme.muted(),
    };
    let repeated = row.repeated();
    let repeated_style = if flow.repeated_bytes > 0 { theme.warning() } else { theme.muted() };
    let mut cells = vec![
        Cell::from(Line::styled(mark(flow), theme.cheetah())),
        Cell::from(key.protocol.to_string()),
        Cell::from(endpoint::source(key, widths.endpoint)),
        Cell::from(endpoint::destination(key, widths.endpoint)),
        Cell::from(
            right(
                rate.map_or_else(|| unknown(flow.basis).to_owned(), |_| rate_text(&flow.rate, widths.rate)),
            )
            .style(rate_style),
        ),
    ];
    if widths.bound > 0 {
        let text = match flow.basis {
            Basis::Nothing if rate.is_none() => String::new(),
            _ => bound_text(&flow.rate),
        };
        cells.push(Cell::from(right(text).style(theme.muted())));
    }
    cells.push(Cell::from(Line::styled(basis_text(flow.basis), theme.muted())));
    if widths.repeated > 0 {
        cells.push(Cell::from(right(share(repeated)).style(repeated_style)));
    }
    Row::new(cells)
}

/// Returns the mark of a flow.
fn mark(flow: &Flow) -> &'static str {
    match (flow.redirected, flow.cheetah) {
        (true, _) => "▽",
        (false, true) => "▲",
        (false, false) => "",
    }
}

/// Returns the text of a rate that is not known: before the first estimate, or of which only the bounds are known.
fn unknown(basis: Basis) -> &'static str {
    match basis {
        Basis::Nothing => "-",
        _ => "?",
    }
}

/// Formats a share: `0.3 %`, `12 %`; empty for 0.
pub(super) fn share(share: f64) -> String {
    match share {
        share if share <= 0.0 => String::new(),
        share if share < 0.001 => "<0.1 %".to_owned(),
        share if share < 0.1 => format!("{:.1} %", share * 100.0),
        share => percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_every_width() {
        for width in 60..400 {
            let widths = Widths::of(width);
            let all = widths.all();
            let taken = all.iter().sum::<u16>() + all.len() as u16 - 1;
            assert!(taken <= width, "{width}: {all:?}");
            assert!(taken == width || widths.endpoint == IPV6_WIDTH, "{width}: {all:?}");
            assert!(widths.endpoint >= 14, "{width}: {all:?}");
        }
    }

    #[test]
    fn a_small_share_is_not_shown_as_zero() {
        assert_eq!([0.0, 0.0002, 0.0123, 0.5].map(share), ["", "<0.1 %", "1.2 %", " 50 %"]);
    }
}
