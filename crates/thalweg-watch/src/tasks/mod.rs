//! Measurement tasks at work: [`thalweg_measure::tasks`] beside the flow table, or instead of it.
//!
//! ```text
//! a worker:  packets ──► Monitoring ──┐ a window that is over
//!                                     ▼
//! main:                           Collector ──► Finished ──► TaskLedger ──► report, json, live view
//!                                     │
//!            Monitoring ◄── turns ────┘ the next window may end
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `monitoring` | a worker's side: counts, hands windows on, each when it is its turn |
//! | `collector` | the main thread's side: windows of all workers put together, turns given |
//! | `ledger` | what is remembered of finished windows for report and view |
//! | `saving` | states of finished windows as files |

mod collector;
mod ledger;
mod monitoring;
mod saving;

pub(crate) use collector::{Collector, Turn};
pub use collector::{Finished, Health};
pub use ledger::{Answer, TaskHistory, TaskLedger};
pub(crate) use monitoring::Monitoring;
pub(crate) use saving::Saving;

#[cfg(test)]
mod tests;
