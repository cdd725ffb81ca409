//! Data kept for the report and the live view: cheetah flows, the largest flows, rates over time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use thalweg_measure::detect::{Cheetah, CheetahEnd, Finding};
use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::{Bytes, FlowKey, Nanos, Timestamp};

/// Maximum number of cheetah flows kept. Older ones are dropped, but remain counted.
const CHEETAHS: usize = 10_000;

/// Slices of [`History`]: the columns of a wide terminal.
const SLICES: usize = 240;

/// The cheetah flows of a run.
#[derive(Clone, Debug, Default)]
pub struct CheetahLog {
    /// In order of detection.
    entries: VecDeque<(Cheetah, Option<CheetahEnd>)>,
    /// Number of entries dropped from the front.
    dropped: usize,
    /// Index of the latest entry of each current cheetah flow, dropped entries included.
    running: HashMap<FlowKey, usize>,
}

impl CheetahLog {
    pub(crate) fn add(&mut self, finding: &Finding) {
        match finding {
            Finding::Began(cheetah) => {
                self.running.insert(cheetah.key, self.dropped + self.entries.len());
                self.entries.push_back((*cheetah, None));
                if self.entries.len() > CHEETAHS {
                    self.entries.pop_front();
                    self.dropped += 1;
                }
            }
            Finding::Ended(end) => {
                let number =
                    self.running.remove(&end.key).and_then(|number| number.checked_sub(self.dropped));
                if let Some(entry) = number.and_then(|number| self.entries.get_mut(number)) {
                    entry.1 = Some(*end);
                }
            }
        }
    }

    /// Returns cheetah flows in order of detection, each with its end if it has ended.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &(Cheetah, Option<CheetahEnd>)> {
        self.entries.iter()
    }

    /// Returns the number of current cheetah flows.
    pub fn running(&self) -> usize {
        self.running.len()
    }
}

/// The largest flow records.
#[derive(Clone, Debug)]
pub(crate) struct Largest {
    limit: usize,
    heap: BinaryHeap<Reverse<Ranked>>,
}

/// A record ordered by size, then by key and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranked(FlowRecord);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rank = |Ranked(record): &Ranked| (record.bytes(), record.packets(), record.key, record.first);
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Largest {
    pub(crate) fn new(limit: usize) -> Largest {
        Largest { limit, heap: BinaryHeap::with_capacity(limit + 1) }
    }

    #[inline]
    pub(crate) fn add(&mut self, record: &FlowRecord) {
        let full = self.heap.len() == self.limit;
        if full && self.heap.peek().is_none_or(|Reverse(least)| least.0.bytes() > record.bytes()) {
            return;
        }
        self.heap.push(Reverse(Ranked(*record)));
        if full {
            self.heap.pop();
        }
    }

    /// Returns the records, largest first.
    pub(crate) fn sorted(&self) -> Vec<FlowRecord> {
        let mut records: Vec<Ranked> = self.heap.iter().map(|Reverse(ranked)| *ranked).collect();
        records.sort_by(|a, b| b.cmp(a));
        records.into_iter().map(|Ranked(record)| record).collect()
    }
}

/// Packets and bytes per slice of packet time, for the latest slices.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Number of the first slice since the epoch.
    begin: u64,
    slices: VecDeque<(u64, Bytes)>,
}

impl History {
    /// Length of a slice.
    pub const SLICE: Nanos = Nanos::from_secs(1);

    /// Adds to the slice of `time`. Ignores times before the first slice kept.
    pub(crate) fn add(&mut self, time: Timestamp, packets: u64, bytes: Bytes) {
        let number = time.0 / History::SLICE.0;
        if self.slices.is_empty() || number >= self.begin + (self.slices.len() + SLICES) as u64 {
            self.slices.clear();
            self.begin = number;
        }
        let Some(place) = number.checked_sub(self.begin) else { return };
        while self.slices.len() as u64 <= place {
            self.slices.push_back((0, Bytes(0)));
        }
        let slice = &mut self.slices[place as usize];
        *slice = (slice.0 + packets, slice.1 + bytes);
        while self.slices.len() > SLICES {
            self.slices.pop_front();
            self.begin += 1;
        }
    }

    /// Adds empty slices up to `now`, so that silence is part of the history. Before the first packet, nothing.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        if !self.slices.is_empty() {
            self.add(now, 0, Bytes(0));
        }
    }

    /// Adds another history, slice by slice.
    pub(crate) fn merge(&mut self, other: &History) {
        for (place, (packets, bytes)) in other.slices.iter().enumerate() {
            self.add(Timestamp((other.begin + place as u64) * History::SLICE.0), *packets, *bytes);
        }
    }

    /// Returns packets and bytes of each slice, oldest first.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &(u64, Bytes)> {
        self.slices.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::{BitRate, Protocol};

    fn cheetah(n: u32) -> Cheetah {
        let key = FlowKey::v4(n, 1, 2, 3, Protocol::TCP);
        Cheetah { key, first: Timestamp(1), detected: Timestamp(2), rate: BitRate(3), bytes: Bytes(4) }
    }

    #[test]
    fn an_end_belongs_to_the_latest_cheetah_of_its_flow() {
        let mut log = CheetahLog::default();
        let end = CheetahEnd {
            key: cheetah(1).key,
            first: Timestamp(1),
            last: Timestamp(9),
            packets: 1,
            bytes: Bytes(1),
        };
        for finding in [Finding::Began(cheetah(1)), Finding::Ended(end), Finding::Began(cheetah(1))] {
            log.add(&finding);
        }
        assert_eq!(log.entries().map(|(_, end)| end.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(log.running(), 1);
    }

    #[test]
    fn a_full_log_drops_the_oldest_entries() {
        let mut log = CheetahLog::default();
        for n in 0..CHEETAHS as u32 + 5 {
            log.add(&Finding::Began(cheetah(n)));
        }
        let (first, last) = (Timestamp(1), Timestamp(9));
        for n in [0, CHEETAHS as u32 + 4] {
            let end = CheetahEnd { key: cheetah(n).key, first, last, packets: 1, bytes: Bytes(1) };
            log.add(&Finding::Ended(end));
        }
        assert_eq!(log.entries().count(), CHEETAHS);
        assert!(log.entries().next_back().unwrap().1.is_some());
        assert_eq!(log.entries().filter(|(_, end)| end.is_some()).count(), 1);
    }

    #[test]
    fn silence_is_part_of_the_history() {
        let mut history = History::default();
        let at = |slice: u64| Timestamp(slice * History::SLICE.0);
        history.advance(at(5));
        assert_eq!(history.slices().len(), 0);
        history.add(at(6), 3, Bytes(10));
        history.advance(at(8));
        assert_eq!(history.slices().map(|slice| slice.0).collect::<Vec<_>>(), [3, 0, 0]);
        // No time, or an earlier one.
        history.advance(Timestamp::default());
        assert_eq!(history.slices().len(), 3);
        history.advance(at(8 + 10 * SLICES as u64));
        assert_eq!(history.slices().map(|slice| slice.0).sum::<u64>(), 0);
    }

    #[test]
    fn history_keeps_the_latest_slices() {
        let mut history = History::default();
        let at = |slice: u64| Timestamp(slice * History::SLICE.0);
        for slice in [5, 7, 7, 6] {
            history.add(at(slice), 1, Bytes(10));
        }
        assert_eq!(history.slices().map(|slice| slice.0).collect::<Vec<_>>(), [1, 1, 2]);
        history.add(at(7 + SLICES as u64), 1, Bytes(10));
        assert_eq!(history.slices().len(), SLICES);
        history.add(at(5), 1, Bytes(10));
        assert_eq!(history.slices().map(|slice| slice.0).sum::<u64>(), 1);
        history.add(at(100_000), 4, Bytes(10));
        assert_eq!(history.slices().map(|slice| slice.0).collect::<Vec<_>>(), [4]);
    }
}
