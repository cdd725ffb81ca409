//! `[topology]`, and the parts of a topology by their names.

use std::path::Path;

use thalweg_network::topology::shapes::{Shape, Tiers};
use thalweg_network::{EndpointId, LinkSpec, Node, PortIndex, RouterId, Topology};

use super::SURE;
use crate::experiment::table::TOP;
use crate::experiment::{Entry, Experiment, Problem};

/// Name of the experiment.
pub(super) fn name_of(experiment: &Experiment) -> String {
    let stem = || Path::new(&experiment.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    experiment.entry(&TOP).text("name").map_or_else(stem, str::to_owned)
}

/// Name of the topology: that of its shape with its sizes, or of its file.
pub(super) fn topology_name(entry: &Entry) -> String {
    let Some(shape) = Shape::named(entry.chosen()) else {
        return entry.text("file").unwrap_or_default().to_owned();
    };
    let sizes = shape.sizes.iter().map(|size| format!("{size} {}", entry.text(size).unwrap_or_default()));
    let sizes: Vec<String> = sizes.collect();
    format!("{} ({})", shape.name, sizes.join(", "))
}

/// The topology.
///
/// # Errors
/// If a file cannot be read or is wrong, or there is no network of these sizes.
pub(super) fn topology(experiment: &Experiment, entry: &Entry) -> Result<Topology, Problem> {
    let Some(shape) = Shape::named(entry.chosen()) else {
        return from_file(experiment, entry);
    };
    let access = LinkSpec { rate: entry.rate("rate").expect(SURE), delay: entry.time("delay").expect(SURE) };
    let uplink = match shape.name {
        "rack" | "isolated_racks" => access,
        _ => LinkSpec {
            rate: entry.rate("uplink_rate").unwrap_or(access.rate),
            delay: entry.time("uplink_delay").unwrap_or(access.delay),
        },
    };
    let sizes: Vec<u32> = shape.sizes.iter().map(|size| entry.whole(size).expect(SURE)).collect();
    shape.build(&sizes, Tiers { access, uplink }).map_err(|error| entry.refuse("shape", error.to_string()))
}

fn from_file(experiment: &Experiment, entry: &Entry) -> Result<Topology, Problem> {
    let file = entry.text("file").expect(SURE);
    let path = experiment.folder.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| entry.refuse("file", format!("cannot read {file}: {error}")))?;
    Topology::from_toml(&text, file).map_err(|error| entry.refuse("file", error.to_string()))
}

/// Endpoints by name: `h0`, or `h0..h3` with both ends.
///
/// # Errors
/// Says which name is none, and the nearest that is one.
pub(super) fn endpoints(topology: &Topology, names: &[&str]) -> Result<Vec<EndpointId>, String> {
    let mut endpoints = Vec::new();
    for name in names {
        match name.split_once("..") {
            Some((first, last)) if topology.node_named(name).is_none() => {
                let (first, last) = (endpoint(topology, first.trim())?, endpoint(topology, last.trim())?);
                if first > last {
                    return Err(format!("{name} ends before it begins"));
                }
                endpoints.extend((first.0..=last.0).map(EndpointId));
            }
            _ => endpoints.push(endpoint(topology, name)?),
        }
    }
    Ok(endpoints)
}

/// An endpoint by name.
///
/// # Errors
/// Says that there is none, and the nearest name that there is.
pub(super) fn endpoint(topology: &Topology, name: &str) -> Result<EndpointId, String> {
    match topology.node_named(name) {
        Some(Node::Endpoint(endpoint)) => Ok(endpoint),
        Some(Node::Router(_)) => Err(format!("{name} is a router: expected an endpoint")),
        None => {
            Err(unknown(name, "endpoint", topology.endpoints().iter().map(|endpoint| endpoint.name.as_str())))
        }
    }
}

/// A node by name.
///
/// # Errors
/// Says that there is none, and the nearest name that there is.
pub(super) fn node(topology: &Topology, name: &str) -> Result<Node, String> {
    topology.node_named(name).ok_or_else(|| {
        let routers = topology.routers().iter().map(|router| router.name.as_str());
        let endpoints = topology.endpoints().iter().map(|endpoint| endpoint.name.as_str());
        unknown(name, "node", routers.chain(endpoints))
    })
}

/// Ports by name: `tor0 > h3`, or all of `tor0`.
///
/// # Errors
/// Says which name is none.
pub(super) fn ports(topology: &Topology, names: &[&str]) -> Result<Vec<(RouterId, PortIndex)>, String> {
    let router = |name: &str| match node(topology, name)? {
        Node::Router(router) => Ok(router),
        Node::Endpoint(_) => Err(format!("{name} is an endpoint: expected a router")),
    };
    let mut ports = Vec::new();
    for name in names {
        match name.split_once('>') {
            Some((from, to)) => {
                let (from, to) = (router(from.trim())?, node(topology, to.trim())?);
                let peers = topology.peers(from).iter();
                let leading = (0..)
                    .zip(peers)
                    .filter(|(_, peer)| peer.node == to)
                    .map(|(port, _)| (from, PortIndex(port)));
                let before = ports.len();
                ports.extend(leading);
                if ports.len() == before {
                    return Err(format!("no port leads there: {name}"));
                }
            }
            None => {
                let router = router(name)?;
                ports.extend((0..topology.ports(router) as u16).map(|port| (router, PortIndex(port))));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// Most names that are compared with one that is not known.
const MOST_COMPARED: usize = 4_096;

fn unknown<'a>(name: &str, what: &str, known: impl Iterator<Item = &'a str>) -> String {
    let similarity = |known: &str| strsim::jaro_winkler(name, known);
    let nearest = known.take(MOST_COMPARED).min_by(|a, b| similarity(b).total_cmp(&similarity(a)));
    match nearest.filter(|nearest| name.len() <= 64 && similarity(nearest) >= 0.75) {
        Some(nearest) => format!("there is no {what} {name}; did you mean {nearest}?"),
        None => format!("there is no {what} {name}"),
    }
}
