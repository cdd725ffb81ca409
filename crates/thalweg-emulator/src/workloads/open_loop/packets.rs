//! Kinds of packets, and their destinations.

use thalweg_network::EndpointId;

use super::Rack;
use crate::outcome::Request;
use crate::packet::Packet;
use crate::workloads::alias::Alias;
use crate::workloads::random::{Random, scaled};
use crate::workloads::{WorkloadError, checked_share};

/// One kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketKind {
    /// Bytes on a link, framing included.
    pub length: u16,
    /// The traffic class: DSCP in the six high bits, ECN in the two low ones.
    pub traffic_class: u8,
    /// The priority in pFabric: remaining bytes of its flow, including this packet.
    pub remaining: u32,
}

impl PacketKind {
    /// A packet that is a flow of its own, with traffic class 0.
    pub fn of_length(length: u16) -> PacketKind {
        PacketKind { length, traffic_class: 0, remaining: u32::from(length) }
    }
}

/// Kinds of packets and their frequencies.
#[derive(Clone, Debug)]
pub struct PacketMix {
    kinds: Box<[PacketKind]>,
    choice: Alias,
    mean_length: f64,
}

impl PacketMix {
    /// All packets of one kind.
    ///
    /// # Errors
    /// If the length is 0.
    pub fn of(kind: PacketKind) -> Result<PacketMix, WorkloadError> {
        PacketMix::mixed(&[(kind, 1.0)])
    }

    /// Packets of several kinds with weights.
    ///
    /// # Errors
    /// If a length is 0, or all weights are zero.
    pub fn mixed(kinds: &[(PacketKind, f64)]) -> Result<PacketMix, WorkloadError> {
        if kinds.iter().any(|(kind, _)| kind.length == 0) {
            return Err(WorkloadError::Empty("a packet"));
        }
        let weights: Vec<f64> = kinds.iter().map(|&(_, weight)| weight).collect();
        let choice = Alias::new(&weights)?;
        let sum: f64 = weights.iter().sum();
        let mean_length = kinds.iter().map(|(kind, weight)| f64::from(kind.length) * (weight / sum)).sum();
        Ok(PacketMix { kinds: kinds.iter().map(|&(kind, _)| kind).collect(), choice, mean_length })
    }

    /// The mean length in bytes.
    pub fn mean_length(&self) -> f64 {
        self.mean_length
    }

    /// Draws a kind. Costs a random number only if there are several.
    #[inline(always)]
    fn draw(&self, random: &mut Random) -> PacketKind {
        match *self.kinds {
            [only] => only,
            ref several => several[self.choice.draw(random.bits())],
        }
    }
}

/// The destinations of a rack's endpoints. No endpoint sends to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Destinations {
    /// Any other endpoint of the network, drawn uniformly for each packet.
    Uniform,
    /// This share, 0 to 1 in steps of 2^-20, to endpoints of other racks, the rest within the rack; each drawn
    /// uniformly.
    Leaving(f64),
    /// A fixed permutation of all endpoints, drawn once for the network.
    Permutation,
}

/// Destinations, ready to be drawn.
#[derive(Clone, Debug)]
enum Pairs {
    /// Any of `network` endpoints except the source.
    Any { network: u64 },
    /// Within or outside the rack.
    Divided(Divided),
    /// The destination of each endpoint of the rack.
    Permuted { first: u64, to: Box<[EndpointId]> },
}

impl Pairs {
    #[inline(always)]
    fn destination(&self, source: u64, bits: u64) -> u64 {
        match *self {
            Pairs::Any { network } => passing_over(scaled(bits, network - 1).0, source, 1),
            Pairs::Divided(ref divided) => divided.destination(source, bits),
            Pairs::Permuted { first, ref to } => u64::from(to[(source - first) as usize].0),
        }
    }
}

/// Converts `endpoint` from a count that excludes `step` endpoints from `over` on.
#[inline(always)]
fn passing_over(endpoint: u64, over: u64, step: u64) -> u64 {
    // A product instead of a branch, which would be mispredicted every second time.
    endpoint + step * u64::from(endpoint >= over)
}

/// The number of packets, out of 2^20, that leave the rack.
const LEAVING_BITS: u32 = 20;

#[derive(Clone, Copy, Debug)]
struct Divided {
    first: u64,
    endpoints: u64,
    network: u64,
    /// In 2^-20.
    leaving: u64,
}

impl Divided {
    /// Draws another endpoint of the rack, counted from its first without the source, or one of another rack, counted
    /// from 0 without the rack. Both are the same computation with different numbers, so no random branch is needed.
    #[inline(always)]
    fn destination(&self, source: u64, bits: u64) -> u64 {
        let (part, bits) = scaled(bits, 1 << LEAVING_BITS);
        let leaves = part < self.leaving;
        let count = if leaves { self.network - self.endpoints } else { self.endpoints - 1 };
        let from = if leaves { 0 } else { self.first };
        let (over, step) = if leaves { (self.first, self.endpoints) } else { (source, 1) };
        passing_over(from + scaled(bits, count).0, over, step)
    }
}

/// Creates the requests of a rack.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    first: u64,
    endpoints: u64,
    network: u64,
    pairs: Pairs,
    mix: PacketMix,
    random: Random,
    next_id: u32,
}

impl Packets {
    pub(super) fn new(rack: &Rack) -> Result<Packets, WorkloadError> {
        let (first, network) = (u64::from(rack.first.0), rack.network as u64);
        let most = 1 << 16;
        if rack.network > most {
            return Err(WorkloadError::TooMany { role: "endpoints in all", given: rack.network, most });
        }
        let room = rack.network.saturating_sub(rack.first.index());
        if rack.endpoints > room {
            return Err(WorkloadError::TooMany {
                role: "endpoints in a rack",
                given: rack.endpoints,
                most: room,
            });
        }
        enough("endpoints in a rack", rack.endpoints, 1)?;
        Ok(Packets {
            first,
            endpoints: rack.endpoints as u64,
            network,
            pairs: pairs(rack)?,
            mix: rack.mix.clone(),
            random: Random::new(rack.seed, "packets", first),
            next_id: 0,
        })
    }

    /// `count` packets from uniformly drawn endpoints.
    #[inline]
    pub(super) fn send_evenly(&mut self, count: usize, requests: &mut Vec<Request>) {
        let (first, endpoints) = (self.first, self.endpoints);
        self.send(count, requests, |bits| {
            let (source, rest) = scaled(bits, endpoints);
            (first + source, rest)
        });
    }

    /// `count` packets from endpoints in turn, the first from endpoint `turn` of the rack. Returns the next turn.
    #[inline]
    pub(super) fn send_in_turn(&mut self, count: usize, turn: u64, requests: &mut Vec<Request>) -> u64 {
        let (first, endpoints, mut turn) = (self.first, self.endpoints, turn);
        self.send(count, requests, |bits| {
            let source = first + turn;
            turn = if turn + 1 == endpoints { 0 } else { turn + 1 };
            (source, bits)
        });
        turn
    }

    /// One packet from `source` to `destination`.
    #[inline]
    pub(super) fn send_one(&mut self, source: u16, destination: u16, requests: &mut Vec<Request>) {
        let kind = self.mix.draw(&mut self.random);
        requests.push(request(source.into(), destination.into(), self.network, self.next_id, kind));
        self.next_id = self.next_id.wrapping_add(1);
    }

    /// A uniformly drawn source, and a destination for it.
    pub(super) fn draw_pair(&mut self) -> (u16, u16) {
        let (source, rest) = scaled(self.random.bits(), self.endpoints);
        let source = self.first + source;
        (source as u16, self.pairs.destination(source, rest) as u16)
    }

    /// One random number per packet for source and destination, and another for its kind if there are several.
    #[inline(always)]
    fn send(&mut self, count: usize, requests: &mut Vec<Request>, source: impl FnMut(u64) -> (u64, u64)) {
        let mix = &self.mix;
        let batch = Batch {
            count,
            network: self.network,
            pairs: &self.pairs,
            random: &mut self.random,
            next_id: &mut self.next_id,
        };
        // Decided once per batch: with one kind its fields stay in registers.
        match *mix.kinds {
            [kind] => batch.send(requests, source, |_| kind),
            _ => batch.send(requests, source, |random| mix.draw(random)),
        }
    }
}

/// Packets created at once.
struct Batch<'a> {
    count: usize,
    network: u64,
    pairs: &'a Pairs,
    random: &'a mut Random,
    next_id: &'a mut u32,
}

impl Batch<'_> {
    #[inline(always)]
    fn send(
        self,
        requests: &mut Vec<Request>,
        mut source: impl FnMut(u64) -> (u64, u64),
        kind: impl Fn(&mut Random) -> PacketKind,
    ) {
        // A copy, so that its state stays in registers.
        let mut random = self.random.clone();
        let mut id = *self.next_id;
        requests.extend((0..self.count).map(|_| {
            let (source, rest) = source(random.bits());
            let destination = self.pairs.destination(source, rest);
            let request = request(source, destination, self.network, id, kind(&mut random));
            id = id.wrapping_add(1);
            request
        }));
        *self.random = random;
        *self.next_id = id;
    }
}

/// Checks the destinations of a rack.
fn pairs(rack: &Rack) -> Result<Pairs, WorkloadError> {
    let (first, endpoints, network) = (u64::from(rack.first.0), rack.endpoints as u64, rack.network as u64);
    match rack.destinations {
        Destinations::Uniform => {
            enough("endpoints in all", rack.network, 2)?;
            Ok(Pairs::Any { network })
        }
        Destinations::Leaving(share) => {
            let share = checked_share("share of leaving traffic", share)?;
            let leaving = (share * f64::from(1u32 << LEAVING_BITS)).round() as u64;
            enough("endpoints of other racks", rack.network - rack.endpoints, usize::from(leaving > 0))?;
            enough("endpoints in a rack", rack.endpoints, 1 + usize::from(leaving < 1 << LEAVING_BITS))?;
            Ok(Pairs::Divided(Divided { first, endpoints, network, leaving }))
        }
        Destinations::Permutation => {
            enough("endpoints in all", rack.network, 2)?;
            let to = Random::new(rack.seed, "permutation", 0).derangement(rack.network);
            let own = &to[rack.first.index()..rack.first.index() + rack.endpoints];
            Ok(Pairs::Permuted { first, to: own.iter().map(|&to| EndpointId(to as u16)).collect() })
        }
    }
}

fn enough(role: &'static str, given: usize, least: usize) -> Result<(), WorkloadError> {
    if given < least { Err(WorkloadError::TooFew { role, given, least }) } else { Ok(()) }
}

/// The request for one packet. A flow is a source and a destination.
#[inline(always)]
fn request(source: u64, destination: u64, network: u64, id: u32, kind: PacketKind) -> Request {
    let flow = (source * network + destination) as u32;
    let (source, destination) = (EndpointId(source as u16), EndpointId(destination as u16));
    let packet =
        Packet::new(source, destination, flow, id, kind.length).with_traffic_class(kind.traffic_class);
    Request { packet, remaining: kind.remaining }
}
