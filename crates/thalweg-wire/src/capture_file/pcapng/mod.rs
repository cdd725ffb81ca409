//! pcapng: a file consists of sections, a section of blocks. A Section Header Block sets the byte order, Interface
//! Description Blocks set link type, snap length and clock, packet blocks contain frames. Interface numbers restart at
//! zero in each section; the decoder numbers interfaces consecutively in the whole file.
//!
//! Frames of a Simple Packet Block, which has no time, get time zero. Interface statistics, name resolution, secrets,
//! custom and unknown blocks are skipped and counted. The length field of a section and the options of packets are
//! ignored.
//!
//! Each block has its total length at both ends. The decoder compares them, to detect damage at the block where it is.

mod encoder;
mod interface;

pub use encoder::Encoder;

use self::interface::Clock;
use super::{ByteOrder, Decoded, FormatError, MAX_INTERFACES, MAX_RECORD_LENGTH};
use crate::source::{FrameRef, Interface};
use crate::time::Timestamp;

/// The first bytes of a section, equal in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const MAJOR_VERSION: u16 = 1;

/// Block types.
mod block {
    pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
    /// The obsolete packet block: a 16-bit interface number, the other fields as in the enhanced block.
    pub(super) const PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const ENHANCED_PACKET: u32 = 6;

    /// Type and length before the body, length after it.
    pub(super) const FRAMING: u32 = 12;
}

/// Returns the minimum total length of a block: framing and fixed fields.
const fn minimum_length(block_type: u32) -> u32 {
    block::FRAMING
        + match block_type {
            block::SECTION_HEADER => 16,
            block::INTERFACE_DESCRIPTION => 8,
            block::PACKET | block::ENHANCED_PACKET => 20,
            block::SIMPLE_PACKET => 4,
            _ => 0,
        }
}

/// Decodes a file from its first section header.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoder {
    order: ByteOrder,
    /// The interfaces of all sections.
    interfaces: Vec<Interface>,
    /// By interface.
    clocks: Vec<Clock>,
    /// The index of the current section's interface 0.
    section_base: usize,
    other_records: u64,
    beyond_snap_length: u64,
}

/// The fields of a packet block, before the interface is looked up.
struct PacketBlock {
    /// The time in units of the interface's clock, if the block has one.
    ticks: Option<u64>,
    /// The interface number in the section.
    interface: u32,
    captured_length: u32,
    original_length: u32,
    /// The offset of the first captured byte from the start of the block.
    data_offset: u32,
}

impl Decoder {
    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(super) fn other_records(&self) -> u64 {
        self.other_records
    }

    pub(super) fn beyond_snap_length(&self) -> u64 {
        self.beyond_snap_length
    }

    /// See [`super::Decoder::decode`].
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        base: u64,
        limit: usize,
        frames: &mut Vec<FrameRef>,
    ) -> Result<Decoded, FormatError> {
        let frame_limit = frames.len().saturating_add(limit);
        let mut at = 0;
        while frames.len() < frame_limit {
            let rest = &bytes[at..];
            let offset = base.saturating_add(at as u64);
            if rest.len() < block::FRAMING as usize {
                return Ok(Decoded { consumed: at, needed: block::FRAMING as usize });
            }
            let length = self.block_length(rest, offset)? as usize;
            if rest.len() < length {
                return Ok(Decoded { consumed: at, needed: length });
            }
            if let Some(frame) = self.block(&rest[..length], offset)? {
                frames.push(FrameRef { offset: at + frame.offset, ..frame });
            }
            at += length;
        }
        Ok(Decoded { consumed: at, needed: 0 })
    }

    /// Returns the total length of the block at the start of `rest`, which has at least 12 bytes. A section header sets
    /// the byte order first.
    fn block_length(&mut self, rest: &[u8], offset: u64) -> Result<u32, FormatError> {
        if rest[..4] == SECTION_HEADER {
            self.order = [ByteOrder::Little, ByteOrder::Big]
                .into_iter()
                .find(|order| order.read_u32(rest, 8) == BYTE_ORDER_MAGIC)
                .ok_or_else(|| FormatError::ByteOrderMagic {
                    offset,
                    found: [rest[8], rest[9], rest[10], rest[11]],
                })?;
        }
        let block_type = self.order.read_u32(rest, 0);
        let length = self.order.read_u32(rest, 4);
        let minimum = minimum_length(block_type);
        if length < minimum || !length.is_multiple_of(4) {
            return Err(FormatError::BlockLength { offset, block_type, length, minimum });
        }
        if length as usize > MAX_RECORD_LENGTH {
            return Err(FormatError::RecordTooLong { offset, length: u64::from(length) });
        }
        Ok(length)
    }

    /// Decodes a complete block. Returns its frame, if it has one, with the offset from the start of the block.
    fn block(&mut self, block: &[u8], offset: u64) -> Result<Option<FrameRef>, FormatError> {
        let leading = block.len() as u32;
        let trailing = self.order.read_u32(block, block.len() - 4);
        if leading != trailing {
            return Err(FormatError::TrailingLength { offset, leading, trailing });
        }
        let packet = match self.order.read_u32(block, 0) {
            block::SECTION_HEADER => return self.section_header(block, offset).map(|()| None),
            block::INTERFACE_DESCRIPTION => return self.interface_description(block, offset).map(|()| None),
            block::ENHANCED_PACKET => self.packet(block, self.order.read_u32(block, 8)),
            block::PACKET => self.packet(block, u32::from(self.order.read_u16(block, 8))),
            block::SIMPLE_PACKET => self.simple_packet(block),
            _ => {
                self.other_records += 1;
                return Ok(None);
            }
        };
        self.frame(packet, leading, offset).map(Some)
    }

    fn section_header(&mut self, block: &[u8], offset: u64) -> Result<(), FormatError> {
        let (major, minor) = (self.order.read_u16(block, 12), self.order.read_u16(block, 14));
        if major != MAJOR_VERSION {
            let (format, expected) = ("pcapng", "1.x");
            return Err(FormatError::Version { offset, format, major, minor, expected });
        }
        self.section_base = self.interfaces.len();
        Ok(())
    }

    fn interface_description(&mut self, block: &[u8], offset: u64) -> Result<(), FormatError> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(FormatError::TooManyInterfaces { offset });
        }
        let (interface, clock) = interface::decode(block, self.order, offset)?;
        self.interfaces.push(interface);
        self.clocks.push(clock);
        Ok(())
    }

    /// Decodes an enhanced or obsolete packet block.
    fn packet(&self, block: &[u8], interface: u32) -> PacketBlock {
        let (high, low) = (self.order.read_u32(block, 12), self.order.read_u32(block, 16));
        PacketBlock {
            ticks: Some(u64::from(high) << 32 | u64::from(low)),
            interface,
            captured_length: self.order.read_u32(block, 20),
            original_length: self.order.read_u32(block, 24),
            data_offset: 28,
        }
    }

    /// Decodes a simple packet block. It belongs to interface 0, and its captured length is the minimum of the original
    /// length and the snap length.
    fn simple_packet(&self, block: &[u8]) -> PacketBlock {
        let original_length = self.order.read_u32(block, 8);
        let snap_length = match self.interfaces.get(self.section_base) {
            Some(interface) if interface.snap_length != 0 => interface.snap_length,
            _ => u32::MAX,
        };
        let captured_length = original_length.min(snap_length);
        PacketBlock { ticks: None, interface: 0, captured_length, original_length, data_offset: 12 }
    }

    /// Looks up the interface and validates the lengths.
    fn frame(
        &mut self,
        packet: PacketBlock,
        block_length: u32,
        offset: u64,
    ) -> Result<FrameRef, FormatError> {
        let described = self.interfaces.len() - self.section_base;
        if packet.interface as usize >= described {
            return Err(FormatError::UndescribedInterface {
                offset,
                interface: packet.interface,
                described: described as u32,
            });
        }
        let captured_length = packet.captured_length;
        let available = block_length - packet.data_offset - 4;
        if captured_length > available {
            return Err(FormatError::FrameBeyondBlock { offset, captured_length, available });
        }
        let index = self.section_base + packet.interface as usize;
        let snap_length = self.interfaces[index].snap_length;
        self.beyond_snap_length += u64::from(snap_length != 0 && captured_length > snap_length);
        Ok(FrameRef {
            time: packet.ticks.map_or(Timestamp(0), |ticks| self.clocks[index].time(ticks)),
            offset: packet.data_offset as usize,
            captured_length,
            original_length: packet.original_length.max(captured_length),
            interface: index as u32,
        })
    }
}
