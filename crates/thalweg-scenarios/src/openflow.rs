//! Installs routes in the Open vSwitch bridges of a lab by OpenFlow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::openflow::{Config, Fabric, FabricEvent, Member};
use thalweg_lab::{DEFAULT_ADDRESSES, Lab, LabError, OpenFlowSwitch, shortest_path_tables};
use thalweg_network::{LinkState, NetworkState};
use thalweg_wire::openflow::{DatapathId, PortNumber};

use super::error::ScenarioError;
use thalweg_linux::clock::realtime;

/// Timeout for all switches to connect and to install their routes.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Interval at which progress is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Connects to all switches of a lab and waits until they have installed the routes of `state`. They keep the routes
/// after the connections end.
///
/// # Errors
/// If the lab no longer exists, or a switch refuses a route or does not answer.
pub(super) fn forward(lab: &Lab, state: &NetworkState) -> Result<(), ScenarioError> {
    let switches = lab.openflow();
    let member = |switch: &OpenFlowSwitch| Member {
        router: switch.router,
        datapath: DatapathId(switch.datapath_id),
        monitor: Some(PortNumber(switch.monitor_port).into()),
    };
    let members: Vec<Member> = switches.iter().map(member).collect();
    // A lab's bridges have ports with names and numbers of its own.
    let topology = Arc::new(state.topology().without_port_names());
    let mut fabric = Fabric::new(topology, &members, Config::default());
    // Threads stay in the namespace in which they start, and reconnect there.
    let connect = || switches.iter().try_for_each(|switch| fabric.switches().connect(switch.address, None));
    lab.fabric().within(connect)?.map_err(|error| ScenarioError::Switches(error.to_string()))?;
    fabric.install(state);
    let start = Instant::now();
    loop {
        fabric.maintain(realtime());
        if fabric.out_of_sync().next().is_none() {
            return Ok(());
        }
        if start.elapsed() > TIMEOUT {
            let is_error = |event: &FabricEvent| {
                matches!(event, FabricEvent::Failed { .. } | FabricEvent::Refused { .. })
            };
            let last_error = fabric.take_events().into_iter().rev().find(is_error);
            let reason = last_error.map(|event| event.describe(state.topology()).to_string());
            let reason = reason.unwrap_or_else(|| "a switch did not answer within 20 s".to_owned());
            return Err(ScenarioError::Switches(reason));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Installs the routes that eBPF switches have from the start, if the lab's switches use OpenFlow.
///
/// # Errors
/// If the lab no longer exists, or a switch refuses a route or does not answer.
pub fn begin(lab: &Lab) -> Result<(), ScenarioError> {
    if lab.openflow().is_empty() {
        return Ok(());
    }
    let topology = &lab.plan().topology;
    let tables = shortest_path_tables(topology, DEFAULT_ADDRESSES).map_err(LabError::from)?;
    let state = NetworkState::new(Arc::clone(topology), LinkState::new(topology), tables)?;
    forward(lab, &state)
}
