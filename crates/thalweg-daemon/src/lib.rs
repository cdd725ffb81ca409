//! The daemon `thalweg serve`: collectors, controller and HTTP API.
//!
//! ```text
//!   source ──► intake ──► collector ──► events ──► hub ──► subscribers
//!                 │           ▲
//!                 └► samples  └── requests, between two batches ◄── api
//! ```
//!
//! Each collector is a thread that reads one monitor port. Requests arrive in its mailbox ([`collectors::handle`]), which it
//! reads between two batches. It never waits for a requester.
//!
//! | file | contents |
//! |---|---|
//! | `config` | the configuration file |
//! | `daemon`, `parts` | the parts of the daemon |
//! | `lifecycle` | readiness and stop |
//! | `event`, `event_id`, `names` | events, and the names of hosts and links in them |
//! | `event_log`, `alerts` | events on disk, and to webhooks |
//! | `webhook` | POST requests |
//! | `emulation` | one emulated network for all collectors |
//! | `control` | the controller, which reroutes flows |
//! | `isolation` | redirects cheetah flows to a scavenger queue |
//! | `polls` | interface counters of routers and of this host |
//! | `threshold` | adapts the rate threshold of cheetah flows to the traffic |
//! | `collectors` | collector threads and requests to them; the network |
//! | `api` | the HTTP API; `from_json` converts its names |
//! | `transfers` | reports of transfer hosts |
//! | `samples`, `records` | capture files of samples, JSON lines of flow records |
//! | `record_store` | queries of stored flow records |
//! | `experiments` | results of emulated experiments |
//! | `service` | the daemon as a service: prepare, start, stop |
//! | `run` | the process, with `signals` and `watchdog` |
//! | `reload` | reload of the configuration |
//! | `plan` | a summary for `thalweg check` |
//! | `link_name` | names of link directions |
//! | `live` | what a dashboard watches, with its files in `dashboard` |
//! | `host` | the configuration with what only this host can answer: files, directories, users |
//! | `file_access` | access to files after the change of user |
//! | `supervisor` | notifications to systemd |

pub mod alerts;
pub mod api;
pub mod collectors;
pub mod config;
pub mod control;
pub mod daemon;
mod dashboard;
pub mod emulation;
pub mod event;
pub mod event_id;
pub mod event_log;
pub mod experiments;
mod file_access;
mod from_json;
pub mod host;
pub mod hub;
pub mod isolation;
pub mod lifecycle;
mod link_name;
pub mod live;
pub mod log;
pub mod metrics;
pub mod names;
pub mod parts;
pub mod plan;
pub mod polls;
pub mod record_store;
mod records;
mod reload;
mod run;
pub mod samples;
pub mod service;
mod signals;
mod supervisor;
pub mod threshold;
pub mod transfers;
mod watchdog;
mod webhook;

pub use run::run;
