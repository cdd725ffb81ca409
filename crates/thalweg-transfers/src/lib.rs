//! Agent on transfer hosts: reads logs of transfer programs, samples the host and its TCP connections, and reports to the daemon.
//!
//! Source: the TMS-client of the Cheetah Flow Throughput Monitoring System (heavy-hitter dissertation, University of Virginia 2018,
//! section 5.2).
//!
//! ```text
//!   logs ──► follow ──► logs ──────┐
//!   /proc, sock_diag ──► host ─────┼──► queue ──► push ──► daemon
//!   parameters ────────► host ─────┘   (on disk)
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`logs`] | parsers of logs, a file for each program |
//! | [`follow`] | reads log files across rotation and restarts |
//! | [`host`] | parameters and load of the host, its TCP connections |
//! | [`queue`] | reports on disk until the daemon has them |
//! | [`push`] | sends reports |
//! | [`privacy`] | salted hashes of users and files |
//! | [`settings`] | the configuration file |
//! | [`agent`] | runs all of it |

pub mod agent;
pub mod follow;
pub mod host;
pub mod logs;
pub mod privacy;
pub mod push;
pub mod queue;
pub mod settings;
