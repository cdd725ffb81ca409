//! The live view of `thalweg watch`: a full-screen table of the strongest flows, as they run.
//!
//! | file | what it has |
//! |---|---|
//! | `model`, `tasks_view` | what is shown ([`Snapshot`]) and what is asked for ([`Query`]) |
//! | `view` | the state between two frames, and what keys do to it |
//! | `frozen` | the flow frozen on |
//! | `draw/` | state to cells: header, tables, detail, help |
//!
//! What joins it to a terminal, and what it shares with other views, is in `crate::terminal`.
//!
//! [`LiveView`] reads no clock and does no I/O: the same snapshots and keys give the same cells, which the
//! tests compare with the files under `golden/`. Those are rewritten by
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view`.

mod draw;
mod frozen;
mod model;
mod tasks_view;
mod view;

#[cfg(test)]
mod tests;

pub use crate::terminal::Theme;
pub use model::{
    CheetahRow, Counter, FlowRow, Query, RateSample, Severity, Snapshot, SortBy, SourceRow, SourceState,
};
pub use tasks_view::{TaskRow, TasksView};
pub use view::{Action, LiveView};
