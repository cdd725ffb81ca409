//! The two ends of a flow and their header state: sequence numbers, timestamps, counters.

use thalweg_wire::{FlowKey, IpVersion, Nanos, Protocol, TcpFlags, Timestamp};

use crate::random::Random;

/// Length of the TCP header without options.
const TCP_HEADER_LENGTH: u32 = 20;
/// Maximum segment size, window scale, selective acknowledgements permitted, and padding.
pub(super) const SYN_OPTIONS_LENGTH: u32 = 12;
/// The same options and timestamps (RFC 7323), which then need no padding.
pub(super) const SYN_TIMESTAMP_OPTIONS_LENGTH: u32 = 20;
/// Two no-operations and timestamps.
pub(super) const TIMESTAMP_OPTIONS_LENGTH: u32 = 12;
const UDP_HEADER_LENGTH: u32 = 8;

/// The sending end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The end that sends the first packet.
    Client = 0,
    /// The other.
    Server = 1,
}

impl Side {
    /// Returns the other end.
    pub(super) const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A packet of a flow, before encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The sender.
    pub(super) from: Side,
    /// TCP flags; unused for UDP.
    pub(super) flags: TcpFlags,
    /// Bytes above the transport header.
    pub(super) payload_length: u16,
}

/// A TCP connection or a UDP exchange.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// From client to server.
    pub(super) key: FlowKey,
    /// Whether TCP uses the timestamp option.
    pub(super) has_timestamps: bool,
    /// TCP sequence number of each side's next byte.
    pub(super) sequence: [u32; 2],
    /// IPv4 identification of each side's next packet.
    pub(super) identification: [u16; 2],
    /// Last timestamp value (RFC 7323) of each side.
    pub(super) tsval: [u32; 2],
    /// Time to live, or hop limit, of each side's packets.
    pub(super) hop_limit: [u8; 2],
    /// IPv6 flow label of each side's packets.
    pub(super) flow_label: [u32; 2],
    /// Sum of the 32-bit words of both addresses: the constant part of the checksum.
    pub(super) address_sum: u64,
}

/// Common initial hop limits; packets are captured after 4 to 19 hops.
const INITIAL_HOP_LIMITS: [u8; 4] = [64, 64, 128, 255];

impl Connection {
    /// Returns a connection with random state; six in ten TCP connections use timestamps.
    pub(super) fn new(key: FlowKey, random: &mut Random) -> Connection {
        let (isn, rest, labels) = (random.bits(), random.bits(), random.bits());
        let hop_limit = |bits: u64| INITIAL_HOP_LIMITS[(bits & 3) as usize] - 4 - ((bits >> 2) & 15) as u8;
        Connection {
            key,
            has_timestamps: random.below(10) < 6,
            sequence: [isn as u32, (isn >> 32) as u32],
            identification: [rest as u16, (rest >> 16) as u16],
            tsval: [0; 2],
            hop_limit: [hop_limit(rest >> 32), hop_limit(rest >> 40)],
            flow_label: [labels as u32 & 0xF_FFFF, (labels >> 32) as u32 & 0xF_FFFF],
            address_sum: address_sum(&key),
        }
    }

    /// Returns the key of the direction in which `side` sends.
    pub(super) const fn key_from(&self, side: Side) -> FlowKey {
        match side {
            Side::Client => self.key,
            Side::Server => self.key.reversed(),
        }
    }

    /// Returns the length of the IP header.
    #[inline]
    pub(super) const fn ip_header_length(&self) -> u32 {
        match self.key.version() {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        }
    }

    /// Returns the length of the TCP or UDP header of a packet with these flags.
    #[inline]
    pub(super) const fn transport_header_length(&self, flags: TcpFlags) -> u32 {
        if self.key.protocol.0 == Protocol::UDP.0 {
            return UDP_HEADER_LENGTH;
        }
        let options = match (flags.contains(TcpFlags::SYN), self.has_timestamps) {
            (true, true) => SYN_TIMESTAMP_OPTIONS_LENGTH,
            (true, false) => SYN_OPTIONS_LENGTH,
            (false, true) => TIMESTAMP_OPTIONS_LENGTH,
            (false, false) => 0,
        };
        TCP_HEADER_LENGTH + options
    }

    /// Returns the number of bytes from the IP header on.
    #[inline]
    pub(super) const fn ip_length(&self, segment: &Segment) -> u32 {
        let headers = self.ip_header_length() + self.transport_header_length(segment.flags);
        headers + segment.payload_length as u32
    }

    /// Returns the payload length of a packet without SYN and with `ip_length` bytes; zero if the headers alone are longer.
    #[inline]
    pub(super) const fn payload_for(&self, ip_length: u32) -> u16 {
        let headers = self.ip_header_length() + self.transport_header_length(TcpFlags::ACK);
        ip_length.saturating_sub(headers) as u16
    }

    /// Returns the timestamp value of a packet that `side` sends at `time`: milliseconds plus the side's own offset.
    #[inline]
    pub(super) fn stamp(&mut self, side: Side, time: Timestamp) -> u32 {
        let millis = time.0 / Nanos::from_millis(1).0;
        let tsval = (millis as u32).wrapping_add(self.flow_label[side as usize] << 12);
        self.tsval[side as usize] = tsval;
        tsval
    }

    /// Advances the state past a sent packet: payload, SYN and FIN each consume sequence numbers.
    #[inline]
    pub(super) fn advance(&mut self, segment: &Segment) {
        let side = segment.from as usize;
        let phantom = u32::from(segment.flags.contains(TcpFlags::SYN))
            + u32::from(segment.flags.contains(TcpFlags::FIN));
        let bytes = u32::from(segment.payload_length) + phantom;
        self.sequence[side] = self.sequence[side].wrapping_add(bytes);
        self.identification[side] = self.identification[side].wrapping_add(1);
    }
}

fn address_sum(key: &FlowKey) -> u64 {
    let (src, dst) = key.address_words();
    [src, dst].as_flattened().iter().map(|word| (word >> 32) + (word & 0xFFFF_FFFF)).sum()
}
