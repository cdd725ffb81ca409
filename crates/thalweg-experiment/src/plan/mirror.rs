//! `[[mirror]]`.

use thalweg_config::Typed;
use thalweg_emulator::ports::monitor::Monitor;
use thalweg_network::PortIndex;

use super::Stage;
use super::network::{ports, router};
use crate::experiment::Problem;
use crate::experiment::table::Mirror;

/// A monitor port.
///
/// # Errors
/// If the router or a port does not exist.
pub(super) fn monitor(entry: &Typed<'_, Mirror>, stage: &Stage<'_>) -> Result<Monitor, Problem> {
    let topology = stage.topology;
    let name = &entry.router;
    let router = router(topology, name).map_err(|reason| entry.refuse(Mirror::router, reason))?;
    let mirrored = match &entry.ports {
        Some(peers) => {
            let full: Vec<String> = peers.iter().map(|peer| format!("{name} > {peer}")).collect();
            let found = ports(topology, &full).map_err(|reason| entry.refuse(Mirror::ports, reason))?;
            found.into_iter().map(|(_, port)| port).collect()
        }
        None => (0..topology.ports(router) as u16).map(PortIndex).collect(),
    };
    Ok(Monitor {
        router,
        ports: mirrored,
        rate: entry.rate.unwrap_or(stage.clock.rate),
        buffer: entry.buffer,
    })
}
