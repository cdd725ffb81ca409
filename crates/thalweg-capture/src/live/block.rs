//! The frames of one block of the ring (`struct tpacket_block_desc`, `struct tpacket3_hdr` of if_packet.h).
//!
//! A block begins with its descriptor, which says how many frames it has and where the first is; each frame
//! begins with a header that says where the next is, and where and how long the captured bytes are.

use std::mem::offset_of;

use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket_hdr_variant1, tpacket3_hdr};
use thalweg_wire::{FrameRef, Interface, LinkType, Timestamp};

use crate::filter::Filter;

/// Bytes of an 802.1Q tag: protocol identifier and control information. As many must lie free before each
/// frame.
pub(super) const VLAN_TAG_LENGTH: usize = 4;

/// Destination and source address, which come before the tag.
const ADDRESSES_LENGTH: usize = 12;

/// 802.1Q; what a tag is if the kernel does not say.
const ETHERTYPE_VLAN: u16 = 0x8100;

/// Appends the frames of `block` to `frames`, in their order, each with its VLAN tag restored. `filter` is
/// asked about those that had one; returns how many it refused.
///
/// # Panics
/// If the block is not as the kernel makes them.
pub(super) fn read_block(
    block: &mut [u8],
    interface: &Interface,
    filter: Option<&Filter>,
    frames: &mut Vec<FrameRef>,
) -> u64 {
    const DESCRIPTOR: usize = offset_of!(tpacket_block_desc, hdr);
    let frame_count = u32_at(block, DESCRIPTOR + offset_of!(tpacket_hdr_v1, num_pkts));
    let mut at = u32_at(block, DESCRIPTOR + offset_of!(tpacket_hdr_v1, offset_to_first_pkt)) as usize;
    let mut refused_count = 0;
    frames.reserve(frame_count as usize);
    for _ in 0..frame_count {
        let header = Header::read(block, at);
        let mut frame = header.frame(at);
        at += header.next_offset;
        if header.has_tag() && interface.link_type == LinkType::Ethernet {
            restore_tag(block, &mut frame, &header, interface.snap_length);
            let bytes = &block[frame.offset..][..frame.captured_length as usize];
            if filter.is_some_and(|filter| !filter.matches(bytes, frame.original_length)) {
                refused_count += 1;
                continue;
            }
        }
        frames.push(frame);
    }
    refused_count
}

/// What is used of a `struct tpacket3_hdr`.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// From this header to the next.
    next_offset: usize,
    seconds: u32,
    nanos: u32,
    captured_length: u32,
    original_length: u32,
    status: u32,
    /// From this header to the captured bytes.
    mac: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

impl Header {
    #[inline]
    fn read(block: &[u8], at: usize) -> Header {
        const VARIANT: usize = offset_of!(tpacket3_hdr, hv1);
        // One bounds check for all fields.
        let header: &[u8; size_of::<tpacket3_hdr>()] = block[at..].first_chunk().expect("a whole header");
        Header {
            next_offset: u32_at(header, offset_of!(tpacket3_hdr, tp_next_offset)) as usize,
            seconds: u32_at(header, offset_of!(tpacket3_hdr, tp_sec)),
            nanos: u32_at(header, offset_of!(tpacket3_hdr, tp_nsec)),
            captured_length: u32_at(header, offset_of!(tpacket3_hdr, tp_snaplen)),
            original_length: u32_at(header, offset_of!(tpacket3_hdr, tp_len)),
            status: u32_at(header, offset_of!(tpacket3_hdr, tp_status)),
            mac: u16_at(header, offset_of!(tpacket3_hdr, tp_mac)),
            vlan_tci: u32_at(header, VARIANT + offset_of!(tpacket_hdr_variant1, tp_vlan_tci)) as u16,
            vlan_tpid: u16_at(header, VARIANT + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid)),
        }
    }

    /// The frame as it lies in the ring.
    #[inline]
    fn frame(&self, at: usize) -> FrameRef {
        FrameRef {
            time: Timestamp::new(u64::from(self.seconds), self.nanos),
            offset: at + usize::from(self.mac),
            captured_length: self.captured_length,
            original_length: self.original_length,
            interface: 0,
        }
    }

    /// Whether a tag was taken off the frame.
    #[inline]
    fn has_tag(&self) -> bool {
        self.status & libc::TP_STATUS_VLAN_VALID != 0
    }
}

/// Puts the tag back where it was: moves the addresses down into the room that was reserved before the frame,
/// and writes the tag behind them. The frame then is four bytes longer, in so far as the snap length allows.
/// A frame of which not even the addresses were captured stays as it is.
fn restore_tag(block: &mut [u8], frame: &mut FrameRef, header: &Header, snap_length: u32) {
    if (frame.captured_length as usize) < ADDRESSES_LENGTH {
        return;
    }
    let addresses = frame.offset..frame.offset + ADDRESSES_LENGTH;
    frame.offset -= VLAN_TAG_LENGTH;
    block.copy_within(addresses, frame.offset);
    let has_tpid = header.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if has_tpid { header.vlan_tpid } else { ETHERTYPE_VLAN };
    let tag = &mut block[frame.offset + ADDRESSES_LENGTH..][..VLAN_TAG_LENGTH];
    tag[..2].copy_from_slice(&tpid.to_be_bytes());
    tag[2..].copy_from_slice(&header.vlan_tci.to_be_bytes());
    frame.captured_length = (frame.captured_length + VLAN_TAG_LENGTH as u32).min(snap_length);
    frame.original_length += VLAN_TAG_LENGTH as u32;
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*bytes[at..].first_chunk().expect("four bytes"))
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(*bytes[at..].first_chunk().expect("two bytes"))
}

#[cfg(test)]
mod tests;
