//! The first line with daemon and packet time; below it the collectors.

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

/// Maximum lines of collectors.
const MAX_LINES: usize = 4;
/// Minimum rows of the screen for lines of collectors.
const TALL: u16 = 20;
/// Minimum columns of the screen for the date.
const WIDE: u16 = 100;

/// Returns the rows of the header: one, plus one per collector on tall screens.
pub(super) fn height(view: &TopView, area: Rect) -> u16 {
    match area.height >= TALL {
        true => 1 + ordered(view).len().min(MAX_LINES) as u16,
        false => 1,
    }
}

/// Returns the collectors, failed ones first.
fn ordered(view: &TopView) -> Vec<&Collector> {
    let snapshot = view.displayed().snapshot.as_ref();
    let mut collectors: Vec<&Collector> =
        snapshot.map_or_else(Vec::new, |snapshot| snapshot.collectors.iter().collect());
    collectors.sort_by_key(|collector| collector.state.name != StateName::Failed);
    collectors
}

/// Draws the header.
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

/// Returns the packet time, if known; with the date on wide screens.
fn clock_text(view: &TopView, width: u16) -> String {
    let now = view.displayed().snapshot.as_ref().and_then(|snapshot| snapshot.now());
    match now.filter(|_| view.displayed().poll_error.is_none()) {
        Some(now) if width >= WIDE => format!("{} ", date_and_clock(now)),
        Some(now) => format!("{} ", clock(now)),
        None => String::new(),
    }
}

/// Returns the program name, and the daemon or the error of the last poll.
fn daemon(view: &TopView, is_short: bool, width: usize) -> Vec<Span<'static>> {
    let theme = view.theme;
    let mut spans = vec![Span::styled(" thalweg top ", theme.badge()), Span::raw(" ")];
    let shown = view.displayed();
    if let Some((error, retry_in)) = &shown.poll_error {
        let text = format!("! {}; {} ({})", plain(error), retry_text(*retry_in), view.api);
        spans.push(Span::styled(text, theme.loss()));
        return spans;
    }
    let Some(snapshot) = &shown.snapshot else {
        spans.push(Span::styled(format!("connecting to {}", view.api), theme.muted()));
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

/// Removes the number of a system error from its text.
pub(super) fn plain(error: &str) -> &str {
    error.split_once(" (os error").map_or(error, |(words, _)| words)
}

/// Shortens an RFC 3339 time to seconds.
fn day_and_time(time: &str) -> String {
    time.get(..19).unwrap_or(time).replacen('T', " ", 1)
}

/// Returns a collector in `width` columns.
fn collector(view: &TopView, collector: &Collector, width: usize) -> Vec<Span<'static>> {
    let theme = view.theme;
    let (mark, style) = match collector.state.name {
        StateName::Running => (" ● ", theme.good()),
        StateName::Starting => (" ○ ", theme.warning()),
        StateName::Dropping => (" ● ", theme.loss()),
        StateName::Ended | StateName::Stopped => (" ■ ", theme.muted()),
        StateName::Failed => (" ! ", theme.loss()),
    };
    // The state is outdated while the daemon does not respond.
    let style = if view.displayed().poll_error.is_some() { theme.muted() } else { style };
    let mut spans = vec![Span::styled(mark, style), Span::styled(collector.name.clone(), theme.strong())];
    let source = elided(&collector.source, (width / 3).max(12));
    spans.push(Span::styled(format!(" {source}"), theme.muted()));
    match failure(&collector.state) {
        Some(why) => spans.push(Span::styled(format!(" failed: {why}"), style)),
        None => spans.push(Span::styled(format!(" {}", state_name(collector.state.name)), style)),
    }
    for (text, style) in remarks(theme, collector) {
        let remark = Span::styled(text, style);
        if width_of(&spans) + remark.width() <= width {
            spans.push(remark);
        }
    }
    spans
}

/// Returns the counters of a collector, losses first.
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
        None if matches!(
            collector.state.name,
            StateName::Running | StateName::Dropping | StateName::Ended
        ) =>
        {
            remarks.push((", not responding".to_owned(), theme.warning()));
        }
        None => {}
    }
    if collector.restarts > 0 {
        let restarts = counted(&grouped(collector.restarts), "restart", "restarts");
        remarks.push((format!(", {restarts}"), theme.warning()));
    }
    remarks
}

/// Returns the name of a state.
pub(super) fn state_name(state: StateName) -> &'static str {
    match state {
        StateName::Starting => "starting",
        StateName::Running => "running",
        StateName::Dropping => "dropping frames",
        StateName::Ended => "ended",
        StateName::Failed => "failed",
        StateName::Stopped => "stopped",
    }
}

/// Returns the error of a failed collector and the time of its restart.
pub(super) fn failure(state: &State) -> Option<String> {
    if state.name != StateName::Failed {
        return None;
    }
    let error = state.error.as_deref().unwrap_or("unknown reason");
    Some(match &state.retry_at {
        Some(at) => format!("{error}; retry at {}", &clock(at.0)[..8]),
        None => error.to_owned(),
    })
}

/// Returns the time until the next attempt.
pub(super) fn retry_text(retry_in: Duration) -> String {
    match retry_in {
        Duration::ZERO => "no retry".to_owned(),
        wait if wait < Duration::from_secs(2) => format!("retry in {:.1} s", wait.as_secs_f64()),
        wait => format!("retry in {} s", wait.as_secs()),
    }
}
