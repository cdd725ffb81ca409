//! The help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::theme::Theme;
use super::super::view::LiveView;
use super::panel;

/// What the keys do; an empty key begins a paragraph.
const KEYS: [(&str, &str); 14] = [
    ("↑ ↓ j k", "choose a row; PgUp PgDn Home End too"),
    ("enter", "stay on the chosen flow or task"),
    ("c", "list of cheetah flows, and back"),
    ("t", "measurement tasks (--tasks), and back"),
    ("/", "filter; works while you type"),
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
    let block = panel(view.theme, "help: any key closes it");
    let place = middle(area, 64, KEYS.len() as u16 + 2);
    frame.render_widget(Clear, place);
    let lines: Vec<Line> = KEYS.iter().map(|(key, meaning)| line(view.theme, key, meaning)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

fn line(theme: Theme, key: &str, meaning: &'static str) -> Line<'static> {
    let style = if key == "▲" { theme.cheetah() } else { theme.strong() };
    Line::from(vec![Span::styled(format!("  {key:<10}"), style), Span::raw(meaning)])
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
