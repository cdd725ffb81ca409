//! Links and the flows on them.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Flows, LinkName, Links};
use thalweg_measure::collector::{FlowReport, LinkDirection, PortDirection};
use thalweg_network::{Attachment, NetworkState, Node};

use super::flows::Fastest;
use super::{CollectorParam, LimitParams, RequestDeadline, check_responses, selected};
use crate::api::convert::KnownLink;
use crate::api::{Api, convert};
use crate::from_json;
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::Parsed;

/// One direction of a link.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct LinkPath {
    /// Name of the link: SWITCH:pPORT:in or SWITCH:pPORT:out.
    #[schemars(example = &"tor0:p3:out")]
    link: Parsed<LinkName>,
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
    Path(LinkPath { link: Parsed(link) }): Path<LinkPath>,
    Query(params): Query<LimitParams>,
) -> Result<Json<Flows>, Problem> {
    let collectors = selected(api, params.collector.as_deref())?.into_iter();
    let watching: Vec<_> =
        collectors.filter(|collector| *collector.description().switch == *link.switch).collect();
    if watching.is_empty() {
        return Err(Problem::new(
            Code::NotFound,
            format!("no collector monitors the switch {:?}", link.switch),
        ));
    }
    if let Some(network) = api.parts().network.versions() {
        check_port(&network.newest().state, &link)?;
    }
    let side = from_json::side(&link);
    Ok(Json(Fastest::of(&watching, params.limit, |flow| is_on(flow, side) && params.matches(flow))?))
}

/// Whether a flow is known to use this direction of the link.
fn is_on(flow: &FlowReport, side: LinkDirection) -> bool {
    match side.direction {
        PortDirection::Input => flow.input == Some(side.port),
        PortDirection::Output => flow.output == Some(side.port),
    }
}

fn check_port(network: &NetworkState, link: &LinkName) -> Result<(), Problem> {
    let topology = network.topology();
    match topology.node_named(&link.switch) {
        Some(Node::Router(router)) if usize::from(link.port) >= topology.ports(router) => Err(Problem::new(
            Code::NotFound,
            format!("switch {:?} has ports p0 to p{}", link.switch, topology.ports(router).saturating_sub(1)),
        )),
        _ => Ok(()),
    }
}

/// Returns what the topology says about a link; `None` if it has no such port.
fn known_link<'a>(network: &'a NetworkState, switch: &str, side: LinkDirection) -> Option<KnownLink<'a>> {
    let topology = network.topology();
    let Some(Node::Router(router)) = topology.node_named(switch) else { return None };
    let Attachment { node, .. } = *topology.peers(router).get(usize::from(side.port.0))?;
    Some(KnownLink { peer: Some(topology.name(node)), port_name: topology.port_name(router, side.port) })
}
