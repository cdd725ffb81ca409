//! `[topology]`, and the names of its parts.

use std::path::Path;

use thalweg_config::{Format, Hint, Problems, Typed};
use thalweg_network::topology::shapes::{Shape, Tiers};
use thalweg_network::{EndpointId, LinkSpec, Node, PortIndex, RouterId, Topology, TopologyError};

use crate::experiment::table::{
    self, AccessLinks, FatTree, LeafSpine, RackCount, RackSize, Top, TopologyFile, Uplinks,
};
use crate::experiment::{Experiment, Problem};

/// The name of the experiment.
pub(super) fn name_of(experiment: &Experiment) -> String {
    let stem = || Path::new(&experiment.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    experiment.one::<Top>().name.clone().unwrap_or_else(stem)
}

/// The name of the topology: its shape and sizes, or its file.
pub(super) fn topology_name(entry: &Typed<'_, table::Topology>) -> String {
    let (Some(shape), Some((sizes, _))) = (Shape::named(entry.entry.chosen()), built(entry)) else {
        return match &**entry {
            table::Topology::File(TopologyFile { file }) => file.clone(),
            _ => String::new(),
        };
    };
    let sizes = shape.sizes.iter().zip(sizes).map(|(name, size)| format!("{name} {size}"));
    let sizes: Vec<String> = sizes.collect();
    format!("{} ({})", shape.name, sizes.join(", "))
}

/// The topology.
///
/// # Errors
/// If a file cannot be read or is invalid, or no network has these sizes.
pub(super) fn topology(
    experiment: &Experiment,
    entry: &Typed<'_, table::Topology>,
) -> Result<Topology, Problem> {
    if let table::Topology::File(TopologyFile { file }) = &**entry {
        return from_file(experiment, entry, file);
    }
    let refuse = |reason: String| entry.refuse(table::Topology::shape, reason);
    let (Some(shape), Some((sizes, tiers))) = (Shape::named(entry.entry.chosen()), built(entry)) else {
        return Err(refuse("there is no such shape".to_owned()));
    };
    check_links(entry, tiers)?;
    shape.build(&sizes, tiers).map_err(|error| refuse(error.to_string()))
}

/// The sizes and links of a generated shape, with sizes in the shape's order.
fn built(topology: &table::Topology) -> Option<(Vec<u32>, Tiers)> {
    use table::Topology as Of;
    let alike = |&AccessLinks { rate, delay, loss, jitter }: &AccessLinks| {
        let access = LinkSpec { rate, delay, loss, jitter };
        Tiers { access, uplink: access }
    };
    let tiers = |access: &AccessLinks, uplinks: &Uplinks| {
        let Tiers { access, .. } = alike(access);
        let uplink = LinkSpec {
            rate: uplinks.uplink_rate.unwrap_or(access.rate),
            delay: uplinks.uplink_delay.unwrap_or(access.delay),
            loss: uplinks.uplink_loss.unwrap_or(access.loss),
            jitter: uplinks.uplink_jitter.unwrap_or(access.jitter),
        };
        Tiers { access, uplink }
    };
    Some(match topology {
        Of::Rack(RackSize { endpoints }, links) => (vec![*endpoints], alike(links)),
        Of::Racks(RackCount { racks }, RackSize { endpoints }, links, uplinks) => {
            (vec![*racks, *endpoints], tiers(links, uplinks))
        }
        Of::IsolatedRacks(RackCount { racks }, RackSize { endpoints }, links) => {
            (vec![*racks, *endpoints], alike(links))
        }
        Of::Dumbbell(RackSize { endpoints }, links, uplinks) => (vec![*endpoints], tiers(links, uplinks)),
        Of::LeafSpine(RackSize { endpoints }, LeafSpine { leaves, spines }, links, uplinks) => {
            (vec![*leaves, *spines, *endpoints], tiers(links, uplinks))
        }
        Of::FatTree(FatTree { k }, links, uplinks) => (vec![*k], tiers(links, uplinks)),
        Of::File(_) => return None,
    })
}

/// Checks the links of a generated shape.
///
/// # Errors
/// Names the key of an invalid value. A jitter that is inherited may be larger than a delay that is not.
fn check_links(entry: &Typed<'_, table::Topology>, tiers: Tiers) -> Result<(), Problem> {
    let access = [AccessLinks::rate, AccessLinks::delay, AccessLinks::jitter];
    let uplink = [Uplinks::uplink_rate, Uplinks::uplink_delay, Uplinks::uplink_jitter];
    for (spec, [rate, delay, jitter]) in [(tiers.access, access), (tiers.uplink, uplink)] {
        let key = |error: &TopologyError| match error {
            TopologyError::Rate { .. } => rate,
            TopologyError::Jitter { .. } if entry.entry.place_of(jitter).is_some() => jitter,
            _ => delay,
        };
        spec.check().map_err(|error| entry.refuse(key(&error), error.to_string()))?;
    }
    Ok(())
}

fn from_file(
    experiment: &Experiment,
    entry: &Typed<'_, table::Topology>,
    file: &str,
) -> Result<Topology, Problem> {
    let refuse = |reason: String| entry.refuse(TopologyFile::file, reason);
    let text = thalweg_config::read_text(experiment.folder.join(file))
        .map_err(|error| refuse(format!("cannot read {file}: {error}")))?;
    // One line, as all problems.
    let in_one_line = |error: Problems| error.to_string().replace('\n', "; ");
    Topology::from_text(&text, file, Format::of(file)).map_err(|error| refuse(in_one_line(error)))
}

/// Endpoints by name: `h0`, or `h0..h3` including both ends, in the order of the topology.
///
/// # Errors
/// Names an unknown endpoint and the nearest known one, or an invalid range.
pub(super) fn endpoints(topology: &Topology, names: &[String]) -> Result<Vec<EndpointId>, String> {
    let mut endpoints = Vec::new();
    for name in names {
        match name.split_once("..") {
            Some((first, last)) if topology.node_named(name).is_none() => {
                let (first, last) = (endpoint(topology, first.trim())?, endpoint(topology, last.trim())?);
                if first > last {
                    return Err(format!(
                        "invalid range \"{name}\": expected FIRST..LAST in the order of the topology, such as h0..h3"
                    ));
                }
                endpoints.extend((first.0..=last.0).map(EndpointId));
            }
            _ => {
                endpoints.push(endpoint(topology, name).map_err(|reason| with_range(topology, name, reason))?)
            }
        }
    }
    Ok(endpoints)
}

/// Completes the reason why an endpoint is unknown if its name looks like a range: `h0-h3`.
fn with_range(topology: &Topology, name: &str, reason: String) -> String {
    match name.split_once('-') {
        Some((first, last)) if [first, last].iter().all(|end| endpoint(topology, end.trim()).is_ok()) => {
            format!("{reason}; a range is written {}..{}", first.trim(), last.trim())
        }
        _ => reason,
    }
}

/// An endpoint by name.
///
/// # Errors
/// If there is none. Names the nearest known one.
pub(super) fn endpoint(topology: &Topology, name: &str) -> Result<EndpointId, String> {
    match topology.node_named(name) {
        Some(Node::Endpoint(endpoint)) => Ok(endpoint),
        Some(Node::Router(_)) => Err(format!("\"{name}\" is a router: expected an endpoint")),
        None => Err(match numbered(topology, name) {
            Some((first, last)) => format!("unknown endpoint \"{name}\": expected {first} to {last}"),
            None => unknown(name, "endpoint", endpoint_names(topology)),
        }),
    }
}

/// The names of the first and the last endpoint, if `name` differs from them in its number only.
fn numbered<'a>(topology: &'a Topology, name: &str) -> Option<(&'a str, &'a str)> {
    fn stem(name: &str) -> &str {
        name.trim_end_matches(|digit: char| digit.is_ascii_digit())
    }
    let (first, last) = (endpoint_names(topology).next()?, endpoint_names(topology).last()?);
    let is_number = |other: &str| stem(other) == stem(name) && stem(other) != other;
    (is_number(first) && is_number(last) && is_number(name)).then_some((first, last))
}

/// A router by name.
///
/// # Errors
/// If there is none. Names the nearest known one.
pub(super) fn router(topology: &Topology, name: &str) -> Result<RouterId, String> {
    match topology.node_named(name) {
        Some(Node::Router(router)) => Ok(router),
        Some(Node::Endpoint(_)) => Err(format!("\"{name}\" is an endpoint: expected a router")),
        None => Err(unknown(name, "router", router_names(topology))),
    }
}

/// A node by name.
///
/// # Errors
/// If there is none. Names the nearest known one.
pub(super) fn node(topology: &Topology, name: &str) -> Result<Node, String> {
    let known = || router_names(topology).chain(endpoint_names(topology));
    topology.node_named(name).ok_or_else(|| unknown(name, "router or endpoint", known()))
}

fn router_names(topology: &Topology) -> impl Iterator<Item = &str> {
    topology.routers().iter().map(|router| router.name.as_str())
}

fn endpoint_names(topology: &Topology) -> impl Iterator<Item = &str> {
    topology.endpoints().iter().map(|endpoint| endpoint.name.as_str())
}

/// Ports by name: `tor0 > h3`, `tor0:p3`, `tor0:Ethernet4`, or all of `tor0`.
///
/// # Errors
/// Names an unknown port.
pub(super) fn ports(
    topology: &Topology,
    names: &[impl AsRef<str>],
) -> Result<Vec<(RouterId, PortIndex)>, String> {
    let mut ports = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        match name.split_once('>') {
            Some((from, to)) => {
                let (from_name, to_name) = (from.trim(), to.trim());
                let (from, to) = (router(topology, from_name)?, node(topology, to_name)?);
                let peers = topology.peers(from).iter();
                let leading = (0..)
                    .zip(peers)
                    .filter(|(_, peer)| peer.node == to)
                    .map(|(port, _)| (from, PortIndex(port)));
                let before = ports.len();
                ports.extend(leading);
                if ports.len() == before {
                    return Err(format!("no port of {from_name} leads to {to_name}"));
                }
            }
            None if topology.node_named(name).is_none() && name.contains(':') => {
                ports.push(topology.find_port(name).map_err(|error| error.to_string())?);
            }
            None => {
                let router = router(topology, name)?;
                ports.extend((0..topology.ports(router) as u16).map(|port| (router, PortIndex(port))));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

fn unknown<'a>(name: &str, what: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("unknown {what} \"{name}\"{}", Hint::nearest(name, known))
}
