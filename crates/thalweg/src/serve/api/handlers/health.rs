//! Whether the daemon is alive, and does what it is for.

use thalweg_api::Health;
use thalweg_api::problem::Problem;

use crate::serve::api::Api;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::daemon::Readiness;

/// `GET /healthz`: this is answered, so it is alive.
pub(in crate::serve::api) fn alive(api: &Api, _: &Request) -> Result<Reply, Problem> {
    Reply::json(&health(api, "ok"))
}

/// `GET /readyz`
pub(in crate::serve::api) fn ready(api: &Api, _: &Request) -> Result<Reply, Problem> {
    let (status, text) = match api.daemon().readiness() {
        Readiness::Ready => (200, "ok"),
        Readiness::Starting => (503, "starting"),
        Readiness::Stopping => (503, "stopping"),
    };
    Reply::json_with(status, &health(api, text))
}

fn health(api: &Api, status: &'static str) -> Health {
    let daemon = api.daemon();
    Health {
        status: status.into(),
        name: daemon.name().into(),
        version: daemon.version().into(),
        started: daemon.started().into(),
    }
}
