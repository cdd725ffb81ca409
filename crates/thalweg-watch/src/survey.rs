//! What the frames of an input look like: longer than the link allows, VLAN tags. Costs two comparisons per frame.
//!
//! A frame that is longer than the link allows was merged from several by the host that captured it: by GRO or LRO at reception, or
//! it was captured before TSO or GSO cut it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thalweg_linux::socket::Socket;
use thalweg_wire::{Batch, LinkType, VlanTags};

/// The length of an Ethernet header and two VLAN tags.
const LINK_BYTES: u32 = 14 + 8;

/// The longest IP packet that links carry in practice: the jumbo frames of most switches.
const JUMBO_MTU: u32 = 9_216;

/// EtherTypes of VLAN tags (IEEE 802.1Q section 9.5, and the one used before for service tags).
const TAGS: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xA8], [0x91, 0x00]];

/// Bits of [`FlowContext`].
const SINGLE: u8 = 1;
const DOUBLE: u8 = 2;
const DECAPSULATED: u8 = 4;

/// The MTU of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMtu {
    /// Of an interface.
    Interface(u32),
    /// Not known: frames count as merged if they exceed the usual jumbo frames.
    Unknown,
}

impl LinkMtu {
    /// Reads the MTU of an interface.
    pub(crate) fn of_interface(name: &str) -> LinkMtu {
        let mtu = Socket::for_ioctls().and_then(|socket| socket.interface_mtu(name));
        mtu.map_or(LinkMtu::Unknown, LinkMtu::Interface)
    }

    /// Returns the longest IP packet that is not merged.
    pub fn bytes(self) -> u32 {
        match self {
            LinkMtu::Interface(mtu) => mtu,
            LinkMtu::Unknown => JUMBO_MTU,
        }
    }
}

/// Counts of the frames of an input.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// Frames longer than the link allows.
    pub merged: u64,
    /// The MTU.
    pub mtu: LinkMtu,
    max_length: u32,
    seen: u8,
}

impl Survey {
    pub(crate) fn new(mtu: LinkMtu) -> Survey {
        Survey { merged: 0, mtu, max_length: mtu.bytes().saturating_add(LINK_BYTES), seen: 0 }
    }

    /// Looks at the frames of a batch.
    #[inline]
    pub(crate) fn look(&mut self, batch: &Batch<'_>) {
        let (mut merged, mut seen) = (0, 0);
        for frame in batch.iter() {
            merged += u64::from(frame.original_length > self.max_length);
            if frame.link_type == LinkType::Ethernet && ethertype(frame.bytes, 12).is_some_and(is_tag) {
                let is_double = ethertype(frame.bytes, 16).is_some_and(is_tag);
                seen |= if is_double { DOUBLE } else { SINGLE };
            }
        }
        self.merged += merged;
        self.seen |= seen;
    }
}

fn ethertype(bytes: &[u8], at: usize) -> Option<[u8; 2]> {
    bytes.get(at..at + 2)?.first_chunk().copied()
}

fn is_tag(ethertype: [u8; 2]) -> bool {
    TAGS.contains(&ethertype)
}

/// What a capture filter of a flow has to take into account, as seen so far; shared by all threads of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowContext(Arc<AtomicU8>);

impl FlowContext {
    pub(crate) fn add(&self, survey: &Survey, has_decapsulated: bool) {
        let seen = survey.seen | if has_decapsulated { DECAPSULATED } else { 0 };
        if self.0.load(Ordering::Relaxed) & seen != seen {
            self.0.fetch_or(seen, Ordering::Relaxed);
        }
    }

    /// Returns the VLAN tags; `None` if flows may be inside tunnels, where capture filters do not look.
    pub fn tags(&self) -> Option<VlanTags> {
        let seen = self.0.load(Ordering::Relaxed);
        let has = |bit| seen & bit != 0;
        (!has(DECAPSULATED)).then_some(VlanTags { single: has(SINGLE), double: has(DOUBLE) })
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{FrameRef, Interface, Timestamp};

    use super::*;

    /// Returns the survey of frames with these EtherTypes and lengths.
    fn survey(mtu: LinkMtu, frames: &[(&[u16], u32)]) -> Survey {
        let mut bytes = Vec::new();
        let mut refs = Vec::new();
        for (ethertypes, length) in frames {
            let offset = bytes.len();
            bytes.extend([0; 12]);
            for ethertype in *ethertypes {
                bytes.extend(ethertype.to_be_bytes());
                bytes.extend([0, 1]);
            }
            let captured_length = (bytes.len() - offset) as u32;
            refs.push(FrameRef {
                time: Timestamp(0),
                offset,
                captured_length,
                original_length: *length,
                interface: 0,
            });
        }
        let interfaces = [Interface { name: None, link_type: LinkType::Ethernet, snap_length: 0 }];
        let mut survey = Survey::new(mtu);
        survey.look(&Batch { bytes: &bytes, frames: &refs, interfaces: &interfaces });
        survey
    }

    #[test]
    fn frames_beyond_the_mtu_and_two_tags_are_merged() {
        let lengths =
            [60, 1_514, 1_522, 1_523, 9_238, 9_239, 65_000].map(|length| (&[0x0800_u16][..], length));
        assert_eq!(survey(LinkMtu::Interface(1_500), &lengths).merged, 4);
        assert_eq!(survey(LinkMtu::Unknown, &lengths).merged, 2);
        assert_eq!(survey(LinkMtu::Interface(u32::MAX), &lengths).merged, 0);
    }

    #[test]
    fn tags_are_seen() {
        let context = FlowContext::default();
        let look = |ethertypes: &[u16]| {
            context.add(&survey(LinkMtu::Unknown, &[(ethertypes, 60)]), false);
            context.tags()
        };
        let tags = |single, double| Some(VlanTags { single, double });
        assert_eq!(look(&[0x0800, 0x8100]), tags(false, false));
        assert_eq!(look(&[0x8100, 0x0800]), tags(true, false));
        assert_eq!(look(&[0x88A8, 0x8100, 0x86DD]), tags(true, true));
        context.add(&survey(LinkMtu::Unknown, &[]), true);
        assert_eq!(context.tags(), None);
    }
}
