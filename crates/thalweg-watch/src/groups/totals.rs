//! Adds up the flow records of a run by host or pair.
//!
//! Memory is bounded: at [`MAX_ROWS`], the half with the fewest bytes is dropped, and counted. A host or pair that is dropped
//! and returns begins anew, so its traffic is then too low by at most what was dropped.

use thalweg_measure::meter::record::{EndReason, FlowRecord};
use thalweg_wire::Bytes;

use super::{GroupRow, Grouping, table::GroupTable};
use crate::traffic::Traffic;

/// Maximum number of hosts or pairs, about 170 bytes each.
const MAX_ROWS: usize = 1 << 18;

/// Hosts or pairs with the traffic of their flow records.
#[derive(Clone, Debug)]
pub struct GroupTotals {
    grouping: Grouping,
    max_rows: usize,
    table: GroupTable,
    /// Number of rows that were dropped.
    dropped: u64,
    /// Their bytes.
    dropped_bytes: Bytes,
}

impl GroupTotals {
    pub(crate) fn new(grouping: Grouping) -> GroupTotals {
        GroupTotals::with_max_rows(grouping, MAX_ROWS)
    }

    pub(super) fn with_max_rows(grouping: Grouping, max_rows: usize) -> GroupTotals {
        let (dropped, dropped_bytes) = (0, Bytes(0));
        GroupTotals { grouping, max_rows, table: GroupTable::default(), dropped, dropped_bytes }
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, record: &FlowRecord) {
        let traffic = Traffic {
            first: record.first,
            last: record.last,
            packets: [record.forward.packets, record.reverse.packets],
            bytes: [record.forward.bytes.0, record.reverse.bytes.0],
            // A flow counts when it ends, not when a part of it is exported.
            flows: u64::from(record.end_reason != EndReason::Active),
            ..Traffic::default()
        };
        let cheetah = [record.forward.cheetah, record.reverse.cheetah];
        self.table.add_flow(self.grouping, &record.key, traffic, cheetah);
        self.bound();
    }

    /// Adds the totals of another worker.
    pub(crate) fn merge(&mut self, other: GroupTotals) {
        self.dropped += other.dropped;
        self.dropped_bytes += other.dropped_bytes;
        for row in other.table.into_rows() {
            self.table.add(row);
            self.bound();
        }
    }

    /// Drops the smaller half of a full table.
    fn bound(&mut self) {
        if self.table.len() < self.max_rows {
            return;
        }
        let mut rows = std::mem::take(&mut self.table).into_rows();
        let kept = self.max_rows / 2;
        rows.select_nth_unstable_by_key(kept, |row| std::cmp::Reverse(row.traffic.total_bytes()));
        for row in rows.drain(kept..) {
            self.dropped += 1;
            self.dropped_bytes += row.traffic.total_bytes();
        }
        rows.into_iter().for_each(|row| self.table.add(row));
    }

    /// What the rows are.
    pub fn grouping(&self) -> Grouping {
        self.grouping
    }

    /// Returns the number of rows that were dropped because the table was full, and their bytes.
    pub fn dropped(&self) -> (u64, Bytes) {
        (self.dropped, self.dropped_bytes)
    }

    /// Returns all rows, the largest first, with mean rates.
    pub fn rows(&self) -> Vec<GroupRow> {
        let with_rates = |row: &GroupRow| GroupRow { traffic: row.traffic.with_mean_rates(), ..row.clone() };
        let mut rows: Vec<GroupRow> = self.table.rows().iter().map(with_rates).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.traffic.total_bytes()), row.group));
        rows
    }
}
