//! `thalweg collect`: what routers export, received and kept.
//!
//! The work is `thalweg-records`'; here is what starts it, what it shows meanwhile, and what it says at the end.
//!
//! | file | what it has |
//! |---|---|
//! | `options` | what is to be done; who samples how, from a file |
//! | `run` | sockets: until it is stopped |
//! | `replay` | captures: until they end |
//! | `status` | what is shown, whichever way: a report and its rates |
//! | `json`, `text`, `live_view` | the three ways |
//! | `metrics` | Prometheus' text format, over HTTP |

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

/// The one clock of the program's collectors.
pub fn clock() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since_1970.as_secs(), since_1970.subsec_nanos())
}
