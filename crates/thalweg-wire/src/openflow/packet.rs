//! Packets to and from the controller.

use super::action::Action;
use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::{BufferId, PortNumber, TableId};
use super::match_field::Match;

layout! {
    /// A packet for the controller (section 7.4.1).
    pub struct PacketIn {
        /// Where the switch keeps it, if it does.
        buffer_id: BufferId,
        /// Bytes of the frame.
        total_len: u16,
        /// Why it is sent.
        reason: PacketInReason,
        /// Table that sent it.
        table_id: TableId,
        /// Cookie of the flow entry that sent it.
        cookie: u64,
        /// What is known of it beside its bytes; the port that it came in by, always.
        matching: Match [pad 2],
        /// The frame from its Ethernet header on, perhaps cut off.
        data: Vec<u8>,
    }
}

numbers! {
    /// Why a packet is sent to the controller (section 7.4.1).
    PacketInReason(u8) {
        /// No entry matched but the one of priority 0 that matches all.
        NO_MATCH = 0, "no match";
        /// An action sends to the controller.
        ACTION = 1, "action";
        /// Its TTL does not allow it to go on.
        INVALID_TTL = 2, "invalid TTL";
    }
}

/// A packet to send (section 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// Where the switch keeps it; [`BufferId::NONE`] if it is in `data`.
    pub buffer_id: BufferId,
    /// Port that it counts as having come in by; [`PortNumber::CONTROLLER`] if none.
    pub in_port: PortNumber,
    /// What is done to it.
    pub actions: Vec<Action>,
    /// The frame from its Ethernet header on.
    pub data: Vec<u8>,
}

impl PacketOut {
    /// Sends `frame` by `port`.
    pub fn new(port: PortNumber, frame: Vec<u8>) -> PacketOut {
        PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNumber::CONTROLLER,
            actions: vec![Action::output(port)],
            data: frame,
        }
    }
}

/// Bytes of padding after the length of the actions.
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
