//! The pinned flow and the history of its rates.

use std::collections::VecDeque;

use thalweg_wire::{BitRate, FlowKey};

use thalweg_watch::snapshot::{CheetahRow, FlowRow, Snapshot};

/// Samples kept, one per snapshot: more than the columns of the widest terminal.
const HISTORY: usize = 512;

/// The pinned flow.
#[derive(Clone, Debug)]
pub(super) struct PinnedFlow {
    /// Key of the flow, in the direction of its row, or of the list it was selected from until the row is known.
    pub(super) key: FlowKey,
    /// Latest row.
    pub(super) row: Option<FlowRow>,
    /// Whether the latest snapshot contained the flow. If not, it has ended or was evicted.
    pub(super) in_table: bool,
    /// Rates per direction, one per snapshot, newest first.
    pub(super) history: VecDeque<[BitRate; 2]>,
    /// Highest rate per direction since the flow was pinned.
    pub(super) peak: [BitRate; 2],
}

impl PinnedFlow {
    /// Pins a flow, with its row of a snapshot.
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

    /// Applies a snapshot. One that was sent before the flow was pinned lacks it in [`Snapshot::pinned`], but usually contains
    /// it among the others.
    pub(super) fn update(&mut self, snapshot: &Snapshot) {
        let row = snapshot.pinned.iter().chain(&snapshot.top).find(|row| same_flow(&row.key, &self.key));
        self.in_table = row.is_some();
        let rate = row.map_or_else(Default::default, |row| row.traffic.rate);
        self.history.truncate(HISTORY - 1);
        self.history.push_front(rate);
        self.peak = [self.peak[0].max(rate[0]), self.peak[1].max(rate[1])];
        if let Some(row) = row {
            self.key = row.key;
            self.row = Some(row.clone());
        }
    }

    /// Returns the latest detection of each direction as a cheetah flow.
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
