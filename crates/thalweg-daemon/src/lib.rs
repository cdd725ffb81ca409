//! `thalweg serve`: collectors as a daemon.
//!
//! ```text
//!   source ──► intake ──► collector ──► events ──► hub ──► subscribers
//!                 │           ▲
//!                 └► samples  └── questions, between two batches ◄── api
//! ```
//!
//! Each collector is a thread that reads one monitor port. What others want of it they ask by its mailbox
//! ([`collectors::handle`]), which it looks into between two batches; it waits for nobody.
//!
//! | file | what it has |
//! |---|---|
//! | `config` | the daemon's file, checked whole |
//! | `daemon`, `parts` | the parts, made together |
//! | `lifecycle` | whether the daemon is ready, or stops |
//! | `event`, `names` | what is told without being asked; what hosts and links are called in it |
//! | `emulation` | a network that is emulated for all collectors together |
//! | `control` | the controller: sends flows another way |
//! | `collectors` | threads that measure, and how they are asked; what is known of the network |
//! | `api` | what it answers over HTTP; `from_json` reads what is asked for |
//! | `samples`, `records` | samples to capture files, flows to JSON lines |
//! | `service` | the daemon without its process: opened, started, stopped |
//! | `run` | the process; `signals`, `watchdog` are what it watches |
//! | `reload` | what the file says now |
//! | `plan` | what it would do, for `thalweg check` |
//! | `supervisor` | what systemd is told |

pub mod api;
pub mod clock;
pub mod collectors;
pub mod config;
pub mod control;
pub mod daemon;
pub mod emulation;
pub mod event;
mod from_json;
pub mod hub;
pub mod lifecycle;
pub mod log;
pub mod metrics;
pub mod names;
pub mod parts;
pub mod plan;
mod records;
mod reload;
mod run;
pub mod samples;
pub mod service;
mod signals;
mod supervisor;
mod watchdog;

pub use run::run;
