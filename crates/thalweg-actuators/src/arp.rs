//! Rerouting by ARP (Planck, section 6.2): the source learns another MAC address for the destination's IP address.
//!
//! **A request, to one host.** Linux does not take replies that it has not asked for, but learns the sender's address
//! from any request that is sent to it, and does so at once, whatever it has learnt a moment ago. So the controller asks the
//! source for its own address in the destination's name, with the shadow address as that of the sender (RFC 826, "Packet
//! Reception": the sender's protocol address is looked up, and its hardware address taken over, before the operation is
//! looked at).
//!
//! **UDP falls back.** A host that hears nothing back from a neighbour asks it itself after some seconds, and takes the base
//! address from the answer. TCP's acknowledgements tell the host that the neighbour is there; for what is not
//! acknowledged [`refresh`](Arp::refresh) says it again: by a request, should the host have fallen back meanwhile, and a
//! reply after it. To Linux a request says nothing new if the address is the same, and does not keep it from asking; a
//! reply confirms an address that it has, and it asks for 15 s no more (half of `base_reachable_time` of arp(7)).
//!
//! The other direction of a connection is a pair of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use thalweg_network::{EndpointId, MacAddress, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::{ActError, Action, Actuator};
use thalweg_control::Pair;

/// Length of an Ethernet frame with an ARP packet for IPv4 in it; the network interface pads it.
pub const FRAME_BYTES: usize = 14 + 28;

/// EtherType of ARP, hardware type of Ethernet, protocol type of IPv4 (RFC 826; RFC 5342), and the opcodes.
const ETHER_TYPE: [u8; 2] = [0x08, 0x06];
const ETHERNET_IPV4: [u8; 6] = [0x00, 0x01, 0x08, 0x00, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];

/// The way to one host: sends frames out of the switch port that it is attached to.
pub trait Frames: Send {
    /// Sends a frame to an endpoint.
    ///
    /// # Errors
    /// What the system says.
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()>;
}

/// Reroutes by ARP.
#[derive(Debug)]
pub struct Arp<F> {
    topology: Arc<Topology>,
    frames: F,
    refresh: Nanos,
    /// Where pairs were last sent, and when they were last told so; or where they were found.
    told: BTreeMap<Pair, (u8, Timestamp)>,
    refreshed: u64,
}

impl<F: Frames> Arp<F> {
    /// Sends by `frames`, and says it again every `refresh`.
    pub fn new(topology: Arc<Topology>, frames: F, refresh: Nanos) -> Arp<F> {
        Arp { topology, frames, refresh, told: BTreeMap::new(), refreshed: 0 }
    }

    /// Says it again to whom it is time to, so that what nobody acknowledges does not fall back.
    ///
    /// # Errors
    /// Of the last that could not be reached; the others have been told.
    pub fn refresh(&mut self, now: Timestamp) -> Result<(), ActError> {
        // The base address is what a host comes to by itself.
        let is_due = |&(to, at): &(u8, Timestamp)| to != 0 && now.since(at) >= self.refresh;
        let due: Vec<(Pair, u8)> =
            self.told.iter().filter(|(_, told)| is_due(told)).map(|(&pair, &(to, _))| (pair, to)).collect();
        let mut result = Ok(());
        for (pair, address) in due {
            self.refreshed += 1;
            let told = self.tell(pair, address, now);
            let confirmed = told.and_then(|()| self.send(pair, &confirmation(&self.topology, pair, address)));
            result = confirmed.and(result);
        }
        result
    }

    fn tell(&mut self, pair: Pair, address: u8, now: Timestamp) -> Result<(), ActError> {
        self.told.insert(pair, (address, now));
        self.send(pair, &request(&self.topology, pair, address))
    }

    fn send(&mut self, pair: Pair, frame: &[u8]) -> Result<(), ActError> {
        self.frames.send(pair.source, frame).map_err(|cause| {
            let source_name = self.topology.endpoints()[pair.source.index()].name.clone();
            ActError::Unreachable { source_name, cause }
        })
    }
}

impl<F: Frames> Actuator for Arp<F> {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.tell(action.pair, action.address, action.issued)
    }

    /// One that was told before is where it was told to be, whatever its packets under way still say.
    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.told.entry(pair).or_insert((address, now));
    }

    fn failed(&mut self, action: &Action, from: u8) {
        self.told.insert(action.pair, (from, action.deadline));
    }

    fn tend(&mut self, now: Timestamp) -> Result<(), String> {
        self.refresh(now).map_err(|error| format!("a host could not be told again: {error}"))
    }

    /// How often something was said again.
    fn refreshed(&self) -> u64 {
        self.refreshed
    }
}

/// The request that makes a pair's source send to this address of its destination.
///
/// # Panics
/// If the topology does not have these endpoints.
pub fn request(topology: &Topology, pair: Pair, address: u8) -> [u8; FRAME_BYTES] {
    frame(topology, pair, address, &REQUEST)
}

/// The reply that confirms this address of its destination to a pair's source, if it is the one that it sends to.
///
/// # Panics
/// If the topology does not have these endpoints.
pub fn confirmation(topology: &Topology, pair: Pair, address: u8) -> [u8; FRAME_BYTES] {
    frame(topology, pair, address, &REPLY)
}

fn frame(topology: &Topology, pair: Pair, address: u8, operation: &[u8; 2]) -> [u8; FRAME_BYTES] {
    let Pair { source, destination } = pair;
    let ip = |endpoint: EndpointId| topology.endpoints()[endpoint.index()].ip.octets();
    let (MacAddress(asked), MacAddress(told)) = (topology.mac(source, 0), topology.mac(destination, address));
    let parts: [&[u8]; 9] =
        [&asked, &told, &ETHER_TYPE, &ETHERNET_IPV4, operation, &told, &ip(destination), &asked, &ip(source)];
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
    struct Sent(Vec<(EndpointId, Vec<u8>)>);

    impl Frames for Sent {
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
    fn the_source_is_asked_in_the_destinations_name() {
        let topology = rack(2, LinkSpec::default()).unwrap();
        let frame = request(&topology, PAIR, 3);
        let expected = [
            "025457000000 025457030001 0806", // to h0, from h1's shadow address 3
            "0001 0800 06 04 0001",           // a request
            "025457030001 0a000002 025457000000 0a000001", // h1 is there; who is h0?
        ];
        let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, expected.concat().replace(' ', ""));
    }

    #[test]
    fn it_is_said_again_until_the_base_address_is_back() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, Sent::default(), Nanos(10));
        arp.act(&action(2)).unwrap();
        arp.refresh(Timestamp(10)).unwrap();
        assert_eq!((arp.frames.0.len(), arp.refreshed()), (1, 0), "it is not time yet");
        arp.refresh(Timestamp(11)).unwrap();
        arp.refresh(Timestamp(12)).unwrap();
        assert_eq!((arp.frames.0.len(), arp.refreshed()), (3, 1));
        assert_eq!(arp.frames.0[0], arp.frames.0[1]);
        let (mut reply, operation) = (arp.frames.0[1].1.clone(), 14 + 6..14 + 8);
        reply[operation].copy_from_slice(&REPLY);
        assert_eq!(arp.frames.0[2], (SOURCE, reply), "said, and confirmed");
        arp.act(&action(0)).unwrap();
        arp.refresh(Timestamp(100)).unwrap();
        assert_eq!(arp.frames.0.len(), 4, "nothing to hold on to");
    }

    /// How often something is said again within some time, each time by two frames.
    fn said_again(mut arp: Arp<Sent>) -> u64 {
        arp.refresh(Timestamp(100)).unwrap();
        arp.refreshed()
    }

    #[test]
    fn who_was_sent_there_by_another_controller_is_held_there() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, Sent::default(), Nanos(10));
        arp.found(PAIR, 2, Timestamp(5));
        assert_eq!(said_again(arp), 1);
    }

    #[test]
    fn packets_under_way_say_nothing_of_who_was_sent_home() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, Sent::default(), Nanos(10));
        arp.act(&action(2)).unwrap();
        arp.act(&action(0)).unwrap();
        arp.found(PAIR, 2, Timestamp(5));
        assert_eq!(said_again(arp), 0);
    }

    #[test]
    fn what_had_no_effect_is_not_said_again() {
        let topology = Arc::new(rack(2, LinkSpec::default()).unwrap());
        let mut arp = Arp::new(topology, Sent::default(), Nanos(10));
        arp.act(&action(2)).unwrap();
        arp.failed(&action(2), 0);
        assert_eq!(said_again(arp), 0);
    }
}
