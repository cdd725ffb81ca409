//! A parsed packet: flow key, time, lengths, TCP sequence number and flags.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::flow_key::FlowKey;
use crate::mac_address::MacAddress;
use crate::time::Timestamp;

/// The parsed headers of a packet, from [`crate::parse::Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The capture time.
    pub time: Timestamp,
    /// The 5-tuple in the direction of the packet. A later fragment has ports zero (see [`Fragment`]).
    pub key: FlowKey,
    /// The MAC addresses of the frame, outside any tunnel; all zeros if it is not Ethernet.
    pub ethernet: EthernetAddresses,
    /// The length from the IP header in bytes, as in that header (as NetFlow counts), or of the frame if the header has
    /// none (BIG TCP).
    pub ip_length: u32,
    /// The bytes after the transport header, derived from `ip_length`; for a fragment, its own payload.
    pub payload_length: u32,
    /// The identification of the IPv4 header (RFC 6864), which many senders count up; 0 for IPv6.
    pub identification: u16,
    /// The TCP sequence number; 0 for other protocols or if not captured.
    pub tcp_sequence: u32,
    /// The TCP flags; empty for other protocols or if not captured.
    pub tcp_flags: TcpFlags,
    /// The position in a fragmented datagram.
    pub fragment: Fragment,
    /// Anomalies of the packet.
    pub notes: PacketNotes,
}

impl Packet {
    /// Whether the packet is a fragment or has notes.
    #[inline]
    pub fn is_unusual(&self) -> bool {
        self.notes != PacketNotes::default() || self.fragment != Fragment::Whole
    }
}

/// The MAC addresses of an Ethernet frame, in frame order (IEEE 802.3 section 3.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct EthernetAddresses {
    /// The destination.
    pub destination: MacAddress,
    /// The source.
    pub source: MacAddress,
}

/// The VLAN tags of Ethernet frames (IEEE 802.1Q section 9), of one or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanTags {
    /// Whether frames have one tag.
    pub single: bool,
    /// Whether frames have two tags.
    pub double: bool,
    /// Whether frames have three tags or more.
    pub more: bool,
}

impl BitOrAssign for VlanTags {
    #[inline]
    fn bitor_assign(&mut self, other: VlanTags) {
        self.single |= other.single;
        self.double |= other.double;
        self.more |= other.more;
    }
}

/// The position of a packet in a fragmented datagram (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// Not fragmented.
    #[default]
    Whole,
    /// The first fragment, the only one with ports.
    First {
        /// Identification, equal in all fragments of a datagram.
        identification: u32,
    },
    /// A later fragment: its ports are zero until those of the first fragment are filled in.
    Later {
        /// Identification, equal in all fragments of a datagram.
        identification: u32,
    },
}

/// Flags of the TCP header (RFC 9293 section 3.1), as bits of one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// Acknowledgment field is significant.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// Urgent pointer is significant.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: TcpFlags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for TcpFlags {
    type Output = TcpFlags;

    #[inline]
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

impl BitOrAssign for TcpFlags {
    #[inline]
    fn bitor_assign(&mut self, other: TcpFlags) {
        self.0 |= other.0;
    }
}

/// Displays eight characters from CWR to FIN with a dot for each unset flag, as nfdump: `...AP.SF`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = b"CEUAPRSF".iter().enumerate();
        let text: String =
            letters.map(|(i, &c)| if self.0 & 0x80 >> i != 0 { char::from(c) } else { '.' }).collect();
        f.pad(&text)
    }
}

/// Anomalies of a packet, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct PacketNotes(pub u8);

impl PacketNotes {
    /// The capture ends before the ports, which are zero.
    pub const PORTS_NOT_CAPTURED: PacketNotes = PacketNotes(0x01);
    /// The IP header has no length, so it is that of the frame (BIG TCP, TCP segmentation offload).
    pub const LENGTH_FROM_FRAME: PacketNotes = PacketNotes(0x02);
    /// The length in the IP header exceeds the frame, or the length of either exceeds what a link carries. A length beyond 16
    /// bits is then cut to that of the frame, at most 524,280 bytes.
    pub const LENGTH_BEYOND_FRAME: PacketNotes = PacketNotes(0x04);
    /// At least one tunnel header was removed.
    pub const DECAPSULATED: PacketNotes = PacketNotes(0x08);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: PacketNotes) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOrAssign for PacketNotes {
    #[inline]
    fn bitor_assign(&mut self, other: PacketNotes) {
        self.0 |= other.0;
    }
}
