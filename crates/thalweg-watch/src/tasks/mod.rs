//! Measurement tasks of a run: [`thalweg_measure::tasks`] with or without the flow table.
//!
//! ```text
//! worker:  packets ──► TaskMonitor ──┐ finished windows
//!                                    ▼
//! main:                        WindowMerger ──► FinishedWindow ──► TaskLedger ──► report, json, live view
//!                                    │
//!          TaskMonitor ◄── permits ──┘ the next window may end
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `task_monitor` | in workers: counts packets, ends windows when permitted |
//! | `window_merger` | in the main thread: merges windows of all workers, grants permits |
//! | `ledger` | results of finished windows |
//! | `sketch_writer` | sketches of finished windows as files |

mod ledger;
mod sketch_writer;
mod task_monitor;
mod window_merger;

pub use ledger::{Answer, TaskHistory, TaskLedger};
pub(crate) use sketch_writer::SketchWriter;
pub(crate) use task_monitor::TaskMonitor;
pub use window_merger::{FinishedWindow, Health};
pub(crate) use window_merger::{PermitReceiver, WindowMerger};

#[cfg(test)]
mod tests;
