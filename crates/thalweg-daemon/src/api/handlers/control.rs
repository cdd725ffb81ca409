//! The controller: how it does, what it has done, and what people tell it.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Actions, Control, Decisions, Frozen, PinTo, Ways};

use crate::api::{Api, convert};
use crate::control::{self, ControlError};
use thalweg_http::input::{JsonBody, Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::Count;

/// How much of what there was.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Last {
    /// How many, the latest first: 1 to 1,000; 100 by default. No more than 1,000 are kept.
    #[serde(default)]
    #[schemars(example = 20)]
    last: Count<100, 1_000>,
}

/// Between which hosts.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Ends {
    /// Name of the host that sends, as the topology has it.
    #[schemars(example = &"h0")]
    source: String,
    /// Name of the host that it sends to.
    #[schemars(example = &"h1")]
    destination: String,
}

/// `GET /v1/control`
pub(in crate::api) fn get(api: &Api) -> Result<Json<Control>, Problem> {
    Ok(Json(convert::control(controller(api)?)))
}

/// `GET /v1/control/decisions`
pub(in crate::api) fn decisions(
    api: &Api,
    Query(Last { last: Count(count) }): Query<Last>,
) -> Result<Json<Decisions>, Problem> {
    let (decisions, names) = controller(api)?.state().decisions(count);
    let decisions = decisions.iter().map(|decision| convert::decision(decision, &names)).collect();
    Ok(Json(Decisions { decisions }))
}

/// `GET /v1/control/actions`
pub(in crate::api) fn actions(
    api: &Api,
    Query(Last { last: Count(count) }): Query<Last>,
) -> Result<Json<Actions>, Problem> {
    let (actions, names) = controller(api)?.state().actions(count);
    let actions = actions.iter().map(|report| convert::action(report, &names)).collect();
    Ok(Json(Actions { actions }))
}

/// `GET /v1/control/ways/{source}/{destination}`
pub(in crate::api) fn ways(api: &Api, Path(ends): Path<Ends>) -> Result<Json<Ways>, Problem> {
    let ways =
        controller(api)?.state().paths(&ends.source, &ends.destination).map_err(|error| wrong(&error))?;
    Ok(Json(convert::ways(ways)))
}

/// `PUT /v1/control/pins/{source}/{destination}`
pub(in crate::api) fn pin(
    api: &Api,
    Path(Ends { source, destination }): Path<Ends>,
    JsonBody(PinTo { address }): JsonBody<PinTo>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().pin(&source, &destination, address).map_err(|error| wrong(&error))?;
    tracing::info!(src = %source, dst = %destination, tree = address, "pinned");
    Ok(Json(convert::control(control)))
}

/// `DELETE /v1/control/pins/{source}/{destination}`
pub(in crate::api) fn unpin(
    api: &Api,
    Path(Ends { source, destination }): Path<Ends>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().unpin(&source, &destination).map_err(|error| wrong(&error))?;
    tracing::info!(src = %source, dst = %destination, "unpinned");
    Ok(Json(convert::control(control)))
}

/// `PUT /v1/control/frozen`
pub(in crate::api) fn freeze(
    api: &Api,
    JsonBody(Frozen { frozen }): JsonBody<Frozen>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().freeze(frozen);
    tracing::info!("controller {}", if frozen { "frozen" } else { "resumed" });
    Ok(Json(convert::control(control)))
}

fn controller(api: &Api) -> Result<&control::Control, Problem> {
    let missing = || Problem::new(Code::NotFound, "there is no [control] in the configuration");
    api.parts().control.as_ref().ok_or_else(missing)
}

fn wrong(error: &ControlError) -> Problem {
    let code = match error {
        ControlError::NoHost(_) | ControlError::NotPinned { .. } => Code::NotFound,
        _ => Code::BadBody,
    };
    Problem::new(code, error)
}
