//! The switches of a lab of Open vSwitch, told by OpenFlow what to forward.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::openflow::{Config, Fabric, FabricEvent, Member};
use thalweg_lab::{DEFAULT_ADDRESSES, Lab, LabError, OpenFlowSwitch, shortest_path_tables};
use thalweg_network::{LinkState, NetworkState};
use thalweg_wire::openflow::{DatapathId, PortNumber};

use super::error::ScenarioError;
use thalweg_daemon::clock::wall_clock;

/// Longest that all switches may take to connect and to take their routes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(1);

/// Connects to all switches of a lab, and has them forward as a state says: when this returns they do. They go on so when
/// the connections have ended.
///
/// # Errors
/// If the lab is gone, or a switch does not do what it is told.
pub(super) fn forward(lab: &Lab, state: &NetworkState) -> Result<(), ScenarioError> {
    let switches = lab.openflow();
    let member = |switch: &OpenFlowSwitch| Member {
        router: switch.router,
        datapath: DatapathId(switch.datapath_id),
        monitor: Some(PortNumber(switch.monitor_port)),
    };
    let members: Vec<Member> = switches.iter().map(member).collect();
    let mut fabric = Fabric::new(Arc::clone(state.topology()), &members, Config::default());
    // Threads stay in the namespace that they are started in, and connect in there again.
    let connect = || switches.iter().try_for_each(|switch| fabric.switches().connect(switch.address, None));
    lab.fabric().within(connect)?.map_err(|error| ScenarioError::Switches(error.to_string()))?;
    fabric.install(state);
    let begun = Instant::now();
    loop {
        fabric.maintain(wall_clock());
        if fabric.unsettled().next().is_none() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            let is_trouble =
                |news: &FabricEvent| matches!(news, FabricEvent::Failed { .. } | FabricEvent::Refused { .. });
            let trouble = fabric.take_events().into_iter().rev().find(is_trouble);
            let told = trouble.map(|news| news.describe(state.topology()).to_string());
            let told = told.unwrap_or_else(|| "a switch does not answer".to_owned());
            return Err(ScenarioError::Switches(told));
        }
        std::thread::sleep(LOOK);
    }
}

/// Has the switches of a lab forward as those of eBPF do from the beginning, if they are told by OpenFlow.
///
/// # Errors
/// If the lab is gone, or a switch does not do what it is told.
pub fn begin(lab: &Lab) -> Result<(), ScenarioError> {
    if lab.openflow().is_empty() {
        return Ok(());
    }
    let topology = &lab.plan().topology;
    let tables = shortest_path_tables(topology, DEFAULT_ADDRESSES).map_err(LabError::from)?;
    let state = NetworkState::new(Arc::clone(topology), LinkState::new(topology), tables)?;
    forward(lab, &state)
}
