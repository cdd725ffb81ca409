//! What IP of either version hands to the transport layer.

use crate::flow_key::FlowKey;
use crate::packet::{Fragment, PacketNotes};
use crate::parse::rest::Rest;

/// What an IP header and its extensions say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    /// Addresses and protocol; ports zero.
    pub(super) key: FlowKey,
    /// Bytes from the IP header on.
    pub(super) ip_length: u32,
    /// Place in a fragmented datagram.
    pub(super) fragment: Fragment,
    /// What was unusual so far.
    pub(super) notes: PacketNotes,
    /// What the packet carries above IP; its length on the wire follows from `ip_length`.
    pub(super) payload: Rest<'a>,
}

/// The length of an IP packet, and what is unusual about it: the header's statement if it makes one, otherwise
/// the frame's.
pub(super) fn ip_length(stated: Option<u32>, frame_length: u32) -> (u32, PacketNotes) {
    match stated {
        None => (frame_length, PacketNotes::LENGTH_FROM_FRAME),
        Some(stated) if stated > frame_length => (stated, PacketNotes::LENGTH_BEYOND_FRAME),
        Some(stated) => (stated, PacketNotes::default()),
    }
}

/// The place of a packet in its datagram, from the offset and the "more fragments" flag of its header. A lone
/// fragment with nothing before or after it is whole (RFC 6946).
pub(super) fn fragment(offset: u16, more_fragments: bool, identification: u32) -> Fragment {
    match (offset, more_fragments) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First { identification },
        _ => Fragment::Later { identification },
    }
}
