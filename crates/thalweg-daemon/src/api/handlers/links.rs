//! Links and the flows on them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{DirectionName, Flows, LinkName, Links};
use thalweg_measure::collector::{FlowReport, LinkDirection, PortDirection};
use thalweg_network::topology::UnknownPort;
use thalweg_network::{Attachment, NetworkState, Node, Topology};

use super::flows::Ranking;
use super::{CollectorParam, LimitParams, RequestDeadline, check_responses, selected};
use crate::api::convert::KnownLink;
use crate::api::{Api, convert};
use crate::config::split_direction;
use crate::link_name;
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;

/// One direction of a link.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct LinkPath {
    /// Name of the link: SWITCH:PORT:in or SWITCH:PORT:out. PORT is p and its number, or the name in the topology.
    #[schemars(example = &"tor0:p3:out")]
    pub(super) link: String,
}

/// `GET /v1/links`
pub(in crate::api) fn all(
    api: &Api,
    Query(CollectorParam { collector }): Query<CollectorParam>,
) -> Result<Json<Links>, Problem> {
    let network = api.parts().network.versions();
    let network = network.as_ref().map(|versions| &*versions.newest().state);
    let deadline = RequestDeadline::new();
    let (mut responses, mut links) = (Vec::new(), Vec::new());
    for collector in selected(api, collector.as_deref())? {
        let switch = &collector.description().switch;
        let answer = collector.links(deadline.left());
        responses.push(convert::collector_response(&collector, &answer));
        links.extend(answer.into_iter().flat_map(|asked| asked.value).map(|report| {
            let known = network.and_then(|network| known_link(network, switch, report.side));
            convert::link(&report, collector.name(), switch, known.unwrap_or_default())
        }));
    }
    check_responses(&responses)?;
    links.sort_by(|a, b| (&a.switch, a.port, a.direction).cmp(&(&b.switch, b.port, b.direction)));
    Ok(Json(Links { responses, links }))
}

/// `GET /v1/links/{link}/flows`
pub(in crate::api) fn flows(
    api: &Api,
    Path(LinkPath { link }): Path<LinkPath>,
    Query(params): Query<LimitParams>,
) -> Result<Json<Flows>, Problem> {
    let network = api.parts().network.versions();
    let link = named_link(network.as_ref().map(|versions| versions.newest().state.topology()), &link)?;
    let collectors = selected(api, params.collector.as_deref())?.into_iter();
    let watching: Vec<_> =
        collectors.filter(|collector| *collector.description().switch == *link.switch).collect();
    if watching.is_empty() {
        return Err(Problem::new(
            Code::NotFound,
            format!("no collector monitors the switch {:?}", link.switch),
        ));
    }
    let side = link_name::side(&link);
    Ok(Json(Ranking::of(api, &watching, &params, |flow| is_on(flow, side) && params.matches(flow))?))
}

/// Whether a flow is known to use this direction of the link.
fn is_on(flow: &FlowReport, side: LinkDirection) -> bool {
    match side.direction {
        PortDirection::Input => flow.input == Some(side.port),
        PortDirection::Output => flow.output == Some(side.port),
    }
}

/// Returns the link that a text names. Without a topology, ports have numbers only.
pub(super) fn named_link(topology: Option<&Arc<Topology>>, text: &str) -> Result<LinkName, Problem> {
    let invalid = || {
        Problem::new(
            Code::BadParameter,
            format!(
                "invalid link name {text:?}: expected SWITCH:PORT:in or SWITCH:PORT:out, such as tor0:p3:out"
            ),
        )
    };
    let Some(topology) = topology else { return text.parse().map_err(|_| invalid()) };
    let (port, Some(direction)) = split_direction(text) else { return Err(invalid()) };
    let (router, port) = topology.find_port(port).map_err(|error| match error {
        UnknownPort::Format { .. } => invalid(),
        error => Problem::new(Code::NotFound, error.to_string()),
    })?;
    let direction = match direction {
        PortDirection::Input => DirectionName::In,
        PortDirection::Output => DirectionName::Out,
    };
    Ok(LinkName::new(topology.name(Node::Router(router)), port.0, direction))
}

/// Returns what the topology says about a link; `None` if it has no such port.
fn known_link<'a>(network: &'a NetworkState, switch: &str, side: LinkDirection) -> Option<KnownLink<'a>> {
    let topology = network.topology();
    let Some(Node::Router(router)) = topology.node_named(switch) else { return None };
    let Attachment { node, .. } = *topology.peers(router).get(usize::from(side.port.0))?;
    Some(KnownLink { peer: Some(topology.name(node)), port_name: topology.port_name(router, side.port) })
}
