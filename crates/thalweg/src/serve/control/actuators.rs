//! How decisions are carried out, and routes set.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_capture::live::FrameSender;
use thalweg_control::Pair;
use thalweg_control::act::arp::{Arp, Frames};
use thalweg_control::act::log::Log;
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_network::{EndpointId, NetworkState, Topology};
use thalweg_wire::Timestamp;

use super::StartError;
use super::openflow::{Switches, SwitchesReport};
use crate::serve::config::{ActuatorConfig, ControlConfig};
use crate::serve::daemon::Daemon;
use crate::serve::emulation::{Emulation, Order};

/// What is to be done beside carrying out decisions.
pub(super) trait Upkeep: Send {
    /// Begins, with threads of its own if it has any: privileges have been given up.
    ///
    /// # Errors
    /// In words.
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sets the routes of all switches.
    ///
    /// # Errors
    /// In words, if not all could be told.
    fn install(&mut self, _state: &NetworkState) -> Result<(), String> {
        Ok(())
    }

    /// How switches do, if they are told by OpenFlow.
    fn switches(&self) -> Option<SwitchesReport> {
        None
    }

    /// Does what is due.
    fn tend(&mut self, _now: Timestamp) {}
}

/// Who carries decisions out, and who does the rest; often the same.
type Means = (Box<dyn Actuator>, Box<dyn Upkeep>);

/// Makes what a configuration asks for.
pub(super) fn make(
    config: &ControlConfig,
    state: &NetworkState,
    daemon: &Daemon,
) -> Result<Means, StartError> {
    let name = config.actuator.name();
    let failed = |cause: String| StartError::Actuator { name, cause };
    match &config.actuator {
        ActuatorConfig::Log => Ok((Box::new(Log::new(1)), Box::new(Nothing))),
        ActuatorConfig::Emulated => {
            let emulation = daemon.emulation().ok_or_else(|| failed("nothing is emulated".to_owned()))?;
            let hosts = EmulatedHosts(emulation.clone());
            Ok((Box::new(hosts.clone()), Box::new(hosts)))
        }
        ActuatorConfig::Arp { interfaces, interface, refresh } => {
            let topology = Arc::clone(state.topology());
            let frames = Senders::open(&topology, interfaces, interface.as_deref()).map_err(failed)?;
            let arp = SharedArp(Arc::new(Mutex::new(Arp::new(topology, frames, *refresh))));
            Ok((Box::new(arp.clone()), Box::new(arp)))
        }
        ActuatorConfig::OpenFlow(openflow) => {
            let switches = Switches::new(openflow, state.topology());
            let switches = switches.map_err(|error| failed(error.to_string()))?;
            Ok((Box::new(switches.clone()), Box::new(switches)))
        }
    }
}

/// Nothing is to be done.
struct Nothing;

impl Upkeep for Nothing {}

/// Hosts and switches of the daemon's emulation.
#[derive(Clone)]
struct EmulatedHosts(Emulation);

impl Actuator for EmulatedHosts {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        let (source, destination) = (action.pair.source, action.pair.destination);
        let order = Order::Address { source, destination, address: action.address };
        self.0.order(order).map_err(|_| ActError::Busy("too many orders wait for the emulation".to_owned()))
    }
}

impl Upkeep for EmulatedHosts {
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        let tables = state.topology().router_ids().zip(state.forwarding().all_tables());
        for (router, table) in tables {
            let order = Order::Forward(router, table.clone());
            self.0.order(order).map_err(|_| "too many orders wait for the emulation".to_owned())?;
        }
        Ok(())
    }
}

/// Reroutes by ARP, and says it again.
#[derive(Clone)]
struct SharedArp(Arc<Mutex<Arp<Senders>>>);

impl Actuator for SharedArp {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).act(action)
    }

    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).found(pair, address, now);
    }

    fn failed(&mut self, action: &Action, from: u8) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failed(action, from);
    }
}

impl Upkeep for SharedArp {
    fn tend(&mut self, now: Timestamp) {
        if let Err(error) = self.0.lock().unwrap_or_else(PoisonError::into_inner).refresh(now) {
            tracing::warn!("a host could not be told again: {error}");
        }
    }
}

/// The interfaces by which hosts are reached.
#[derive(Debug)]
struct Senders {
    senders: Vec<FrameSender>,
    /// By host, which of them; `None` if there is none for it.
    by_host: Vec<Option<usize>>,
}

impl Senders {
    fn open(
        topology: &Topology,
        interfaces: &BTreeMap<String, String>,
        otherwise: Option<&str>,
    ) -> Result<Senders, String> {
        let mut senders = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for name in interfaces.values().map(String::as_str).chain(otherwise) {
            if !places.contains_key(name) {
                senders.push(FrameSender::open(name).map_err(|error| error.to_string())?);
                places.insert(name, senders.len() - 1);
            }
        }
        let of = |host: &str| interfaces.get(host).map(String::as_str).or(otherwise);
        let hosts = topology.endpoints().iter();
        let by_host = hosts.map(|host| of(&host.name).map(|name| places[name])).collect();
        Ok(Senders { senders, by_host })
    }
}

impl Frames for Senders {
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()> {
        match self.by_host.get(to.index()) {
            Some(&Some(sender)) => self.senders[sender].send(frame),
            _ => Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface leads to it")),
        }
    }
}
