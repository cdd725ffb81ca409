//! Creates the configured actuator.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use thalweg_actuators::arp::{Arp, HostFrameSender};
use thalweg_actuators::log::Log;
use thalweg_actuators::{Action, Actuator, ActuatorError};
use thalweg_capture::live::FrameSender;
use thalweg_control::control_loop::Input;
use thalweg_linux::NamespaceError;
use thalweg_network::{EndpointId, NetworkState, Topology};

use super::StartError;
use super::openflow::Switches;
use crate::config::{ActuatorConfig, ControlConfig};
use crate::emulation::{Emulation, EmulationCommand};

/// Creates the configured actuator.
pub(super) fn new(
    config: &ControlConfig,
    state: &NetworkState,
    emulation: Option<&Emulation>,
) -> Result<Box<dyn Actuator>, StartError> {
    let name = config.actuator.name();
    let failed = |cause: String| StartError::Actuator { name, cause };
    match &config.actuator {
        ActuatorConfig::Log => Ok(Box::new(Log::new(1))),
        ActuatorConfig::Emulated => {
            let emulation = emulation.ok_or_else(|| failed("requires [emulate]".to_owned()))?;
            Ok(Box::new(EmulatedHosts(emulation.clone())))
        }
        ActuatorConfig::Arp { interfaces, interface, refresh } => {
            let topology = Arc::clone(state.topology());
            let open = || Senders::open(&topology, interfaces, interface.as_deref());
            let frames = within(config, open).map_err(|error| failed(error.to_string()))?.map_err(failed)?;
            Ok(Box::new(Arp::new(topology, frames, *refresh)))
        }
        ActuatorConfig::OpenFlow(openflow) => {
            let switches = Switches::new(openflow, config.namespace.clone(), state.topology());
            Ok(Box::new(switches.map_err(|error| failed(error.to_string()))?))
        }
    }
}

/// Runs `work` in the configured network namespace.
fn within<T: Send>(config: &ControlConfig, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    match &config.namespace {
        None => Ok(work()),
        Some(namespace) => namespace.within(work),
    }
}

/// Hosts and switches of the daemon's emulation.
struct EmulatedHosts(Emulation);

impl Actuator for EmulatedHosts {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError> {
        let (source, destination) = (action.pair.source, action.pair.destination);
        let command = EmulationCommand::Address { source, destination, address: action.address };
        self.0
            .send(command)
            .map_err(|_| ActuatorError::Busy("the command queue of the emulation is full".to_owned()))
    }

    fn take_inputs(&mut self) -> Vec<Input> {
        self.0.take_links().map(Input::Links).into_iter().collect()
    }

    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        let tables = state.topology().router_ids().zip(state.forwarding().all_tables());
        for (router, table) in tables {
            let command = EmulationCommand::Forward(router, table.clone());
            self.0.send(command).map_err(|_| "the command queue of the emulation is full".to_owned())?;
        }
        Ok(())
    }
}

/// The interfaces of hosts.
#[derive(Debug)]
struct Senders {
    senders: Vec<FrameSender>,
    /// By host, the index of its interface; `None` for no interface.
    by_host: Vec<Option<usize>>,
}

impl Senders {
    fn open(
        topology: &Topology,
        interfaces: &BTreeMap<String, String>,
        default_interface: Option<&str>,
    ) -> Result<Senders, String> {
        let mut senders = Vec::new();
        let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
        for name in interfaces.values().map(String::as_str).chain(default_interface) {
            if !indexes.contains_key(name) {
                senders.push(FrameSender::open(name).map_err(|error| error.to_string())?);
                indexes.insert(name, senders.len() - 1);
            }
        }
        let of = |host: &str| interfaces.get(host).map(String::as_str).or(default_interface);
        let hosts = topology.endpoints().iter();
        let by_host = hosts.map(|host| of(&host.name).map(|name| indexes[name])).collect();
        Ok(Senders { senders, by_host })
    }
}

impl HostFrameSender for Senders {
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()> {
        match self.by_host.get(to.index()) {
            Some(&Some(sender)) => self.senders[sender].send(frame),
            _ => Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                "no interface is configured for this host",
            )),
        }
    }
}
