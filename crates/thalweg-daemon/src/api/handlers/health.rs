//! Liveness and readiness of the daemon.

use schemars::SchemaGenerator;
use thalweg_api::Health;
use thalweg_api::problem::Problem;

use crate::api::Api;
use crate::lifecycle::Readiness;
use thalweg_http::input::Content;
use thalweg_http::output::{Json, Output};
use thalweg_http::reply::Reply;

/// Readiness, as the status code and in the body.
pub(in crate::api) struct Ready {
    status: u16,
    health: Health,
}

impl Output for Ready {
    const STATUSES: &'static [u16] = &[200, 503];

    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        Json::<Health>::contents(generator)
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Reply::json_with(self.status, &self.health)
    }
}

/// `GET /healthz`
pub(in crate::api) fn alive(api: &Api) -> Result<Json<Health>, Problem> {
    Ok(Json(health(api, "ok")))
}

/// `GET /readyz`
pub(in crate::api) fn ready(api: &Api) -> Result<Ready, Problem> {
    let (status, text) = match api.parts().lifecycle.readiness() {
        Readiness::Ready => (200, "ok"),
        Readiness::Starting => (503, "starting"),
        Readiness::Stopping => (503, "stopping"),
    };
    Ok(Ready { status, health: health(api, text) })
}

fn health(api: &Api, status: &'static str) -> Health {
    let parts = api.parts();
    Health {
        status: status.into(),
        name: "thalweg".into(),
        version: parts.version().into(),
        started: parts.started.into(),
    }
}
