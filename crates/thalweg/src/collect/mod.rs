//! `thalweg collect`: the flow receiver.
//!
//! Starts the collecting process of `thalweg-records`, shows its status and prints its report.
//!
//! | file | contents |
//! |---|---|
//! | `options` | options, and the file of sampling intervals |
//! | `run` | collection from sockets |
//! | `replay` | collection from capture files |
//! | `status` | a report and its rates |
//! | `json`, `text`, `live_view` | output formats |
//! | `metrics` | Prometheus metrics over HTTP |

mod json;
mod live_view;
pub mod metrics;
mod options;
mod replay;
mod run;
mod status;
mod text;

pub use crate::watch::Outcome;
pub use options::{CollectRequest, RequestError, Sampling, Show, load_tls};
pub use run::run;
