//! Encodes pcapng with timestamps in nanoseconds.

use super::super::{ByteOrder, MAX_RECORD_LENGTH};
use super::interface::option;
use super::{BYTE_ORDER_MAGIC, MAJOR_VERSION, block};
use crate::source::{Frame, Interface};

/// The exponent of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// Encodes a pcapng file.
///
/// Call [`section_header`](Encoder::section_header) first, then
/// [`interface_description`](Encoder::interface_description) for each interface before its first frame (interfaces are
/// numbered from zero in this order), then [`enhanced_packet`](Encoder::enhanced_packet) for each frame:
///
/// ```
/// use thalweg_wire::capture_file::pcapng;
/// use thalweg_wire::{Frame, Interface, LinkType, Timestamp};
///
/// let encoder = pcapng::Encoder::default();
/// let mut file = Vec::new();
/// encoder.section_header(&mut file);
/// let link_type = LinkType::Ethernet;
/// let port = Interface { name: Some("port 3".into()), link_type, snap_length: 64 };
/// encoder.interface_description(&port, Some("mirror of switch 1, port 3"), &mut file);
/// let frame = Frame { time: Timestamp::new(1, 5), bytes: &[0; 64], original_length: 1500, link_type };
/// encoder.enhanced_packet(0, &frame, Some("first of its flow"), &mut file);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoder {
    /// The byte order.
    pub order: ByteOrder,
}

impl Encoder {
    /// Appends a Section Header Block, which starts a section. Interface numbers restart at zero.
    pub fn section_header(&self, out: &mut Vec<u8>) {
        self.block(block::SECTION_HEADER, out, |out| {
            out.extend_from_slice(&self.order.u32(BYTE_ORDER_MAGIC));
            out.extend_from_slice(&self.order.u16(MAJOR_VERSION));
            out.extend_from_slice(&self.order.u16(0));
            // Section length: unspecified.
            out.extend_from_slice(&[0xff; 8]);
        });
    }

    /// Appends an Interface Description Block. Name and description are truncated to 65535 bytes.
    pub fn interface_description(&self, interface: &Interface, description: Option<&str>, out: &mut Vec<u8>) {
        self.block(block::INTERFACE_DESCRIPTION, out, |out| {
            out.extend_from_slice(&self.order.u16(interface.link_type.number()));
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&self.order.u32(interface.snap_length));
            if let Some(name) = &interface.name {
                self.option(option::NAME, truncated(name), out);
            }
            if let Some(description) = description {
                self.option(option::DESCRIPTION, truncated(description), out);
            }
            self.option(option::TIME_RESOLUTION, &[NANOSECONDS], out);
            self.option(option::END, &[], out);
        });
    }

    /// Appends an Enhanced Packet Block with a frame of interface number `interface` in the section, which must have
    /// the same link type. The comment is truncated to 65535 bytes.
    ///
    /// # Panics
    /// If the block is longer than [`MAX_RECORD_LENGTH`].
    pub fn enhanced_packet(
        &self,
        interface: u32,
        frame: &Frame<'_>,
        comment: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        self.block(block::ENHANCED_PACKET, out, |out| {
            let mut fields = [0; 20];
            fields[0..4].copy_from_slice(&self.order.u32(interface));
            fields[4..8].copy_from_slice(&self.order.u32((frame.time.0 >> 32) as u32));
            fields[8..12].copy_from_slice(&self.order.u32(frame.time.0 as u32));
            fields[12..16].copy_from_slice(&self.order.u32(frame.bytes.len() as u32));
            fields[16..20].copy_from_slice(&self.order.u32(frame.original_length));
            out.extend_from_slice(&fields);
            padded(frame.bytes, out);
            if let Some(comment) = comment {
                self.option(option::COMMENT, truncated(comment), out);
                self.option(option::END, &[], out);
            }
        });
    }

    /// Appends a block, with its length at both ends, whose body is appended by `body`.
    fn block(&self, block_type: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&self.order.u32(block_type));
        out.extend_from_slice(&[0; 4]);
        body(out);
        let length = out.len() + 4 - start;
        assert!(length <= MAX_RECORD_LENGTH, "the block is too long for readers");
        let length = self.order.u32(length as u32);
        out.extend_from_slice(&length);
        out[start + 4..start + 8].copy_from_slice(&length);
    }

    fn option(&self, code: u16, value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.order.u16(code));
        out.extend_from_slice(&self.order.u16(value.len() as u16));
        padded(value, out);
    }
}

/// Appends `bytes`, then zeros up to a multiple of 4.
fn padded(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

/// Truncates `text` to the maximum length of an option, at a character boundary.
fn truncated(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(usize::from(u16::MAX))]
}
