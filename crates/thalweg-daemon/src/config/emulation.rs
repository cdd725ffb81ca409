//! `[emulate]`: one emulated network for all collectors.

use std::sync::Arc;

use thalweg_config::{Document, Problem, Typed};
use thalweg_emulator::router::Balance;
use thalweg_experiment::{Experiment, Plan};
use thalweg_measure::collector::MonitorPort;
use thalweg_network::{Forwarding, LinkState, NetworkState, Node};

use super::ConfigError;
use super::table::Emulate;
use crate::emulation::EmulationConfig;

/// Reads the section and its experiment. Also returns the emulated network. `None` without `[emulate]`.
///
/// # Errors
/// If the experiment is invalid.
pub(super) fn read(
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Result<Option<(EmulationConfig, Arc<NetworkState>)>, ConfigError> {
    let entry = document.one::<Emulate>();
    let Some(file) = &entry.file else { return Ok(None) };
    let path = document.folder.join(file);
    let experiment = Experiment::load(&path)?;
    let plan = Plan::new(&experiment)?;
    if plan.balance == Balance::Spray {
        problems.push(
            entry.refuse(Emulate::file, "its routers spray packets, so their paths cannot be inferred"),
        );
    }
    let state = state(&entry, &plan, problems);
    let ports = plan.monitors.iter().map(|monitor| {
        let switch = plan.topology.name(Node::Router(monitor.router)).into();
        (switch, MonitorPort { rate: monitor.rate, buffer: monitor.buffer })
    });
    let (scheme, pace, ports) = (plan.scheme, entry.pace, ports.collect());
    let config = EmulationConfig { path, experiment, scheme, pace, ports };
    Ok(state.map(|state| (config, state)))
}

/// Returns the network at the start of the emulation: equal-cost paths, chosen by the experiment's seed.
fn state(entry: &Typed<'_, Emulate>, plan: &Plan, problems: &mut Vec<Problem>) -> Option<Arc<NetworkState>> {
    let links = LinkState::new(&plan.topology);
    let state = NetworkState::new(plan.topology.clone(), links, Forwarding::ecmp(plan.seed));
    state.map(Arc::new).map_err(|error| problems.push(entry.refuse(Emulate::file, error.to_string()))).ok()
}
