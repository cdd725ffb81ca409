//! The last line with state and keys; the filter input; the help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::view::{Input, Pane, TopView};
use crate::terminal::screen::{self, draw_keys, draw_text_input, state_badge};

const LINK_HINT: &str = "words in the names of link, peer and collector, such as: tor0 out";

/// The keys. An empty key is an empty line.
const HELP: [(&str, &str); 16] = [
    ("↑ ↓ j k", "select a row (also PgUp PgDn Home End)"),
    ("enter", "open the selected link, then a flow"),
    ("e", "show or hide events"),
    ("/", "filter links as you type; on a link, its flows"),
    ("f", "filter flows (nfdump syntax)"),
    ("s", "sort by utilisation, rate, flows, change, name"),
    ("r", "reverse the order"),
    ("space", "pause the display; the daemon keeps running"),
    ("esc", "go back, clear the filter, clear the selection"),
    ("q ctrl-c", "quit; the daemon keeps running"),
    ("", ""),
    ("▲", "cheetah flow: above the rate threshold"),
    ("▸", "link whose flows are shown"),
    ("≥ above", "lower bound; the upper bound is unknown"),
    ("basis", "TCP sequence, IP ids, sampling ratio, or samples"),
    ("repeated", "share of the sampled bytes that were seen before"),
];

/// Draws state and keys.
pub(super) fn draw(view: &TopView, frame: &mut Frame, area: Rect) {
    let state = match view.is_paused() {
        true => vec![state_badge(view.theme, " PAUSED "), Span::raw(" the daemon keeps running ")],
        false => Vec::new(),
    };
    draw_keys(view.theme, state, keys(view).iter(), frame, area);
}

fn keys(view: &TopView) -> &'static [(&'static str, &'static str)] {
    match view.input {
        Some(Input::Links(_)) => {
            return &[("enter", "close"), ("esc", "clear the filter"), ("ctrl-u", "clear the line")];
        }
        Some(Input::Flows(_)) => {
            return &[("enter", "apply"), ("esc", "clear the filter"), ("ctrl-u", "clear the line")];
        }
        None => {}
    }
    match view.pane {
        Pane::Links if view.is_paused() => {
            &[("q", "quit"), ("?", "help"), ("↑↓", "select"), ("enter", "open link"), ("space", "resume")]
        }
        Pane::Links => &[
            ("q", "quit"),
            ("?", "help"),
            ("↑↓", "select"),
            ("enter", "open link"),
            ("e", "events"),
            ("/", "filter"),
            ("s", "sort"),
            ("f", "filter flows"),
            ("space", "pause"),
        ],
        Pane::OnLink => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "links"),
            ("↑↓", "select"),
            ("enter", "open flow"),
            ("/", "filter"),
            ("e", "events"),
            ("space", "pause"),
        ],
        Pane::Events { .. } => {
            &[("q", "quit"), ("?", "help"), ("esc", "back"), ("↑↓", "select"), ("space", "pause")]
        }
        Pane::Flow => &[("q", "quit"), ("?", "help"), ("esc", "back"), ("space", "pause")],
    }
}

/// Draws the filter input, with its error or a hint below.
pub(super) fn draw_filter_input(view: &TopView, frame: &mut Frame, area: Rect) {
    match &view.input {
        Some(Input::Links(line)) => draw_text_input(view.theme, line, ("links", Ok(LINK_HINT)), frame, area),
        Some(Input::Flows(input)) => {
            draw_text_input(view.theme, input.line(), ("flows", input.remark()), frame, area)
        }
        None => {}
    }
}

/// Draws the help overlay.
pub(super) fn draw_help(view: &TopView, frame: &mut Frame, area: Rect) {
    screen::draw_help(view.theme, &HELP, frame, area);
}
