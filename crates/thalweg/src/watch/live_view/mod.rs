//! The live view of `thalweg watch`: a full-screen table of the largest flows.
//!
//! | file | contents |
//! |---|---|
//! | `view` | state and key handling |
//! | `grouping` | hosts and pairs; names |
//! | `mouse` | clicks and the wheel |
//! | `one_flow` | capture filter and file of a flow |
//! | `pinned_flow` | the pinned flow |
//! | `screen` | the view as a `crate::terminal::View` |
//! | `draw/` | drawing: header, tables, detail, help |
//!
//! The event loop and parts shared with other views are in `crate::terminal`.
//!
//! [`Snapshot`] and [`Query`] are defined in [`thalweg_watch::snapshot`].
//!
//! [`LiveView`] reads no clock and does no I/O: the same snapshots and keys give the same frames, which the tests compare
//! with the files in `golden/`. `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view` rewrites them.

mod draw;
mod grouping;
mod mouse;
mod one_flow;
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
