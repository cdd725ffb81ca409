//! One flow: its row from each collector, and the history of its rate.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_api::Basis;
use thalweg_wire::{BitRate, Bytes};

use super::super::daemon_state::PinnedFlow;
use super::super::model::FlowRow;
use super::super::view::TopView;
use super::flows::share;
use super::rate::{basis_text, bits, bound_in_words};
use crate::terminal::Theme;
use crate::terminal::endpoint;
use crate::terminal::quantity::{date_and_clock, grouped};
use crate::terminal::screen::{draw_history, rule};

/// Maximum rows of the sparkline.
const HISTORY_HEIGHT: u16 = 8;
/// Columns of ` max 9.99 Mbit/s ` beside it.
const PEAK_WIDTH: u16 = 18;

/// Draws the pinned flow.
pub(super) fn draw(view: &TopView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let Some(pinned) = &view.displayed().pinned else { return };
    let state = match pinned.is_seen {
        true => Span::styled(" seen ", theme.good()),
        false => Span::styled(" no longer seen by any collector ", theme.warning()),
    };
    let protocol = pinned.key.protocol.to_string();
    let taken = state.width() + protocol.len() + 10;
    let name = endpoint::both(&pinned.key, area.width.saturating_sub(taken as u16));
    let title = Line::styled(format!(" flow {protocol} {name} "), theme.strong());
    let block = rule(theme, title, Line::from(state));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let lines: Vec<Line> = pinned.rows.iter().flat_map(|row| lines(theme, row)).collect();
    let [facts, history] =
        Layout::vertical([Constraint::Length(lines.len() as u16 + 1), Constraint::Min(0)]).areas(inner);
    frame.render_widget(Paragraph::new(lines), facts);
    draw_rates(theme, pinned, frame, Rect { height: history.height.min(HISTORY_HEIGHT), ..history });
}

fn draw_rates(theme: Theme, pinned: &PinnedFlow, frame: &mut Frame, area: Rect) {
    if area.height == 0 {
        return;
    }
    let [label, history] =
        Layout::horizontal([Constraint::Length(PEAK_WIDTH), Constraint::Min(0)]).areas(area);
    let peak = pinned.history.iter().copied().max().unwrap_or(0);
    frame.render_widget(Line::styled(format!(" max {}", BitRate(peak)), theme.muted()), label);
    let rates = pinned.history.iter().copied().take(usize::from(history.width)).collect();
    draw_history(frame, history, rates, theme.outward());
}

fn lines(theme: Theme, row: &FlowRow) -> Vec<Line<'static>> {
    let flow = &row.flow;
    let line = |label: &str, text: String, style: Style| {
        Line::from(vec![Span::styled(format!(" {label:<13}"), theme.muted()), Span::styled(text, style)])
    };
    let plain = |label: &str, text: String| line(label, text, Style::new());
    let rate_style = if flow.cheetah { theme.cheetah() } else { theme.strong() };
    let mut lines = vec![line("collector", flow.collector.clone(), theme.strong())];
    match flow.rate.rate_bps {
        Some(rate) => {
            let cheetah = if flow.cheetah { "  ▲ cheetah" } else { "" };
            let isolated = if flow.redirected { "  ▽ isolated" } else { "" };
            lines.push(line("rate", format!("{}{cheetah}{isolated}", BitRate(bits(rate))), rate_style));
            lines.push(plain("", bound_in_words(&flow.rate)));
        }
        None => {
            lines.push(plain("rate", "unknown".to_owned()));
            if flow.basis != Basis::Nothing {
                lines.push(plain("", bound_in_words(&flow.rate)));
            }
        }
    }
    let over =
        flow.span.as_ref().map_or_else(String::new, |span| format!(", over {}", span.end.0 - span.start.0));
    lines.push(plain("basis", format!("{}{over}", basis_text(flow.basis))));
    let port = |link: &Option<String>| link.clone().unwrap_or_else(|| "?".to_owned());
    lines.push(plain("path", format!("{} > {}", port(&flow.input), port(&flow.output))));
    lines.push(plain("samples", format!("{}, {}", grouped(flow.samples), Bytes(flow.sampled_bytes))));
    let repeated = match flow.repeated_bytes {
        0 => "none".to_owned(),
        bytes => format!("{}, {}", Bytes(bytes), share(row.repeated()).trim()),
    };
    lines.push(plain("repeated", format!("{repeated}; {} reordered", grouped(flow.reordered))));
    lines.push(plain("first sample", date_and_clock(flow.flow_start.0)));
    lines.push(plain("last sample", date_and_clock(flow.flow_end.0)));
    lines
}
