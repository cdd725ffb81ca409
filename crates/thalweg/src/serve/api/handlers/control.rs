//! The controller: how it does, what it has done, and what people tell it.

use serde::de::DeserializeOwned;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Actions, Decisions, Frozen, PinTo};

use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::{Api, convert};
use crate::serve::control::{self, ControlError};

/// Decisions and actions in an answer unless asked otherwise.
const DEFAULT_LAST: usize = 100;

/// Most of them in an answer; no more are kept.
const MAX_LAST: usize = 1_000;

/// `GET /v1/control`
pub(in crate::serve::api) fn get(api: &Api, _: &Request) -> Result<Reply, Problem> {
    Reply::json(&convert::control(controller(api)?))
}

/// `GET /v1/control/decisions`
pub(in crate::serve::api) fn decisions(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let count = request.number("last", DEFAULT_LAST, MAX_LAST)?;
    let (decisions, names) = controller(api)?.desk().decisions(count);
    let decisions = decisions.iter().map(|decision| convert::decision(decision, &names)).collect();
    Reply::json(&Decisions { decisions })
}

/// `GET /v1/control/actions`
pub(in crate::serve::api) fn actions(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let count = request.number("last", DEFAULT_LAST, MAX_LAST)?;
    let (actions, names) = controller(api)?.desk().actions(count);
    let actions = actions.iter().map(|report| convert::action(report, &names)).collect();
    Reply::json(&Actions { actions })
}

/// `GET /v1/control/ways/{source}/{destination}`
pub(in crate::serve::api) fn ways(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let (source, destination) = ends(request)?;
    let ways = controller(api)?.desk().ways(source, destination).map_err(|error| wrong(&error))?;
    Reply::json(&convert::ways(ways))
}

/// `PUT /v1/control/pins/{source}/{destination}`
pub(in crate::serve::api) fn pin(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let control = controller(api)?;
    let (source, destination) = ends(request)?;
    let PinTo { address } = body(request)?;
    control.desk().pin(source, destination, address).map_err(|error| wrong(&error))?;
    tracing::info!("{source} > {destination} is pinned to address {address}, by the API");
    Reply::json(&convert::control(control))
}

/// `DELETE /v1/control/pins/{source}/{destination}`
pub(in crate::serve::api) fn unpin(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let control = controller(api)?;
    let (source, destination) = ends(request)?;
    control.desk().unpin(source, destination).map_err(|error| wrong(&error))?;
    tracing::info!("{source} > {destination} is pinned no more, by the API");
    Reply::json(&convert::control(control))
}

/// `PUT /v1/control/frozen`
pub(in crate::serve::api) fn freeze(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let control = controller(api)?;
    let Frozen { frozen } = body(request)?;
    control.desk().freeze(frozen);
    tracing::info!("the controller {}, by the API", if frozen { "only watches" } else { "steers again" });
    Reply::json(&convert::control(control))
}

fn controller(api: &Api) -> Result<&control::Control, Problem> {
    let missing = || Problem::new(Code::NotFound, "there is no [control] in the configuration");
    api.daemon().control().ok_or_else(missing)
}

fn ends(request: &Request) -> Result<(&str, &str), Problem> {
    let end = |name| {
        let missing = || Problem::new(Code::BadParameter, format!("{name} is missing"));
        request.text(name).ok_or_else(missing)
    };
    Ok((end("source")?, end("destination")?))
}

fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Problem> {
    serde_json::from_slice(&request.body).map_err(|error| Problem::new(Code::BadBody, error))
}

fn wrong(error: &ControlError) -> Problem {
    let code = match error {
        ControlError::NoHost(_) | ControlError::NotPinned { .. } => Code::NotFound,
        _ => Code::BadBody,
    };
    Problem::new(code, error)
}
