//! Adds up flows by host or pair. Memory: at most two rows per flow, kept from snapshot to snapshot.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use thalweg_wire::FlowKey;

use super::{Group, GroupList, GroupRow, Grouping};
use crate::traffic::Traffic;

/// Rows by host or pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTable {
    /// Index of the row of each group.
    index: HashMap<Group, u32>,
    rows: Vec<GroupRow>,
}

impl GroupTable {
    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.rows.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a flow to its hosts or to its pair.
    pub(crate) fn add_flow(
        &mut self,
        grouping: Grouping,
        key: &FlowKey,
        traffic: Traffic,
        cheetah: [bool; 2],
    ) {
        let (src, dst) = (key.src(), key.dst());
        match grouping {
            Grouping::Flow => {}
            Grouping::Pair if src <= dst => {
                self.add(GroupRow { group: Group::Pair(src, dst), traffic, cheetah });
            }
            Grouping::Pair => {
                let (traffic, cheetah) = (traffic.reversed(), [cheetah[1], cheetah[0]]);
                self.add(GroupRow { group: Group::Pair(dst, src), traffic, cheetah });
            }
            Grouping::Host => {
                let group = Group::Host(src);
                self.add(GroupRow { group, traffic, cheetah });
                // Of a flow from a host to itself, both directions are sent and received.
                let flows = if src == dst { 0 } else { traffic.flows };
                let traffic = Traffic { flows, ..traffic.reversed() };
                self.add(GroupRow { group: Group::Host(dst), traffic, cheetah: [cheetah[1], cheetah[0]] });
            }
        }
    }

    /// Adds a row to that of the same group.
    pub(crate) fn add(&mut self, row: GroupRow) {
        match self.index.entry(row.group) {
            Entry::Vacant(vacant) => {
                vacant.insert(self.rows.len() as u32);
                self.rows.push(row);
            }
            Entry::Occupied(index) => self.rows[*index.get() as usize].merge(&row),
        }
    }

    /// Returns the first `limit` of the rows that match, in the order of `compare`, and how many match.
    pub(crate) fn first(
        &self,
        matches: impl Fn(&GroupRow) -> bool,
        compare: impl Fn(&GroupRow, &GroupRow) -> Ordering,
        limit: usize,
    ) -> GroupList {
        let mut rows: Vec<&GroupRow> = self.rows.iter().filter(|row| matches(row)).collect();
        let matching = rows.len() as u64;
        if rows.len() > limit && limit > 0 {
            rows.select_nth_unstable_by(limit - 1, |a, b| compare(a, b));
        }
        rows.truncate(limit);
        rows.sort_by(|a, b| compare(a, b));
        GroupList { rows: rows.into_iter().cloned().collect(), matching }
    }

    /// Returns all rows, in no particular order.
    pub(crate) fn into_rows(self) -> Vec<GroupRow> {
        self.rows
    }

    pub(crate) fn rows(&self) -> &[GroupRow] {
        &self.rows
    }
}

impl GroupRow {
    /// Adds the traffic of the same group.
    fn merge(&mut self, other: &GroupRow) {
        self.traffic += other.traffic;
        self.cheetah = [self.cheetah[0] || other.cheetah[0], self.cheetah[1] || other.cheetah[1]];
    }
}
