//! The help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::view::LiveView;
use crate::terminal::screen::draw_help;

/// What the keys do; an empty key begins a paragraph.
const KEYS: [(&str, &str); 14] = [
    ("↑ ↓ j k", "choose a row; PgUp PgDn Home End too"),
    ("enter", "stay on the chosen flow or task"),
    ("c", "list of cheetah flows, and back"),
    ("t", "measurement tasks (--tasks), and back"),
    ("/", "filter flows and cheetahs, in nfdump's language"),
    ("s", "sort by rate, bytes, packets, age, last packet"),
    ("r", "reverse the order"),
    ("space", "pause the display; measuring goes on"),
    ("esc", "back; then clear the filter; then the choice"),
    ("q ctrl-c", "quit"),
    ("", ""),
    ("▲", "cheetah flow: above the rate threshold"),
    ("→ ←", "from the initiator, to the initiator"),
    ("b/s pkts", "rates and lengths count bytes of the IP layer"),
];

/// Draws it in the middle of the screen.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    draw_help(view.theme, &KEYS, frame, area);
}
