//! The help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::view::LiveView;
use crate::terminal::screen::draw_help;

/// The keys. An empty key is an empty line.
const KEYS: [(&str, &str); 14] = [
    ("↑ ↓ j k", "select a row (also PgUp PgDn Home End)"),
    ("enter", "open the selected flow or task"),
    ("c", "show or hide cheetah flows"),
    ("t", "show or hide measurement tasks (--tasks)"),
    ("/", "filter flows and cheetah flows (nfdump syntax)"),
    ("s", "sort by rate, bytes, packets, age, last packet"),
    ("r", "reverse the order"),
    ("space", "pause the display; measurement continues"),
    ("esc", "go back, clear the filter, clear the selection"),
    ("q ctrl-c", "quit"),
    ("", ""),
    ("▲", "cheetah flow: above the rate threshold"),
    ("→ ←", "from the initiator, to the initiator"),
    ("b/s pkts", "rates and sizes count bytes at the IP layer"),
];

/// Draws the overlay in the middle of the screen.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    draw_help(view.theme, &KEYS, frame, area);
}
