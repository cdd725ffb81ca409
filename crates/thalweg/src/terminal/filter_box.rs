//! The line in which a flow filter is typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use thalweg_measure::filter::{FilterError, FlowFilter, View};

use super::line_box::{Edit, LineBox};

/// Shown while nothing is wrong.
const HINT: &str = "port 443 and net 10.0.0.0/8 and bytes > 1m   (see docs/reference/flow-filter.md)";

/// A flow filter being typed. Enter applies it, Esc clears it.
#[derive(Clone, Debug)]
pub(crate) struct FilterBox {
    line: LineBox,
    view: &'static View,
    /// What is wrong with the text; the last word may be unfinished until Enter.
    error: Option<FilterError>,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The box stays open.
    Open,
    /// The box closes, and this filter applies.
    Closed(FlowFilter),
}

impl FilterBox {
    /// Opens with the filter that applies now, for the terms of `view`.
    pub(crate) fn new(filter: &FlowFilter, view: &'static View) -> FilterBox {
        FilterBox { line: LineBox::new(&filter.line()), view, error: None }
    }

    /// The text being typed.
    pub(crate) fn line(&self) -> &LineBox {
        &self.line
    }

    /// What is wrong with the text, or what can be typed.
    pub(crate) fn remark(&self) -> Result<&'static str, String> {
        self.error.as_ref().map_or(Ok(HINT), |error| Err(error.to_string()))
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        match key.code {
            KeyCode::Esc => return Typed::Closed(FlowFilter::default()),
            KeyCode::Enter => match self.compile() {
                Ok(filter) => return Typed::Closed(filter),
                Err(error) => self.error = Some(error),
            },
            _ => {
                if self.line.key(key) == Edit::Changed {
                    let last_word = self.line.text().rfind(' ').map_or(0, |blank| blank + 1);
                    self.error = self.compile().err().filter(|error| error.column <= last_word);
                }
            }
        }
        Typed::Open
    }

    fn compile(&self) -> Result<FlowFilter, FilterError> {
        FlowFilter::compile(&self.line.text(), self.view)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::filter::METERED;

    use super::*;

    fn press(line: &mut FilterBox, code: KeyCode) -> Typed {
        line.key(KeyEvent::from(code))
    }

    fn typed(text: &str) -> FilterBox {
        let mut line = FilterBox::new(&FlowFilter::default(), &METERED);
        for character in text.chars() {
            assert_eq!(press(&mut line, KeyCode::Char(character)), Typed::Open);
        }
        line
    }

    #[test]
    fn enter_applies_and_escape_clears() {
        let Typed::Closed(filter) = press(&mut typed("port 443"), KeyCode::Enter) else {
            panic!("it stays open")
        };
        assert_eq!(filter.text(), "port 443");
        assert_eq!(FilterBox::new(&filter, &METERED).line().text(), "port 443");
        assert_eq!(press(&mut typed("port 443"), KeyCode::Esc), Typed::Closed(FlowFilter::default()));
    }

    #[test]
    fn an_unfinished_word_is_wrong_once_enter_is_pressed_or_another_follows() {
        for (text, error) in [
            ("port 443 and", "filter, column 13: expected a term"),
            ("port 443 an", "filter, column 10: expected 'and', 'or' or the end, found 'an'"),
        ] {
            let mut line = typed(text);
            assert!(line.remark().is_ok(), "{text}");
            assert_eq!(press(&mut line, KeyCode::Enter), Typed::Open);
            assert!(line.remark().unwrap_err().starts_with(error), "{text}");
        }
        let mut line = typed("port 443 and");
        press(&mut line, KeyCode::Char(' '));
        assert!(line.remark().is_ok(), "typing goes on");
        assert!(typed("prot ").remark().is_err());
    }

    #[test]
    fn a_wrong_word_is_shown_with_its_column_as_it_is_typed() {
        let error = typed("port 443 and as 5").remark().unwrap_err();
        assert!(error.starts_with("filter, column 14: 'as' is not known here; known: any"), "{error}");
    }

    #[test]
    fn a_filter_of_several_lines_opens_as_one() {
        let filter = FlowFilter::compile("port 443 # https\nor port 80", &METERED).unwrap();
        assert_eq!(FilterBox::new(&filter, &METERED).line().text(), "port 443 or port 80");
    }
}
