//! The live view of `thalweg watch`: a full-screen table of the strongest flows, as they run.
//!
//! | file | what it has |
//! |---|---|
//! | `model`, `tasks_view` | what is shown ([`Snapshot`]) and what is asked for ([`Query`]) |
//! | `view` | the state between two frames, and what keys do to it |
//! | `cursor`, `filter_box`, `frozen` | the selected row, the filter being typed, the flow frozen on |
//! | `draw/` | state to cells: header, tables, detail, help |
//! | `theme` | which colour means what |
//! | `terminal` | the loop that joins a terminal to all this |
//!
//! [`LiveView`] reads no clock and does no I/O: the same snapshots and keys give the same cells, which the
//! tests compare with the files under `golden/`. Those are rewritten by
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view`.

mod cursor;
mod draw;
mod filter_box;
mod frozen;
mod model;
mod tasks_view;
mod terminal;
mod theme;
mod view;

#[cfg(test)]
mod tests;

pub use model::{
    CheetahRow, Counter, FlowRow, Query, RateSample, Severity, Snapshot, SortBy, SourceRow, SourceState,
};
pub use tasks_view::{TaskRow, TasksView};
pub use terminal::run;
pub use theme::Theme;
pub use view::{Action, LiveView};
