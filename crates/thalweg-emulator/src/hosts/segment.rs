//! The content of abstract packets: TCP segments with data, and acknowledgements.
//!
//! A packet carries an id through the network ([`Packet::id`](crate::Packet::id)); the segment stays here. A connection
//! consists of the part between its handshakes: both ends know each other, data flow one way, byte offsets start at 0
//! and never wrap. Code that writes real headers uses the low 32 bits.

use std::collections::VecDeque;

use thalweg_wire::Timestamp;

use crate::packet::{FRAMING, MAX_ID, SHORTEST};

/// Bytes of an IPv4 header (RFC 791, section 3.1) and a TCP header (RFC 9293, section 3.1) without options.
pub const IP_AND_TCP_HEADER_BYTES: u16 = 20 + 20;
/// Bytes of the TCP timestamps option with its padding (RFC 7323, appendix A). Every segment has it.
pub const TIMESTAMPS_BYTES: u16 = 12;
/// SACK blocks that fit beside timestamps into the 40 bytes of options (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// Bytes from `start` up to `end` that arrived out of order (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SackBlock {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

impl SackBlock {
    /// Whether the blocks overlap or touch.
    pub(super) const fn touches(self, other: SackBlock) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The smallest block that contains both.
    pub(super) fn joined(self, other: SackBlock) -> SackBlock {
        SackBlock { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Up to [`MAX_SACK_BLOCKS`] blocks, most recent first (RFC 2018, section 4).
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [SackBlock; MAX_SACK_BLOCKS],
}

impl PartialEq for SackBlocks {
    #[inline]
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl SackBlocks {
    /// The blocks, most recent first.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Puts `block` first and removes blocks that touch it, which must be part of it. Removes the oldest block if there
    /// are too many.
    pub(super) fn put_first(&mut self, block: SackBlock) {
        let old = *self;
        self.clear();
        self.append(block);
        old.as_slice().iter().filter(|other| !other.touches(block)).for_each(|other| self.append(*other));
    }

    /// Removes blocks that end at or before `offset`.
    pub(super) fn forget_below(&mut self, offset: u64) {
        let old = *self;
        self.clear();
        old.as_slice().iter().filter(|block| block.end > offset).for_each(|block| self.append(*block));
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    fn append(&mut self, block: SackBlock) {
        if usize::from(self.count) < MAX_SACK_BLOCKS {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
    }

    /// Bytes of the option including its padding (RFC 2018, section 3).
    const fn option_bytes(&self) -> u16 {
        if self.count == 0 { 0 } else { 4 + 8 * self.count as u16 }
    }
}

/// A segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The offset of its first byte in the flow.
    pub sequence: u64,
    /// When it was handed to the network interface (TSval of RFC 7323).
    pub sent_at: Timestamp,
    /// Bytes of payload; 0 is a probe of pFabric, which only requests an acknowledgement.
    pub length: u16,
    /// Whether these bytes were sent before.
    pub is_retransmission: bool,
    /// Congestion window reduced (RFC 3168, section 6.1.2).
    pub cwr: bool,
}

impl Data {
    /// Offset after its last byte.
    pub const fn end(&self) -> u64 {
        self.sequence + self.length as u64
    }
}

/// An acknowledgement without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All bytes below this offset have arrived.
    pub acknowledgement: u64,
    /// When the segment that it acknowledges was sent (TSecr of RFC 7323, chosen by its section 4.3).
    pub echo: Timestamp,
    /// When it was handed to the network interface.
    pub sent_at: Timestamp,
    /// ECN echo (RFC 3168 or RFC 8257).
    pub ece: bool,
    /// Blocks that arrived out of order.
    pub sack: SackBlocks,
}

/// The content of an abstract packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From the flow's source.
    Data(Data),
    /// From the flow's destination.
    Ack(Ack),
}

impl Segment {
    /// Bytes that the segment's packet occupies on a link, framing included.
    #[inline]
    pub fn wire_bytes(&self) -> u16 {
        let above_headers = match self {
            Segment::Data(data) => data.length,
            Segment::Ack(ack) => ack.sack.option_bytes(),
        };
        (IP_AND_TCP_HEADER_BYTES + TIMESTAMPS_BYTES + FRAMING + above_headers).max(SHORTEST)
    }
}

/// Segments by the id in their packets.
///
/// Ids are reused in the order in which they were freed, and only after `history` others, so that a copy at a monitor
/// port can still be read after the original has arrived.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    segments: Vec<Segment>,
    free: VecDeque<u32>,
    history: usize,
}

impl Segments {
    /// An empty table. Segments can be read until `history` others were freed after them.
    pub fn new(history: usize) -> Segments {
        Segments { segments: Vec::new(), free: VecDeque::new(), history }
    }

    /// Whether there are ids for more data segments. Half of the ids are reserved for acknowledgements.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.live() < MAX_ID as usize / 2
    }

    /// Stores `segment` and returns its id.
    ///
    /// # Panics
    /// If all ids are in use.
    #[inline]
    pub(super) fn insert(&mut self, segment: Segment) -> u32 {
        if self.free.len() > self.history
            && let Some(id) = self.free.pop_front()
        {
            self.segments[id as usize] = segment;
            return id;
        }
        assert!(self.segments.len() < MAX_ID as usize, "at most {MAX_ID} packets in flight");
        self.segments.push(segment);
        (self.segments.len() - 1) as u32
    }

    /// The segment of an id in use.
    #[inline]
    pub(super) fn in_use(&self, id: u32) -> &Segment {
        &self.segments[id as usize]
    }

    /// Mutable access, to set the time of sending.
    #[inline]
    pub(super) fn in_use_mut(&mut self, id: u32) -> &mut Segment {
        &mut self.segments[id as usize]
    }

    /// Frees an id.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        self.free.push_back(id);
    }

    /// The segment that last used this id; `None` if none ever did.
    pub fn get(&self, id: u32) -> Option<&Segment> {
        self.segments.get(id as usize)
    }

    /// The number of ids in use.
    pub fn live(&self) -> usize {
        self.segments.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sequence: u64, length: u16) -> Segment {
        let sent_at = Timestamp(0);
        Segment::Data(Data { sequence, sent_at, length, is_retransmission: false, cwr: false })
    }

    fn ack(blocks: &[(u64, u64)]) -> Segment {
        let mut sack = SackBlocks::default();
        blocks.iter().rev().for_each(|&(start, end)| sack.put_first(SackBlock { start, end }));
        let zero = Timestamp(0);
        Segment::Ack(Ack { acknowledgement: 0, echo: zero, sent_at: zero, ece: false, sack })
    }

    #[test]
    fn packets_are_as_long_as_their_headers_options_and_payload() {
        assert_eq!(data(0, 1448).wire_bytes(), 1538);
        assert_eq!(data(0, 0).wire_bytes(), 90);
        assert_eq!(ack(&[]).wire_bytes(), 90);
        assert_eq!(ack(&[(1, 2)]).wire_bytes(), 102);
        assert_eq!(ack(&[(1, 2), (3, 4), (5, 6)]).wire_bytes(), 118);
    }

    #[test]
    fn the_latest_block_is_first_and_merges_its_neighbours() {
        let mut sack = SackBlocks::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (70, 80)] {
            sack.put_first(SackBlock { start, end });
        }
        let starts = |sack: &SackBlocks| sack.as_slice().iter().map(|block| block.start).collect::<Vec<_>>();
        assert_eq!(starts(&sack), [70, 50, 30]);
        sack.put_first(SackBlock { start: 30, end: 60 });
        assert_eq!(starts(&sack), [30, 70]);
        sack.forget_below(60);
        assert_eq!(starts(&sack), [70]);
    }

    #[test]
    fn an_id_is_not_reused_until_many_others_are_freed() {
        let mut segments = Segments::new(2);
        let ids: Vec<u32> = (0..3).map(|n| segments.insert(data(n, 1))).collect();
        segments.remove(ids[1]);
        segments.remove(ids[0]);
        assert_eq!(segments.insert(data(3, 1)), 3);
        assert_eq!(segments.get(ids[1]), Some(&data(1, 1)));
        segments.remove(ids[2]);
        assert_eq!(segments.insert(data(4, 1)), ids[1]);
        assert_eq!(segments.live(), 2);
        assert_eq!(segments.get(9), None);
    }
}
