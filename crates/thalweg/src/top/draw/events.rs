//! The list of events, latest first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_api::client::Loss;
use thalweg_api::{
    CongestionChangeName, Event, EventBody, Outcome, Redirection, RedirectionCause, RedirectionPhase,
    StateName, Verdict,
};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::super::daemon_state::{EventLine, Stream};
use super::super::mouse::List;
use super::super::view::{Pane, TopView};
use super::header::{failure, plain, retry_text, state_name};
use super::rate::{bits, rate_or_bound};
use crate::terminal::Theme;
use crate::terminal::quantity::{clock, clock_us, grouped};
use crate::terminal::screen::{counted, cut, row_styles, rule, width_of};

/// Draws the list below its rule.
pub(super) fn draw(view: &mut TopView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let is_full_pane = matches!(view.pane, Pane::Events { .. });
    let counts = counts(view);
    let title = cut(title(view), usize::from(area.width).saturating_sub(width_of(&counts) + 1));
    let block = rule(theme, Line::from(title), Line::from(counts));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let count = view.displayed().events.len();
    if count == 0 {
        let message = Paragraph::new("\nno events yet").centered().style(theme.muted());
        return frame.render_widget(message, inner);
    }
    let height = usize::from(inner.height);
    let visible = if is_full_pane { view.events.visible_rows(height, count) } else { 0..height.min(count) };
    view.hits.add_rows(List::Events, inner, visible.start, count);
    let selected = if is_full_pane { view.events.index() } else { None };
    let lines = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        let line = match &*view.displayed().events[index].1 {
            EventLine::Event(event) => event_line(text, event),
            EventLine::Lost(loss) => Line::from(Span::styled(format!(" {}", loss_text(*loss)), text.loss())),
        };
        let width = usize::from(inner.width);
        let filler = " ".repeat(width.saturating_sub(line.width()));
        let mut spans = cut(line.spans, width);
        spans.push(Span::raw(filler));
        Line::from(spans).style(line.style.patch(style))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

fn title(view: &TopView) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(" events ", view.theme.strong()), Span::raw("latest first ")];
    match &view.displayed().stream {
        Stream::Connecting | Stream::Open => {}
        Stream::Broken { error, retry_in } => {
            let text = format!("disconnected: {}; {} ", plain(error), retry_text(*retry_in));
            spans.push(Span::styled(text, view.theme.loss()));
        }
    }
    spans
}

/// Counts received and lost events.
fn counts(view: &TopView) -> Vec<Span<'static>> {
    let shown = view.displayed();
    let mut spans = vec![Span::raw(format!(" {}", grouped(shown.received)))];
    if shown.lost > 0 {
        spans.push(Span::styled(format!(", {} lost", grouped(shown.lost)), view.theme.loss()));
    }
    spans.push(Span::raw(" "));
    spans
}

fn event_line(theme: Theme, event: &Event) -> Line<'static> {
    let time = clock_us(event.time.0);
    let style = match &event.body {
        EventBody::Congestion {
            change: CongestionChangeName::Began | CongestionChangeName::Repeated,
            ..
        } => theme.warning(),
        EventBody::Congestion { change: CongestionChangeName::Cleared, .. } => theme.good(),
        EventBody::Cheetah { .. } => theme.cheetah(),
        EventBody::Collector { state } if state.name == StateName::Failed => theme.loss(),
        EventBody::AddressChange { .. } | EventBody::Decision { .. } => theme.cheetah(),
        EventBody::Action { outcome: Outcome::Confirmed, .. } => theme.good(),
        EventBody::Action { outcome: Outcome::TimedOut | Outcome::Refused, .. } => theme.loss(),
        EventBody::Action { .. } => Style::new(),
        EventBody::RuleFaults { .. } | EventBody::TrafficChange { .. } => theme.warning(),
        EventBody::Redirection { redirection } => match redirection.phase {
            RedirectionPhase::Confirmed => theme.good(),
            RedirectionPhase::Failed => theme.loss(),
            _ => Style::new(),
        },
        EventBody::Mastership { master: true }
        | EventBody::Link { up: true, .. }
        | EventBody::Poll { available: true, .. } => theme.good(),
        EventBody::Poll { available: false, .. } => theme.warning(),
        EventBody::Mastership { master: false } => theme.warning(),
        EventBody::Link { up: false, .. } => theme.loss(),
        EventBody::CheetahEnd { .. } | EventBody::Collector { .. } => Style::new(),
    };
    let (what, more) = event_text(event);
    Line::from(vec![
        Span::styled(format!(" {time} "), theme.muted()),
        Span::styled(what, style),
        Span::styled(more, theme.muted()),
    ])
}

/// Returns the text of an event and its details.
fn event_text(event: &Event) -> (String, String) {
    match &event.body {
        EventBody::Congestion { link, change, utilisation, smoothed_bps, flows, omitted_flows, .. } => {
            let state = match change {
                CongestionChangeName::Began => "▴ congested",
                CongestionChangeName::Cleared => "▾ cleared",
                CongestionChangeName::Repeated => "▴ still congested",
            };
            let what = format!("{link} {state}");
            let count = flows.len() as u64 + u64::from(*omitted_flows);
            let first = flows.first().map_or_else(String::new, |first| {
                format!(", first {} {}", rate_or_bound(&first.rate), first.key)
            });
            // The utilisation is a share of it.
            let rate = BitRate(bits(*smoothed_bps));
            // All flows may have stopped at the moment of the event.
            let flows = match count {
                0 => String::new(),
                count => format!(", {}", counted(&grouped(count), "flow", "flows")),
            };
            (what, format!(": {:.0} %, {rate}{flows}{first}", utilisation * 100.0))
        }
        EventBody::AddressChange { key, previous_dst_mac, dst_mac, .. } => (
            format!("↪ new path {key}"),
            format!(" to {dst_mac}, was {previous_dst_mac}, seen by {}", event.collector),
        ),
        EventBody::Cheetah { key, rate_bps, .. } => {
            (format!("▲ cheetah {key}"), format!(" at {}, by {}", BitRate(*rate_bps), event.collector))
        }
        EventBody::CheetahEnd { key, bytes, .. } => {
            (format!("△ cheetah ended {key}"), format!(" after {}, by {}", Bytes(*bytes), event.collector))
        }
        EventBody::Decision { src, dst, verdict, from_tree, tree, alternatives, link, .. } => {
            let expected = |tree| {
                let path = alternatives.iter().find(|path| path.tree == tree);
                path.map_or_else(|| "unknown".to_owned(), |path| BitRate(path.expected_rate_bps).to_string())
            };
            let cause = link.as_ref().map_or_else(String::new, |link| format!("; {link} congested"));
            let rates = format!(": expected {}, was {}{cause}", expected(*tree), expected(*from_tree));
            let what = if *verdict == Verdict::Withheld { "reroute withheld" } else { "rerouted" };
            (format!("↪ {what} {src} > {dst}, tree {from_tree} to {tree}"), rates)
        }
        EventBody::Action { src, dst, tree, outcome, decision_to_path_ns, error, .. } => {
            let what = format!("{src} > {dst} on tree {tree}");
            let after = decision_to_path_ns.map_or_else(String::new, |ns| format!(" after {}", Nanos(ns)));
            match outcome {
                Outcome::Started => (format!("· {what}"), ": started".to_owned()),
                Outcome::Confirmed => (format!("✓ {what}"), format!(": confirmed{after}")),
                Outcome::TimedOut => (format!("✗ {what}"), ": timed out".to_owned()),
                Outcome::Superseded => (format!("· {what}"), ": superseded".to_owned()),
                Outcome::Refused => {
                    (format!("✗ {what}"), format!(": refused: {}", error.as_deref().unwrap_or_default()))
                }
            }
        }
        EventBody::Mastership { master } => {
            (format!("controller is {}", if *master { "master" } else { "standby" }), String::new())
        }
        EventBody::Link { link, up } => {
            (format!("{link} {}", if *up { "△ up" } else { "▽ down" }), ": recomputing routes".to_owned())
        }
        EventBody::Poll { poll, error: None, .. } => {
            (format!("△ interface counters of {poll}"), ": available".to_owned())
        }
        EventBody::Poll { poll, error: Some(error), .. } => {
            (format!("▽ interface counters of {poll}"), format!(": {error}"))
        }
        EventBody::TrafficChange { task, keys, omitted_keys, .. } => {
            let count = keys.len() as u64 + omitted_keys;
            let first = keys.first().map_or_else(String::new, |first| format!(", first {}", first.key));
            (
                format!("△ {} changed", counted(&grouped(count), "key", "keys")),
                format!(": {task}, by {}{first}", event.collector),
            )
        }
        EventBody::Redirection { redirection } => redirection_text(redirection),
        EventBody::RuleFaults { missing, changed, foreign } => (
            format!("⚒ {}: repairing rules", event.switch),
            format!(": {missing} missing, {changed} changed, {foreign} foreign"),
        ),
        EventBody::Collector { state } => match failure(state) {
            Some(why) => (format!("collector {} failed", event.collector), format!(": {why}")),
            None => (format!("collector {} {}", event.collector, state_name(state.name)), String::new()),
        },
    }
}

/// Returns the text of a redirection and its details.
fn redirection_text(redirection: &Redirection) -> (String, String) {
    let Redirection { key, phase, cause, bytes, error, .. } = redirection;
    let cause = match cause {
        Some(RedirectionCause::FlowEnded) => ": the flow has ended",
        Some(RedirectionCause::Quiet) => ": the flow is quiet",
        Some(RedirectionCause::User) => ": by a user",
        Some(RedirectionCause::MaxTime) => ": maximum time",
        Some(RedirectionCause::Stop) => ": the daemon stops",
        None => "",
    };
    let after = bytes.map_or_else(String::new, |bytes| format!(" after {}", Bytes(bytes)));
    // What other packets wait behind.
    let queue = match (redirection.primary_backlog_before, redirection.primary_backlog_after) {
        (Some(before), Some(now)) => format!(", primary queue {}, was {}", Bytes(now), Bytes(before)),
        _ => String::new(),
    };
    match phase {
        RedirectionPhase::Waiting => (format!("· isolation {key}"), ": waiting".to_owned()),
        RedirectionPhase::Requested => (format!("· isolation {key}"), ": requested".to_owned()),
        RedirectionPhase::Redirected => (format!("▽ isolated {key}"), String::new()),
        RedirectionPhase::Confirmed => (format!("✓ isolated {key}"), format!(": confirmed{queue}")),
        RedirectionPhase::Draining => (format!("· isolation {key}"), format!("{cause}, draining")),
        RedirectionPhase::Releasing => (format!("· isolation {key}"), format!("{cause}, releasing")),
        RedirectionPhase::Released => (format!("△ released {key}"), format!("{after}{cause}")),
        RedirectionPhase::Withheld => (format!("· isolation withheld {key}"), String::new()),
        RedirectionPhase::Failed => {
            let next = redirection.retry_at.as_ref();
            let next = next.map_or_else(String::new, |at| format!("; next attempt at {}", &clock(at.0)[..8]));
            let error = error.as_deref().unwrap_or_default();
            (format!("✗ isolation {key}"), format!(": failed: {error}{next}"))
        }
    }
}

/// Describes lost events.
fn loss_text(loss: Loss) -> String {
    let events = |count| counted(&grouped(count), "event", "events");
    match loss {
        Loss::Overwritten(count) => {
            format!("{} lost: this subscriber was too slow", events(count))
        }
        Loss::Restarted => "the daemon restarted: its earlier events are gone".to_owned(),
        Loss::Invalid(count) => {
            format!("{} not understood: is the daemon another version?", events(count))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmed_redirection_shows_what_other_packets_waited_behind() {
        let text = |before: &str, after: &str| {
            let json = format!(
                r#"{{"id":1,"flow":{{"src":"10.0.0.8","dst":"10.0.0.1","src_port":33774,"dst_port":16384,"protocol":6}},
                "key":"tcp 10.0.0.8:33774 > 10.0.0.1:16384","reason":"cheetah","found_by":"tor0","rate_bps":41514096,"detected":null,
                "phase":"confirmed","requested":"2026-11-27T03:29:52.096579350Z","redirected":null,"first_packet":null,
                "confirmed":null,"ended":null,"cause":null,"forced":false,"packets":6530,"bytes":10041804,
                "primary_backlog_before":{before},"primary_backlog_after":{after},"error":null,"try_number":1,"retry_at":null}}"#
            );
            redirection_text(&serde_json::from_str(&json).unwrap()).1
        };
        assert_eq!(text("444482", "12304"), ": confirmed, primary queue 12.3 kB, was 444 kB");
        assert_eq!(text("null", "null"), ": confirmed");
    }
}
