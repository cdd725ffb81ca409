//! What an arbiter counts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use thalweg_emulator::core::occupancy::Occupancy;
use thalweg_emulator::core::pacer::Punctuality;
use thalweg_emulator::ports::tally::PortTally;
use thalweg_emulator::{Place, Reason};
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::Nanos;

use super::queue_series::QueueSeries;
use crate::protocol::ArbiterCounters;

/// Why a request was answered by *drop* without an emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refused {
    /// The source of its flow is another endpoint.
    Source,
    /// No endpoint has the number of its destination.
    Destination,
    /// The packet is longer than the MTU. Segmentation offload is probably on.
    Length,
    /// As many packets are in the network as allowed.
    Full,
}

impl Refused {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Refused; 4] = [Refused::Source, Refused::Destination, Refused::Length, Refused::Full];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Refused::Source => "wrong_source",
            Refused::Destination => "unknown_destination",
            Refused::Length => "longer_than_mtu",
            Refused::Full => "too_many_in_flight",
        }
    }
}

/// Datagrams that reached no endpoint's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramTally {
    /// All datagrams.
    pub received: u64,
    /// Refused: not of the protocol, or damaged.
    pub malformed: u64,
    /// Refused: the topology has no such endpoint.
    pub unknown_endpoint: u64,
    /// Refused: the endpoint has joined from another address.
    pub wrong_address: u64,
    /// Refused: the address has joined as another endpoint.
    pub wrong_number: u64,
    /// Dropped: the backlog of their endpoint was full.
    pub flooded: u64,
}

/// The packets of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointTally {
    /// Requests.
    pub requests: u64,
    /// Packets delivered, marked ones included.
    pub delivered: u64,
    /// Packets marked on the way.
    pub marked: u64,
    /// Packets that the emulated network dropped.
    pub dropped: u64,
    /// Requests that were not emulated, by [`Refused`].
    pub refused: [u64; Refused::ALL.len()],
    /// Datagrams dropped because its backlog was full.
    pub flooded: u64,
    /// Datagrams with its number from other addresses.
    pub wrong_address: u64,
    /// Times that it joined: first, after a restart, or from another address.
    pub joined: u64,
}

/// An endpoint that has joined.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointReport {
    /// Its number.
    pub endpoint: u16,
    /// Its address, since it last joined.
    pub address: SocketAddr,
    /// Its packets.
    pub packets: EndpointTally,
    /// Its session.
    pub session: ArbiterCounters,
}

/// What an arbiter has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Time since slot 0.
    pub duration: Nanos,
    /// Whether few enough slots were late.
    pub is_valid: bool,
    /// Late and skipped slots.
    pub punctuality: Punctuality,
    /// Requests.
    pub requests: u64,
    /// Answers.
    pub answers: u64,
    /// Packets in the network at the end.
    pub in_flight: u64,
    /// Packets that the network dropped, by place and reason.
    pub drops: BTreeMap<(Place, Reason), u64>,
    /// Failures, repairs and other events in the network.
    pub events: u64,
    /// Datagrams.
    pub datagrams: DatagramTally,
    /// Endpoints that have joined, by number.
    pub endpoints: Vec<EndpointReport>,
    /// Sampled queue lengths of all ports.
    pub queues: Vec<(RouterId, PortIndex, Occupancy)>,
    /// Queue lengths over time of the ports that were asked for.
    pub series: QueueSeries,
    /// Counters of all ports.
    pub ports: Vec<(RouterId, PortIndex, PortTally)>,
    /// Datagrams that the socket refused to send.
    pub send_errors: u64,
    /// If the arbiter was a secondary: when it took over.
    pub took_over_at: Option<Nanos>,
    /// Datagrams of endpoints that a secondary ignored before.
    pub ignored_on_standby: u64,
}

impl Report {
    /// Packets of all endpoints.
    pub fn packets(&self) -> EndpointTally {
        let mut sum = EndpointTally::default();
        for EndpointReport { packets, .. } in &self.endpoints {
            sum.requests += packets.requests;
            sum.delivered += packets.delivered;
            sum.marked += packets.marked;
            sum.dropped += packets.dropped;
            sum.flooded += packets.flooded;
            sum.wrong_address += packets.wrong_address;
            sum.joined += packets.joined;
            sum.refused.iter_mut().zip(packets.refused).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
}
