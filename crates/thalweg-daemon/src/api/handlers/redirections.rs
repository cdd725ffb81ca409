//! Redirections of cheetah flows: all, one, pins, releases.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Redirection, Redirections};
use thalweg_wire::FlowKey;

use crate::api::{Api, convert};
use crate::isolation::{Isolation, PinError};
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::{Count, Number, Parsed};

/// Which redirections to return.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Choice {
    /// Maximum number of active redirections, the oldest first: 1 to 10,000; default 1,000.
    #[serde(default)]
    #[schemars(example = 100)]
    active: Count<1_000, 10_000>,
    /// Active redirections with higher numbers than this one: the `id` of the last one that you have. Default 0.
    #[schemars(example = 1_000)]
    after: Option<Number>,
    /// Maximum number of redirections that have ended, the latest first: 1 to 1,000; default 100. The daemon keeps 1,000.
    #[serde(default)]
    #[schemars(example = 20)]
    limit: Count<100, 1_000>,
}

/// One direction of a flow.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct RedirectionPath {
    /// One direction of a flow, percent-encoded: PROTOCOL SRC:PORT > DST:PORT, or
    /// PROTOCOL SRC > DST for protocols without ports.
    #[schemars(example = &"tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000")]
    key: Parsed<FlowKey>,
}

/// `GET /v1/redirections`
pub(in crate::api) fn all(
    api: &Api,
    Query(Choice { active: Count(active), after, limit: Count(ended) }): Query<Choice>,
) -> Result<Json<Redirections>, Problem> {
    Ok(Json(convert::redirections(isolation(api)?, after.map_or(0, |Number(id)| id), active, ended)))
}

/// `GET /v1/redirections/{key}`
pub(in crate::api) fn one(
    api: &Api,
    Path(RedirectionPath { key: Parsed(key) }): Path<RedirectionPath>,
) -> Result<Json<Redirection>, Problem> {
    let report = isolation(api)?.state().of(&key);
    let missing = || {
        Problem::new(
            Code::NotFound,
            format_args!("{key} is not redirected, and is not among the latest that were"),
        )
    };
    Ok(Json(convert::redirection(&report.ok_or_else(missing)?)))
}

/// `PUT /v1/redirections/{key}`
pub(in crate::api) fn pin(
    api: &Api,
    Path(RedirectionPath { key: Parsed(key) }): Path<RedirectionPath>,
) -> Result<Json<Redirection>, Problem> {
    let report = isolation(api)?.state().pin(key).map_err(|error| wrong(&error))?;
    tracing::info!(flow = %key, "redirection requested");
    Ok(Json(convert::redirection(&report)))
}

/// `DELETE /v1/redirections/{key}`
pub(in crate::api) fn release(
    api: &Api,
    Path(RedirectionPath { key: Parsed(key) }): Path<RedirectionPath>,
) -> Result<Json<Redirection>, Problem> {
    let report = isolation(api)?.state().release(key).map_err(|error| wrong(&error))?;
    tracing::info!(flow = %key, "release requested");
    Ok(Json(convert::redirection(&report)))
}

fn isolation(api: &Api) -> Result<&Isolation, Problem> {
    let missing = || {
        Problem::new(
            Code::NotConfigured,
            "isolation is not configured: add [isolation] with an actuator to the configuration",
        )
    };
    api.parts().isolation.as_ref().ok_or_else(missing)
}

fn wrong(error: &PinError) -> Problem {
    let code = match error {
        PinError::NotRedirected(_) => Code::NotFound,
        PinError::Excluded(_) | PinError::Full(_) => Code::Conflict,
    };
    Problem::new(code, error)
}
