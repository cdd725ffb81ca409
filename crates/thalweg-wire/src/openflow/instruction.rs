//! Instructions of flow entries (section 7.2.4).

use super::action::{Action, read_tlv, skip_padding};
use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::TableId;

tagged! {
    /// An instruction of a flow entry. The body of an `Other` is padded with zeros to a total length of a multiple
    /// of 8 bytes.
    pub enum Instruction(u16) {
        /// Continues in a later table.
        1 GotoTable(table: TableId),
        /// Writes metadata for later tables.
        2 WriteMetadata(metadata: MetadataWrite),
        /// Adds actions to the action set, which is executed after the last table.
        3 WriteActions(actions: Vec<Action>),
        /// Executes actions immediately, in this order.
        4 ApplyActions(actions: Vec<Action>),
        /// Clears the action set.
        5 ClearActions,
    }
}

layout! {
    /// Metadata for later tables (section 7.2.4).
    #[derive(Copy)]
    pub struct MetadataWrite {
        /// The value.
        metadata: u64,
        /// The bits to overwrite.
        mask: u64,
    }
}

/// Returns the length of the padding between header and body: the bodies of these three begin at a multiple of 8 bytes.
const fn padding_before(kind: u16) -> usize {
    if matches!(kind, 2..=4) { 4 } else { 0 }
}

impl Wire for Instruction {
    fn read(from: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
        let (kind, mut body) = read_tlv("Instruction", from)?;
        body.skip(padding_before(kind))?;
        let instruction = Instruction::read_body(kind, &mut body)?;
        skip_padding(&mut body)?;
        Ok(instruction)
    }

    fn write(&self, to: &mut Writer<'_>) {
        let start = to.position();
        self.kind().write(to);
        0_u16.write(to);
        to.zeros(padding_before(self.kind()));
        self.write_body(to);
        to.pad_to_8(start);
        to.set_length("Instruction", start, start + 2);
    }
}

impl Listed for Instruction {}
