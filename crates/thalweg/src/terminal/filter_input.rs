//! Input of a flow filter.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use thalweg_measure::filter::{FilterError, FlowFilter, View};

use super::text_input::{Edit, TextInput};

/// Shown below a filter without an error.
const HINT: &str = "port 443 and net 10.0.0.0/8 and bytes > 1m   (see docs/reference/flow-filter.md)";

/// A flow filter being typed. Enter applies it, Esc clears it.
#[derive(Clone, Debug)]
pub(crate) struct FilterInput {
    line: TextInput,
    view: &'static View,
    /// The error of the text. Errors in the last word count only after Enter.
    error: Option<FilterError>,
}

/// The effect of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The input stays open.
    Open,
    /// The input closes, and this filter applies.
    Closed(FlowFilter),
}

impl FilterInput {
    /// Opens the input with the current filter, for the terms of `view`.
    pub(crate) fn new(filter: &FlowFilter, view: &'static View) -> FilterInput {
        FilterInput { line: TextInput::new(&filter.line()), view, error: None }
    }

    /// Returns the text being typed.
    pub(crate) fn line(&self) -> &TextInput {
        &self.line
    }

    /// Returns the error of the text, or a hint.
    pub(crate) fn remark(&self) -> Result<&'static str, String> {
        self.error.as_ref().map_or(Ok(HINT), |error| Err(error.to_string()))
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        match key.code {
            KeyCode::Esc => return Outcome::Closed(FlowFilter::default()),
            KeyCode::Enter => match self.compile() {
                Ok(filter) => return Outcome::Closed(filter),
                Err(error) => self.error = Some(error),
            },
            _ => {
                if self.line.key(key) == Edit::Changed {
                    let last_word = self.line.text().rfind(' ').map_or(0, |blank| blank + 1);
                    self.error = self.compile().err().filter(|error| error.column <= last_word);
                }
            }
        }
        Outcome::Open
    }

    fn compile(&self) -> Result<FlowFilter, FilterError> {
        FlowFilter::compile(&self.line.text(), self.view)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::filter::METERED;

    use super::*;

    fn press(line: &mut FilterInput, code: KeyCode) -> Outcome {
        line.key(KeyEvent::from(code))
    }

    fn typed(text: &str) -> FilterInput {
        let mut line = FilterInput::new(&FlowFilter::default(), &METERED);
        for character in text.chars() {
            assert_eq!(press(&mut line, KeyCode::Char(character)), Outcome::Open);
        }
        line
    }

    #[test]
    fn enter_applies_and_escape_clears() {
        let Outcome::Closed(filter) = press(&mut typed("port 443"), KeyCode::Enter) else {
            panic!("the input stays open")
        };
        assert_eq!(filter.text(), "port 443");
        assert_eq!(FilterInput::new(&filter, &METERED).line().text(), "port 443");
        assert_eq!(press(&mut typed("port 443"), KeyCode::Esc), Outcome::Closed(FlowFilter::default()));
    }

    #[test]
    fn an_unfinished_word_is_an_error_after_enter_or_a_blank() {
        for (text, error) in [
            ("port 443 and", "filter, column 13: expected a term"),
            ("port 443 an", "filter, column 10: expected 'and', 'or' or the end, found 'an'"),
        ] {
            let mut line = typed(text);
            assert!(line.remark().is_ok(), "{text}");
            assert_eq!(press(&mut line, KeyCode::Enter), Outcome::Open);
            assert!(line.remark().unwrap_err().starts_with(error), "{text}");
        }
        let mut line = typed("port 443 and");
        press(&mut line, KeyCode::Char(' '));
        assert!(line.remark().is_ok(), "the last word may be unfinished");
        assert!(typed("prot ").remark().is_err());
    }

    #[test]
    fn an_error_shows_its_column_while_typing() {
        let error = typed("port 443 and as 5").remark().unwrap_err();
        assert!(error.starts_with("filter, column 14: 'as' is not known here; known: any"), "{error}");
    }

    #[test]
    fn a_filter_of_several_lines_opens_as_one_line() {
        let filter = FlowFilter::compile("port 443 # https\nor port 80", &METERED).unwrap();
        assert_eq!(FilterInput::new(&filter, &METERED).line().text(), "port 443 or port 80");
    }
}
