//! Builds the record that a router exports for an entry of its flow cache.

use thalweg_wire::flow_export::{Address, Format, Record};

use super::flow_cache::Entry;
use super::network::{self, Host, Network, Path, Router};
use super::pace::Pace;

const FIN: u16 = 0x01;
const SYN: u16 = 0x02;
const ACK: u16 = 0x10;
const TCP: u8 = 6;

/// Observation domain of router 0; others follow, so that records of different routers differ even over one socket.
const FIRST_OBSERVATION_DOMAIN_ID: u32 = 1;

/// Base interface numbers: the interface to router n is n plus the first, that to site n is n plus the second.
const FIRST_ROUTER_INTERFACE: u32 = 1;
const FIRST_SITE_INTERFACE: u32 = 1_001;

/// Time resolution of NetFlow v9, in microseconds: times are rounded down to it.
const TICK_US: i64 = 1_000;

/// A flow with its path, ready to build records from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    /// Fields that depend neither on the entry nor on the router.
    record: Record,
    source: Host,
    destination: Host,
    is_v6: bool,
    pub path: Path,
    pub pace: Pace,
    packet_bytes: u64,
    /// First packet, microseconds since 1970.
    start_us: i64,
}

/// The key of a flow and its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    pub is_v6: bool,
    pub octets: u16,
    pub pace: Pace,
    pub start_us: i64,
}

impl Observed {
    #[inline]
    pub(super) fn new(
        network: &Network,
        sampling_interval: u32,
        (source, destination): (Host, Host),
        packets: &Packets,
    ) -> Observed {
        let &Packets { source_port, destination_port, protocol, is_v6, octets, pace, start_us } = packets;
        let address = if is_v6 { network::v6 } else { network::v4 };
        let prefix_length = if is_v6 { network::V6_PREFIX_LENGTH } else { network::V4_PREFIX_LENGTH };
        let record = Record {
            format: Format::NetFlow9,
            sampling_interval,
            source_address: address(source),
            destination_address: address(destination),
            source_port,
            destination_port,
            protocol,
            source_as: network::autonomous_system(source.site),
            destination_as: network::autonomous_system(destination.site),
            source_prefix_length: prefix_length,
            destination_prefix_length: prefix_length,
            ..Record::default()
        };
        let path = network.path(source.site, destination.site);
        Observed { record, source, destination, is_v6, path, pace, packet_bytes: octets.into(), start_us }
    }

    /// Builds the record of an entry in the cache of router `hop` of the path, with the given `direction`.
    #[inline]
    pub(super) fn record(&self, entry: &Entry, hop: usize, direction: u8) -> Record {
        let routers = self.path.routers();
        let before = hop.checked_sub(1).map(|hop| routers[hop]);
        let after = routers.get(hop + 1).copied();
        let time_us = |index| {
            (self.start_us + (self.pace.offset_ns(index) / 1_000) as i64).div_euclid(TICK_US) * TICK_US
        };
        Record {
            exporter: network::exporter(routers[hop]),
            observation_domain_id: FIRST_OBSERVATION_DOMAIN_ID + u32::from(routers[hop]),
            flow_start_us: time_us(entry.first),
            flow_end_us: time_us(entry.last),
            octets: entry.packets * self.packet_bytes,
            packets: entry.packets,
            tcp_flags: self.tcp_flags(entry),
            ingress_interface: interface(before, self.source),
            egress_interface: interface(after, self.destination),
            next_hop: self.next_hop(after),
            flow_direction: direction,
            flow_end_reason: entry.end_reason,
            ..self.record
        }
    }

    /// The first packet is SYN, the last FIN; the entry has their flags if they were sampled.
    fn tcp_flags(&self, entry: &Entry) -> u16 {
        if self.record.protocol != TCP {
            return 0;
        }
        let is_last = entry.last + 1 == self.pace.packets();
        let first_flag = if entry.first == 0 { SYN } else { ACK };
        let ack_flag = if entry.packets > 1 { ACK } else { 0 };
        first_flag | ack_flag | if is_last { FIN } else { 0 }
    }

    fn next_hop(&self, after: Option<Router>) -> Address {
        match (after, self.is_v6) {
            (Some(router), false) => network::exporter(router),
            (Some(router), true) => network::exporter_v6(router),
            (None, _) => self.record.destination_address,
        }
    }
}

fn interface(router: Option<Router>, otherwise: Host) -> u32 {
    match router {
        Some(router) => FIRST_ROUTER_INTERFACE + u32::from(router),
        None => FIRST_SITE_INTERFACE + u32::from(otherwise.site),
    }
}
