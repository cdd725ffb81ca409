//! Packets to and from the controller.

use super::action::Action;
use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::{BufferId, PortNumber, TableId};
use super::match_field::Match;

layout! {
    /// A packet for the controller (section 7.4.1).
    pub struct PacketIn {
        /// The buffer of the packet in the switch, if any.
        buffer_id: BufferId,
        /// The length of the frame in bytes.
        total_len: u16,
        /// The reason.
        reason: PacketInReason,
        /// The table of the flow entry.
        table_id: TableId,
        /// The cookie of the flow entry.
        cookie: u64,
        /// Metadata of the packet; always includes the ingress port.
        matching: Match [pad 2],
        /// The Ethernet frame, possibly truncated.
        data: Vec<u8>,
    }
}

numbers! {
    /// The reason for sending a packet to the controller (section 7.4.1).
    PacketInReason(u8) {
        /// The table-miss entry matched.
        NO_MATCH = 0, "no match";
        /// An action sent it to the controller.
        ACTION = 1, "action";
        /// Its TTL is invalid.
        INVALID_TTL = 2, "invalid TTL";
    }
}

/// A packet to send (section 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The buffer of the packet in the switch; [`BufferId::NONE`] if it is in `data`.
    pub buffer_id: BufferId,
    /// The ingress port of the packet; [`PortNumber::CONTROLLER`] if none.
    pub in_port: PortNumber,
    /// The actions.
    pub actions: Vec<Action>,
    /// The Ethernet frame.
    pub data: Vec<u8>,
}

impl PacketOut {
    /// Creates a message that sends `frame` through `port`.
    pub fn new(port: PortNumber, frame: Vec<u8>) -> PacketOut {
        PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNumber::CONTROLLER,
            actions: vec![Action::output(port)],
            data: frame,
        }
    }
}

/// The number of padding bytes after the length of the actions.
const PADDING: usize = 6;

impl Wire for PacketOut {
    fn read(from: &mut Reader<'_>) -> Result<PacketOut, DecodeError> {
        let buffer_id = BufferId::read(from)?;
        let in_port = PortNumber::read(from)?;
        let actions_length = u16::read(from)?;
        from.skip(PADDING)?;
        let actions = Vec::read(&mut from.part("PacketOut", actions_length.into())?)?;
        Ok(PacketOut { buffer_id, in_port, actions, data: Vec::read(from)? })
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.buffer_id.write(to);
        self.in_port.write(to);
        let length_at = to.position();
        0_u16.write(to);
        to.zeros(PADDING);
        let start = to.position();
        self.actions.write(to);
        to.set_length("PacketOut", start, length_at);
        self.data.write(to);
    }
}
