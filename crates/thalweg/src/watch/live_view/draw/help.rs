//! The help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::view::LiveView;

/// The keys. An empty key is an empty line.
const KEYS: [(&str, &str); 20] = [
    ("↑ ↓ j k", "select a row (also PgUp PgDn Home End, wheel)"),
    ("click", "select, open (twice), sort (title), press (key)"),
    ("enter", "open the selected flow, host, pair or task"),
    ("b", "by flow, host, pair of hosts"),
    ("c", "show or hide cheetah flows"),
    ("t", "show or hide measurement tasks (--tasks)"),
    ("/", "filter flows and cheetah flows (nfdump syntax)"),
    ("s", "sort by rate, bytes, packets, age, last, flows"),
    ("r", "reverse the order"),
    ("n N", "show or hide names of hosts (DNS), of ports"),
    ("f", "open flow: show and copy its capture filter"),
    ("w", "open flow: write its packets to a pcapng file"),
    ("space", "pause the display; measurement continues"),
    ("esc", "go back, clear the filter, clear the selection"),
    ("q ctrl-c", "quit"),
    ("", ""),
    ("▲", "cheetah flow: above the rate threshold"),
    ("→ ←", "from, to the initiator of a flow, or the host"),
    ("b/s pkts", "rates and sizes count bytes at the IP layer;"),
    ("", "filters on bps and pps use the present rate"),
];

/// Draws the overlay in the middle of the screen.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    view.help.draw(view.theme, &KEYS, frame, area);
}
