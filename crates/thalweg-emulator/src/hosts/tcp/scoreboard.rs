//! The state of each sent segment (RFC 6675, sections 3 and 4): a flat ring with one word per segment.
//!
//! A flow is cut into segments at fixed offsets, so the ring is indexed by segment number. Each update touches the
//! segments whose state changes, and a few counters that make `pipe` a subtraction. An acknowledgement costs O(1)
//! amortised. Blocks that the previous acknowledgement reported are not processed again.
//!
//! Beyond RFC 6675: a retransmission is lost when three segments sent after it have arrived, like RACK (RFC 8985,
//! section 3), but counted in segments. RFC 6675 alone waits for the timeout.

use std::collections::VecDeque;

use crate::hosts::segment::{SackBlock, SackBlocks};

/// Segments above a segment that must have arrived before it is lost: DupThresh (RFC 6675, section 2).
const DUP_THRESH: usize = 3;

/// The word of a segment: three flags, and the number of its latest transmission above them.
const SACKED: u64 = 1;
const LOST: u64 = 2;
const RETRANSMITTED: u64 = 4;
const FLAG_BITS: u32 = 3;
const FLAGS: u64 = (1 << FLAG_BITS) - 1;

/// The segments from the first one that is not acknowledged to the last one sent.
#[derive(Clone, Debug, Default)]
pub(in crate::hosts) struct Scoreboard {
    /// The words. Their number is a power of two.
    words: Vec<u64>,
    una: u64,
    next: u64,
    /// Counts of segments from `una` to `next`: arrived, lost, retransmitted and in flight.
    sacked: u64,
    lost: u64,
    retransmitted: u64,
    /// Every segment below has arrived or is marked lost.
    lost_below: u64,
    /// HighRxt + 1: nothing below needs a retransmission.
    retransmit_from: u64,
    /// The highest segments that have arrived, plus one, descending.
    highest: [u64; DUP_THRESH],
    /// The highest transmissions that have arrived, descending.
    latest: [u64; DUP_THRESH],
    transmissions: u64,
    /// Retransmissions (segment, transmission) in flight, in the order of sending.
    under_way_again: VecDeque<(u64, u64)>,
    /// The blocks of the last acknowledgement.
    reported: SackBlocks,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::hosts) struct Progress {
    /// Segments newly covered by the acknowledgement number.
    pub(in crate::hosts) acked: u64,
    /// Segments newly known to have arrived.
    pub(in crate::hosts) delivered: u64,
}

impl Scoreboard {
    /// Reuses the memory for another flow.
    pub(in crate::hosts) fn reset(&mut self) {
        let (words, mut under_way_again) =
            (std::mem::take(&mut self.words), std::mem::take(&mut self.under_way_again));
        under_way_again.clear();
        *self = Scoreboard { words, under_way_again, ..Scoreboard::default() };
    }

    /// The first segment that is not acknowledged: HighACK + 1.
    pub(in crate::hosts) const fn una(&self) -> u64 {
        self.una
    }

    /// The first segment that was never sent: HighData + 1.
    pub(in crate::hosts) const fn next(&self) -> u64 {
        self.next
    }

    /// Segments sent but not acknowledged: FlightSize.
    pub(in crate::hosts) const fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Segments assumed to be in the network (RFC 6675, section 4, SetPipe).
    #[inline]
    pub(in crate::hosts) const fn pipe(&self) -> u64 {
        self.outstanding() - self.sacked - self.lost + self.retransmitted
    }

    /// The number of transmissions so far, including retransmissions.
    pub(in crate::hosts) const fn transmissions(&self) -> u64 {
        self.transmissions
    }

    /// Whether the first outstanding segment is lost, which starts recovery.
    pub(in crate::hosts) const fn first_is_lost(&self) -> bool {
        self.una < self.lost_below
    }

    /// Processes an acknowledgement of all segments below `una`, and of the blocks in `sack`.
    #[inline]
    pub(in crate::hosts) fn acknowledge(&mut self, una: u64, sack: &SackBlocks, mss: u64) -> Progress {
        let mut progress = self.advance(una.min(self.next));
        if *sack != self.reported {
            progress.delivered += self.select(sack, mss);
        }
        progress
    }

    #[inline]
    fn advance(&mut self, una: u64) -> Progress {
        let mut progress = Progress::default();
        let mut latest = self.latest;
        for segment in self.una..una {
            let word = self.words[self.place(segment)];
            progress.acked += 1;
            if word & SACKED != 0 {
                self.sacked -= 1;
                continue;
            }
            progress.delivered += 1;
            keep_highest(&mut latest, word >> FLAG_BITS);
            if word & FLAGS != 0 {
                self.lost -= u64::from(word & LOST != 0);
                self.retransmitted -= u64::from(word & RETRANSMITTED != 0);
            }
        }
        self.latest = latest;
        self.una = self.una.max(una);
        self.lost_below = self.lost_below.max(self.una);
        self.retransmit_from = self.retransmit_from.max(self.una);
        progress
    }

    /// Marks segments that `sack` newly reports. Returns their number.
    fn select(&mut self, sack: &SackBlocks, mss: u64) -> u64 {
        let reported = std::mem::replace(&mut self.reported, *sack);
        let mut delivered = 0;
        for block in sack.as_slice() {
            match reported.as_slice().iter().find(|old| old.touches(*block)) {
                None => delivered += self.select_block(*block, mss),
                Some(old) => {
                    let below = SackBlock { start: block.start, end: block.end.min(old.start) };
                    let above = SackBlock { start: block.start.max(old.end), end: block.end };
                    delivered += self.select_block(below, mss) + self.select_block(above, mss);
                }
            }
        }
        delivered
    }

    fn select_block(&mut self, block: SackBlock, mss: u64) -> u64 {
        if block.start >= block.end {
            return 0;
        }
        let mut delivered = 0;
        let first = (block.start / mss).max(self.una);
        let end = block.end.div_ceil(mss).min(self.next);
        for segment in first..end {
            let place = self.place(segment);
            let word = self.words[place];
            if word & SACKED == 0 {
                self.leave(word);
                self.words[place] = word | SACKED;
                self.sacked += 1;
                delivered += 1;
                keep_highest(&mut self.highest, segment + 1);
            }
        }
        delivered
    }

    /// Updates the counters for a segment that is newly known to have arrived.
    #[inline]
    fn leave(&mut self, word: u64) {
        self.lost -= u64::from(word & LOST != 0);
        self.retransmitted -= u64::from(word & RETRANSMITTED != 0);
        keep_highest(&mut self.latest, word >> FLAG_BITS);
    }

    /// Marks segments lost that three higher ones have overtaken (RFC 6675, section 4, IsLost).
    #[inline]
    pub(in crate::hosts) fn mark_lost(&mut self) {
        let third_highest = self.highest[DUP_THRESH - 1].saturating_sub(1);
        while self.lost_below < third_highest {
            let place = self.place(self.lost_below);
            if self.words[place] & (SACKED | LOST) == 0 {
                self.words[place] |= LOST;
                self.lost += 1;
            }
            self.lost_below += 1;
        }
    }

    /// Marks lost retransmissions. Returns the latest transmission among them.
    #[inline]
    pub(in crate::hosts) fn lose_retransmissions(&mut self) -> Option<u64> {
        let mut latest = None;
        while let Some(&(segment, transmission)) = self.under_way_again.front()
            && transmission < self.latest[DUP_THRESH - 1]
        {
            self.under_way_again.pop_front();
            if segment < self.una {
                continue;
            }
            let place = self.place(segment);
            let word = self.words[place];
            let is_under_way = word & (SACKED | RETRANSMITTED) == RETRANSMITTED;
            if is_under_way && word >> FLAG_BITS == transmission {
                self.words[place] = (word | LOST) & !RETRANSMITTED;
                self.lost += u64::from(word & LOST == 0);
                self.retransmitted -= 1;
                self.retransmit_from = self.retransmit_from.min(segment);
                latest = Some(transmission);
            }
        }
        latest
    }

    /// Returns all segments marked lost to the pipe, because they were only late. Retransmissions remain in flight
    /// beside them.
    pub(in crate::hosts) fn unmark_lost(&mut self) {
        for segment in self.una..self.lost_below {
            let place = self.place(segment);
            self.words[place] &= !LOST;
        }
        self.lost = 0;
        self.lost_below = self.una;
        self.retransmit_from = self.una;
    }

    /// Marks everything outstanding lost after a timeout (RFC 6675, section 5.1).
    pub(in crate::hosts) fn lose_all(&mut self) {
        for segment in self.una..self.next {
            let place = self.place(segment);
            if self.words[place] & SACKED == 0 {
                self.words[place] = (self.words[place] | LOST) & !RETRANSMITTED;
            }
        }
        self.lost = self.outstanding() - self.sacked;
        self.retransmitted = 0;
        self.lost_below = self.next;
        self.retransmit_from = self.una;
        self.under_way_again.clear();
    }

    /// Marks segments lost that were sent before one that has arrived, including retransmissions.
    pub(in crate::hosts) fn lose_overtaken(&mut self) {
        let latest = self.latest[0];
        while self.under_way_again.front().is_some_and(|&(_, transmission)| transmission < latest) {
            self.under_way_again.pop_front();
        }
        for segment in self.una..self.next {
            if self.words[self.place(segment)] >> FLAG_BITS < latest {
                self.lose(segment);
            }
        }
    }

    /// Marks the first outstanding segment lost.
    pub(in crate::hosts) fn lose_first(&mut self) {
        if self.una < self.next {
            self.lose(self.una);
        }
    }

    /// Marks a segment lost unless it has arrived.
    fn lose(&mut self, segment: u64) {
        let place = self.place(segment);
        let word = self.words[place];
        if word & SACKED != 0 || word & (LOST | RETRANSMITTED) == LOST {
            return;
        }
        self.words[place] = (word | LOST) & !RETRANSMITTED;
        self.lost += u64::from(word & LOST == 0);
        self.retransmitted -= u64::from(word & RETRANSMITTED != 0);
        self.lost_below = self.lost_below.max(segment + 1);
        self.retransmit_from = self.retransmit_from.min(segment);
    }

    /// NextSeg, rule 1 (RFC 6675, section 4): the first lost segment that was not retransmitted yet.
    #[inline]
    pub(in crate::hosts) fn next_lost(&mut self) -> Option<u64> {
        self.next_hole(self.lost_below)
    }

    /// NextSeg, rule 3: the first segment that has not arrived although a later one has.
    pub(in crate::hosts) fn next_missing(&mut self) -> Option<u64> {
        self.next_hole(self.highest[0])
    }

    #[inline]
    fn next_hole(&mut self, end: u64) -> Option<u64> {
        while self.retransmit_from < end {
            if self.words[self.place(self.retransmit_from)] & (SACKED | RETRANSMITTED) == 0 {
                return Some(self.retransmit_from);
            }
            self.retransmit_from += 1;
        }
        None
    }

    /// Records the first transmission of a segment.
    #[inline]
    pub(in crate::hosts) fn send_new(&mut self) -> u64 {
        if self.outstanding() == self.words.len() as u64 {
            self.grow();
        }
        let segment = self.next;
        self.transmissions += 1;
        let place = self.place(segment);
        self.words[place] = self.transmissions << FLAG_BITS;
        self.next += 1;
        segment
    }

    /// Records a retransmission.
    pub(in crate::hosts) fn send_again(&mut self, segment: u64) {
        self.transmissions += 1;
        let place = self.place(segment);
        let flags = self.words[place] & (LOST | SACKED) | RETRANSMITTED;
        self.words[place] = self.transmissions << FLAG_BITS | flags;
        self.retransmitted += 1;
        self.retransmit_from = segment + 1;
        self.under_way_again.push_back((segment, self.transmissions));
    }

    #[inline]
    fn place(&self, segment: u64) -> usize {
        segment as usize & (self.words.len() - 1)
    }

    fn grow(&mut self) {
        let length = (2 * self.words.len()).max(16);
        let mut words = vec![0; length];
        for segment in self.una..self.next {
            words[segment as usize & (length - 1)] = self.words[self.place(segment)];
        }
        self.words = words;
    }

    /// Checks the counters.
    ///
    /// # Panics
    /// If a counter is wrong.
    pub(in crate::hosts) fn check_invariants(&self) {
        let count =
            |flag| (self.una..self.next).filter(|&s| self.words[self.place(s)] & flag == flag).count();
        let among = |flag| count(flag) - count(flag | SACKED);
        assert_eq!(count(SACKED) as u64, self.sacked, "segments that have arrived");
        assert_eq!(among(LOST) as u64, self.lost, "lost segments");
        assert_eq!(among(RETRANSMITTED) as u64, self.retransmitted, "segments under way again");
        assert!(self.una <= self.lost_below && self.lost_below <= self.next, "the edge of what is lost");
    }
}

/// Inserts `value` among the highest, in descending order.
#[inline]
fn keep_highest(highest: &mut [u64; DUP_THRESH], value: u64) {
    let [first, second, third] = *highest;
    if value > first {
        *highest = [value, first, second];
    } else if value > second {
        *highest = [first, value, second];
    } else if value > third {
        *highest = [first, second, value];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 100;

    /// A scoreboard with `count` segments in flight.
    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|segment| assert_eq!(board.send_new(), segment));
        board
    }

    fn acknowledge(board: &mut Scoreboard, una: u64, sack: &[(u64, u64)]) -> Progress {
        let progress = board.acknowledge(una, &blocks(sack), MSS);
        board.mark_lost();
        progress
    }

    fn blocks(segments: &[(u64, u64)]) -> SackBlocks {
        let mut sack = SackBlocks::default();
        for &(start, end) in segments.iter().rev() {
            sack.put_first(SackBlock { start: start * MSS, end: end * MSS });
        }
        sack
    }

    #[test]
    fn a_segment_is_lost_when_three_above_it_have_arrived() {
        let mut board = sent(10);
        for (end, lost) in [(5, false), (6, false), (7, true)] {
            let progress = acknowledge(&mut board, 3, &[(4, end)]);
            assert_eq!(progress.delivered, if end == 5 { 4 } else { 1 });
            assert_eq!(board.first_is_lost(), lost, "up to {end}");
            board.check_invariants();
        }
        // Ten sent, three acknowledged, three arrived, one lost.
        assert_eq!(board.pipe(), 3);
        assert_eq!(board.next_lost(), Some(3));
        board.send_again(3);
        assert_eq!((board.pipe(), board.next_lost()), (4, None));
        assert_eq!(acknowledge(&mut board, 7, &[]), Progress { acked: 4, delivered: 1 });
        assert_eq!(board.pipe(), 3);
        board.check_invariants();
    }

    #[test]
    fn rfc_6675_rule_3_offers_holes_below_the_highest_sacked_byte() {
        let mut board = sent(10);
        acknowledge(&mut board, 2, &[(4, 5), (7, 8)]);
        assert_eq!((board.next_lost(), board.next_missing()), (None, Some(2)));
        for segment in [2, 3, 5, 6] {
            assert_eq!(board.next_missing(), Some(segment));
            board.send_again(segment);
        }
        assert_eq!(board.next_missing(), None);
        board.check_invariants();
    }

    #[test]
    fn a_timeout_marks_all_outstanding_segments_lost() {
        let mut board = sent(8);
        acknowledge(&mut board, 1, &[(3, 5)]);
        board.lose_all();
        assert_eq!(board.pipe(), 0);
        let mut again = Vec::new();
        while let Some(segment) = board.next_lost() {
            board.send_again(segment);
            again.push(segment);
        }
        assert_eq!(again, [1, 2, 5, 6, 7]);
        assert_eq!(board.pipe(), 5);
        board.check_invariants();
    }

    #[test]
    fn retransmissions_no_longer_marked_lost_count_twice_in_the_pipe() {
        let mut board = sent(10);
        acknowledge(&mut board, 0, &[(2, 6)]);
        board.send_again(0);
        assert_eq!(board.pipe(), 4 + 1);
        board.unmark_lost();
        board.check_invariants();
        assert_eq!((board.pipe(), board.next_lost()), (6 + 1, None));
        board.mark_lost();
        assert_eq!(board.next_lost(), Some(1), "segment 0 is under way again");
        board.check_invariants();
    }

    #[test]
    fn a_retransmission_is_lost_when_three_later_transmissions_have_arrived() {
        let mut board = sent(6);
        acknowledge(&mut board, 0, &[(1, 6)]);
        board.send_again(0);
        let transmission = board.transmissions();
        (6..9).for_each(|_| _ = board.send_new());
        for end in 7..=8 {
            acknowledge(&mut board, 0, &[(1, end)]);
            assert_eq!(board.lose_retransmissions(), None);
        }
        acknowledge(&mut board, 0, &[(1, 9)]);
        assert_eq!(board.lose_retransmissions(), Some(transmission));
        assert_eq!((board.pipe(), board.next_lost()), (0, Some(0)));
        board.check_invariants();
    }

    #[test]
    fn segments_overtaken_by_a_later_transmission_are_lost() {
        let mut board = sent(8);
        acknowledge(&mut board, 1, &[(3, 5)]);
        board.lose_overtaken();
        board.check_invariants();
        assert_eq!(board.pipe(), 3, "segments 5 to 7");
        assert_eq!(board.next_lost(), Some(1));
        board.send_again(1);
        board.send_again(2);
        assert_eq!(board.next_lost(), None);
        // The retransmission of segment 2 overtakes everything sent before it.
        acknowledge(&mut board, 1, &[(2, 5)]);
        board.lose_overtaken();
        board.check_invariants();
        assert_eq!((board.pipe(), board.next_lost()), (0, Some(1)));
        board.lose_first();
        assert_eq!(board.next_lost(), Some(1));
        board.check_invariants();
    }

    #[test]
    fn the_ring_grows_around_its_content() {
        let mut board = sent(16);
        acknowledge(&mut board, 9, &[(12, 13)]);
        (0..100).for_each(|_| _ = board.send_new());
        board.check_invariants();
        assert_eq!(board.outstanding(), 107);
        assert_eq!(acknowledge(&mut board, 13, &[]), Progress { acked: 4, delivered: 3 });
    }
}
