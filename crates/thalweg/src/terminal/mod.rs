//! Shared parts of the full-screen views: event loop, widgets and number formatting.
//!
//! | file | contents |
//! |---|---|
//! | `run` | the event loop of a [`View`] |
//! | `theme` | colours and their meanings |
//! | `cursor`, `text_input` | the selected row of a list; a line of text input |
//! | `filter_input` | input of a flow filter |
//! | `screen` | rules, panels |
//! | `help` | the help overlay |
//! | `keys` | the last line with state and keys |
//! | `mouse` | what the mouse can hit |
//! | `bar` | bars and gauges |
//! | `quantity`, `endpoint` | numbers, times and addresses of fixed width |
//!
//! A view reads no clock and does no I/O. Another thread sends it updates and receives its queries.

pub(crate) mod bar;
pub(crate) mod cursor;
pub(crate) mod endpoint;
pub(crate) mod filter_input;
pub(crate) mod help;
pub(crate) mod keys;
pub(crate) mod mouse;
pub(crate) mod quantity;
pub(crate) mod run;
pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod test_screen;
pub(crate) mod text_input;
mod theme;

pub(crate) use run::{Action, View, run};
pub use theme::Theme;
