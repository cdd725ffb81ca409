//! Reroutes by ARP (Planck, section 6.2): the source learns another MAC address for the destination's IP address.
//!
//! **A unicast request.** Linux learns no new address from an unsolicited reply, but learns the sender's address from
//! any request sent to it. It does so immediately, whatever it has learnt before. So the controller sends the source a
//! request for the source's own address. The sender's IP address is the destination's, and its MAC address is the
//! shadow address. RFC 826, "Packet Reception", updates the sender's hardware address before it looks at the operation.
//!
//! **UDP falls back.** A host without confirmation of a neighbour queries it after some seconds, and takes the base
//! address from the answer. TCP's acknowledgements confirm the neighbour. For other traffic,
//! [`refresh`](Arp::refresh) repeats the request, in case the host has fallen back, followed by a reply. To Linux, a
//! request with a known address is no confirmation, so it would still query. A reply confirms the known address and
//! prevents queries for another 15 s (half of `base_reachable_time` of arp(7)).
//!
//! **IPv6** is rerouted in the same way, by [`ndp`], if the topology has the IPv6 addresses of both hosts.
//!
//! The reverse direction of a connection is a separate pair.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use thalweg_network::{EndpointId, MacAddress, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::{Action, Actuator, ActuatorError, ndp};
use thalweg_control::Pair;

/// Length of an Ethernet frame with an ARP packet for IPv4; the network interface pads it.
pub const FRAME_BYTES: usize = 14 + 28;

/// EtherType of ARP, hardware type of Ethernet, protocol type of IPv4 (RFC 826; RFC 5342), and the opcodes.
const ETHER_TYPE: [u8; 2] = [0x08, 0x06];
const ETHERNET_IPV4: [u8; 6] = [0x00, 0x01, 0x08, 0x00, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];

/// Sends frames to hosts: through an interface of this machine, or out of the emulated switch port of the host.
pub trait HostFrameSender: Send {
    /// Sends a frame to an endpoint.
    ///
    /// # Errors
    /// The error of the operating system.
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()>;
}

/// The ARP actuator.
#[derive(Debug)]
pub struct Arp<F> {
    topology: Arc<Topology>,
    frames: F,
    refresh: Nanos,
    /// The address of each pair, and since when: the last request, the time at which it was found there, or the deadline of
    /// an action that timed out.
    addresses: BTreeMap<Pair, (u8, Timestamp)>,
    refreshed: u64,
}

impl<F: HostFrameSender> Arp<F> {
    /// Creates an actuator that sends with `frames` and refreshes hosts at the interval `refresh`.
    pub fn new(topology: Arc<Topology>, frames: F, refresh: Nanos) -> Arp<F> {
        Arp { topology, frames, refresh, addresses: BTreeMap::new(), refreshed: 0 }
    }

    /// Refreshes the hosts that are due, so that unacknowledged traffic keeps its address.
    ///
    /// # Errors
    /// The last error; the other hosts were refreshed.
    pub fn refresh(&mut self, now: Timestamp) -> Result<(), ActuatorError> {
        // Hosts learn the base address by themselves.
        let is_due = |&(to, at): &(u8, Timestamp)| to != 0 && now.since(at) >= self.refresh;
        let due: Vec<(Pair, u8)> = self
            .addresses
            .iter()
            .filter(|(_, entry)| is_due(entry))
            .map(|(&pair, &(to, _))| (pair, to))
            .collect();
        let mut result = Ok(());
        for (pair, address) in due {
            self.refreshed += 1;
            let requested = self.send_request(pair, address, now);
            let mut confirmed = || {
                self.send(pair, &reply(&self.topology, pair, address))?;
                self.send_ipv6(pair, ndp::advertisement(&self.topology, pair, address))
            };
            let sent = requested.and_then(|()| confirmed());
            result = sent.and(result);
        }
        result
    }

    fn send_request(&mut self, pair: Pair, address: u8, now: Timestamp) -> Result<(), ActuatorError> {
        self.addresses.insert(pair, (address, now));
        self.send(pair, &request(&self.topology, pair, address))?;
        self.send_ipv6(pair, ndp::solicitation(&self.topology, pair, address))
    }

    /// Sends a frame to a pair's source, if the pair has IPv6 addresses.
    fn send_ipv6(&mut self, pair: Pair, frame: Option<[u8; ndp::FRAME_BYTES]>) -> Result<(), ActuatorError> {
        frame.map_or(Ok(()), |frame| self.send(pair, &frame))
    }

    fn send(&mut self, pair: Pair, frame: &[u8]) -> Result<(), ActuatorError> {
        self.frames.send(pair.source, frame).map_err(|cause| {
            let source_name = self.topology.endpoints()[pair.source.index()].name.clone();
            ActuatorError::Unreachable { source_name, cause }
        })
    }
}

impl<F: HostFrameSender> Actuator for Arp<F> {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError> {
        self.send_request(action.pair, action.address, action.issued)
    }

    /// Keeps a pair at the address found in its packets. Ignored for a pair that this actuator has moved itself: its packets
    /// in transit may still show the old address.
    fn hold(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.addresses.entry(pair).or_insert((address, now));
    }

    fn abandon(&mut self, action: &Action, from: u8) {
        self.addresses.insert(action.pair, (from, action.deadline));
    }

    fn maintain(&mut self, now: Timestamp) -> Result<(), String> {
        self.refresh(now).map_err(|error| format!("cannot refresh the ARP entry of a host: {error}"))
    }

    /// Returns the number of refreshes attempted.
    fn refresh_count(&self) -> u64 {
        self.refreshed
    }
}

/// Returns the request that makes a pair's source send to this address of its destination.
///
/// # Panics
/// If the topology does not contain both endpoints.
pub fn request(topology: &Topology, pair: Pair, address: u8) -> [u8; FRAME_BYTES] {
    frame(topology, pair, address, &REQUEST)
}

/// Returns the ARP reply that keeps this address of the destination valid at a pair's source, if the source uses it.
///
/// # Panics
/// If the topology does not contain both endpoints.
pub fn reply(topology: &Topology, pair: Pair, address: u8) -> [u8; FRAME_BYTES] {
    frame(topology, pair, address, &REPLY)
}

fn frame(topology: &Topology, pair: Pair, address: u8, operation: &[u8; 2]) -> [u8; FRAME_BYTES] {
    let Pair { source, destination } = pair;
    let ip = |endpoint: EndpointId| topology.endpoints()[endpoint.index()].ip.octets();
    let (MacAddress(target), MacAddress(sender)) =
        (topology.mac(source, 0), topology.mac(destination, address));
    let parts: [&[u8]; 9] = [
        &target,
        &sender,
        &ETHER_TYPE,
        &ETHERNET_IPV4,
        operation,
        &sender,
        &ip(destination),
        &target,
        &ip(source),
    ];
    let mut frame = [0; FRAME_BYTES];
    let mut left = frame.as_mut_slice();
    for part in parts {
        let (place, rest) = left.split_at_mut(part.len());
        place.copy_from_slice(part);
        left = rest;
    }
    frame
}

#[cfg(test)]
mod tests {
    use thalweg_network::LinkSpec;
    use thalweg_network::topology::shapes::rack;

    use super::*;
    use crate::ActionId;

    const SOURCE: EndpointId = EndpointId(0);
    const PAIR: Pair = Pair { source: SOURCE, destination: EndpointId(1) };

    #[derive(Default)]
    struct SentFrames(Vec<(EndpointId, Vec<u8>)>);

    impl HostFrameSender for SentFrames {
        fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()> {
            self.0.push((to, frame.to_vec()));
            Ok(())
        }
    }

    fn action(address: u8) -> Action {
        let (issued, deadline) = (Timestamp(1), Timestamp(2));
        Action { id: ActionId(1), pair: PAIR, address, issued, deadline }
    }

    #[test]
    fn a_request_to_the_source_names_the_destination_as_sender() {
        let topology = rack(2, LinkSpec::default()).unwrap();
        let frame = request(&topology, PAIR, 3);
        let expected = [
            "025457000000 025457030001 0806", // to h0, from h1's shadow address 3
            "0001 0800 06 04 0001",           // a request
            "025457030001 0a000002 025457000000 0a000001", // sender h1, target h0
        ];
        let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, expected.concat().replace(' ', ""));
    }

    #[test]
    fn a_shadow_address_is_refreshed_until_the_base_address_is_back() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, SentFrames::default(), Nanos(10));
        arp.reroute(&action(2)).unwrap();
        arp.refresh(Timestamp(10)).unwrap();
        assert_eq!((arp.frames.0.len(), arp.refresh_count()), (1, 0), "not due yet");
        arp.refresh(Timestamp(11)).unwrap();
        arp.refresh(Timestamp(12)).unwrap();
        assert_eq!((arp.frames.0.len(), arp.refresh_count()), (3, 1));
        assert_eq!(arp.frames.0[0], arp.frames.0[1]);
        let (mut reply, operation) = (arp.frames.0[1].1.clone(), 14 + 6..14 + 8);
        reply[operation].copy_from_slice(&REPLY);
        assert_eq!(arp.frames.0[2], (SOURCE, reply), "a request, then a reply");
        arp.reroute(&action(0)).unwrap();
        arp.refresh(Timestamp(100)).unwrap();
        assert_eq!(arp.frames.0.len(), 4, "the base address needs no refresh");
    }

    /// Returns the number of refreshes within some time, two frames each.
    fn refreshes(mut arp: Arp<SentFrames>) -> u64 {
        arp.refresh(Timestamp(100)).unwrap();
        arp.refresh_count()
    }

    #[test]
    fn a_pair_moved_by_another_controller_is_kept_on_its_new_path() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, SentFrames::default(), Nanos(10));
        arp.hold(PAIR, 2, Timestamp(5));
        assert_eq!(refreshes(arp), 1);
    }

    #[test]
    fn packets_in_transit_do_not_undo_a_move_to_the_base_address() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, SentFrames::default(), Nanos(10));
        arp.reroute(&action(2)).unwrap();
        arp.reroute(&action(0)).unwrap();
        arp.hold(PAIR, 2, Timestamp(5));
        assert_eq!(refreshes(arp), 0);
    }

    #[test]
    fn an_action_that_timed_out_is_not_refreshed() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, SentFrames::default(), Nanos(10));
        arp.reroute(&action(2)).unwrap();
        arp.abandon(&action(2), 0);
        assert_eq!(refreshes(arp), 0);
    }
}
