//! State and key handling of the view.
//!
//! The help overlay handles a key first, then the filter input, then the pane. `Esc` undoes one step: it closes the help,
//! closes the filter input, leaves the pane, clears the filter, clears the selection.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thalweg_measure::filter::{FlowFilter, METERED};
use thalweg_measure::tasks::{FlowName, Table};
use thalweg_wire::{FlowKey, Timestamp};

use super::mouse::List;
use super::pinned_flow::PinnedFlow;
use crate::names::Services;
use crate::terminal::Theme;
use crate::terminal::cursor::{Cursor, Step, step_of};
use crate::terminal::filter_input::{FilterInput, Outcome};
use crate::terminal::help::Help;
use crate::terminal::mouse::Hits;
use thalweg_watch::groups::{Group, GroupRow, Grouping};
use thalweg_watch::snapshot::{CheetahRow, FlowRow, Query, Snapshot, SortBy, TaskRow};

/// The live view: handles snapshots and keys, draws frames, issues queries.
#[derive(Debug)]
pub struct LiveView {
    pub(super) theme: Theme,
    pub(super) query: Query,
    pub(super) pane: Pane,
    pub(super) help: Help,
    pub(super) filter_input: Option<FilterInput>,
    /// The latest state.
    latest: DisplayState,
    /// The state on the screen while the display is paused.
    paused: Option<DisplayState>,
    /// Rows of the flow table, filtered and sorted by the query.
    pub(super) rows: Vec<FlowRow>,
    /// Rows of the table of hosts or pairs, likewise.
    pub(super) group_rows: Vec<GroupRow>,
    /// Rows of the list of cheetah flows, filtered by the query.
    pub(super) cheetah_rows: Vec<CheetahRow>,
    pub(super) flows: Cursor<FlowKey>,
    pub(super) groups: Cursor<Group>,
    /// What the table showed before the flows of a host or pair.
    pub(super) scoped_from: Grouping,
    /// Names of ports.
    pub(super) services: Services,
    /// Whether to show them.
    pub(super) shows_services: bool,
    /// Whether the detail of a flow has its capture filter.
    pub(super) shows_filter: bool,
    /// Number of the latest request to write a flow to a file.
    pub(super) capture_number: u32,
    /// What the last frame has where.
    pub(super) hits: Hits<List, SortBy>,
    pub(super) cheetahs: Cursor<(FlowKey, Timestamp)>,
    /// Selected task, by index.
    pub(super) tasks: Cursor<usize>,
    /// Keys of the selected task.
    pub(super) task_keys: Cursor<FlowName>,
}

/// Content of the lower part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Flows,
    Cheetahs,
    /// All measurement tasks, and the keys of the selected one.
    Tasks,
    /// One measurement task.
    OneTask,
    /// One flow, and the pane to go back to.
    Detail {
        from_cheetahs: bool,
    },
}

/// A snapshot and the pinned flow at that time.
#[derive(Clone, Debug, Default)]
pub(super) struct DisplayState {
    pub(super) snapshot: Snapshot,
    pub(super) pinned: Option<PinnedFlow>,
}

/// An action that a key requests.
pub type Action = crate::terminal::Action<Query>;

impl LiveView {
    /// Creates an empty view. Its initial query is [`Query::default`].
    pub fn new(theme: Theme) -> LiveView {
        LiveView::with_filter(theme, FlowFilter::default())
    }

    /// Creates an empty view whose initial query has this filter.
    pub fn with_filter(theme: Theme, filter: FlowFilter) -> LiveView {
        LiveView::with_query(theme, Query { filter, ..Query::default() }, Services::default())
    }

    /// Creates an empty view with its initial query, and the names of ports, which are shown if the query wants names.
    pub(crate) fn with_query(theme: Theme, query: Query, services: Services) -> LiveView {
        LiveView {
            theme,
            shows_services: query.names,
            query,
            services,
            group_rows: Vec::new(),
            groups: Cursor::default(),
            scoped_from: Grouping::Flow,
            shows_filter: false,
            capture_number: 0,
            hits: Hits::default(),
            pane: Pane::Flows,
            help: Help::default(),
            filter_input: None,
            latest: DisplayState::default(),
            paused: None,
            rows: Vec::new(),
            cheetah_rows: Vec::new(),
            flows: Cursor::default(),
            cheetahs: Cursor::default(),
            tasks: Cursor::default(),
            task_keys: Cursor::default(),
        }
    }

    /// Returns the current query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether there are measurement tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.displayed().snapshot.tasks.is_some()
    }

    /// Returns the selected task; the first if none is selected.
    pub(super) fn task(&self) -> Option<&TaskRow> {
        self.displayed().snapshot.tasks.as_ref()?.rows.get(self.tasks.index().unwrap_or(0))
    }

    /// Returns the latest result of the selected task.
    pub(super) fn task_table(&self) -> Option<&Table> {
        self.task()?.latest.as_ref()
    }

    /// Returns the state on the screen.
    pub(super) fn displayed(&self) -> &DisplayState {
        self.paused.as_ref().unwrap_or(&self.latest)
    }

    /// Returns the latest snapshot, even if the display is paused.
    pub(super) fn latest_snapshot(&self) -> &Snapshot {
        &self.latest.snapshot
    }

    /// Whether the display is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Whether the input has ended, even if the display is paused.
    pub(super) fn has_ended(&self) -> bool {
        self.latest.snapshot.ended
    }

    fn help_key(&mut self, key: KeyEvent) -> Action {
        self.help.key(key.code);
        if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None }
    }

    fn filter_key(&mut self, key: KeyEvent) -> Action {
        match self.filter_input.as_mut().map(|input| input.key(key)) {
            Some(Outcome::Closed(filter)) => {
                self.filter_input = None;
                self.set_filter(filter)
            }
            Some(Outcome::Open) | None => Action::None,
        }
    }

    fn pane_key(&mut self, key: KeyEvent) -> Action {
        if let Some(step) = step_of(key.code) {
            self.step(step);
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.help.open(),
            KeyCode::Char(' ') => self.toggle_pause(),
            KeyCode::Char('t') => return self.toggle_tasks(),
            KeyCode::Char('n') => return self.toggle_names(),
            KeyCode::Char('f') if matches!(self.pane, Pane::Detail { .. }) => return self.toggle_filter(),
            KeyCode::Char('w') if matches!(self.pane, Pane::Detail { .. }) => return self.toggle_capture(),
            KeyCode::Char('N') => self.shows_services = !self.shows_services,
            KeyCode::Char('/' | 's' | 'r' | 'S' | 'c' | 'b') if self.displayed().snapshot.no_table => {}
            KeyCode::Char('/') => return self.open_filter_input(),
            KeyCode::Char('b') => return self.group_by(self.query.grouping.next()),
            KeyCode::Char('s') => return self.set_sort(|query| query.sort = query.sort.next(query.grouping)),
            KeyCode::Char('r' | 'S') => return self.set_sort(|query| query.descending = !query.descending),
            KeyCode::Char('c') => return self.toggle_cheetahs(),
            KeyCode::Enter => return self.open(),
            KeyCode::Esc => return self.escape(),
            _ => {}
        }
        Action::None
    }

    pub(super) fn step(&mut self, step: Step) {
        match self.pane {
            Pane::Flows if self.query.grouping == Grouping::Flow => {
                self.flows.step(step, &keys_of(&self.rows));
            }
            Pane::Flows => self.groups.step(step, &groups_of_rows(&self.group_rows)),
            Pane::Cheetahs => {
                let names = self.cheetah_names();
                self.cheetahs.step(step, &names);
            }
            Pane::Tasks => {
                let tasks: Vec<usize> = (0..self.task_count()).collect();
                // Without a selection, the first is highlighted.
                if self.tasks.index().is_none() {
                    self.tasks.step(Step::First, &tasks);
                }
                self.tasks.step(step, &tasks);
                self.task_keys.reset();
            }
            Pane::OneTask => {
                let names = self.task_key_names();
                self.task_keys.step(step, &names);
            }
            Pane::Detail { .. } => {}
        }
    }

    pub(super) fn task_count(&self) -> usize {
        self.displayed().snapshot.tasks.as_ref().map_or(0, |tasks| tasks.rows.len())
    }

    pub(super) fn task_key_names(&self) -> Vec<FlowName> {
        self.task_table().map_or_else(Vec::new, |table| table.rows.iter().map(|row| row.name).collect())
    }

    fn toggle_pause(&mut self) {
        self.paused = if self.paused.is_none() { Some(self.latest.clone()) } else { None };
        self.refresh_rows();
    }

    /// Opens the filter input in the list of flows or, if it is shown, of cheetah flows.
    fn open_filter_input(&mut self) -> Action {
        self.filter_input = Some(FilterInput::new(&self.query.filter, &METERED));
        self.leave_to(if self.pane == Pane::Cheetahs { Pane::Cheetahs } else { Pane::Flows })
    }

    fn set_filter(&mut self, filter: FlowFilter) -> Action {
        if filter == self.query.filter {
            return Action::None;
        }
        self.query.filter = filter;
        self.refresh_rows();
        Action::Query(self.query.clone())
    }

    pub(super) fn set_sort(&mut self, change: impl FnOnce(&mut Query)) -> Action {
        change(&mut self.query);
        self.flows.reset();
        self.groups.reset();
        self.refresh_rows();
        Action::Query(self.query.clone())
    }

    fn toggle_cheetahs(&mut self) -> Action {
        match self.pane {
            Pane::Cheetahs => self.leave_to(Pane::Flows),
            _ => self.leave_to(Pane::Cheetahs),
        }
    }

    fn toggle_tasks(&mut self) -> Action {
        match self.pane {
            Pane::Tasks | Pane::OneTask if self.displayed().snapshot.no_table => self.leave_to(Pane::Tasks),
            Pane::Tasks | Pane::OneTask => self.leave_to(Pane::Flows),
            _ if self.has_tasks() => self.leave_to(Pane::Tasks),
            _ => Action::None,
        }
    }

    /// Pins the flow of the selected row; the first if none is selected. Of a host or pair, shows the flows.
    pub(super) fn open(&mut self) -> Action {
        let key = match self.pane {
            Pane::Flows if self.query.grouping != Grouping::Flow => return self.open_group(),
            Pane::Flows => self.rows.get(self.flows.index().unwrap_or(0)).map(|row| row.key),
            Pane::Cheetahs => {
                self.cheetah_names().get(self.cheetahs.index().unwrap_or(0)).map(|(key, _)| *key)
            }
            Pane::Tasks => {
                self.pane = Pane::OneTask;
                None
            }
            Pane::OneTask | Pane::Detail { .. } => None,
        };
        let Some(key) = key else { return Action::None };
        for shown in std::iter::once(&mut self.latest).chain(&mut self.paused) {
            shown.pinned = Some(PinnedFlow::new(key, &shown.snapshot));
        }
        self.pane = Pane::Detail { from_cheetahs: self.pane == Pane::Cheetahs };
        self.query.pinned = Some(key);
        Action::Query(self.query.clone())
    }

    fn escape(&mut self) -> Action {
        match self.pane {
            Pane::Detail { from_cheetahs: true } => self.leave_to(Pane::Cheetahs),
            Pane::OneTask => self.leave_to(Pane::Tasks),
            Pane::Tasks if self.displayed().snapshot.no_table => {
                self.tasks.reset();
                Action::None
            }
            Pane::Detail { from_cheetahs: false } | Pane::Cheetahs | Pane::Tasks => {
                self.leave_to(Pane::Flows)
            }
            Pane::Flows if self.query.scope.is_some() => self.leave_scope(),
            Pane::Flows if !self.query.filter.is_empty() => self.set_filter(FlowFilter::default()),
            Pane::Flows => {
                self.flows.reset();
                self.groups.reset();
                Action::None
            }
        }
    }

    /// Shows a list and unpins the flow.
    pub(super) fn leave_to(&mut self, pane: Pane) -> Action {
        self.pane = pane;
        for shown in std::iter::once(&mut self.latest).chain(&mut self.paused) {
            shown.pinned = None;
        }
        match self.query.pinned.take() {
            Some(_) => Action::Query(self.query.clone()),
            None => Action::None,
        }
    }

    /// Applies the query, so that keys take effect at once, even while paused.
    pub(super) fn refresh_rows(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let top = &self.displayed().snapshot.top;
        rows.extend(top.iter().filter(|row| self.query.matches(row)).cloned());
        rows.sort_by(|a, b| self.query.compare(a, b));
        self.rows = rows;
        self.group_rows = self.grouped_rows();
        let cheetahs = self.displayed().snapshot.cheetahs.iter();
        self.cheetah_rows = cheetahs.filter(|row| self.query.filter.matches(*row)).cloned().collect();
        self.flows.follow(&keys_of(&self.rows));
        self.groups.follow(&groups_of_rows(&self.group_rows));
        let names = self.cheetah_names();
        self.cheetahs.follow(&names);
        let names = self.task_key_names();
        self.task_keys.follow(&names);
        // Without a flow table, only the tasks can be shown.
        match self.pane {
            Pane::Flows | Pane::Cheetahs if self.displayed().snapshot.no_table => self.pane = Pane::Tasks,
            Pane::Tasks | Pane::OneTask if !self.has_tasks() => self.pane = Pane::Flows,
            _ => {}
        }
    }

    /// Identifies detections by flow and time, because a flow can be detected more than once.
    pub(super) fn cheetah_names(&self) -> Vec<(FlowKey, Timestamp)> {
        self.cheetah_rows.iter().map(|row| (row.key, row.detected)).collect()
    }
}

impl LiveView {
    /// Applies a snapshot. While paused, it is kept but not shown.
    pub(super) fn handle_update(&mut self, snapshot: Snapshot) {
        self.latest.snapshot = snapshot;
        if let Some(pinned) = &mut self.latest.pinned {
            pinned.update(&self.latest.snapshot);
        }
        if self.paused.is_none() {
            self.refresh_rows();
        }
    }

    /// Handles the end of snapshots, and marks the last one as ended.
    pub(super) fn finish(&mut self) {
        self.latest.snapshot.ended = true;
    }

    /// Handles a key.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> Action {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match () {
            () if key.kind == KeyEventKind::Release => Action::None,
            () if control_c => Action::Quit,
            () if self.help.is_open() => self.help_key(key),
            () if self.filter_input.is_some() => self.filter_key(key),
            () => self.pane_key(key),
        }
    }
}

pub(super) fn groups_of_rows(rows: &[GroupRow]) -> Vec<Group> {
    rows.iter().map(|row| row.group).collect()
}

pub(super) fn keys_of(rows: &[FlowRow]) -> Vec<FlowKey> {
    rows.iter().map(|row| row.key).collect()
}
