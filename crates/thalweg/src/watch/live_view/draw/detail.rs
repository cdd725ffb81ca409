//! One flow: both directions side by side, and the history of its rates.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_watch::flow_capture::FlowCaptureState;
use thalweg_wire::{BitRate, Bytes, Nanos, Protocol, Timestamp};

use super::super::pinned_flow::PinnedFlow;
use super::super::view::LiveView;
use crate::terminal::Theme;
use crate::terminal::endpoint;
use crate::terminal::quantity::{age, clock, date_and_clock, grouped};
use crate::terminal::screen::{draw_history, rule, wrap};
use crate::watch::live_run::capture_text;
use thalweg_watch::snapshot::{CheetahRow, FlowRow, Snapshot};
use thalweg_watch::traffic::Traffic;

const LABEL_WIDTH: u16 = 14;
/// Columns of ` → max 9.99 Mbit/s ` beside a sparkline.
const PEAK_WIDTH: u16 = 20;
/// Maximum columns of the values of one direction.
const VALUE_WIDTH: u16 = 48;
/// Maximum rows of a sparkline.
const HISTORY_HEIGHT: u16 = 8;

/// Draws the pinned flow.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let shown = view.displayed();
    let Some(pinned) = &shown.pinned else { return };
    let state = match pinned.in_table {
        true => Span::styled(" live ", theme.good()),
        false => Span::styled(" not in the flow table ", theme.warning()),
    };
    let protocol = pinned.key.protocol.to_string();
    let taken = state.width() + protocol.len() + 10;
    let labels = view.labels(&shown.snapshot);
    let name = labels.both(&pinned.key, area.width.saturating_sub(taken as u16));
    let title = Line::from(vec![
        Span::styled(" flow ", theme.strong()),
        Span::styled(format!("{protocol} {name} "), theme.strong()),
    ]);
    let block = rule(theme, title, Line::from(state));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let inner = draw_filter(view, frame, inner);
    let inner = draw_capture(view, frame, inner);
    match &pinned.row {
        Some(row) => draw_flow(theme, pinned, row, &shown.snapshot, frame, inner),
        None => {
            frame.render_widget(Paragraph::new("\nthe flow has ended").centered().style(theme.muted()), inner)
        }
    }
}

/// Draws the capture filter at the top, if it is shown. Returns the rest of the area.
fn draw_filter(view: &LiveView, frame: &mut Frame, area: Rect) -> Rect {
    if !view.shows_filter {
        return area;
    }
    let (text, remark) = match view.capture_filter() {
        Some(filter) => (filter, "copied, if the terminal allows it (OSC 52)"),
        None => ("none: the flow may be inside a tunnel, where capture filters do not look".to_owned(), ""),
    };
    let title = Line::from(vec![
        Span::styled(" capture filter ", view.theme.strong()),
        Span::styled(format!(" {remark}"), view.theme.muted()),
    ]);
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let wrapped = wrap(&text, width);
    let height = (wrapped.len() as u16 + 2).min(area.height);
    let lines = std::iter::once(title).chain(wrapped.into_iter().map(|line| Line::from(format!(" {line}"))));
    let [filter, rest] = Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), filter);
    rest
}

/// Draws the state of the flow's file, if there is one. Returns the rest of the area.
fn draw_capture(view: &LiveView, frame: &mut Frame, area: Rect) -> Rect {
    let Some(capture) = view.pinned_capture() else { return area };
    let style = match capture.state {
        FlowCaptureState::Running | FlowCaptureState::Complete => view.theme.good(),
        FlowCaptureState::Full => view.theme.warning(),
        FlowCaptureState::Failed(_) => view.theme.loss(),
    };
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let wrapped = wrap(&capture_text(capture), width);
    let height = (wrapped.len() as u16 + 1).min(area.height);
    let [text, rest] = Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(area);
    let lines: Vec<Line> = wrapped.into_iter().map(|line| Line::styled(format!(" {line}"), style)).collect();
    frame.render_widget(Paragraph::new(lines), text);
    rest
}

fn draw_flow(
    theme: Theme,
    pinned: &PinnedFlow,
    row: &FlowRow,
    snapshot: &Snapshot,
    frame: &mut Frame,
    area: Rect,
) {
    let lines = lines(theme, pinned, row, snapshot, area.width);
    let [facts, history] =
        Layout::vertical([Constraint::Length(lines.len() as u16 + 1), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(lines), facts);
    let each = (history.height / 2).min(HISTORY_HEIGHT);
    for (direction, style) in [theme.outward(), theme.inward()].into_iter().enumerate() {
        let place = Rect { y: history.y + direction as u16 * each, height: each, ..history };
        draw_direction(theme, pinned, direction, style, frame, place);
    }
}

/// Draws the rate history of one direction, with its arrow and maximum.
fn draw_direction(
    theme: Theme,
    pinned: &PinnedFlow,
    direction: usize,
    style: Style,
    frame: &mut Frame,
    area: Rect,
) {
    if area.height == 0 {
        return;
    }
    let [label, history] =
        Layout::horizontal([Constraint::Length(PEAK_WIDTH), Constraint::Min(0)]).areas(area);
    let arrow = Span::styled(if direction == 0 { " → " } else { " ← " }, style);
    let peak = Span::styled(format!("max {}", pinned.peak[direction]), theme.muted());
    frame.render_widget(Line::from(vec![arrow, peak]), label);
    let rates =
        pinned.history.iter().map(|rate| rate[direction].0).take(usize::from(history.width)).collect();
    draw_history(frame, history, rates, style);
}

/// Formats rows of a label and two values, one per direction.
struct Pair {
    theme: Theme,
    value_width: usize,
}

impl Pair {
    fn styled(&self, label: &str, [outward, inward]: [String; 2], style: [Style; 2]) -> Line<'static> {
        let value_width = self.value_width;
        Line::from(vec![
            Span::styled(format!(" {label:<13}"), self.theme.muted()),
            Span::styled(format!("{outward:>value_width$}"), style[0]),
            Span::styled(format!("  {inward:>value_width$}"), style[1]),
        ])
    }

    fn plain(&self, label: &str, values: [String; 2]) -> Line<'static> {
        self.styled(label, values, [Style::new(); 2])
    }
}

fn lines(
    theme: Theme,
    pinned: &PinnedFlow,
    row: &FlowRow,
    snapshot: &Snapshot,
    width: u16,
) -> Vec<Line<'static>> {
    let value_width = (width.saturating_sub(LABEL_WIDTH + 2) / 2).min(VALUE_WIDTH);
    let pair = Pair { theme, value_width: usize::from(value_width) };
    let traffic = &row.traffic;
    let span = traffic.duration();
    let mean = |bytes| if span == Nanos::ZERO { none() } else { BitRate::of(Bytes(bytes), span).to_string() };
    let rates = if pinned.in_table { traffic.rate } else { [BitRate(0); 2] };
    let rate_style =
        is_cheetah(pinned, row).map(|cheetah| if cheetah { theme.cheetah() } else { theme.strong() });
    let from = [
        format!("→ from {}", endpoint::source(&row.key, value_width.saturating_sub(7))),
        format!("← from {}", endpoint::destination(&row.key, value_width.saturating_sub(7))),
    ];
    let mut lines = vec![
        pair.styled("", from, [theme.outward(), theme.inward()]),
        pair.styled("rate now", rates.map(|rate| rate.to_string()), rate_style),
        pair.plain("mean rate", traffic.bytes.map(mean)),
        pair.plain("bytes", traffic.bytes.map(|bytes| Bytes(bytes).to_string())),
        pair.plain("packets", traffic.packets.map(grouped)),
        pair.plain("mean packet", [0, 1].map(|direction| mean_packet(traffic, direction))),
    ];
    if row.key.protocol == Protocol::TCP {
        lines.push(pair.plain("TCP flags", row.tcp_flags.map(|flags| flags.to_string())));
    }
    lines.extend(cheetah_lines(theme, &pair, is_cheetah(pinned, row), pinned.cheetahs(snapshot)));
    lines.push(time_line(theme, "first packet", traffic.first, format!("duration {span}")));
    lines.push(time_line(
        theme,
        "last packet",
        traffic.last,
        format!("{} ago", age(snapshot.now - traffic.last)),
    ));
    lines
}

/// Whether each direction is currently a cheetah flow.
fn is_cheetah(pinned: &PinnedFlow, row: &FlowRow) -> [bool; 2] {
    row.cheetah.map(|cheetah| cheetah && pinned.in_table)
}

fn cheetah_lines(
    theme: Theme,
    pair: &Pair,
    now: [bool; 2],
    found: [Option<&CheetahRow>; 2],
) -> Vec<Line<'static>> {
    let style = [0, 1].map(|direction| match (now[direction], found[direction]) {
        (true, _) => theme.cheetah(),
        (false, Some(_)) => Style::new(),
        (false, None) => theme.muted(),
    });
    let mut lines = vec![pair.styled(
        "cheetah",
        [0, 1].map(|direction| cheetah_text(now[direction], found[direction])),
        style,
    )];
    if found.iter().any(Option::is_some) {
        lines.push(pair.plain("  detected in", found.map(delay_text)));
    }
    lines
}

/// Placeholder of a missing value.
fn none() -> String {
    "-".to_owned()
}

fn mean_packet(traffic: &Traffic, direction: usize) -> String {
    traffic.bytes[direction]
        .checked_div(traffic.packets[direction])
        .map_or_else(none, |bytes| format!("{} B", grouped(bytes)))
}

fn cheetah_text(now: bool, found: Option<&CheetahRow>) -> String {
    match (now, found) {
        (true, Some(found)) => format!("▲ since {}", clock(found.detected)),
        (true, None) => "▲ now".to_owned(),
        (false, Some(CheetahRow { ended: Some(ended), .. })) => format!("until {}", clock(*ended)),
        (false, Some(found)) => format!("detected {}", clock(found.detected)),
        (false, None) => "no".to_owned(),
    }
}

fn delay_text(found: Option<&CheetahRow>) -> String {
    found.map_or_else(none, |found| format!("{} at {}", found.age(), found.rate))
}

fn time_line(theme: Theme, label: &str, time: Timestamp, remark: String) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!(" {label:<13}"), theme.muted()),
        Span::raw(date_and_clock(time)),
        Span::styled(format!("   {remark}"), theme.muted()),
    ])
}
