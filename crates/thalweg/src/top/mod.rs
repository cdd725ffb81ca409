//! `thalweg top`: a live view of a daemon's links, flows and events.
//!
//! ```text
//!   daemon ──► client ──► poll ───────► updates ──► view ──► screen
//!                    └──► event_feed ────┘            │
//!                         poll ◄──────────────────────┘ queries: the selected link and flow
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `options` | options |
//! | `poll`, `event_feed` | threads that poll the API and receive events (`thalweg_api::client`) |
//! | `model` | updates and queries |
//! | `daemon_state` | the known state of the daemon: its last response, its events, the pinned flow |
//! | `view` | state and key handling of the view |
//! | `mouse` | clicks and the wheel |
//! | `screen` | the view as a `crate::terminal::View` |
//! | `draw/` | drawing |
//! | `links_table` | the table of `--once` |
//! | `run` | the command |
//!
//! The view reads no clock and does no I/O. `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg top` rewrites its golden screens.

mod daemon_state;
mod draw;
mod event_feed;
mod links_table;
pub mod model;
mod mouse;
mod options;
mod poll;
mod run;
mod screen;
mod view;

#[cfg(test)]
mod tests;

pub use options::{Show, TopOptions};
pub use run::{Feed, run};
pub use view::TopView;
