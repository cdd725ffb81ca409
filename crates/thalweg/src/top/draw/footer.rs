//! The last line: the state of the view and its keys; above it, the filter while one is typed; and the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::view::{OpenBox, Pane, TopView};
use crate::terminal::screen::{self, draw_keys, draw_line_box, state_badge};

const LINK_HINT: &str = "words that are all in the names of link, other end, collector: tor0 out";

/// What the keys do; an empty key begins a paragraph.
const HELP: [(&str, &str); 16] = [
    ("↑ ↓ j k", "choose a row; PgUp PgDn Home End too"),
    ("enter", "stay on the chosen link; there, on a flow"),
    ("e", "events, and back"),
    ("/", "filter links by words; on one link, its flows"),
    ("f", "filter flows, in nfdump's language"),
    ("s", "sort by utilisation, rate, flows, change, name"),
    ("r", "reverse the order"),
    ("space", "pause the display; the daemon goes on"),
    ("esc", "back; then clear the filter; then the choice"),
    ("q ctrl-c", "quit; the daemon goes on"),
    ("", ""),
    ("▲", "cheetah flow: above the rate threshold"),
    ("▸", "the link whose flows are shown"),
    ("≥ above", "at least: nobody knows how much more"),
    ("basis", "TCP sequence numbers, sampling ratio, or samples"),
    ("repeated", "share of the sampled bytes that were seen before"),
];

/// Draws state and keys.
pub(super) fn draw(view: &TopView, frame: &mut Frame, area: Rect) {
    let state = match view.is_paused() {
        true => vec![state_badge(view.theme, " PAUSED "), Span::raw(" the daemon goes on ")],
        false => Vec::new(),
    };
    draw_keys(view.theme, state, keys(view).iter(), frame, area);
}

fn keys(view: &TopView) -> &'static [(&'static str, &'static str)] {
    match view.open_box {
        Some(OpenBox::Links(_)) => {
            return &[("enter", "keep"), ("esc", "clear"), ("ctrl-u", "empty the line")];
        }
        Some(OpenBox::Flows(_)) => {
            return &[("enter", "apply"), ("esc", "clear"), ("ctrl-u", "empty the line")];
        }
        None => {}
    }
    match view.pane {
        Pane::Links if view.is_paused() => {
            &[("q", "quit"), ("?", "help"), ("↑↓", "choose"), ("enter", "one link"), ("space", "go on")]
        }
        Pane::Links => &[
            ("q", "quit"),
            ("?", "help"),
            ("↑↓", "choose"),
            ("enter", "one link"),
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
            ("↑↓", "choose"),
            ("enter", "one flow"),
            ("/", "filter"),
            ("e", "events"),
            ("space", "pause"),
        ],
        Pane::Events { .. } => {
            &[("q", "quit"), ("?", "help"), ("esc", "back"), ("↑↓", "choose"), ("space", "pause")]
        }
        Pane::Flow => &[("q", "quit"), ("?", "help"), ("esc", "back"), ("space", "pause")],
    }
}

/// Draws the filter being typed, and under it what is wrong with it or what can be typed.
pub(super) fn draw_filter_box(view: &TopView, frame: &mut Frame, area: Rect) {
    match &view.open_box {
        Some(OpenBox::Links(line)) => draw_line_box(view.theme, line, ("links", Ok(LINK_HINT)), frame, area),
        Some(OpenBox::Flows(line)) => {
            draw_line_box(view.theme, line.line(), ("flows", line.remark()), frame, area)
        }
        None => {}
    }
}

/// Draws the help.
pub(super) fn draw_help(view: &TopView, frame: &mut Frame, area: Rect) {
    screen::draw_help(view.theme, &HELP, frame, area);
}
