//! The controller: its state, its history, and commands to it.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Actions, Control, Decisions, FreezeRequest, LinkStateRequest, Paths, PinRequest};

use crate::api::{Api, convert};
use crate::control::{self, ControlError};
use thalweg_http::input::{JsonBody, Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::Count;

/// A limit of entries.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct LimitParam {
    /// Maximum number of entries, the latest first: 1 to 1,000; default 100. The daemon keeps 1,000.
    #[serde(default)]
    #[schemars(example = 20)]
    limit: Count<100, 1_000>,
}

/// A pair of hosts.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Hosts {
    /// Name of the sending host in the topology.
    #[schemars(example = &"h0")]
    src: String,
    /// Name of the receiving host in the topology.
    #[schemars(example = &"h1")]
    dst: String,
}

/// `GET /v1/control`
pub(in crate::api) fn get(api: &Api) -> Result<Json<Control>, Problem> {
    Ok(Json(convert::control(controller(api)?)))
}

/// `GET /v1/control/decisions`
pub(in crate::api) fn decisions(
    api: &Api,
    Query(LimitParam { limit: Count(count) }): Query<LimitParam>,
) -> Result<Json<Decisions>, Problem> {
    let (decisions, names) = controller(api)?.state().decisions(count);
    let decisions = decisions.iter().map(|decision| convert::decision(decision, &names)).collect();
    Ok(Json(Decisions { decisions }))
}

/// `GET /v1/control/actions`
pub(in crate::api) fn actions(
    api: &Api,
    Query(LimitParam { limit: Count(count) }): Query<LimitParam>,
) -> Result<Json<Actions>, Problem> {
    let (actions, names) = controller(api)?.state().actions(count);
    let actions = actions.iter().map(|report| convert::action(report, &names)).collect();
    Ok(Json(Actions { actions }))
}

/// `GET /v1/control/paths/{src}/{dst}`
pub(in crate::api) fn paths(api: &Api, Path(hosts): Path<Hosts>) -> Result<Json<Paths>, Problem> {
    let paths = controller(api)?.state().paths(&hosts.src, &hosts.dst).map_err(|error| wrong(&error))?;
    Ok(Json(convert::paths(paths)))
}

/// `PUT /v1/control/pins/{src}/{dst}`
pub(in crate::api) fn pin(
    api: &Api,
    Path(Hosts { src, dst }): Path<Hosts>,
    JsonBody(PinRequest { tree }): JsonBody<PinRequest>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().pin(&src, &dst, tree).map_err(|error| wrong(&error))?;
    tracing::info!(%src, %dst, tree, "pinned");
    Ok(Json(convert::control(control)))
}

/// `DELETE /v1/control/pins/{src}/{dst}`
pub(in crate::api) fn unpin(
    api: &Api,
    Path(Hosts { src, dst }): Path<Hosts>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().unpin(&src, &dst).map_err(|error| wrong(&error))?;
    tracing::info!(%src, %dst, "unpinned");
    Ok(Json(convert::control(control)))
}

/// `PUT /v1/control/frozen`
pub(in crate::api) fn freeze(
    api: &Api,
    JsonBody(FreezeRequest { frozen }): JsonBody<FreezeRequest>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    control.state().freeze(frozen);
    tracing::info!("controller {}", if frozen { "frozen" } else { "resumed" });
    Ok(Json(convert::control(control)))
}

/// A link.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct LinkPath {
    /// A port at one end of the link: SWITCH:PORT. PORT is p and its number, or the name in the topology.
    #[schemars(example = &"tor0:p3")]
    link: String,
}

/// `PUT /v1/links/{link}/state`
pub(in crate::api) fn report_link(
    api: &Api,
    Path(LinkPath { link }): Path<LinkPath>,
    JsonBody(LinkStateRequest { up }): JsonBody<LinkStateRequest>,
) -> Result<Json<Control>, Problem> {
    let control = controller(api)?;
    let link = control.state().report_link(&link, up).map_err(|error| wrong(&error))?;
    tracing::info!(%link, up, "link reported");
    Ok(Json(convert::control(control)))
}

fn controller(api: &Api) -> Result<&control::Control, Problem> {
    let missing = || {
        Problem::new(Code::NotFound, "the controller is not configured: add [control] to the configuration")
    };
    api.parts().control.as_ref().ok_or_else(missing)
}

fn wrong(error: &ControlError) -> Problem {
    let code = match error {
        ControlError::NoHost(_) | ControlError::NotPinned { .. } | ControlError::NoPort(_) => Code::NotFound,
        ControlError::Standby => Code::Conflict,
        _ => Code::BadBody,
    };
    Problem::new(code, error)
}
