//! Abstract packets: the properties of a packet that schemes need, and no payload (Flexplane, section 3.1).

use std::fmt;

use thalweg_network::EndpointId;

use crate::ticks::Lag;

/// Bytes of Ethernet around an IP packet on a link: preamble and start delimiter 8, header 14, frame check sequence 4,
/// gap 12 (IEEE 802.3, clause 4.4.2).
pub const FRAMING: u16 = 8 + 14 + 4 + 12;

/// Bytes of the shortest frame on a link, including preamble and gap: 64 + 20 (IEEE 802.3, clause 4.4.2).
pub const SHORTEST: u16 = 64 + 20;

/// The highest packet id.
pub const MAX_ID: u32 = (1 << 24) - 1;

/// Explicit congestion notification, the two low bits of the traffic class (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not use ECN.
    NotCapable = 0b00,
    /// ECN-capable transport, ECT(1).
    Capable1 = 0b01,
    /// ECN-capable transport, ECT(0). Senders set this one.
    Capable0 = 0b10,
    /// Congestion experienced: a router marked the packet.
    Experienced = 0b11,
}

/// An abstract packet: 16 bytes, and the scheme's own fields in `custom`.
///
/// The sender keeps the real packet or segment and identifies it by `id`. The fields are packed in two words: a packet
/// is copied at every hop, and two registers are faster than seven.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Packet<C = ()> {
    /// From the low bits up: source (16 bits), destination (16), flow (32).
    who: u64,
    /// From the low bits up: lag (8), id (24), length (16), traffic class (8), address (8).
    what: u64,
    /// The scheme's header fields, set by its `prepare_request`.
    pub custom: C,
}

impl Packet {
    /// A packet of flow `flow` with the id `id`, at most [`MAX_ID`] (higher bits are ignored), which occupies `length`
    /// bytes on a link, framing included. Traffic class, address and lag are 0.
    #[inline]
    pub const fn new(source: EndpointId, destination: EndpointId, flow: u32, id: u32, length: u16) -> Self {
        Packet {
            who: source.0 as u64 | (destination.0 as u64) << 16 | (flow as u64) << 32,
            what: ((id as u64) << 8) & 0xffff_ff00 | (length as u64) << 32,
            custom: (),
        }
    }

    /// Sets the traffic class: DSCP (RFC 2474) in the six high bits, ECN (RFC 3168) in the two low ones.
    #[inline]
    pub const fn with_traffic_class(self, traffic_class: u8) -> Self {
        Packet { what: self.what & !(0xff << 48) | (traffic_class as u64) << 48, ..self }
    }

    /// Sets the address of the destination: 0 is the base address, others are shadow addresses, for which forwarding
    /// tables may have other paths (Planck, section 6.2).
    #[inline]
    pub const fn with_address(self, address: u8) -> Self {
        Packet { what: self.what & !(0xff << 56) | (address as u64) << 56, ..self }
    }
}

impl<C> Packet<C> {
    /// Sets the [lag](Packet::lag).
    #[inline(always)]
    pub const fn with_lag(self, lag: Lag) -> Self
    where
        C: Copy,
    {
        Packet { what: self.what & !0xff | lag.0 as u64, ..self }
    }

    /// The time between the arrival of the last byte and the slot that processes the packet.
    #[inline(always)]
    pub const fn lag(&self) -> Lag {
        Lag(self.what as u8)
    }

    /// The source endpoint.
    #[inline]
    pub const fn source(&self) -> EndpointId {
        EndpointId(self.who as u16)
    }

    /// The destination endpoint.
    #[inline]
    pub const fn destination(&self) -> EndpointId {
        EndpointId((self.who >> 16) as u16)
    }

    /// The flow. ECMP and fair queueing use it.
    #[inline]
    pub const fn flow(&self) -> u32 {
        (self.who >> 32) as u32
    }

    /// Source, destination and flow in one word, as input of a hash.
    #[inline]
    pub const fn who(&self) -> u64 {
        self.who
    }

    /// The id that the sender chose. The network does not use it.
    #[inline]
    pub const fn id(&self) -> u32 {
        self.what as u32 >> 8
    }

    /// Bytes on a link, framing included.
    #[inline]
    pub const fn length(&self) -> u16 {
        (self.what >> 32) as u16
    }

    /// The traffic class: DSCP in the six high bits, ECN in the two low ones.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        (self.what >> 48) as u8
    }

    /// The number of the destination's address.
    #[inline]
    pub const fn address(&self) -> u8 {
        (self.what >> 56) as u8
    }

    /// The differentiated services code point, 0 to 63.
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// The ECN field.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        match self.traffic_class() & 0b11 {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::Capable1,
            0b10 => Ecn::Capable0,
            _ => Ecn::Experienced,
        }
    }

    /// Whether the sender uses ECN, whether marked or not.
    #[inline]
    pub const fn is_ecn_capable(&self) -> bool {
        self.traffic_class() & 0b11 != 0
    }

    /// Sets congestion experienced. Drop packets of senders without ECN instead.
    #[inline]
    pub const fn mark(&mut self) {
        self.what |= 0b11 << 48;
    }

    /// Replaces the custom fields.
    #[inline]
    pub fn with_custom<D>(self, custom: D) -> Packet<D> {
        Packet { who: self.who, what: self.what, custom }
    }
}

impl<C: fmt::Debug> fmt::Debug for Packet<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("source", &self.source())
            .field("destination", &self.destination())
            .field("flow", &self.flow())
            .field("id", &self.id())
            .field("length", &self.length())
            .field("dscp", &self.dscp())
            .field("ecn", &self.ecn())
            .field("address", &self.address())
            .field("lag", &self.lag())
            .field("custom", &self.custom)
            .finish()
    }
}

const _: () = assert!(size_of::<Packet>() == 16, "two registers move a packet");
