//! Measurement tasks: questions about the traffic of each window that sketches answer in a fixed memory.
//!
//! The five tasks of the NitroSketch paper (Liu et al. 2019, section 2) and two more, over any definition of a flow
//! key ([`spec`] has the list; [`kinds`] a module for each). A [`Plan`] divides the memory once. Each worker counts
//! with a [`Monitor`] and passes on a [`WindowState`] at the end of each window. [`Windows`] merges those of all
//! workers, keeps the last ones and computes the answers.
//!
//! ```text
//!     packets ──► Monitor ──► WindowState ──► Windows ──► WindowReport
//!                 (per worker)                (shared)
//! ```
//!
//! Windows follow packet time: they begin at multiples of their length since 1970. A packet older than the current
//! window is counted in the current window, and counted as late.
//!
//! ```
//! use thalweg_measure::tasks::{Monitor, Plan, TaskList, TasksOptions, Windows};
//! # let batches: Vec<Vec<thalweg_wire::Packet>> = Vec::new();
//!
//! let tasks = "heavy:0.1%,distinct:src,change:30s".parse::<TaskList>()?.0;
//! let plan = Plan::new(TasksOptions { tasks, ..TasksOptions::default() })?;
//! let (mut monitor, mut windows) = (Monitor::new(&plan, 0), Windows::new(&plan));
//! for packets in batches {
//!     monitor.packets(&packets, |window| windows.add(window));
//!     while let Some(report) = windows.next_report() {
//!         println!("{} packets, {:?}", report.tally.packets, report.results);
//!     }
//! }
//! monitor.finish(|window| windows.add(window));
//! windows.finish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | task | sketch | cost per packet |
//! |---|---|---|
//! | `heavy` | Count Sketch and its largest keys | d rows, sampled |
//! | `change` | K-ary and its largest keys; two periods are subtracted | d rows, sampled |
//! | `entropy` | UnivMon | d rows, sampled |
//! | `moments` | Count Sketch | d rows, sampled |
//! | `hhh` | four Count Sketches and their largest keys | 4 d rows, sampled |
//! | `distinct` | HyperLogLog | one register |
//! | `spread` | HyperLogLogs in the cells of a Count-Min | three cache lines |

pub mod fields;
pub mod flow_bytes;
pub mod flow_name;
pub mod hierarchy;
pub mod key;
pub mod kinds;
pub mod monitor;
pub mod options;
pub mod plan;
pub mod prefix;
pub mod report;
pub mod size;
pub mod spec;
pub mod state;
pub mod table;
pub mod weight;
pub mod windows;

mod answer;
mod counting;
mod kind;
mod periods;
#[cfg(test)]
mod tests;

pub use fields::ParseTaskError;
pub use flow_bytes::{FlowBytes, Ranked};
pub use flow_name::FlowName;
pub use key::{KeyDefinition, ParseKeyError};
pub use kinds::{
    ChangeTask, ChangedKey, Changes, DistinctTask, Entropy, EntropyTask, HeavyHitters, HeavyKey, HeavyPrefix,
    HeavyPrefixes, HeavyTask, HierarchyTask, LAYOUTS, Moments, MomentsTask, SpreadKey, SpreadTask, Spreaders,
    TaskSpec, TaskValue,
};
pub use monitor::Monitor;
pub use options::{ParseSamplingError, Sampling, TasksOptions};
pub use plan::{Plan, PlanError, PlannedTask};
pub use prefix::{PrefixLengths, Side};
pub use report::{TaskResult, WindowReport};
pub use size::TaskSize;
pub use spec::TaskList;
pub use state::{KeptWindow, SketchRef, TaskState, WindowState, WindowTally};
pub use table::{Cell, Field, FieldKind, Headline, KeyLayout, Layout, Period, Row, Table, Word};
pub use weight::{Share, Weight};
pub use windows::Windows;
