//! `[[mirror]]`.

use thalweg_emulator::ports::monitor::Monitor;
use thalweg_network::{Node, PortIndex};

use super::network::{node, ports};
use super::{SURE, Stage};
use crate::experiment::{Entry, Problem};

/// A monitor port.
///
/// # Errors
/// If the router or a port is not there.
pub(super) fn monitor(entry: &Entry, stage: &Stage<'_>) -> Result<Monitor, Problem> {
    let topology = stage.topology;
    let name = entry.text("router").expect(SURE);
    let router = match node(topology, name).map_err(|reason| entry.refuse("router", reason))? {
        Node::Router(router) => router,
        Node::Endpoint(_) => {
            return Err(entry.refuse("router", format!("{name} is an endpoint: expected a router")));
        }
    };
    let mirrored = match entry.texts("ports") {
        Some(peers) => {
            let full: Vec<String> = peers.iter().map(|peer| format!("{name} > {peer}")).collect();
            let full: Vec<&str> = full.iter().map(String::as_str).collect();
            let found = ports(topology, &full).map_err(|reason| entry.refuse("ports", reason))?;
            found.into_iter().map(|(_, port)| port).collect()
        }
        None => (0..topology.ports(router) as u16).map(PortIndex).collect(),
    };
    Ok(Monitor {
        router,
        ports: mirrored,
        rate: entry.rate("rate").unwrap_or(stage.clock.rate),
        buffer: entry.amount("buffer").expect(SURE),
    })
}
