//! The last line with state and keys; the filter input.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

use thalweg_watch::groups::Grouping;

use super::super::view::{LiveView, Pane};
use crate::terminal::keys::{KeyHint, StateHint, applicable, draw_keys};
use crate::terminal::mouse::KeyHit;
use crate::terminal::screen::draw_text_input;

/// Draws state and keys. Returns where the keys are.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) -> Vec<KeyHit> {
    draw_keys(view.theme, &state(view), &keys(view), frame, area)
}

fn state(view: &LiveView) -> Vec<StateHint> {
    let recording = view.running_capture().map(|_| StateHint::new(" REC ", ""));
    let display = match (view.is_paused(), view.has_ended()) {
        (true, _) => Some(StateHint::new(" PAUSED ", " measurement continues ")),
        (false, true) => Some(StateHint::new(" END ", " all input read ")),
        (false, false) => None,
    };
    recording.into_iter().chain(display).collect()
}

/// Returns the keys that do something in the pane, the most important first and the help last.
fn keys(view: &LiveView) -> Vec<KeyHint> {
    if view.filter_input.is_some() {
        return KeyHint::OF_INPUT.to_vec();
    }
    let query = &view.query;
    let is_flows = view.pane == Pane::Flows;
    let is_list = is_flows || view.pane == Pane::Cheetahs;
    let is_tasks = view.pane == Pane::Tasks;
    let is_detail = matches!(view.pane, Pane::Detail { .. });
    let writes = view.running_capture().is_some() && view.pinned_capture().is_some();
    let letter = |key, name, label| KeyHint::new(KeyCode::Char(key), name, label);
    let write = if writes {
        letter('w', "w", "stop writing").short("stop")
    } else {
        letter('w', "w", "write packets").short("write")
    };
    let first = std::iter::once(KeyHint::QUIT).chain(escape(view));
    let others = applicable([
        (is_tasks, KeyHint::arrows("select")),
        (is_list || is_tasks, KeyHint::enter(enter(view)).short("open")),
        (is_detail, write),
        (is_detail, letter('f', "f", "capture filter").short("filter")),
        (is_list, letter('/', "/", "filter")),
        (is_flows, letter('s', "s", "sort")),
        (is_flows && query.scope.is_none(), letter('b', "b", "by")),
        (is_flows, letter('c', "c", "cheetahs").short("cheetah")),
        (is_flows && view.has_tasks(), letter('t', "t", "tasks")),
        (!view.has_ended() || view.is_paused(), KeyHint::pause(view.is_paused())),
        (is_list || is_detail, letter('n', "n", "names")),
        (true, KeyHint::HELP),
    ]);
    first.chain(others).collect()
}

/// Returns what Esc does.
fn escape(view: &LiveView) -> Option<KeyHint> {
    let label = match view.pane {
        Pane::Flows if view.query.scope.is_some() => "back",
        Pane::Flows if !view.query.filter.is_empty() => {
            return Some(KeyHint::CLEAR_FILTER);
        }
        Pane::Flows => return None,
        Pane::Tasks if view.displayed().snapshot.no_table => return None,
        Pane::Cheetahs | Pane::Tasks => "flows",
        Pane::Detail { .. } | Pane::OneTask => "back",
    };
    Some(KeyHint::escape(label))
}

/// Returns what Enter opens.
fn enter(view: &LiveView) -> &'static str {
    match view.pane {
        Pane::Tasks => "open task",
        Pane::Flows if view.query.grouping != Grouping::Flow => "open flows",
        _ => "open flow",
    }
}

/// Draws the filter input, with its error or a hint below.
pub(super) fn draw_filter_input(view: &LiveView, frame: &mut Frame, area: Rect) {
    let Some(input) = &view.filter_input else { return };
    draw_text_input(view.theme, input.line(), ("filter", input.remark()), frame, area);
}
