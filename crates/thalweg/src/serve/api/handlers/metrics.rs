//! Everything that is counted.

use thalweg_api::problem::Problem;

use super::Patience;
use crate::serve::api::Api;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::route::METRICS_TEXT;
use crate::serve::metrics::{self, Snapshot};

/// `GET /metrics`
pub(in crate::serve::api) fn get(api: &Api, _: &Request) -> Result<Reply, Problem> {
    let patience = Patience::new();
    let snapshot = Snapshot::take(api.daemon(), &api.counts(), || patience.left());
    Ok(Reply::text(METRICS_TEXT, metrics::exposition(&snapshot)))
}
