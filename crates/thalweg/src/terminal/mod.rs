//! What the full-screen views share: the loop that joins one to a terminal, and the pieces it is drawn from.
//!
//! | file | what it has |
//! |---|---|
//! | `run` | the loop; a [`View`] is what it runs |
//! | `theme` | which colour means what |
//! | `cursor`, `line_box` | the chosen row of a list; a line being typed |
//! | `filter_box` | a flow filter being typed |
//! | `screen` | rules, panels, the help overlay, the line of keys |
//! | `bar` | bars and gauges |
//! | `quantity`, `endpoint` | numbers, times, addresses in a fixed number of columns |
//!
//! A view reads no clock and does no I/O: what it shows comes as news from a thread that asks, and what it wants to
//! know goes to that thread.

pub(crate) mod bar;
pub(crate) mod cursor;
pub(crate) mod endpoint;
pub(crate) mod filter_box;
pub(crate) mod line_box;
pub(crate) mod quantity;
pub(crate) mod run;
pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod test_screen;
mod theme;

pub(crate) use run::{Action, View, run};
pub use theme::Theme;
