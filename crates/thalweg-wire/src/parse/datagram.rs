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
    /// The position in a fragmented datagram.
    pub(super) fragment: Fragment,
    /// Anomalies so far.
    pub(super) notes: PacketNotes,
    /// The bytes after IP; their length on the wire follows from `ip_length`.
    pub(super) payload: FrameCursor<'a>,
}

/// Returns the length of an IP packet, from the header if stated there, else from the frame, and anomalies.
pub(super) fn ip_length(stated: Option<u32>, frame_length: u32) -> (u32, PacketNotes) {
    match stated {
        None => (frame_length, PacketNotes::LENGTH_FROM_FRAME),
        Some(stated) if stated > frame_length => (stated, PacketNotes::LENGTH_BEYOND_FRAME),
        Some(stated) => (stated, PacketNotes::default()),
    }
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
