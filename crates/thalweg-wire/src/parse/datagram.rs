//! The result of parsing IP headers.

use crate::flow_key::FlowKey;
use crate::packet::{Fragment, PacketNotes};
use crate::parse::frame_cursor::FrameCursor;

/// A parsed IP header with its extensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    /// Addresses and protocol; ports zero.
    pub(super) key: FlowKey,
    /// The length from the IP header in bytes.
    pub(super) ip_length: u32,
    /// The identification of the IPv4 header; 0 for IPv6.
    pub(super) identification: u16,
    /// The position in a fragmented datagram.
    pub(super) fragment: Fragment,
    /// Anomalies so far.
    pub(super) notes: PacketNotes,
    /// The bytes after IP; their length on the wire follows from `ip_length`.
    pub(super) payload: FrameCursor<'a>,
}

/// The maximum length of a packet in bytes: that of Linux's offloads (`GSO_MAX_SIZE`). No link carries more, so a longer
/// one is forged or damaged.
pub(super) const MAX_IP_LENGTH: u32 = 8 * 65_535;
/// The maximum length that a 16-bit field can state, with an IPv6 header.
const MAX_16_BIT_LENGTH: u32 = 65_535 + 40;

/// Returns the length of an IP packet, from the header if stated there, else from the frame, and anomalies.
///
/// A stated length beyond the frame counts, as the capture may have lost the rest of the frame, unless it is a jumbo
/// payload: three small frames that state 4 GiB each would be the fastest flow of the network.
pub(super) fn ip_length(stated: Option<u32>, frame_length: u32) -> (u32, PacketNotes) {
    let (length, mut notes) = match stated {
        None => (frame_length, PacketNotes::LENGTH_FROM_FRAME),
        Some(stated) if stated <= frame_length => (stated, PacketNotes::default()),
        Some(stated) if stated <= MAX_16_BIT_LENGTH => (stated, PacketNotes::LENGTH_BEYOND_FRAME),
        Some(_) => (frame_length, PacketNotes::LENGTH_BEYOND_FRAME),
    };
    if length > MAX_IP_LENGTH {
        notes |= PacketNotes::LENGTH_BEYOND_FRAME;
    }
    (length.min(MAX_IP_LENGTH), notes)
}

/// Returns the position of a packet in its datagram, from the offset and the "more fragments" flag. An atomic fragment
/// is whole (RFC 6946).
pub(super) fn fragment(offset: u16, more_fragments: bool, identification: u32) -> Fragment {
    match (offset, more_fragments) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First { identification },
        _ => Fragment::Later { identification },
    }
}
