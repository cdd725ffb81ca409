//! How a lab's pairs are sent another way: by ARP, out of the switch ports of the hosts, or by OpenFlow.

use std::io;
use std::sync::Arc;

use thalweg_actuators::arp::{Arp, Frames};
use thalweg_actuators::openflow::Fabric;
use thalweg_actuators::{ActError, Action, Actuator};
use thalweg_capture::live::{FrameSender, LiveError};
use thalweg_control::Pair;
use thalweg_lab::{Lab, Plane};
use thalweg_network::{EndpointId, NetworkState};
use thalweg_wire::{Nanos, Timestamp};

use super::error::ScenarioError;
use super::openflow;

/// Hosts are told again of an address that is not their own choice this often: well before they ask for themselves, which
/// they do 5 s after they were told (`delay_first_probe_time` of arp(7)).
const REFRESH: Nanos = Nanos::from_secs(2);

/// By what means pairs are sent another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Their sources are told another address.
    Arp,
    /// Their first switches write another address.
    OpenFlow,
}

impl By {
    /// What goes without saying in a lab.
    pub(super) fn default_in(lab: &Lab) -> By {
        if lab.plan().plane == Plane::Ovs { By::OpenFlow } else { By::Arp }
    }

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            By::Arp => "ARP",
            By::OpenFlow => "OpenFlow",
        }
    }
}

/// The means, ready.
pub(super) enum Means {
    Arp(Arp<HostPorts>),
    OpenFlow(Box<Fabric>),
}

impl Means {
    /// Opens the ports of all hosts, or connects to all switches.
    ///
    /// # Errors
    /// If one cannot be had.
    pub(super) fn open(lab: &Lab, state: &NetworkState, by: By) -> Result<Means, ScenarioError> {
        Ok(match by {
            By::Arp => Means::Arp(Arp::new(Arc::clone(state.topology()), HostPorts::open(lab)?, REFRESH)),
            By::OpenFlow => Means::OpenFlow(Box::new(openflow::forward(lab, state)?)),
        })
    }

    fn actuator(&mut self) -> &mut dyn Actuator {
        match self {
            Means::Arp(arp) => arp,
            Means::OpenFlow(fabric) => &mut **fabric,
        }
    }
}

impl Actuator for Means {
    fn name(&self) -> &'static str {
        match self {
            Means::Arp(arp) => arp.name(),
            Means::OpenFlow(fabric) => fabric.name(),
        }
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.actuator().act(action)
    }

    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.actuator().found(pair, address, now);
    }

    fn failed(&mut self, action: &Action, from: u8) {
        self.actuator().failed(action, from);
    }

    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        Actuator::install(self.actuator(), state)
    }

    fn tend(&mut self, now: Timestamp) -> Result<(), String> {
        if let Means::OpenFlow(fabric) = self {
            fabric.tend(now);
            // What comes of actions is seen by collectors.
            fabric.take_news();
            return Ok(());
        }
        self.actuator().tend(now)
    }

    fn refreshed(&self) -> u64 {
        match self {
            Means::Arp(arp) => arp.refreshed(),
            Means::OpenFlow(_) => 0,
        }
    }
}

/// The switch ports of all hosts, by endpoint.
pub(super) struct HostPorts {
    senders: Vec<FrameSender>,
}

impl HostPorts {
    fn open(lab: &Lab) -> Result<HostPorts, ScenarioError> {
        let topology = lab.topology();
        let open = |endpoint| -> Result<FrameSender, LiveError> {
            let (router, port) = (topology.router_of(endpoint), topology.port_of(endpoint));
            FrameSender::open(&lab.port_interface(router, port).expect("a port of the lab"))
        };
        let open_all = || topology.endpoint_ids().map(open).collect::<Result<_, _>>();
        Ok(HostPorts { senders: lab.fabric().within(open_all)?? })
    }
}

impl Frames for HostPorts {
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()> {
        self.senders[to.index()].send(frame)
    }
}
