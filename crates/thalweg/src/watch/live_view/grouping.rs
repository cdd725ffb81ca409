//! Hosts and pairs in the view, and the names of hosts.

use thalweg_watch::groups::{GroupList, GroupRow, Grouping};
use thalweg_watch::snapshot::{Snapshot, SortBy, groups_of};

use super::view::{Action, LiveView, Pane};
use crate::terminal::endpoint::Labels;

impl LiveView {
    /// Shows flows, hosts or pairs.
    pub(super) fn group_by(&mut self, grouping: Grouping) -> Action {
        self.query.grouping = grouping;
        self.query.scope = None;
        self.list_changed()
    }

    /// Shows the flows of the selected host or pair; of the first if none is selected.
    pub(super) fn open_group(&mut self) -> Action {
        let Some(row) = self.group_rows.get(self.groups.index().unwrap_or(0)) else { return Action::None };
        self.query.scope = Some(row.group);
        self.scoped_from = self.query.grouping;
        self.query.grouping = Grouping::Flow;
        self.list_changed()
    }

    /// Returns to the list from which the flows of a host or pair were opened.
    pub(super) fn leave_scope(&mut self) -> Action {
        self.query.grouping = self.scoped_from;
        self.query.scope = None;
        self.list_changed()
    }

    fn list_changed(&mut self) -> Action {
        if !SortBy::of(self.query.grouping).contains(&self.query.sort) {
            self.query.sort = SortBy::default();
        }
        // Unpins the flow; the query below says so.
        let _ = self.leave_to(Pane::Flows);
        self.flows.reset();
        self.refresh_rows();
        Action::Query(self.query.clone())
    }

    /// Returns the rows of hosts or pairs, by the current filter and order.
    pub(super) fn grouped_rows(&self) -> Vec<GroupRow> {
        let snapshot = &self.displayed().snapshot;
        let Some(list) = self.list(snapshot) else { return Vec::new() };
        if self.summed_flows().is_some() {
            return groups_of(&snapshot.top, &self.query).rows;
        }
        let mut rows: Vec<GroupRow> =
            list.rows.iter().filter(|row| self.query.matches_group(row)).cloned().collect();
        rows.sort_by(|a, b| self.query.compare_groups(a, b));
        rows
    }

    /// Returns the snapshot's list of hosts or pairs.
    fn list<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a GroupList> {
        match self.query.grouping {
            Grouping::Flow => None,
            Grouping::Host => Some(&snapshot.hosts),
            Grouping::Pair => Some(&snapshot.pairs),
        }
    }

    /// Returns the number of flows whose hosts or pairs are shown, if these are not all that match: because the snapshot has no
    /// such list, or, after the end, the filter selects other flows.
    pub(super) fn summed_flows(&self) -> Option<usize> {
        let snapshot = &self.displayed().snapshot;
        let list = self.list(snapshot)?;
        let is_missing = list.rows.is_empty() && list.matching == 0;
        let is_other = self.has_ended() && !self.query.filter.is_empty();
        (is_missing || is_other).then_some(snapshot.top.len()).filter(|flows| *flows > 0)
    }

    /// Returns the number of rows of the table.
    pub(super) fn row_count(&self) -> usize {
        match self.query.grouping {
            Grouping::Flow => self.rows.len(),
            Grouping::Host | Grouping::Pair => self.group_rows.len(),
        }
    }

    /// Returns the number of flows, hosts or pairs that match the query.
    pub(super) fn matching(&self) -> u64 {
        let snapshot = &self.displayed().snapshot;
        match self.list(snapshot) {
            None => snapshot.matching,
            Some(_) if self.summed_flows().is_some() => self.group_rows.len() as u64,
            Some(list) => list.matching,
        }
    }

    /// Shows or hides the names of hosts. While they are hidden, none is looked up.
    pub(super) fn toggle_names(&mut self) -> Action {
        self.query.names = !self.query.names;
        Action::Query(self.query.clone())
    }

    /// Returns the names to show.
    pub(super) fn labels<'a>(&'a self, snapshot: &'a Snapshot) -> Labels<'a> {
        Labels {
            hosts: self.query.names.then_some(&snapshot.names),
            services: self.shows_services.then_some(&self.services),
        }
    }
}
