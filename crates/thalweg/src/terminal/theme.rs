//! Colours and their meanings.
//!
//! Uses only the terminal's own 16 colours on its own background, so that light and dark themes both work. Less important
//! text is dim, not grey. Colour never carries information alone: bold, dim and reversed text convey the same.

use ratatui::style::{Color, Modifier, Style};

use crate::console;

/// The styles of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    coloured: bool,
}

impl Theme {
    /// The terminal's 16 colours.
    pub const ANSI: Theme = Theme { coloured: true };
    /// No colours.
    pub const PLAIN: Theme = Theme { coloured: false };

    /// Returns the theme selected by `--color` and the environment.
    pub fn of_process() -> Theme {
        if console::has_colors() { Theme::ANSI } else { Theme::PLAIN }
    }

    /// Whether the theme has colours.
    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    fn colour(self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }

    /// Borders, units, hints, zeros.
    pub(crate) fn muted(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Titles and main figures.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Cheetah flows: amber.
    pub(crate) fn cheetah(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Traffic from the initiator.
    pub(crate) fn outward(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Traffic to the initiator.
    pub(crate) fn inward(self) -> Style {
        self.colour(Color::Green)
    }

    /// Normal states, such as a live source.
    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// Unusual states.
    pub(crate) fn warning(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Losses and errors.
    pub(crate) fn loss(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The program name and prominent states.
    pub(crate) fn badge(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }
}
