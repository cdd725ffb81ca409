//! Actions (section 7.2.5).

use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::{GroupId, PortNumber, QueueId};
use super::match_field::MatchField;
use super::{VLAN_PRESENT, WHOLE_PACKET};

/// Length of the type and length fields of an action or instruction, in bytes.
pub(super) const TLV_HEADER_LENGTH: usize = 4;

tagged! {
    /// An action on a packet. The body of an `Other` is padded with zeros to a total length of a multiple of 8 bytes.
    pub enum Action(u16) {
        /// Sends the packet.
        0 Output(output: Output),
        /// Adds an outermost VLAN tag of this Ethernet type (0x8100 or 0x88a8).
        17 PushVlan(ether_type: u16),
        /// Removes the outermost VLAN tag.
        18 PopVlan,
        /// Selects the queue of the output port.
        21 SetQueue(queue: QueueId),
        /// Applies a group.
        22 Group(group: GroupId),
        /// Sets a header field; the field has no mask.
        25 SetField(field: MatchField),
    }
}

layout! {
    /// The destination of a packet (section 7.2.5).
    #[derive(Copy)]
    pub struct Output {
        /// The port.
        port: PortNumber,
        /// The maximum number of bytes to send, if the port is the controller; [`WHOLE_PACKET`] for all.
        max_len: u16,
    }
}

impl Action {
    /// Returns an action that sends the packet through a port.
    pub const fn output(port: PortNumber) -> Action {
        Action::Output(Output { port, max_len: 0 })
    }

    /// Returns an action that sends the whole packet to the controller.
    pub const fn to_controller() -> Action {
        Action::Output(Output { port: PortNumber::CONTROLLER, max_len: WHOLE_PACKET })
    }

    /// Returns an action that sets the id of the outermost VLAN tag.
    pub fn set_vlan(id: u16) -> Action {
        Action::SetField(MatchField::VlanVid((id | VLAN_PRESENT).into()))
    }
}

impl Wire for Action {
    fn read(from: &mut Reader<'_>) -> Result<Action, DecodeError> {
        let (kind, mut body) = read_tlv("Action", from)?;
        let action = Action::read_body(kind, &mut body)?;
        skip_padding(&mut body)?;
        Ok(action)
    }

    fn write(&self, to: &mut Writer<'_>) {
        let start = to.position();
        self.kind().write(to);
        0_u16.write(to);
        self.write_body(to);
        to.pad_to_8(start);
        to.set_length("Action", start, start + 2);
    }
}

impl Listed for Action {}

/// Reads the type and the body of an action or instruction. Its length includes its padding and is a multiple
/// of 8 (sections 7.2.4 and 7.2.5).
pub(super) fn read_tlv<'a>(
    structure: &'static str,
    from: &mut Reader<'a>,
) -> Result<(u16, Reader<'a>), DecodeError> {
    from.enter(structure);
    let offset = from.offset();
    let kind = u16::read(from)?;
    let length = usize::from(u16::read(from)?);
    if length == 0 || length % 8 != 0 {
        let expected = "a multiple of 8, from 8 up";
        return Err(DecodeError::Length { structure, offset, length, expected });
    }
    Ok((kind, from.part(structure, length - TLV_HEADER_LENGTH)?))
}

/// Skips the padding of a structure to a multiple of 8 bytes.
pub(super) fn skip_padding(body: &mut Reader<'_>) -> Result<(), DecodeError> {
    let padding = body.left() % 8;
    body.skip(padding)?;
    body.finish()
}
