//! The memory of held packets: places of equal length, allocated once. The place that became free last is used next, so a
//! few packets need a few pages of memory, however many could be held.

use thalweg_wire::Timestamp;
use thalweg_wire::emulation_protocol::Flow;

use crate::protocol::PacketSlot;

/// A place in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// A packet that is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPacket {
    pub(super) place: Place,
    /// Bytes from the Ethernet header on.
    pub(super) length: u32,
    /// When it was taken.
    pub(super) since: Timestamp,
    /// Its flow; the default before it is submitted.
    pub(super) flow: Flow,
}

/// The store. A place is free, held under a [`PacketSlot`], or in the hands of the caller.
#[derive(Debug)]
pub(super) struct PacketStore {
    bytes: Box<[u8]>,
    /// The length of a place.
    stride: usize,
    free: Vec<Place>,
    /// By slot.
    held: Box<[Option<HeldPacket>]>,
}

impl PacketStore {
    /// A store for `max_packets` held packets, and as many `extra` places, of at most `max_length` bytes each.
    pub(super) fn new(max_packets: u32, extra: u32, max_length: usize) -> PacketStore {
        let places = max_packets + extra;
        PacketStore {
            bytes: vec![0; places as usize * max_length].into(),
            stride: max_length,
            free: (0..places).rev().map(Place).collect(),
            held: vec![None; max_packets as usize].into(),
        }
    }

    /// Takes a free place, if there is one.
    #[inline]
    pub(super) fn take_place(&mut self) -> Option<Place> {
        self.free.pop()
    }

    /// Gives a place back.
    #[inline]
    pub(super) fn free(&mut self, place: Place) {
        self.free.push(place);
    }

    /// Holds a packet under a slot.
    #[inline]
    pub(super) fn hold(&mut self, PacketSlot(slot): PacketSlot, packet: HeldPacket) {
        let before = self.held[slot as usize].replace(packet);
        debug_assert!(before.is_none(), "a slot has one packet");
    }

    /// Takes the packet of a slot. The caller frees its place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn release(&mut self, PacketSlot(slot): PacketSlot) -> HeldPacket {
        self.held[slot as usize].take().expect("the protocol decides once on each packet")
    }

    /// The offset of a place in [`bytes`](PacketStore::bytes).
    #[inline]
    pub(super) fn offset(&self, Place(place): Place) -> usize {
        place as usize * self.stride
    }

    /// The bytes of a place.
    #[inline]
    pub(super) fn bytes_mut(&mut self, place: Place) -> &mut [u8] {
        let offset = self.offset(place);
        &mut self.bytes[offset..][..self.stride]
    }

    /// All bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_keeps_its_bytes_and_the_place_that_was_freed_last_is_used_next() {
        let mut store = PacketStore::new(2, 1, 4);
        let [one, other] = [(); 2].map(|()| store.take_place().unwrap());
        store.bytes_mut(one).fill(1);
        store.bytes_mut(other).fill(2);
        for (slot, place) in [(1, one), (0, other)] {
            let flow = Flow::default();
            let packet = HeldPacket { place, length: 3, since: Timestamp(slot.into()), flow };
            store.hold(PacketSlot(slot), packet);
        }
        let HeldPacket { place, length, since, .. } = store.release(PacketSlot(1));
        assert_eq!((place, length, since), (one, 3, Timestamp(1)));
        assert_eq!(&store.bytes()[store.offset(one)..][..4], [1; 4]);
        store.free(one);
        assert_eq!(store.take_place(), Some(one));
        assert!(store.take_place().is_some() && store.take_place().is_none());
    }
}
