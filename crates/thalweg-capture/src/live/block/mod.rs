//! The frames of one block of the ring (`struct tpacket_block_desc`, `struct tpacket3_hdr` of if_packet.h).
//!
//! A block begins with its descriptor, which has the number of frames and the position of the first. Each frame
//! begins with a header, which has the positions of the next frame and of the captured bytes, and their length.

use std::mem::offset_of;

use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket_hdr_variant1, tpacket3_hdr};
use thalweg_wire::{FrameRef, Interface, LinkType, Timestamp};

use super::vlan_tag::Tag;
use crate::filter::Filter;

/// Appends the frames of `block` to `frames`, in order, each with its VLAN tag restored. `filter` is applied to those
/// that had one; returns how many it rejected.
///
/// # Panics
/// If the block violates the kernel's format.
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
        if let Some(tag) = header.tag().filter(|_| interface.link_type == LinkType::Ethernet) {
            tag.restore(block, &mut frame, interface.snap_length);
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

/// The fields used of a `struct tpacket3_hdr`.
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

    /// Returns the frame in the ring.
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

    /// Returns the tag that the kernel removed from the frame.
    #[inline]
    fn tag(&self) -> Option<Tag> {
        Tag::of(self.status, self.vlan_tpid, self.vlan_tci)
    }
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
