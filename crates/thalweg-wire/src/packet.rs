//! One packet as the meters see it: a flow key, a time, lengths, and what TCP says of itself.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::flow_key::FlowKey;
use crate::mac_address::MacAddress;
use crate::time::Timestamp;

/// What the headers of one packet say. Made by [`crate::parse::Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured.
    pub time: Timestamp,
    /// 5-tuple, in the packet's own direction. A later fragment has ports zero here (see [`Fragment`]).
    pub key: FlowKey,
    /// Addresses of the frame that it came in, outside of any tunnel; all zeros if it was no Ethernet frame.
    pub ethernet: EthernetAddresses,
    /// Bytes from the IP header on, as that header has it (as NetFlow counts), the frame's own length where the
    /// header leaves it open (BIG TCP).
    pub ip_length: u32,
    /// Bytes above the transport header, derived from `ip_length`; of a fragment, what it carries itself.
    pub payload_length: u32,
    /// TCP sequence number; 0 for other protocols and where it was not captured.
    pub tcp_sequence: u32,
    /// TCP flags; empty for other protocols and where they were not captured.
    pub tcp_flags: TcpFlags,
    /// Place in a fragmented datagram.
    pub fragment: Fragment,
    /// What was unusual about it.
    pub notes: PacketNotes,
}

impl Packet {
    /// Whether there is anything to say of it beyond its key, lengths and flags.
    #[inline]
    pub fn is_unusual(&self) -> bool {
        self.notes != PacketNotes::default() || self.fragment != Fragment::Whole
    }
}

/// The addresses that an Ethernet frame begins with, in its order (IEEE 802.3 section 3.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct EthernetAddresses {
    /// Whom it is for.
    pub destination: MacAddress,
    /// Whom it is from.
    pub source: MacAddress,
}

/// Place of a packet in a fragmented datagram (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// Not fragmented.
    #[default]
    Whole,
    /// The first fragment; it alone has the ports.
    First {
        /// Identification, equal in all fragments of a datagram.
        identification: u32,
    },
    /// A later fragment: ports are zero until the first fragment's are filled in.
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

/// Eight places from CWR to FIN, a dot for each flag that is not set, as nfdump prints them: `...AP.SF`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = b"CEUAPRSF".iter().enumerate();
        let text: String =
            letters.map(|(i, &c)| if self.0 & 0x80 >> i != 0 { char::from(c) } else { '.' }).collect();
        f.pad(&text)
    }
}

/// What was unusual about a packet, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct PacketNotes(pub u8);

impl PacketNotes {
    /// The capture ends before the ports; they are zero.
    pub const PORTS_NOT_CAPTURED: PacketNotes = PacketNotes(0x01);
    /// The IP header leaves the length open; it was taken from the frame (BIG TCP, TCP segmentation offload).
    pub const LENGTH_FROM_FRAME: PacketNotes = PacketNotes(0x02);
    /// The IP header claims more bytes than the frame had on the wire.
    pub const LENGTH_BEYOND_FRAME: PacketNotes = PacketNotes(0x04);
    /// At least one tunnel was peeled off.
    pub const PEELED: PacketNotes = PacketNotes(0x08);

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
