//! `thalweg top`: a running daemon as it runs: its links by utilisation, the flows on one of them, events.
//!
//! ```text
//!   daemon ──► client ──► poll ───────► news ──► view ──► screen
//!                    └──► event_feed ────┘  ▲      │
//!                                 poll ◄────┴──────┘ queries: the chosen link, the chosen flow
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `options` | whom to ask, and how to show what it says |
//! | `poll`, `event_feed` | threads that ask (`thalweg_api::client`) |
//! | `model` | what is shown, and what is asked for |
//! | `shown` | what is known of the daemon: its last answer, its events, one flow |
//! | `view` | the state between two frames, and what keys do to it |
//! | `screen` | that view joined to a terminal |
//! | `draw/` | state to cells |
//! | `links_table` | the links once, as a table |
//! | `run` | all of it together |
//!
//! The view reads no clock
//! and does no I/O; its golden screens are rewritten by `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg top`.

mod draw;
mod event_feed;
mod links_table;
pub mod model;
mod options;
mod poll;
mod run;
mod screen;
mod shown;
mod view;

#[cfg(test)]
mod tests;

pub use options::{Show, TopOptions};
pub use run::{Feed, run};
pub use view::TopView;
