//! The list of detected cheetah flows, newest first.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::super::mouse::List;
use super::super::view::LiveView;
use crate::terminal::Theme;
use crate::terminal::endpoint::{IPV4_WIDTH, IPV6_WIDTH, Labels};
use crate::terminal::mouse::below_titles;
use crate::terminal::quantity::{clock, grouped, short};
use crate::terminal::screen::{cut, row_styles, rule};
use thalweg_watch::snapshot::CheetahRow;

/// Columns of `10:00:12.345`, `105 ms` or `99.9 ms`, and `running`.
const CLOCK_WIDTH: u16 = 12;
const DELAY_WIDTH: u16 = 7;

/// Column widths of a screen: whether values are shown in full, and the width of an endpoint.
struct Widths {
    full: bool,
    endpoint: u16,
}

impl Widths {
    fn of(width: u16) -> Widths {
        let full = width >= 112;
        let fixed = if full {
            1 + 5 + 11 + 7 + DELAY_WIDTH + 2 * CLOCK_WIDTH + 8
        } else {
            1 + 5 + 5 + DELAY_WIDTH + 8 + 8 + 7
        };
        Widths { full, endpoint: (width.saturating_sub(fixed) / 2).min(IPV6_WIDTH).max(IPV4_WIDTH.min(12)) }
    }
}

/// Draws the list below its rule.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let snapshot = &view.displayed().snapshot;
    let mut title = vec![Span::styled(" ▲ cheetahs ", theme.cheetah()), Span::raw("newest first ")];
    let is_filtered = !view.query.filter.is_empty();
    if is_filtered {
        title.push(Span::styled(format!("filter: {} ", view.query.filter.line()), theme.warning()));
    }
    let (kept, total) = (view.cheetah_rows.len(), snapshot.cheetahs_total);
    let summary = match total > kept as u64 {
        true if is_filtered => format!(" {kept} of {} ", grouped(total)),
        true => format!(" latest {kept} of {} ", grouped(total)),
        false => format!(" {kept} "),
    };
    let summary = Line::from(summary);
    let title = cut(title, usize::from(area.width).saturating_sub(summary.width() + 1));
    let block = rule(theme, Line::from(title), summary);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if kept == 0 {
        let is_hidden = is_filtered && total > 0;
        let message =
            if is_hidden { "\nno cheetah flows match the filter" } else { "\nno cheetah flows detected" };
        let message = Paragraph::new(message).centered().style(theme.muted());
        return frame.render_widget(message, inner);
    }
    let visible = view.cheetahs.visible_rows(usize::from(inner.height.saturating_sub(1)), kept);
    view.hits.add_rows(List::Cheetahs, below_titles(inner), visible.start, kept);
    let selected = view.cheetahs.index();
    let widths = Widths::of(inner.width);
    let labels = view.labels(&view.displayed().snapshot);
    let rows = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        row(text, labels, &view.cheetah_rows[index], &widths).style(style)
    });
    frame.render_widget(Table::new(rows, constraints(&widths)).header(header(theme, &widths)), inner);
}

fn constraints(widths: &Widths) -> Vec<Constraint> {
    let &Widths { full, endpoint } = widths;
    let columns: &[u16] = match full {
        true => &[1, CLOCK_WIDTH, 5, endpoint, endpoint, 11, 7, DELAY_WIDTH, CLOCK_WIDTH],
        false => &[1, 8, 5, endpoint, endpoint, 5, DELAY_WIDTH, 8],
    };
    columns.iter().map(|width| Constraint::Length(*width)).collect()
}

fn header(theme: Theme, widths: &Widths) -> Row<'static> {
    let columns: &[&str] = match widths.full {
        true => &["", "detected", "proto", "source", "destination", ">rate", ">bytes", ">age", "ended"],
        false => &["", "detected", "proto", "source", "destination", ">b/s", ">age", "ended"],
    };
    Row::new(columns.iter().map(|name| match name.strip_prefix('>') {
        Some(name) => right(name.to_owned()).style(theme.muted()),
        None => Cell::from(Line::styled(*name, theme.muted())),
    }))
}

fn row(theme: Theme, labels: Labels<'_>, cheetah: &CheetahRow, widths: &Widths) -> Row<'static> {
    let &Widths { full, endpoint } = widths;
    let running = cheetah.ended.is_none();
    let clock_width = if full { 12 } else { 8 };
    let time = |time| clock(time)[..clock_width].to_owned();
    let mut cells = vec![
        Cell::from(Line::styled(if running { "▲" } else { "" }, theme.cheetah())),
        Cell::from(time(cheetah.detected)),
        Cell::from(cheetah.key.protocol.to_string()),
        Cell::from(labels.source(&cheetah.key, endpoint)),
        Cell::from(labels.destination(&cheetah.key, endpoint)),
    ];
    let rate_style = if running { theme.cheetah() } else { Style::new() };
    if full {
        cells.push(right(cheetah.rate.to_string()).style(rate_style));
        cells.push(right(cheetah.bytes.to_string()));
    } else {
        cells.push(right(short(cheetah.rate.0)).style(rate_style));
    }
    cells.push(right(cheetah.age().to_string()));
    cells.push(match cheetah.ended {
        Some(ended) => Cell::from(Line::styled(time(ended), theme.muted())),
        None => Cell::from(Line::styled("running", theme.cheetah())),
    });
    Row::new(cells)
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right))
}
