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

use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_wire::Timestamp;

pub use crate::watch::Outcome;
pub use options::{CollectRequest, RequestError, Sampling, Show, load_tls};
pub use run::run;

/// The wall clock of the flow receiver.
pub fn clock() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since_1970.as_secs(), since_1970.subsec_nanos())
}
