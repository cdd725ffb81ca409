//! The one flow that the view stays on, and the history of its rates while it does.

use std::collections::VecDeque;

use thalweg_wire::{BitRate, FlowKey};

use thalweg_watch::snapshot::{CheetahRow, FlowRow, Snapshot};

/// Samples kept: one a snapshot, more than the widest terminal has columns.
const HISTORY: usize = 512;

/// A flow frozen on.
#[derive(Clone, Debug)]
pub(super) struct PinnedFlow {
    /// The flow; as in its row once that is known, else as in the list it was chosen from.
    pub(super) key: FlowKey,
    /// As last seen.
    pub(super) row: Option<FlowRow>,
    /// Whether the latest snapshot had it: if not, it has ended or was evicted.
    pub(super) in_table: bool,
    /// Rates each way, one a snapshot, newest first.
    pub(super) history: VecDeque<[BitRate; 2]>,
    /// Highest rate each way in any snapshot since it was frozen on.
    pub(super) peak: [BitRate; 2],
}

impl PinnedFlow {
    /// Begins with what a snapshot has of the flow.
    pub(super) fn new(key: FlowKey, snapshot: &Snapshot) -> PinnedFlow {
        let mut pinned = PinnedFlow {
            key,
            row: None,
            in_table: false,
            history: VecDeque::new(),
            peak: Default::default(),
        };
        pinned.update(snapshot);
        pinned
    }

    /// Takes what the next snapshot has of the flow. One that was under way when the flow was frozen on lacks
    /// it as [`Snapshot::pinned`], but mostly has it among the others.
    pub(super) fn update(&mut self, snapshot: &Snapshot) {
        let row = snapshot.pinned.iter().chain(&snapshot.top).find(|row| same_flow(&row.key, &self.key));
        self.in_table = row.is_some();
        let rate = row.map_or_else(Default::default, |row| row.rate);
        self.history.truncate(HISTORY - 1);
        self.history.push_front(rate);
        self.peak = [self.peak[0].max(rate[0]), self.peak[1].max(rate[1])];
        if let Some(row) = row {
            self.key = row.key;
            self.row = Some(row.clone());
        }
    }

    /// The latest time that each direction was found to be a cheetah, if it was.
    pub(super) fn cheetahs<'a>(&self, snapshot: &'a Snapshot) -> [Option<&'a CheetahRow>; 2] {
        let found = |key: FlowKey| {
            snapshot.cheetahs.iter().filter(|row| row.key == key).max_by_key(|row| row.detected)
        };
        [found(self.key), found(self.key.reversed())]
    }
}

fn same_flow(a: &FlowKey, b: &FlowKey) -> bool {
    a == b || *a == b.reversed()
}
