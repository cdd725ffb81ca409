//! Metrics.

use thalweg_api::problem::Problem;

use super::RequestDeadline;
use crate::api::Api;
use crate::metrics::{self, Snapshot};
use thalweg_http::output::MetricsText;

/// `GET /metrics`
pub(in crate::api) fn get(api: &Api) -> Result<MetricsText, Problem> {
    let deadline = RequestDeadline::new();
    let snapshot = Snapshot::take(api.parts(), &api.counts(), || deadline.left());
    Ok(MetricsText(metrics::exposition(metrics::metrics(), &snapshot)))
}
