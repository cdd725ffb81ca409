//! The first lines with program, sources and packet time; the line of counters.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use thalweg_wire::{Bytes, Timestamp};

use super::super::view::LiveView;
use crate::terminal::Theme;
use crate::terminal::bar::gauge;
use crate::terminal::endpoint::elided;
use crate::terminal::quantity::{date_and_clock, fraction, grouped, percent};
use crate::terminal::screen::{cut, width_of};
use crate::watch::report::ethtool_command;
use thalweg_watch::snapshot::{Counter, Severity, SourceRow, SourceState};

/// Maximum lines of sources.
const MAX_LINES: usize = 3;
/// Minimum rows of the screen for lines of sources.
const TALL: u16 = 24;
const CLOCK_WIDTH: u16 = 28;
/// Columns of ` +9 more`.
const HIDDEN_WIDTH: usize = 8;
/// Minimum columns of the name of a source.
const MIN_NAME_WIDTH: usize = 8;

/// Returns the rows of the header: one, plus one per source if there are several.
pub(super) fn height(view: &LiveView, area: Rect) -> u16 {
    1 + listed(view, area.height).len() as u16
}

/// Returns the sources that have their own line.
fn listed(view: &LiveView, screen_height: u16) -> &[SourceRow] {
    let sources = &view.displayed().snapshot.sources;
    match sources.len() > 1 && screen_height >= TALL {
        true => &sources[..sources.len().min(MAX_LINES)],
        false => &[],
    }
}

/// Draws the program name, the sources and the packet time.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let snapshot = &view.displayed().snapshot;
    let listed = listed(view, frame.area().height);
    let mut line = vec![Span::styled(" thalweg ", theme.badge()), Span::raw(" ")];
    let width = area.width.saturating_sub(CLOCK_WIDTH + 11);
    match snapshot.sources.as_slice() {
        [] => line.push(Span::styled("no source yet", theme.muted())),
        [only] => line.extend(source(theme, only, width)),
        [first, others @ ..] if listed.is_empty() => {
            line.push(Span::styled(format!("{} sources: ", 1 + others.len()), theme.muted()));
            line.extend(source(theme, first, width.saturating_sub(12)));
        }
        all => {
            let hidden = all.len() - listed.len();
            let more = if hidden > 0 { format!(" ({hidden} not listed)") } else { String::new() };
            line.push(Span::raw(format!("{} sources{more}", all.len())));
        }
    }
    let first_row = Rect { height: 1, ..area };
    frame.render_widget(Line::from(line), Rect { width: area.width - CLOCK_WIDTH - 1, ..first_row });
    if snapshot.now > Timestamp::default() {
        let clock = Line::from(format!("{} ", date_and_clock(snapshot.now))).alignment(Alignment::Right);
        frame.render_widget(clock, first_row);
    }
    for (row, its_source) in (area.y + 1..).zip(listed) {
        let line = [vec![Span::raw(" ")], source(theme, its_source, area.width - 2)].concat();
        frame.render_widget(Line::from(line), Rect { y: row, ..first_row });
    }
}

/// Returns a source in at most `width` columns. Its name is shortened before its state.
fn source(theme: Theme, source: &SourceRow, width: u16) -> Vec<Span<'static>> {
    let (mark, style, state) = match &source.state {
        SourceState::Live => ("● ", theme.good(), "live".to_owned()),
        SourceState::Down => ("○ ", theme.warning(), "down".to_owned()),
        SourceState::Reading => ("▸ ", theme.good(), "reading".to_owned()),
        SourceState::Replaying => ("▸ ", theme.good(), "replay".to_owned()),
        SourceState::Ended => ("■ ", theme.muted(), "ended".to_owned()),
        SourceState::Failed(reason) => ("! ", theme.loss(), reason.clone()),
    };
    let mut tail = vec![Span::styled(format!(" {state}"), style)];
    if source.state != SourceState::Ended {
        tail.extend(progress(theme, source, width));
    }
    if source.kernel_drops > 0 {
        tail.push(Span::styled(format!(" {} dropped", grouped(source.kernel_drops)), theme.loss()));
    }
    if source.freezes > 0 {
        tail.push(Span::styled(format!(" {} freezes", grouped(source.freezes)), theme.warning()));
    }
    // A truncated number would be wrong.
    let room = usize::from(width).saturating_sub(2 + MIN_NAME_WIDTH);
    while tail.len() > 1 && width_of(&tail) > room {
        tail.pop();
    }
    let taken = width_of(&tail);
    let name = elided(&source.name, usize::from(width).saturating_sub(2 + taken).max(MIN_NAME_WIDTH));
    let head = [Span::styled(mark, style), Span::styled(name, theme.strong())];
    head.into_iter().chain(tail).collect()
}

fn progress(theme: Theme, source: &SourceRow, width: u16) -> Vec<Span<'static>> {
    let Some(progress) = source.progress else { return Vec::new() };
    let fraction = fraction(progress.done, progress.total);
    let mut spans = vec![Span::raw(" ")];
    spans.extend(gauge(theme, fraction, (width / 5).clamp(6, 30), theme.good()));
    spans.push(Span::raw(percent(fraction)));
    if width >= 60 {
        spans.push(Span::styled(format!(" of {}", Bytes(progress.total)), theme.muted()));
    }
    spans
}

/// Draws the counters. If the line is too short, those above zero come first, and the number of those that do not fit is
/// shown.
pub(super) fn draw_counters(view: &LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let mut counters: Vec<&Counter> = view.displayed().snapshot.counters.iter().collect();
    let needed: usize = counters.iter().map(|counter| counter_text(counter).len() + 3).sum();
    let mut room = usize::from(area.width);
    if needed > room {
        counters.sort_by_key(|counter| counter.count == 0);
        room -= HIDDEN_WIDTH;
    }
    let mut spans = Vec::new();
    let mut hidden = 0;
    for counter in counters {
        let separator = if spans.is_empty() { " " } else { " · " };
        let text = counter_text(counter);
        if width_of(&spans) + 3 + text.len() > room {
            hidden += usize::from(counter.count > 0);
            continue;
        }
        spans.push(Span::styled(separator, theme.muted()));
        spans.push(Span::styled(text, counter_style(theme, counter)));
    }
    if hidden > 0 {
        spans.push(Span::styled(format!(" +{hidden} more"), theme.warning()));
    }
    frame.render_widget(Line::from(spans), area);
}

/// Minimum rows of the screen for the hint on merged frames.
const ROOMY: u16 = 32;

/// Returns the rows of the hint on merged frames.
pub(super) fn hint_height(view: &LiveView, area: Rect) -> u16 {
    u16::from(area.height >= ROOMY && merging_source(view).is_some())
}

/// Draws what merged frames distort, and the command that stops an interface from merging.
pub(super) fn draw_hint(view: &LiveView, frame: &mut Frame, area: Rect) {
    let Some(source) = merging_source(view).filter(|_| area.height > 0) else { return };
    let remedy = match source.state {
        SourceState::Live | SourceState::Down => ethtool_command(&source.name),
        _ => "capture with GRO and TSO off".to_owned(),
    };
    let text = vec![
        Span::styled(" merged frames: packet counts are too low. ", view.theme.warning()),
        Span::styled(remedy, view.theme.muted()),
    ];
    frame.render_widget(Line::from(cut(text, usize::from(area.width))), area);
}

fn merging_source(view: &LiveView) -> Option<&SourceRow> {
    view.displayed().snapshot.sources.iter().find(|source| source.merged > 0)
}

fn counter_text(counter: &Counter) -> String {
    format!("{} {}", counter.label, grouped(counter.count))
}

fn counter_style(theme: Theme, counter: &Counter) -> Style {
    match counter.severity {
        _ if counter.count == 0 => theme.muted(),
        Severity::Note => Style::new(),
        Severity::Warning => theme.warning(),
        Severity::Loss => theme.loss(),
    }
}
