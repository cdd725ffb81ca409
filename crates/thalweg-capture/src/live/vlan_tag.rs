//! VLAN tags, which the kernel takes off frames and keeps beside them: put back, so that a frame is as it was on the wire.

use thalweg_wire::FrameRef;

/// Bytes of an 802.1Q tag: protocol identifier and control information. As many must lie free before each
/// frame.
pub(super) const VLAN_TAG_LENGTH: usize = 4;

/// Destination and source address, which come before the tag.
const ADDRESSES_LENGTH: usize = 12;

/// 802.1Q; what a tag is if the kernel does not say.
const ETHERTYPE_VLAN: u16 = 0x8100;

/// A tag that was taken off a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    tpid: u16,
    tci: u16,
}

impl Tag {
    /// The tag of a frame whose header in the ring has this status; `None` if it had none.
    #[inline]
    pub(super) fn of(status: u32, tpid: u16, tci: u16) -> Option<Tag> {
        let has_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tag = Tag { tpid: if has_tpid { tpid } else { ETHERTYPE_VLAN }, tci };
        (status & libc::TP_STATUS_VLAN_VALID != 0).then_some(tag)
    }

    /// Puts the tag back where it was: moves the addresses down into the room that was reserved before the frame,
    /// and writes the tag behind them. The frame then is four bytes longer, in so far as the snap length allows.
    /// A frame of which not even the addresses were captured stays as it is.
    pub(super) fn restore(self, bytes: &mut [u8], frame: &mut FrameRef, snap_length: u32) {
        if (frame.captured_length as usize) < ADDRESSES_LENGTH {
            return;
        }
        let addresses = frame.offset..frame.offset + ADDRESSES_LENGTH;
        frame.offset -= VLAN_TAG_LENGTH;
        bytes.copy_within(addresses, frame.offset);
        let tag = &mut bytes[frame.offset + ADDRESSES_LENGTH..][..VLAN_TAG_LENGTH];
        tag[..2].copy_from_slice(&self.tpid.to_be_bytes());
        tag[2..].copy_from_slice(&self.tci.to_be_bytes());
        frame.captured_length = (frame.captured_length + VLAN_TAG_LENGTH as u32).min(snap_length);
        frame.original_length += VLAN_TAG_LENGTH as u32;
    }
}
