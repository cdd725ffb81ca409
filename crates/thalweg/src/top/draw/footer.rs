//! The last line with state and keys; the filter input; the help overlay.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

use super::super::view::{Input, Pane, TopView};
use crate::terminal::keys::{KeyHint, StateHint, applicable, draw_keys};
use crate::terminal::mouse::KeyHit;
use crate::terminal::screen::draw_text_input;

const LINK_HINT: &str = "words in the names of link, peer and collector, such as: tor0 out";

/// The keys. An empty key is an empty line.
const HELP: [(&str, &str); 17] = [
    ("↑ ↓ j k", "select a row (also PgUp PgDn Home End, wheel)"),
    ("click", "select, open (twice), sort (title), press (key)"),
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

/// Draws state and keys. Returns where the keys are.
pub(super) fn draw(view: &TopView, frame: &mut Frame, area: Rect) -> Vec<KeyHit> {
    let paused = view.is_paused().then_some(StateHint::new(" PAUSED ", " the daemon keeps running "));
    draw_keys(view.theme, paused.as_slice(), &keys(view), frame, area)
}

/// Returns the keys that do something in the pane, the most important first and the help last.
fn keys(view: &TopView) -> Vec<KeyHint> {
    match view.input {
        Some(Input::Links(_)) => return KeyHint::OF_LIVE_INPUT.to_vec(),
        Some(Input::Flows(_)) => return KeyHint::OF_INPUT.to_vec(),
        None => {}
    }
    let (is_links, is_flows) = (view.pane == Pane::Links, view.pane == Pane::OnLink);
    let letter = |key, name, label| KeyHint::new(KeyCode::Char(key), name, label);
    let enter = if is_links { "open link" } else { "open flow" };
    let first = std::iter::once(KeyHint::QUIT).chain(escape(view));
    let others = applicable([
        (matches!(view.pane, Pane::Events { .. }), KeyHint::arrows("select")),
        (is_links || is_flows, KeyHint::enter(enter).short("open")),
        (is_links || is_flows, letter('e', "e", "events")),
        (is_links || is_flows, letter('/', "/", "filter")),
        (is_links, letter('s', "s", "sort")),
        (is_links, letter('f', "f", "filter flows").short("flows")),
        (true, KeyHint::pause(view.is_paused())),
        (true, KeyHint::HELP),
    ]);
    first.chain(others).collect()
}

/// Returns what Esc does.
fn escape(view: &TopView) -> Option<KeyHint> {
    let is_filtered = match view.pane {
        Pane::Links if view.link_filter.text().is_empty() => return None,
        Pane::Links => true,
        Pane::OnLink => !view.flow_filter.is_empty(),
        Pane::Events { .. } | Pane::Flow => return Some(KeyHint::escape("back")),
    };
    Some(if is_filtered { KeyHint::CLEAR_FILTER } else { KeyHint::escape("links") })
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
pub(super) fn draw_help(view: &mut TopView, frame: &mut Frame, area: Rect) {
    view.help.draw(view.theme, &HELP, frame, area);
}
