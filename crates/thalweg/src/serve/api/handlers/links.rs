//! Links, and the flows on them.

use thalweg_api::problem::{Code, Problem};
use thalweg_api::{LinkName, Links};
use thalweg_measure::collector::{FlowReport, LinkSide, Way};
use thalweg_network::{Attachment, NetworkState, Node};

use super::flows::Fastest;
use super::{Patience, asked, check_answered};
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::{Api, convert};

/// `GET /v1/links`
pub(in crate::serve::api) fn all(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let network = api.daemon().network();
    let network = network.as_ref().map(|versions| &*versions.newest().state);
    let patience = Patience::new();
    let (mut answered, mut links) = (Vec::new(), Vec::new());
    for collector in asked(api, request)? {
        let switch = &collector.description().switch;
        let answer = collector.links(patience.left());
        answered.push(convert::answered(&collector, &answer));
        links.extend(answer.into_iter().flat_map(|asked| asked.value).map(|report| {
            let peer = network.and_then(|network| peer(network, switch, report.side));
            convert::link(&report, collector.name(), switch, peer)
        }));
    }
    check_answered(&answered)?;
    links.sort_by(|a, b| (&a.switch, a.port, a.way).cmp(&(&b.switch, b.port, b.way)));
    Reply::json(&Links { answered, links })
}

/// `GET /v1/links/{link}/flows`
pub(in crate::serve::api) fn flows(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let link: LinkName = match request.get("link")? {
        Some(link) => link,
        None => return Err(Problem::new(Code::BadParameter, "link is missing")),
    };
    let collectors = asked(api, request)?.into_iter();
    let watching: Vec<_> =
        collectors.filter(|collector| *collector.description().switch == *link.switch).collect();
    if watching.is_empty() {
        return Err(Problem::new(Code::NotFound, format!("no collector watches a switch {:?}", link.switch)));
    }
    if let Some(network) = api.daemon().network() {
        check_port(&network.newest().state, &link)?;
    }
    let side = convert::side(&link);
    let flows = Fastest::of(&watching, request, |flow| is_on(flow, side))?;
    Reply::json(&flows)
}

/// Whether the packets of a flow go this way through this port, as far as is known.
fn is_on(flow: &FlowReport, side: LinkSide) -> bool {
    match side.way {
        Way::Input => flow.input == Some(side.port),
        Way::Output => flow.output == Some(side.port),
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

/// Name of what is at the other end of a link.
fn peer<'a>(network: &'a NetworkState, switch: &str, side: LinkSide) -> Option<&'a str> {
    let topology = network.topology();
    let Some(Node::Router(router)) = topology.node_named(switch) else { return None };
    let Attachment { node, .. } = *topology.peers(router).get(usize::from(side.port.0))?;
    Some(topology.name(node))
}
