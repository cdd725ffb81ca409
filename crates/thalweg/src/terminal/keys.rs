//! The last line of a view: its state, and the keys that do something at this place.
//!
//! A view lists its keys in the order of their importance, the help last. If the line is too short for all of them, labels
//! become short, those of the least important keys first. If that does not suffice, the least important keys are left out. Nothing is cut, and the last key stays.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::mouse::KeyHit;
use super::theme::Theme;

/// A key, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHint {
    /// The key that a click on it presses; `None` for several keys.
    press: Option<KeyEvent>,
    /// Its name, and a shorter one.
    name: [&'static str; 2],
    /// What it does, in words and in one word.
    label: [&'static str; 2],
}

/// A part of the state, such as ` PAUSED `, with a remark that is left out if keys need its place.
pub(crate) struct StateHint {
    badge: &'static str,
    remark: &'static str,
}

impl StateHint {
    /// Creates a prominent word.
    pub(crate) const fn new(badge: &'static str, remark: &'static str) -> StateHint {
        StateHint { badge, remark }
    }
}

impl KeyHint {
    /// Creates the hint of a key.
    pub(crate) const fn new(code: KeyCode, name: &'static str, label: &'static str) -> KeyHint {
        KeyHint { press: Some(KeyEvent::new(code, KeyModifiers::NONE)), name: [name; 2], label: [label; 2] }
    }

    /// Sets the label of narrow screens.
    pub(crate) const fn short(self, label: &'static str) -> KeyHint {
        KeyHint { label: [self.label[0], label], ..self }
    }

    /// Creates the hint of Enter.
    pub(crate) const fn enter(label: &'static str) -> KeyHint {
        KeyHint { name: ["enter", "↵"], ..KeyHint::new(KeyCode::Enter, "enter", label) }
    }

    /// Creates the hint of Esc.
    pub(crate) const fn escape(label: &'static str) -> KeyHint {
        KeyHint::new(KeyCode::Esc, "esc", label)
    }

    /// Creates the hint of the arrow keys.
    pub(crate) const fn arrows(label: &'static str) -> KeyHint {
        KeyHint { press: None, name: ["↑↓"; 2], label: [label; 2] }
    }

    /// Creates the hint of the key that pauses and resumes the display.
    pub(crate) const fn pause(is_paused: bool) -> KeyHint {
        KeyHint::new(KeyCode::Char(' '), "space", if is_paused { "resume" } else { "pause" })
    }

    /// The key that quits.
    pub(crate) const QUIT: KeyHint = KeyHint::new(KeyCode::Char('q'), "q", "quit");
    /// The key that lists all keys.
    pub(crate) const HELP: KeyHint = KeyHint::new(KeyCode::Char('?'), "?", "help");
    /// Esc where it clears a filter.
    pub(crate) const CLEAR_FILTER: KeyHint = KeyHint::escape("clear the filter").short("clear");
    /// Ctrl-U in a text input.
    const CLEAR_LINE: KeyHint = KeyHint {
        press: Some(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)),
        name: ["ctrl-u"; 2],
        label: ["clear the line", "clear line"],
    };
    /// The keys of a text input that applies with Enter.
    pub(crate) const OF_INPUT: [KeyHint; 3] =
        [KeyHint::enter("apply"), KeyHint::CLEAR_FILTER, KeyHint::CLEAR_LINE];
    /// The keys of a text input that applies as it is typed.
    pub(crate) const OF_LIVE_INPUT: [KeyHint; 3] =
        [KeyHint::enter("close"), KeyHint::CLEAR_FILTER, KeyHint::CLEAR_LINE];

    fn width(&self, form: usize) -> usize {
        Span::raw(self.name[form]).width() + 1 + Span::raw(self.label[form]).width()
    }
}

/// Returns the hints whose condition holds.
pub(crate) fn applicable(hints: impl IntoIterator<Item = (bool, KeyHint)>) -> Vec<KeyHint> {
    hints.into_iter().filter(|(applies, _)| *applies).map(|(_, hint)| hint).collect()
}

/// What is drawn of the line.
#[derive(Debug, PartialEq, Eq)]
struct Fit {
    has_remarks: bool,
    /// The keys, each with its form: 0 in full, 1 short.
    keys: Vec<(KeyHint, usize)>,
}

/// Blanks between two keys.
const GAP: usize = 2;

fn fit(width: usize, state: &[StateHint], hints: &[KeyHint]) -> Fit {
    let state_width = |has_remarks: bool| -> usize {
        state.iter().map(|part| part.badge.len() + if has_remarks { part.remark.len() } else { 0 }).sum()
    };
    // One blank before the first key, and none after the last.
    let fits = |has_remarks, keys: &[(KeyHint, usize)]| {
        let keys: usize = keys.iter().map(|(key, form)| key.width(*form) + GAP).sum();
        state_width(has_remarks) + keys < width + GAP
    };
    let mut keys: Vec<(KeyHint, usize)> = hints.iter().map(|hint| (*hint, 0)).collect();
    let has_remarks = fits(true, &keys);
    for index in (0..keys.len()).rev() {
        if has_remarks || fits(false, &keys) {
            break;
        }
        keys[index].1 = 1;
    }
    // The last one stays.
    while keys.len() > 1 && !has_remarks && !fits(false, &keys) {
        keys.remove(keys.len() - 2);
    }
    keys.retain(|key| fits(has_remarks, &[*key]));
    Fit { has_remarks, keys }
}

/// Draws the line, and returns where the keys are.
pub(crate) fn draw_keys(
    theme: Theme,
    state: &[StateHint],
    keys: &[KeyHint],
    frame: &mut Frame,
    area: Rect,
) -> Vec<KeyHit> {
    let Fit { has_remarks, keys } = fit(usize::from(area.width), state, keys);
    let mut spans = Vec::new();
    for part in state {
        spans.push(Span::styled(part.badge, theme.warning().add_modifier(Modifier::REVERSED)));
        spans.extend(has_remarks.then_some(Span::raw(part.remark)));
    }
    let mut x = area.x + spans.iter().map(Span::width).sum::<usize>() as u16 + 1;
    spans.push(Span::raw(" "));
    let mut hits = Vec::new();
    for (index, &(hint, form)) in keys.iter().enumerate() {
        if index > 0 {
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        spans.push(Span::styled(hint.name[form], theme.strong()));
        spans.push(Span::styled(format!(" {}", hint.label[form]), theme.muted()));
        let end = x + hint.width(form) as u16;
        hits.extend(hint.press.map(|key| KeyHit { columns: x..end, line: area.y, key }));
        x = end + GAP as u16;
    }
    frame.render_widget(Line::from(spans), area);
    hits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn keys() -> Vec<KeyHint> {
        let w = KeyHint::new(KeyCode::Char('w'), "w", "write packets").short("write");
        vec![
            KeyHint::QUIT,
            KeyHint::enter("open flow").short("open"),
            w,
            KeyHint::pause(false),
            KeyHint::HELP,
        ]
    }

    const PAUSED: [StateHint; 1] = [StateHint::new(" PAUSED ", " measurement continues ")];

    fn drawn(state: &[StateHint], width: u16) -> (String, Vec<KeyHit>) {
        let mut terminal = Terminal::new(TestBackend::new(width.max(1), 1)).unwrap();
        let mut hits = Vec::new();
        let area = Rect::new(0, 0, width, 1);
        terminal.draw(|frame| hits = draw_keys(Theme::PLAIN, state, &keys(), frame, area)).unwrap();
        let cells = terminal.backend().buffer();
        ((0..width).map(|x| cells[(x, 0)].symbol()).collect::<String>().trim_end().to_owned(), hits)
    }

    #[test]
    fn labels_become_short_before_keys_are_left_out() {
        for (width, line) in [
            (80, " q quit  enter open flow  w write packets  space pause  ? help"),
            (62, " q quit  enter open flow  w write packets  space pause  ? help"),
            (61, " q quit  enter open flow  w write  space pause  ? help"),
            (54, " q quit  enter open flow  w write  space pause  ? help"),
            (53, " q quit  ↵ open  w write  space pause  ? help"),
            (45, " q quit  ↵ open  w write  space pause  ? help"),
            (44, " q quit  ↵ open  w write  ? help"),
            (31, " q quit  ↵ open  ? help"),
            (22, " q quit  ? help"),
            (14, " ? help"),
            (7, " ? help"),
            (6, ""),
            (0, ""),
        ] {
            assert_eq!(drawn(&[], width).0, line, "{width}");
        }
        let paused = " PAUSED  q quit  enter open flow  w write packets  space pause  ? help";
        assert_eq!(drawn(&PAUSED, 80).0, paused, "the remark is left out first");
        assert_eq!(drawn(&PAUSED, 93).0, paused.replace("PAUSED ", "PAUSED  measurement continues "));
    }

    proptest! {
        #[test]
        fn keys_are_whole_and_a_click_hits_them(width in 0..120u16, is_paused: bool) {
            let state = if is_paused { &PAUSED[..] } else { &[] };
            let (line, hits) = drawn(state, width);
            for hit in &hits {
                let columns = usize::from(hit.columns.start)..usize::from(hit.columns.end);
                let text: String = line.chars().collect::<Vec<_>>()[columns].iter().collect();
                let hint = keys().into_iter().find(|hint| hint.press == Some(hit.key)).unwrap();
                let forms = [0, 1].map(|form| format!("{} {}", hint.name[form], hint.label[form]));
                prop_assert!(forms.contains(&text), "{text:?}");
            }
            let help = hits.last().map(|hit| hit.key.code);
            prop_assert_eq!(help, (width >= if is_paused { 15 } else { 7 }).then_some(KeyCode::Char('?')));
        }
    }
}
