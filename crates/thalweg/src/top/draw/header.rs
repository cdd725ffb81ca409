//! The first line, the daemon and packet time; under it the daemon's collectors.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use thalweg_api::{Collector, State, StateName};

use super::super::view::TopView;
use crate::terminal::Theme;
use crate::terminal::endpoint::elided;
use crate::terminal::quantity::{clock, date_and_clock, grouped, percent, short};
use crate::terminal::screen::{counted, cut, width_of};

/// Most collectors that get a line each.
const MAX_LINES: usize = 4;
/// Rows of screen from which on collectors get lines of their own.
const TALL: u16 = 20;
/// Columns of screen from which on there is room for the day.
const WIDE: u16 = 100;

/// Rows that the header needs: one, and one for each collector where there is room.
pub(super) fn height(view: &TopView, area: Rect) -> u16 {
    match area.height >= TALL {
        true => 1 + ordered(view).len().min(MAX_LINES) as u16,
        false => 1,
    }
}

/// Collectors, those that failed first.
fn ordered(view: &TopView) -> Vec<&Collector> {
    let snapshot = view.shown().snapshot.as_ref();
    let mut collectors: Vec<&Collector> =
        snapshot.map_or_else(Vec::new, |snapshot| snapshot.collectors.iter().collect());
    collectors.sort_by_key(|collector| collector.state.name != StateName::Failed);
    collectors
}

/// Draws it.
pub(super) fn draw(view: &TopView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let first = Rect { height: 1, ..area };
    let clock = clock_text(view, area.width);
    let width = usize::from(area.width).saturating_sub(clock.len() + usize::from(!clock.is_empty()));
    let spans = cut(daemon(view, area.height == 1, width), width);
    frame.render_widget(Line::from(spans), Rect { width: width as u16, ..first });
    frame.render_widget(Line::from(clock).alignment(Alignment::Right), first);
    let ordered = ordered(view);
    let lines = usize::from(area.height) - 1;
    for (row, index) in (area.y + 1..area.bottom()).zip(0..) {
        let is_last = index + 1 == lines;
        let line = match ordered.len() - index {
            left if is_last && left > 1 => {
                vec![Span::styled(format!(" and {left} more collectors"), theme.muted())]
            }
            _ => collector(view, ordered[index], usize::from(area.width)),
        };
        frame.render_widget(Line::from(cut(line, usize::from(area.width))), Rect { y: row, ..first });
    }
}

/// Packet time, if it is known; the day only where there is room.
fn clock_text(view: &TopView, width: u16) -> String {
    let now = view.shown().snapshot.as_ref().and_then(|snapshot| snapshot.now());
    match now.filter(|_| view.shown().trouble.is_none()) {
        Some(now) if width >= WIDE => format!("{} ", date_and_clock(now)),
        Some(now) => format!("{} ", clock(now)),
        None => String::new(),
    }
}

/// The program, and the daemon or why it does not answer.
fn daemon(view: &TopView, is_short: bool, width: usize) -> Vec<Span<'static>> {
    let theme = view.theme;
    let mut spans = vec![Span::styled(" thalweg top ", theme.badge()), Span::raw(" ")];
    let shown = view.shown();
    if let Some((error, retry_in)) = &shown.trouble {
        let text = format!("! {}; {} ({})", plain(error), waits(*retry_in), view.api);
        spans.push(Span::styled(text, theme.loss()));
        return spans;
    }
    let Some(snapshot) = &shown.snapshot else {
        spans.push(Span::styled(format!("asking {}", view.api), theme.muted()));
        return spans;
    };
    let health = &snapshot.health;
    let failed =
        snapshot.collectors.iter().filter(|collector| collector.state.name == StateName::Failed).count();
    let count = counted(&grouped(snapshot.collectors.len() as u64), "collector", "collectors");
    let failures = match is_short && failed > 0 {
        true => format!("  {failed} of {count} failed"),
        false => String::new(),
    };
    spans.push(Span::styled("● ", theme.good()));
    let room = width.saturating_sub(width_of(&spans) + failures.len());
    spans.push(Span::styled(elided(&view.api, room), theme.strong()));
    spans.push(Span::styled(failures, theme.loss()));
    let mut remarks = vec![Span::raw(format!("  {} {}", health.name, health.version))];
    if is_short && failed == 0 {
        remarks.push(Span::styled(format!("  {count}"), theme.muted()));
    }
    remarks
        .push(Span::styled(format!(" since {}", day_and_time(&health.started.to_string())), theme.muted()));
    for remark in remarks {
        if width_of(&spans) + remark.width() <= width {
            spans.push(remark);
        }
    }
    spans
}

/// Without the number that the system has for it.
pub(super) fn plain(error: &str) -> &str {
    error.split_once(" (os error").map_or(error, |(words, _)| words)
}

/// Date and time to the second, as RFC 3339 has them.
fn day_and_time(time: &str) -> String {
    time.get(..19).unwrap_or(time).replacen('T', " ", 1)
}

/// One collector in `width` columns.
fn collector(view: &TopView, collector: &Collector, width: usize) -> Vec<Span<'static>> {
    let theme = view.theme;
    let (mark, style) = match collector.state.name {
        StateName::Running => (" ● ", theme.good()),
        StateName::Starting => (" ○ ", theme.warning()),
        StateName::Ended | StateName::Stopped => (" ■ ", theme.muted()),
        StateName::Failed => (" ! ", theme.loss()),
    };
    // What was so when the daemon answered last.
    let style = if view.shown().trouble.is_some() { theme.muted() } else { style };
    let mut spans = vec![Span::styled(mark, style), Span::styled(collector.name.clone(), theme.strong())];
    let source = elided(&collector.source, (width / 3).max(12));
    spans.push(Span::styled(format!(" {source}"), theme.muted()));
    match failure(&collector.state) {
        Some(why) => spans.push(Span::styled(format!(" failed: {why}"), style)),
        None => spans.push(Span::styled(format!(" {}", word(collector.state.name)), style)),
    }
    for (text, style) in remarks(theme, collector) {
        let remark = Span::styled(text, style);
        if width_of(&spans) + remark.width() <= width {
            spans.push(remark);
        }
    }
    spans
}

/// What it counts, what was lost first.
fn remarks(theme: Theme, collector: &Collector) -> Vec<(String, Style)> {
    let mut remarks = Vec::new();
    match &collector.counts {
        Some(counts) => {
            if counts.kernel_drops > 0 {
                remarks.push((format!(", {} dropped", grouped(counts.kernel_drops)), theme.loss()));
            }
            remarks.push((format!(", {}", counted(&short(counts.flows), "flow", "flows")), Style::new()));
            if let Some(ratio) = counts.sampling_ratio {
                remarks.push((format!(", sampled {}", percent(ratio).trim()), Style::new()));
            }
            remarks.push((format!(", {} packets", short(counts.packets)), theme.muted()));
        }
        None if matches!(collector.state.name, StateName::Running | StateName::Ended) => {
            remarks.push((", does not answer".to_owned(), theme.warning()));
        }
        None => {}
    }
    if collector.restarts > 0 {
        let restarts = counted(&grouped(collector.restarts), "restart", "restarts");
        remarks.push((format!(", {restarts}"), theme.warning()));
    }
    remarks
}

/// A state in one word.
pub(super) fn word(state: StateName) -> &'static str {
    match state {
        StateName::Starting => "starting",
        StateName::Running => "running",
        StateName::Ended => "ended",
        StateName::Failed => "failed",
        StateName::Stopped => "stopped",
    }
}

/// Why a collector failed, and when it is tried again.
pub(super) fn failure(state: &State) -> Option<String> {
    if state.name != StateName::Failed {
        return None;
    }
    let error = state.error.as_deref().unwrap_or("for no reason told");
    Some(match &state.retry_at {
        Some(at) => format!("{error}; again at {}", &clock(at.0)[..8]),
        None => error.to_owned(),
    })
}

/// How long until something is tried again.
pub(super) fn waits(retry_in: Duration) -> String {
    match retry_in {
        Duration::ZERO => "not tried again".to_owned(),
        wait if wait < Duration::from_secs(2) => format!("again in {:.1} s", wait.as_secs_f64()),
        wait => format!("again in {} s", wait.as_secs()),
    }
}
