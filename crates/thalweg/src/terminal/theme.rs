//! Which colour means what.
//!
//! Only the terminal's own 16 colours, on its own background, so that light and dark themes both suit; what
//! is less important is dim, not grey. Nothing is said by colour alone: without colours the view says the
//! same in bold, dim and reversed text.

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
    /// No colour at all.
    pub const PLAIN: Theme = Theme { coloured: false };

    /// The theme that `--color` and the environment select.
    pub fn of_process() -> Theme {
        if console::has_colors() { Theme::ANSI } else { Theme::PLAIN }
    }

    /// Whether it has colours.
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

    /// Titles and the figures that matter most.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Cheetah flows: amber.
    pub(crate) fn cheetah(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// From the initiator.
    pub(crate) fn outward(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// To the initiator.
    pub(crate) fn inward(self) -> Style {
        self.colour(Color::Green)
    }

    /// What is well: a live source, a table with room.
    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// Worth a look.
    pub(crate) fn warning(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Something was lost, or typed wrong.
    pub(crate) fn loss(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The program's name, keys, and states that must not be overlooked.
    pub(crate) fn badge(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }
}
