//! What the frames of an input look like: longer than the link allows, with VLAN tags, in tunnels. Costs one comparison per frame;
//! the parser notes the rest.
//!
//! A frame that is longer than the link allows was merged from several by the host that captured it: by GRO or LRO at reception, or
//! it was captured before TSO or GSO cut it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thalweg_linux::socket::Socket;
use thalweg_wire::{Batch, FrameRef, VlanTags};

/// The length of an Ethernet header and two VLAN tags.
const LINK_BYTES: u32 = 14 + 8;

/// The longest IP packet that links carry in practice: the jumbo frames of most switches.
const JUMBO_MTU: u32 = 9_216;

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
}

impl Survey {
    pub(crate) fn new(mtu: LinkMtu) -> Survey {
        Survey { merged: 0, mtu, max_length: mtu.bytes().saturating_add(LINK_BYTES) }
    }

    /// Looks at the lengths of the frames of a batch.
    #[inline]
    pub(crate) fn look(&mut self, batch: &Batch<'_>) {
        let is_merged = |frame: &FrameRef| u64::from(frame.original_length > self.max_length);
        self.merged += batch.frames.iter().map(is_merged).sum::<u64>();
    }
}

/// Bits of [`FlowContext`].
const SINGLE: u8 = 1;
const DOUBLE: u8 = 2;
const MORE: u8 = 4;
const DECAPSULATED: u8 = 8;

/// What a capture filter of a flow has to take into account, as seen so far; shared by all threads of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowContext(Arc<AtomicU8>);

impl FlowContext {
    pub(crate) fn add(&self, tags: VlanTags, has_decapsulated: bool) {
        let seen = [
            (SINGLE, tags.single),
            (DOUBLE, tags.double),
            (MORE, tags.more),
            (DECAPSULATED, has_decapsulated),
        ];
        let seen = seen.into_iter().filter(|(_, is_seen)| *is_seen).fold(0, |all, (bit, _)| all | bit);
        if self.0.load(Ordering::Relaxed) & seen != seen {
            self.0.fetch_or(seen, Ordering::Relaxed);
        }
    }

    /// Returns the VLAN tags; `None` if flows may be inside tunnels or behind three tags, where capture filters do not look.
    pub fn tags(&self) -> Option<VlanTags> {
        let seen = self.0.load(Ordering::Relaxed);
        let has = |bit| seen & bit != 0;
        let is_hidden = has(DECAPSULATED) || has(MORE);
        (!is_hidden).then_some(VlanTags { single: has(SINGLE), double: has(DOUBLE), more: false })
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{Interface, LinkType, Timestamp};

    use super::*;

    /// Returns the number of frames of these lengths that count as merged.
    fn merged(mtu: LinkMtu, lengths: &[u32]) -> u64 {
        let frame = |&original_length: &u32| FrameRef {
            time: Timestamp(0),
            offset: 0,
            captured_length: 0,
            original_length,
            interface: 0,
        };
        let frames: Vec<FrameRef> = lengths.iter().map(frame).collect();
        let interfaces = [Interface { name: None, link_type: LinkType::Ethernet, snap_length: 0 }];
        let mut survey = Survey::new(mtu);
        survey.look(&Batch { bytes: &[], frames: &frames, interfaces: &interfaces });
        survey.merged
    }

    #[test]
    fn frames_beyond_the_mtu_and_two_tags_are_merged() {
        let lengths = [60, 1_514, 1_522, 1_523, 9_238, 9_239, 65_000];
        assert_eq!(merged(LinkMtu::Interface(1_500), &lengths), 4);
        assert_eq!(merged(LinkMtu::Unknown, &lengths), 2);
        assert_eq!(merged(LinkMtu::Interface(u32::MAX), &lengths), 0);
    }

    #[test]
    fn tags_are_remembered_until_a_tunnel_is_seen() {
        let context = FlowContext::default();
        let add = |single, double, has_decapsulated| {
            context.add(VlanTags { single, double, more: false }, has_decapsulated);
            context.tags()
        };
        let tags = |single, double| Some(VlanTags { single, double, more: false });
        assert_eq!(add(false, false, false), tags(false, false));
        assert_eq!(add(true, false, false), tags(true, false));
        assert_eq!(add(false, true, false), tags(true, true));
        assert_eq!(add(false, false, true), None);
        assert_eq!(add(true, true, false), None);
        let context = FlowContext::default();
        context.add(VlanTags { more: true, ..VlanTags::default() }, false);
        assert_eq!(context.tags(), None);
    }
}
