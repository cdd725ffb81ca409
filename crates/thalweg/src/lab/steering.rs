//! From what collectors find to what hosts are told: a controller whose actions are ARP requests, sent out of the switch
//! ports of the hosts.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_capture::live::{FrameSender, LiveError};
use thalweg_control::Pair;
use thalweg_control::act::arp::{Arp, Frames};
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_control::controller::{Controller, ControllerOptions};
use thalweg_control::decide::{Congestion, Decider, Observed};
use thalweg_control::routes::Paths;
use thalweg_lab::Lab;
use thalweg_measure::collector::{AddressChange, Crossing, FlowRate, LinkEvent};
use thalweg_network::{EndpointId, NetworkState, RouterId, Topology};
use thalweg_wire::{BitRate, EthernetAddresses, Nanos, Timestamp};

use super::error::ScenarioError;
use crate::serve::daemon::wall_clock;

/// Hosts are told again of an address that is not their own choice this often: well before they ask for themselves, which
/// they do 5 s after they were told (`delay_first_probe_time` of arp(7)).
pub(super) const REFRESH: Nanos = Nanos::from_secs(2);

/// Flows with less than this share of a link are not steered: as with Hedera's elephants (Al-Fares et al., "Hedera", NSDI
/// 2010). Every transfer has acknowledgements, and a connection beside it that arranges it, and Planck's algorithm would send
/// away what hardly sends for the sake of what it might.
pub(super) const LEAST_SHARE: f64 = 0.1;

/// A pair was told another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Whom.
    pub(super) pair: Pair,
    /// To which address of the destination it is to send.
    pub(super) address: u8,
    /// Packet time of the event that it was decided by.
    pub(super) event: Timestamp,
    /// When it was decided: just before the frame was sent.
    pub(super) decided: Timestamp,
    /// When the frame was sent.
    pub(super) sent: Timestamp,
}

/// A controller at work on a lab.
pub(super) struct Steering {
    controller: Controller,
    arp: Arc<Mutex<Arp<HostPorts>>>,
    topology: Arc<Topology>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Steering {
    /// Steers by what `decider` says.
    ///
    /// # Errors
    /// If a switch port cannot be opened.
    pub(super) fn new(
        lab: &Lab,
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        patience: Nanos,
    ) -> Result<Steering, ScenarioError> {
        let topology = Arc::clone(state.topology());
        let arp = Arp::new(Arc::clone(&topology), HostPorts::open(lab)?, REFRESH);
        let (arp, told) = (Arc::new(Mutex::new(arp)), Arc::default());
        let actuator = Box::new(Timed { arp: Arc::clone(&arp), told: Arc::clone(&told) });
        let options = ControllerOptions { patience, ..ControllerOptions::default() };
        let paths = Paths::new(Arc::clone(state));
        let controller = Controller::new(options, paths, decider, actuator, wall_clock());
        Ok(Steering { controller, arp, topology, told })
    }

    /// The loop itself.
    pub(super) fn controller(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// A collector tells of a link. Gives what hosts were told of it.
    pub(super) fn hear(&mut self, router: RouterId, event: &LinkEvent) -> Vec<Told> {
        if event.crossing == Crossing::Downwards {
            return Vec::new();
        }
        let link = self.controller.paths().link(router, event.link.side.port);
        let least = LEAST_SHARE * event.link.capacity.0 as f64;
        let fast = event.flows.iter().filter(|flow| flow.rate.value >= least);
        let flows = observed(&self.topology, fast);
        self.controller.congested(&Congestion { link, time: event.time, flows });
        self.take_told()
    }

    /// A collector has seen a flow with another address. Gives whose, and to which.
    pub(super) fn see(&mut self, change: &AddressChange) -> Option<(Pair, u8)> {
        let (pair, address) = pair_of(&self.topology, &change.to)?;
        self.controller.seen(pair, address, change.time);
        Some((pair, address))
    }

    /// Lets time pass: what was not seen in time has failed, and hosts are told again what they would forget.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.controller.advance(now);
        // A host that cannot be reached now is told again the next time.
        let _ = lock(&self.arp).refresh(now);
    }

    /// How often hosts were told again.
    pub(super) fn refreshed(&self) -> u64 {
        lock(&self.arp).refreshed()
    }

    /// What hosts were told since this was last asked.
    pub(super) fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut lock(&self.told))
    }
}

/// Writes down when what was sent.
struct Timed {
    arp: Arc<Mutex<Arp<HostPorts>>>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Actuator for Timed {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        let decided = wall_clock();
        lock(&self.arp).act(action)?;
        let Action { pair, address, issued: event, .. } = *action;
        lock(&self.told).push(Told { pair, address, event, decided, sent: wall_clock() });
        Ok(())
    }
}

/// The switch ports of all hosts, by endpoint.
struct HostPorts {
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

/// The pair that packets with these addresses belong to, and which of the destination's addresses it is.
pub(super) fn pair_of(topology: &Topology, ethernet: &EthernetAddresses) -> Option<(Pair, u8)> {
    let (source, _) = topology.endpoint_with_mac(ethernet.source)?;
    let (destination, address) = topology.endpoint_with_mac(ethernet.destination)?;
    Some((Pair { source, destination }, address))
}

/// Flows put together to pairs, the fastest first. A pair's address is that of its fastest flow.
pub(super) fn observed<'a>(
    topology: &Topology,
    flows: impl IntoIterator<Item = &'a FlowRate>,
) -> Vec<Observed> {
    let mut pairs: BTreeMap<Pair, (Observed, f64)> = BTreeMap::new();
    for flow in flows {
        let Some((pair, address)) = pair_of(topology, &flow.ethernet) else { continue };
        let value = flow.rate.value;
        let (sum, fastest) = pairs.entry(pair).or_insert((Observed { pair, address, rate: BitRate(0) }, 0.0));
        sum.rate = BitRate(sum.rate.0 + value as u64);
        if value > *fastest {
            (sum.address, *fastest) = (address, value);
        }
    }
    let mut observed: Vec<Observed> = pairs.into_values().map(|(observed, _)| observed).collect();
    observed.sort_by_key(|observed| std::cmp::Reverse(observed.rate));
    observed
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use thalweg_lab::{DEFAULT_RATE, Plan};
    use thalweg_measure::rates::Basis;
    use thalweg_sketch::Estimate;

    use super::*;

    #[test]
    fn a_pair_has_the_rates_of_all_its_flows_and_the_address_of_the_fastest() {
        let topology = Plan::leaf_spine(DEFAULT_RATE).unwrap().topology;
        let flow = |source: u16, destination: u16, address: u8, rate: f64| FlowRate {
            key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
            ethernet: EthernetAddresses {
                source: topology.mac(EndpointId(source), 0),
                destination: topology.mac(EndpointId(destination), address),
            },
            rate: Estimate::exact(rate),
            basis: Basis::SequenceNumbers,
            span: (Timestamp(0), Timestamp(1)),
        };
        let mut stranger = flow(0, 2, 0, 1e9);
        stranger.ethernet.source = thalweg_network::MacAddress([2, 9, 9, 9, 9, 9]);
        let flows = [flow(0, 2, 0, 10.0), flow(4, 3, 1, 60.0), flow(0, 2, 1, 40.0), stranger];
        let pair =
            |source, destination| Pair { source: EndpointId(source), destination: EndpointId(destination) };
        let expected = [
            Observed { pair: pair(4, 3), address: 1, rate: BitRate(60) },
            Observed { pair: pair(0, 2), address: 1, rate: BitRate(50) },
        ];
        assert_eq!(observed(&topology, &flows), expected);
    }
}
