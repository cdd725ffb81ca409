//! The live view of `thalweg watch`: a full-screen table of the strongest flows, as they run.
//!
//! | file | what it has |
//! |---|---|
//! | `view` | the state between two frames, and what keys do to it |
//! | `pinned` | the flow frozen on |
//! | `screen` | that view joined to a terminal |
//! | `draw/` | state to cells: header, tables, detail, help |
//!
//! What joins it to a terminal, and what it shares with other views, is in `crate::terminal`.
//!
//! What is shown ([`Snapshot`]) and what is asked for ([`Query`]) are those of [`thalweg_watch::snapshot`].
//!
//! [`LiveView`] reads no clock and does no I/O: the same snapshots and keys give the same cells, which the
//! tests compare with the files under `golden/`. Those are rewritten by
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view`.

mod draw;
mod pinned_flow;
mod screen;
mod view;

#[cfg(test)]
mod tests;

pub use crate::terminal::Theme;
pub use thalweg_watch::snapshot::{
    CheetahRow, Counter, FlowRow, Query, RateSample, Severity, Snapshot, SortBy, SourceRow, SourceState,
    TaskRow, TasksView,
};
pub use view::{Action, LiveView};
