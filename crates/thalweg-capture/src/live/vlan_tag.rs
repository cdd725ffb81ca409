//! Restores VLAN tags: the kernel removes them from frames and keeps them beside, but a frame should be as it was on
//! the wire.

use thalweg_wire::FrameRef;

/// The bytes of an 802.1Q tag: protocol identifier and control information. As many must be free before each frame.
pub(super) const VLAN_TAG_LENGTH: usize = 4;

/// Destination and source address, which come before the tag.
const ADDRESSES_LENGTH: usize = 12;

/// 802.1Q, the default if the kernel does not provide the type of a tag.
const ETHERTYPE_VLAN: u16 = 0x8100;

/// A tag that the kernel removed from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    tpid: u16,
    tci: u16,
}

impl Tag {
    /// Returns the tag of a frame whose header in the ring has this status; `None` if it had none.
    #[inline]
    pub(super) fn of(status: u32, tpid: u16, tci: u16) -> Option<Tag> {
        let has_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tag = Tag { tpid: if has_tpid { tpid } else { ETHERTYPE_VLAN }, tci };
        (status & libc::TP_STATUS_VLAN_VALID != 0).then_some(tag)
    }

    /// Restores the tag: moves the addresses down into the space that was reserved before the frame, and writes the
    /// tag behind them. The frame then is four bytes longer, as far as the snap length allows. A frame without its
    /// complete addresses stays unchanged.
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
