//! From collectors to the controller: of congestion, and of flows that go another way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_control::Pair;
use thalweg_control::decide::{Congestion, Observed};
use thalweg_control::routes::Paths;
use thalweg_measure::collector::{AddressChange, Crossing, FlowRate, LinkEvent, Way};
use thalweg_network::{Node, Topology};
use thalweg_wire::{BitRate, EthernetAddresses};

use crate::serve::event::EventKind;

/// Notices that may wait. A collector tells of each of its links once a millisecond at most, unless its rules say
/// otherwise.
const WAITING: usize = 4_096;

/// Something that the controller wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// A link of this switch is congested, or is so no more.
    Link(Arc<str>, LinkEvent),
    /// A flow goes another way.
    Address(AddressChange),
}

/// Where collectors tell. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct Ear {
    sender: Sender<Notice>,
    told: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl Ear {
    pub(super) fn new() -> (Ear, Receiver<Notice>) {
        let (sender, receiver) = bounded(WAITING);
        (Ear { sender, told: Arc::default(), lost: Arc::default() }, receiver)
    }

    /// Tells, if this is something that the controller wants to know. Links that carry little are none of its business,
    /// and those into a switch are told of where they come out of another.
    pub(crate) fn tell(&self, switch: &Arc<str>, kind: &EventKind) {
        let notice = match kind {
            EventKind::Link(event)
                if event.crossing != Crossing::Downwards && event.link.side.way == Way::Output =>
            {
                Notice::Link(Arc::clone(switch), event.clone())
            }
            EventKind::AddressChange(change) => Notice::Address(*change),
            _ => return,
        };
        let counter = if self.sender.try_send(notice).is_ok() { &self.told } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn told(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.told)
    }

    pub(super) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }
}

/// The congestion that an event at a switch tells of; `None` of a switch that is not in the network. Flows of a pair are
/// one, and those of hosts that are not known are left out.
pub(super) fn congestion(paths: &Paths, switch: &str, event: &LinkEvent) -> Option<Congestion> {
    let Some(Node::Router(router)) = paths.topology().node_named(switch) else { return None };
    let port = event.link.side.port;
    if usize::from(port.0) >= paths.topology().ports(router) {
        return None;
    }
    let mut flows: Vec<Observed> = Vec::with_capacity(event.flows.len());
    for FlowRate { ethernet, rate, .. } in &event.flows {
        let Some((pair, address)) = pair_of(paths.topology(), ethernet) else { continue };
        add(&mut flows, Observed { pair, address, rate: BitRate(rate.value as u64) });
    }
    Some(Congestion { link: paths.link(router, port), time: event.time, flows })
}

/// Adds a flow to those of its pair.
fn add(flows: &mut Vec<Observed>, flow: Observed) {
    match flows.iter_mut().find(|other| other.pair == flow.pair) {
        Some(same) => same.rate.0 += flow.rate.0,
        None => flows.push(flow),
    }
}

/// Who sends to whom, and to which address; `None` if one of them is not in the network.
pub(super) fn pair_of(topology: &Topology, ethernet: &EthernetAddresses) -> Option<(Pair, u8)> {
    let (source, _) = topology.endpoint_with_mac(ethernet.source)?;
    let (destination, address) = topology.endpoint_with_mac(ethernet.destination)?;
    Some((Pair { source, destination }, address))
}
