//! The query of the live view.

use std::cmp::Ordering;

use thalweg_measure::filter::FlowFilter;
use thalweg_wire::FlowKey;

use super::FlowRow;
use crate::flow_capture::FlowCaptureRequest;
use crate::groups::{Group, GroupList, GroupRow, GroupTable, Grouping};
use crate::traffic::Traffic;

/// Sort key of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Current rate of both directions.
    #[default]
    Rate,
    /// Bytes of both directions.
    Bytes,
    /// Packets of both directions.
    Packets,
    /// Time since the first packet.
    Age,
    /// Time of the latest packet.
    Last,
    /// Number of flows of a host or pair.
    Flows,
}

impl SortBy {
    /// All sort keys, in the order in which the `s` key cycles through them.
    pub const ALL: [SortBy; 6] =
        [SortBy::Rate, SortBy::Bytes, SortBy::Packets, SortBy::Age, SortBy::Last, SortBy::Flows];

    /// Returns the sort keys of a table.
    pub fn of(grouping: Grouping) -> &'static [SortBy] {
        match grouping {
            Grouping::Flow => &SortBy::ALL[..5],
            Grouping::Host | Grouping::Pair => &SortBy::ALL,
        }
    }

    /// Returns the next sort key of a table; the first after the last.
    #[must_use]
    pub fn next(self, grouping: Grouping) -> SortBy {
        let keys = SortBy::of(grouping);
        keys[(self as usize + 1) % keys.len()]
    }

    /// Returns the name in the title of the table.
    pub fn label(self) -> &'static str {
        match self {
            SortBy::Rate => "rate",
            SortBy::Bytes => "bytes",
            SortBy::Packets => "packets",
            SortBy::Age => "age",
            SortBy::Last => "last packet",
            SortBy::Flows => "flows",
        }
    }

    /// Returns a number that grows in this order.
    fn value(self, traffic: &Traffic) -> u64 {
        match self {
            SortBy::Rate => traffic.total_rate().0,
            SortBy::Bytes => traffic.total_bytes().0,
            SortBy::Packets => traffic.total_packets(),
            SortBy::Age => u64::MAX - traffic.first.0,
            SortBy::Last => traffic.last.0,
            SortBy::Flows => traffic.flows,
        }
    }
}

/// Maximum rows of the last snapshot.
const LAST_ROWS: usize = 10_000;

/// The query of the live view: which rows to send, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Whether rows are flows, hosts or pairs of hosts.
    pub grouping: Grouping,
    /// Only the flows of this host or pair.
    pub scope: Option<Group>,
    /// Sort key.
    pub sort: SortBy,
    /// Whether the largest, oldest or latest come first.
    pub descending: bool,
    /// Filter of rows and cheetah flows.
    pub filter: FlowFilter,
    /// Maximum rows of each list.
    pub limit: usize,
    /// The flow to send as [`super::Snapshot::pinned`], regardless of the filter; in either direction.
    pub pinned: Option<FlowKey>,
    /// The flow to write to a file.
    pub capture: Option<FlowCaptureRequest>,
    /// Whether names of hosts are wanted.
    pub names: bool,
    /// Whether no query is answered after this one, so that the snapshot needs flows, hosts and pairs.
    pub is_last: bool,
}

impl Query {
    /// Returns the query for the last snapshot: no filter and many rows, because no query is answered after it.
    #[must_use]
    pub fn last(self) -> Query {
        let (filter, limit) = (FlowFilter::default(), self.limit.max(LAST_ROWS));
        Query { filter, limit, scope: None, is_last: true, ..self }
    }

    /// Whether the snapshot needs rows of this kind. Flows are always there, so that the view can show them at once.
    pub fn needs(&self, grouping: Grouping) -> bool {
        self.is_last || self.grouping == grouping || grouping == Grouping::Flow
    }

    /// Compares rows by the sort key, then by flow key, so that equal rows keep their places. [`super::Snapshot::top`] has this
    /// order.
    pub fn compare(&self, a: &FlowRow, b: &FlowRow) -> Ordering {
        self.compare_traffic(&a.traffic, &b.traffic).then_with(|| a.key.cmp(&b.key))
    }

    /// Compares hosts or pairs by the sort key, then by address.
    pub fn compare_groups(&self, a: &GroupRow, b: &GroupRow) -> Ordering {
        self.compare_traffic(&a.traffic, &b.traffic).then_with(|| a.group.cmp(&b.group))
    }

    fn compare_traffic(&self, a: &Traffic, b: &Traffic) -> Ordering {
        let order = self.sort.value(a).cmp(&self.sort.value(b));
        if self.descending { order.reverse() } else { order }
    }

    /// Whether a flow is a row of the table.
    pub fn matches(&self, row: &FlowRow) -> bool {
        self.is_in_scope(row) && self.filter.matches(row)
    }

    /// Whether a flow counts for hosts and pairs: the terms of the filter on addresses, ports, protocol and flags select it.
    pub fn matches_part(&self, row: &FlowRow) -> bool {
        self.is_in_scope(row) && self.filter.matches_part(row)
    }

    /// Whether a host or pair is a row of the table: the terms of the filter on amounts select it.
    pub fn matches_group(&self, row: &GroupRow) -> bool {
        self.filter.matches(row)
    }

    /// Returns the first hosts or pairs of a table in the order of the query, and how many match it.
    pub(crate) fn first_groups(&self, table: &GroupTable, limit: usize) -> GroupList {
        table.first(|row| self.matches_group(row), |a, b| self.compare_groups(a, b), limit)
    }

    fn is_in_scope(&self, row: &FlowRow) -> bool {
        self.scope.is_none_or(|scope| scope.contains(&row.key))
    }
}

/// The 200 fastest flows.
impl Default for Query {
    fn default() -> Self {
        Query {
            grouping: Grouping::Flow,
            scope: None,
            sort: SortBy::Rate,
            descending: true,
            filter: FlowFilter::default(),
            limit: 200,
            pinned: None,
            capture: None,
            names: false,
            is_last: false,
        }
    }
}

/// Adds up flows that a snapshot already has, for a query that came after the last snapshot.
pub fn groups_of(rows: &[FlowRow], query: &Query) -> GroupList {
    let mut table = GroupTable::default();
    for row in rows.iter().filter(|row| query.matches_part(row)) {
        table.add_flow(query.grouping, &row.key, row.traffic, row.cheetah);
    }
    query.first_groups(&table, query.limit)
}
