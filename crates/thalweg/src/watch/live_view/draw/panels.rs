//! Two panels: rates with their history, and the state of the flow table. A single line on short screens.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_wire::{BitRate, Nanos};

use super::super::view::LiveView;
use crate::terminal::Theme;
use crate::terminal::bar::gauge;
use crate::terminal::quantity::{age, fraction, grouped, packet_rate, percent, short};
use crate::terminal::screen::{counted, draw_history, panel, width_of};
use thalweg_watch::snapshot::TasksView;
use thalweg_watch::snapshot::{RateSample, Snapshot};

/// Columns of `9.99 Mbit/s` and a blank, and of the widest packet rate.
const RATE_WIDTH: u16 = 13;
/// Columns of ` max 9.99 Mbit/s `; on a narrow screen only the blank.
const PEAK_WIDTH: u16 = 17;

/// Returns the rows of the panels. Each sparkline has one row from 18 rows of screen, two from 32, three from 48.
pub(super) fn height(area: Rect) -> u16 {
    match area.height {
        0..18 => 1,
        18..32 => 5,
        32..48 => 7,
        _ => 9,
    }
}

/// Draws both panels, or the line that replaces them.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let snapshot = &view.displayed().snapshot;
    if area.height < 3 {
        return draw_line(view.theme, snapshot, frame, area);
    }
    let flows_width = if area.width < 110 { 32 } else { 44 };
    let [traffic, flows] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(flows_width)]).areas(area);
    draw_traffic(view.theme, snapshot, frame, traffic);
    if let Some(tasks) = snapshot.tasks.as_ref().filter(|_| snapshot.no_table) {
        return draw_sketches(view.theme, tasks, frame, flows);
    }
    draw_flows(view.theme, snapshot, frame, flows);
}

fn draw_line(theme: Theme, snapshot: &Snapshot, frame: &mut Frame, area: Rect) {
    let mut spans = vec![
        Span::styled(format!("{:>12}", snapshot.bit_rate), theme.strong()),
        Span::raw(format!("  {:>12}", packet_rate(snapshot.packet_rate))),
    ];
    if let Some(tasks) = snapshot.tasks.as_ref().filter(|_| snapshot.no_table) {
        spans.push(Span::raw(format!("  {}", windows_in_words(tasks))));
        return frame.render_widget(Line::from(spans), area);
    }
    spans.extend([Span::raw(format!("  {:>5} live flows  ", short(snapshot.flows_live)))]);
    for span in cheetahs(theme, snapshot) {
        if width_of(&spans) + span.width() <= usize::from(area.width) {
            spans.push(span);
        }
    }
    frame.render_widget(Line::from(spans), area);
}

fn draw_traffic(theme: Theme, snapshot: &Snapshot, frame: &mut Frame, area: Rect) {
    let peak_width = if area.width >= 70 { PEAK_WIDTH } else { 1 };
    let columns = area.width.saturating_sub(2 + RATE_WIDTH + peak_width);
    let title = match span_in_sight(snapshot, columns) {
        Nanos::ZERO => "traffic".to_owned(),
        span => format!("traffic, last {}", age(span)),
    };
    let block = panel(theme, &title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let each = (inner.height - 1) / 2;
    let [bits, packets, totals] =
        Layout::vertical([Constraint::Length(each), Constraint::Length(each), Constraint::Length(1)])
            .areas(inner);
    let newest_first = || snapshot.history.iter().rev().take(usize::from(columns));
    let bit_rate = |sample: &RateSample| sample.bit_rate.0;
    let pkt_rate = |sample: &RateSample| sample.packet_rate.round() as u64;
    let rate = Span::styled(snapshot.bit_rate.to_string(), theme.strong());
    let values: Vec<u64> = newest_first().map(bit_rate).collect();
    let peak = values.iter().copied().max().map(|peak| BitRate(peak).to_string());
    draw_rate(theme, frame, bits, (rate, peak, peak_width), (values, theme.outward()));
    let rate = Span::styled(packet_rate(snapshot.packet_rate), theme.strong());
    let values: Vec<u64> = newest_first().map(pkt_rate).collect();
    let peak = values.iter().copied().max().map(|peak| packet_rate(peak as f64));
    draw_rate(theme, frame, packets, (rate, peak, peak_width), (values, theme.inward()));
    frame.render_widget(totals_line(theme, snapshot, totals.width), totals);
}

/// Returns the packet time that the sparklines show.
fn span_in_sight(snapshot: &Snapshot, columns: u16) -> Nanos {
    let slices = snapshot.history.len().min(usize::from(columns)) as u64;
    Nanos(snapshot.history_slice.0.saturating_mul(slices))
}

/// Draws a rate, its history with the newest value at the right, and its maximum.
fn draw_rate(
    theme: Theme,
    frame: &mut Frame,
    area: Rect,
    (rate, peak, peak_width): (Span<'static>, Option<String>, u16),
    (newest_first, style): (Vec<u64>, Style),
) {
    let [label, history, top] = Layout::horizontal([
        Constraint::Length(RATE_WIDTH),
        Constraint::Min(0),
        Constraint::Length(peak_width),
    ])
    .areas(area);
    let base = Rect { y: label.bottom() - 1, height: 1, ..label };
    frame.render_widget(Line::from(rate).right_aligned(), Rect { width: base.width - 1, ..base });
    draw_history(frame, history, newest_first, style);
    if let Some(peak) = peak.filter(|_| peak_width > 1) {
        let line = Line::styled(format!(" max {peak:>11}"), theme.muted());
        frame.render_widget(line, Rect { height: 1, ..top });
    }
}

fn totals_line(theme: Theme, snapshot: &Snapshot, width: u16) -> Line<'static> {
    let packets = counted(&grouped(snapshot.packets), "packet", "packets");
    let text = format!("{packets}, {} in {}", snapshot.bytes, age(snapshot.now - snapshot.start));
    let text = match text.len() > usize::from(width) - 2 {
        true => format!("{} packets, {}", short(snapshot.packets), snapshot.bytes),
        false => text,
    };
    Line::from(vec![Span::styled(" Σ ", theme.muted()), Span::raw(text)])
}

fn draw_flows(theme: Theme, snapshot: &Snapshot, frame: &mut Frame, area: Rect) {
    let block = panel(theme, "flows");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let wide = inner.width >= 40;
    let number = |value: u64| if wide { grouped(value) } else { short(value) };
    let evicted = if snapshot.evicted > 0 { theme.warning() } else { theme.muted() };
    let mut lines = vec![
        fill(theme, snapshot, inner.width),
        Line::from(vec![
            Span::raw(format!(" {} ended, ", number(snapshot.flows_ended))),
            Span::styled(format!("{} evicted", number(snapshot.evicted)), evicted),
        ]),
        Line::from([vec![Span::raw(" ")], cheetahs(theme, snapshot)].concat()),
    ];
    if inner.height > 3 {
        let capacity = format!(" capacity {}", number(snapshot.flow_capacity));
        lines.insert(1, Line::styled(capacity, theme.muted()));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Draws the state of the sketches, if there is no flow table.
fn draw_sketches(theme: Theme, tasks: &TasksView, frame: &mut Frame, area: Rect) {
    let block = panel(theme, "sketches");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let fraction = fraction(tasks.memory.0, tasks.memory_bound.0);
    let mut memory = vec![Span::raw(format!(" {} ", tasks.memory))];
    let taken = width_of(&memory);
    memory.extend(gauge(theme, fraction, inner.width.saturating_sub(taken as u16 + 6), theme.good()));
    memory.push(Span::raw(percent(fraction)));
    let empty = match tasks.empty_windows {
        0 => String::new(),
        empty => format!(", {} empty", short(empty)),
    };
    let lines = vec![
        Line::from(memory),
        Line::raw(format!(" {}{empty}", windows_in_words(tasks))),
        Line::styled(
            format!(" {}, no flow table", counted(&grouped(tasks.rows.len() as u64), "task", "tasks")),
            theme.muted(),
        ),
    ];
    frame.render_widget(Paragraph::new(lines), inner);
}

/// `6 windows of 10.0 s`.
fn windows_in_words(tasks: &TasksView) -> String {
    format!("{} of {}", counted(&grouped(tasks.windows), "window", "windows"), tasks.window)
}

/// Formats the fill level of the flow table: ` 12.3k live ━━━━━━──────  43 %`.
fn fill(theme: Theme, snapshot: &Snapshot, width: u16) -> Line<'static> {
    let fraction = fraction(snapshot.flows_live, snapshot.flow_capacity);
    let style = match fraction {
        f if f < 0.7 => theme.good(),
        f if f < 0.9 => theme.warning(),
        _ => theme.loss(),
    };
    let count = if width >= 40 { grouped(snapshot.flows_live) } else { short(snapshot.flows_live) };
    let mut spans =
        vec![Span::raw(" "), Span::styled(format!("{count:>5}"), theme.strong()), Span::raw(" live ")];
    let taken = width_of(&spans);
    spans.extend(gauge(theme, fraction, width.saturating_sub(taken as u16 + 6), style));
    spans.push(Span::styled(percent(fraction), style));
    Line::from(spans)
}

fn cheetahs(theme: Theme, snapshot: &Snapshot) -> Vec<Span<'static>> {
    let style = if snapshot.cheetahs_live > 0 { theme.cheetah() } else { theme.muted() };
    let now = counted(&grouped(snapshot.cheetahs_live), "cheetah", "cheetahs");
    vec![
        Span::styled(format!("▲ {now}"), style),
        Span::styled(format!(", {} detected", grouped(snapshot.cheetahs_total)), theme.muted()),
    ]
}
