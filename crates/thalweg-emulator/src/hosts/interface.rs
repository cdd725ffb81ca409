//! What waits in each host for its network interface: acknowledgements, and flows that may send.
//!
//! A host hands over segments only while little waits in the interface's own queue (TCP small queues), so that flows
//! take turns packet by packet, and data that pFabric ranks wait where the ranking is known. Hosts with nothing
//! to hand over cost nothing.

use std::collections::VecDeque;

use thalweg_network::EndpointId;

use crate::packet::Packet;
use crate::workloads::random::Random;

/// A flow in line: where it is, and which it was when it got in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InLine {
    pub(super) place: u32,
    pub(super) flow: u32,
}

/// What waits in one host.
#[derive(Clone, Debug, Default)]
pub(super) struct Interface {
    /// Acknowledgements, which go first.
    pub(super) acks: VecDeque<Packet>,
    /// Flows that may have something to send.
    pub(super) flows: VecDeque<InLine>,
}

impl Interface {
    fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.flows.is_empty()
    }
}

/// What waits in all hosts, and a bit for each host where something does.
#[derive(Clone, Debug)]
pub(super) struct Interfaces {
    interfaces: Vec<Interface>,
    busy: Vec<u64>,
    order: Vec<EndpointId>,
    random: Random,
}

impl Interfaces {
    /// For so many hosts, which take turns in an order that comes of `seed`.
    pub(super) fn new(endpoints: usize, seed: u64) -> Interfaces {
        Interfaces {
            interfaces: vec![Interface::default(); endpoints],
            busy: vec![0; endpoints.div_ceil(64)],
            order: Vec::with_capacity(endpoints),
            random: Random::new(seed, "interfaces", 0),
        }
    }

    /// How many hosts.
    pub(super) fn len(&self) -> usize {
        self.interfaces.len()
    }

    /// An acknowledgement waits at its source.
    #[inline]
    pub(super) fn queue_ack(&mut self, packet: Packet) {
        self.at(packet.source()).acks.push_back(packet);
    }

    /// A flow gets in line.
    #[inline]
    pub(super) fn queue_flow(&mut self, endpoint: EndpointId, flow: InLine) {
        self.at(endpoint).flows.push_back(flow);
    }

    #[inline]
    fn at(&mut self, endpoint: EndpointId) -> &mut Interface {
        self.busy[endpoint.index() / 64] |= 1 << (endpoint.index() % 64);
        &mut self.interfaces[endpoint.index()]
    }

    /// Acknowledgements that wait in all hosts.
    pub(super) fn waiting_acks(&self) -> usize {
        self.interfaces.iter().map(|interface| interface.acks.len()).sum()
    }

    /// Calls `visit` for each host where something waits, in an order drawn anew: what arrives in one slot at a full
    /// queue gets places in the order in which it was sent. What `visit` leaves empty is passed over next time.
    #[inline]
    pub(super) fn visit_busy(&mut self, mut visit: impl FnMut(EndpointId, &mut Interface)) {
        let Interfaces { interfaces, busy, order, random } = self;
        order.clear();
        for (group, &busy) in busy.iter().enumerate() {
            let mut left = busy;
            while left != 0 {
                order.push(EndpointId((64 * group) as u16 + left.trailing_zeros() as u16));
                left &= left - 1;
            }
        }
        random.shuffle(order);
        for &endpoint in order.iter() {
            let interface = &mut interfaces[endpoint.index()];
            visit(endpoint, interface);
            busy[endpoint.index() / 64] &= !(u64::from(interface.is_empty()) << (endpoint.index() % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any of 4 hosts is first in 2,500 of 10,000 slots, plus or minus 217 in all but one run of 5,000 (5 sigma of
    /// each of four, seed 1).
    #[test]
    fn every_host_is_first_as_often_as_any_other() {
        let mut interfaces = Interfaces::new(100, 1);
        for index in [0, 1, 2, 99] {
            interfaces.queue_flow(EndpointId(index), InLine { place: 0, flow: 0 });
        }
        let mut first = [0; 100];
        for _ in 0..10_000 {
            let mut visited = Vec::new();
            interfaces.visit_busy(|endpoint, _| visited.push(endpoint.index()));
            first[visited[0]] += 1;
        }
        for index in [0, 1, 2, 99] {
            assert!((2_283..=2_717).contains(&first[index]), "{} of 10,000", first[index]);
        }
    }

    #[test]
    fn only_hosts_where_something_waits_are_visited() {
        let mut interfaces = Interfaces::new(200, 1);
        for index in [130, 3, 63] {
            interfaces.queue_flow(EndpointId(index), InLine { place: 0, flow: 0 });
        }
        interfaces.queue_ack(Packet::new(EndpointId(64), EndpointId(0), 0, 0, 90));
        let mut visited = Vec::new();
        interfaces.visit_busy(|endpoint, interface| {
            visited.push(endpoint.0);
            interface.flows.clear();
        });
        visited.sort_unstable();
        assert_eq!(visited, [3, 63, 64, 130]);
        visited.clear();
        interfaces.visit_busy(|endpoint, _| visited.push(endpoint.0));
        assert_eq!((visited.as_slice(), interfaces.waiting_acks()), ([64].as_slice(), 1));
    }
}
