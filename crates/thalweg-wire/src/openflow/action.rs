//! What is done to a packet (section 7.2.5).

use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::{GroupId, PortNumber, QueueId};
use super::match_field::MatchField;
use super::{VLAN_PRESENT, WHOLE_PACKET};

/// Bytes of an action's, or an instruction's, type and length.
pub(super) const TLV_HEADER_LENGTH: usize = 4;

tagged! {
    /// What is done to a packet. The body of an `Other` is padded with zeros until the whole is a multiple of 8 bytes.
    pub enum Action(u16) {
        /// Sends it.
        0 Output(output: Output),
        /// Puts a VLAN tag of this Ethernet type (0x8100 or 0x88a8) in front of all others.
        17 PushVlan(ether_type: u16),
        /// Takes the outermost VLAN tag off.
        18 PopVlan,
        /// Has it wait in this queue of the port that it is sent by.
        21 SetQueue(queue: QueueId),
        /// Hands it to a group.
        22 Group(group: GroupId),
        /// Overwrites a field of its headers; the field has no mask.
        25 SetField(field: MatchField),
    }
}

layout! {
    /// Where a packet is sent (section 7.2.5).
    #[derive(Copy)]
    pub struct Output {
        /// The port.
        port: PortNumber,
        /// Most bytes sent to the controller, if that is the port; [`WHOLE_PACKET`] for all.
        max_len: u16,
    }
}

impl Action {
    /// Sends it by a port.
    pub const fn output(port: PortNumber) -> Action {
        Action::Output(Output { port, max_len: 0 })
    }

    /// Sends all of it to the controller.
    pub const fn to_controller() -> Action {
        Action::Output(Output { port: PortNumber::CONTROLLER, max_len: WHOLE_PACKET })
    }

    /// Overwrites the id of the outermost VLAN tag.
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

/// The type of an action or instruction, and what follows its header. Its length counts its padding and is a multiple
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

/// Passes over what fills a structure up to a multiple of 8 bytes, and no more than that.
pub(super) fn skip_padding(body: &mut Reader<'_>) -> Result<(), DecodeError> {
    let padding = body.left() % 8;
    body.skip(padding)?;
    body.finish()
}
