//! The state of the view between two frames, and what keys do to it.
//!
//! A key goes to the first that wants it: the help overlay, the filter box, the pane. `Esc` undoes one thing
//! at a time: it closes the help, leaves the box, leaves the pane, clears the filter, forgets the selection.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thalweg_measure::filter::{FlowFilter, METERED};
use thalweg_measure::tasks::{FlowName, Table};
use thalweg_wire::{FlowKey, Timestamp};

use super::frozen::Frozen;
use crate::terminal::Theme;
use crate::terminal::cursor::{Cursor, Step, step_of};
use crate::terminal::filter_box::{FilterBox, Typed};
use thalweg_watch::snapshot::TaskRow;
use thalweg_watch::snapshot::{CheetahRow, FlowRow, Query, Snapshot};

/// The live view: takes snapshots and keys, draws frames, says what it wants to see.
#[derive(Debug)]
pub struct LiveView {
    pub(super) theme: Theme,
    pub(super) query: Query,
    pub(super) pane: Pane,
    pub(super) help: bool,
    pub(super) filter_box: Option<FilterBox>,
    /// The latest of everything.
    latest: Shown,
    /// What stands on the screen while the display is paused.
    held: Option<Shown>,
    /// Rows of the flow table: those of the snapshot that match the query, in its order.
    pub(super) rows: Vec<FlowRow>,
    /// Rows of the list of cheetahs: those of the snapshot that match the query.
    pub(super) cheetah_rows: Vec<CheetahRow>,
    pub(super) flows: Cursor<FlowKey>,
    pub(super) cheetahs: Cursor<(FlowKey, Timestamp)>,
    /// By their number.
    pub(super) tasks: Cursor<usize>,
    /// Keys of the chosen task.
    pub(super) task_keys: Cursor<FlowName>,
}

/// What the lower part of the screen has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Flows,
    Cheetahs,
    /// All measurement tasks, and the chosen one's keys.
    Tasks,
    /// One measurement task.
    OneTask,
    /// One flow; and the pane to go back to.
    Detail {
        from_cheetahs: bool,
    },
}

/// A snapshot, and the flow frozen on as of then.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) snapshot: Snapshot,
    pub(super) frozen: Option<Frozen>,
}

/// What a key asks of the caller.
pub type Action = crate::terminal::Action<Query>;

impl LiveView {
    /// A view that has seen nothing yet and asks for [`Query::default`].
    pub fn new(theme: Theme) -> LiveView {
        LiveView::with_filter(theme, FlowFilter::default())
    }

    /// A view that has seen nothing yet and asks for the flows that match a filter.
    pub fn with_filter(theme: Theme, filter: FlowFilter) -> LiveView {
        LiveView {
            theme,
            query: Query { filter, ..Query::default() },
            pane: Pane::Flows,
            help: false,
            filter_box: None,
            latest: Shown::default(),
            held: None,
            rows: Vec::new(),
            cheetah_rows: Vec::new(),
            flows: Cursor::default(),
            cheetahs: Cursor::default(),
            tasks: Cursor::default(),
            task_keys: Cursor::default(),
        }
    }

    /// What the view wants to see now.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether there are measurement tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.shown().snapshot.tasks.is_some()
    }

    /// The chosen task, the first where none is chosen.
    pub(super) fn task(&self) -> Option<&TaskRow> {
        self.shown().snapshot.tasks.as_ref()?.rows.get(self.tasks.index().unwrap_or(0))
    }

    /// The keys of the chosen task's latest answer.
    pub(super) fn task_table(&self) -> Option<&Table> {
        self.task()?.latest.as_ref()
    }

    /// What is on the screen.
    pub(super) fn shown(&self) -> &Shown {
        self.held.as_ref().unwrap_or(&self.latest)
    }

    /// Whether the display is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.held.is_some()
    }

    /// Whether the input has ended, shown or not.
    pub(super) fn has_ended(&self) -> bool {
        self.latest.snapshot.ended
    }

    fn help_key(&mut self, key: KeyEvent) -> Action {
        self.help = false;
        if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None }
    }

    fn filter_key(&mut self, key: KeyEvent) -> Action {
        match self.filter_box.as_mut().map(|filter_box| filter_box.key(key)) {
            Some(Typed::Closed(filter)) => {
                self.filter_box = None;
                self.set_filter(filter)
            }
            Some(Typed::Open) | None => Action::None,
        }
    }

    fn pane_key(&mut self, key: KeyEvent) -> Action {
        if let Some(step) = step_of(key.code) {
            self.step(step);
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char(' ') => self.toggle_pause(),
            KeyCode::Char('t') => return self.toggle_tasks(),
            KeyCode::Char('/' | 's' | 'r' | 'S' | 'c') if self.shown().snapshot.no_table => {}
            KeyCode::Char('/') => return self.open_filter_box(),
            KeyCode::Char('s') => return self.set_sort(|query| query.sort = query.sort.next()),
            KeyCode::Char('r' | 'S') => return self.set_sort(|query| query.descending = !query.descending),
            KeyCode::Char('c') => return self.toggle_cheetahs(),
            KeyCode::Enter => return self.freeze(),
            KeyCode::Esc => return self.escape(),
            _ => {}
        }
        Action::None
    }

    fn step(&mut self, step: Step) {
        match self.pane {
            Pane::Flows => self.flows.step(step, &keys_of(&self.rows)),
            Pane::Cheetahs => {
                let names = self.cheetah_names();
                self.cheetahs.step(step, &names);
            }
            Pane::Tasks => {
                let tasks: Vec<usize> = (0..self.task_count()).collect();
                // The first is chosen if none is.
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

    fn task_count(&self) -> usize {
        self.shown().snapshot.tasks.as_ref().map_or(0, |tasks| tasks.rows.len())
    }

    fn task_key_names(&self) -> Vec<FlowName> {
        self.task_table().map_or_else(Vec::new, |table| table.rows.iter().map(|row| row.name).collect())
    }

    fn toggle_pause(&mut self) {
        self.held = if self.held.is_none() { Some(self.latest.clone()) } else { None };
        self.refresh_rows();
    }

    /// The filter applies to flows and to cheetah flows; other panes give way to the flows.
    fn open_filter_box(&mut self) -> Action {
        self.filter_box = Some(FilterBox::new(&self.query.filter, &METERED));
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

    fn set_sort(&mut self, change: impl FnOnce(&mut Query)) -> Action {
        change(&mut self.query);
        self.flows.reset();
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
            Pane::Tasks | Pane::OneTask if self.shown().snapshot.no_table => self.leave_to(Pane::Tasks),
            Pane::Tasks | Pane::OneTask => self.leave_to(Pane::Flows),
            _ if self.has_tasks() => self.leave_to(Pane::Tasks),
            _ => Action::None,
        }
    }

    /// Freezes on the chosen row, or on the first where none is chosen.
    fn freeze(&mut self) -> Action {
        let key = match self.pane {
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
        for shown in std::iter::once(&mut self.latest).chain(&mut self.held) {
            shown.frozen = Some(Frozen::new(key, &shown.snapshot));
        }
        self.pane = Pane::Detail { from_cheetahs: self.pane == Pane::Cheetahs };
        self.query.frozen = Some(key);
        Action::Query(self.query.clone())
    }

    fn escape(&mut self) -> Action {
        match self.pane {
            Pane::Detail { from_cheetahs: true } => self.leave_to(Pane::Cheetahs),
            Pane::OneTask => self.leave_to(Pane::Tasks),
            Pane::Tasks if self.shown().snapshot.no_table => {
                self.tasks.reset();
                Action::None
            }
            Pane::Detail { from_cheetahs: false } | Pane::Cheetahs | Pane::Tasks => {
                self.leave_to(Pane::Flows)
            }
            Pane::Flows if !self.query.filter.is_empty() => self.set_filter(FlowFilter::default()),
            Pane::Flows => {
                self.flows.reset();
                Action::None
            }
        }
    }

    /// Goes to a list; workers need no longer look for a flow frozen on.
    fn leave_to(&mut self, pane: Pane) -> Action {
        self.pane = pane;
        for shown in std::iter::once(&mut self.latest).chain(&mut self.held) {
            shown.frozen = None;
        }
        match self.query.frozen.take() {
            Some(_) => Action::Query(self.query.clone()),
            None => Action::None,
        }
    }

    /// The query is applied here too, so that a key shows at once, paused or not.
    fn refresh_rows(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let top = &self.shown().snapshot.top;
        rows.extend(top.iter().filter(|row| self.query.matches(row)).cloned());
        rows.sort_by(|a, b| self.query.compare(a, b));
        self.rows = rows;
        let cheetahs = self.shown().snapshot.cheetahs.iter();
        self.cheetah_rows = cheetahs.filter(|row| self.query.filter.matches(*row)).cloned().collect();
        self.flows.follow(&keys_of(&self.rows));
        let names = self.cheetah_names();
        self.cheetahs.follow(&names);
        let names = self.task_key_names();
        self.task_keys.follow(&names);
        // Without a flow table the tasks are all there is to see.
        match self.pane {
            Pane::Flows | Pane::Cheetahs if self.shown().snapshot.no_table => self.pane = Pane::Tasks,
            Pane::Tasks | Pane::OneTask if !self.has_tasks() => self.pane = Pane::Flows,
            _ => {}
        }
    }

    /// A flow can be a cheetah more than once, so time tells them apart.
    fn cheetah_names(&self) -> Vec<(FlowKey, Timestamp)> {
        self.cheetah_rows.iter().map(|row| (row.key, row.detected)).collect()
    }
}

impl LiveView {
    /// Takes a snapshot. While the display is paused it is kept and not shown.
    pub(super) fn receive(&mut self, snapshot: Snapshot) {
        self.latest.snapshot = snapshot;
        if let Some(frozen) = &mut self.latest.frozen {
            frozen.update(&self.latest.snapshot);
        }
        if self.held.is_none() {
            self.refresh_rows();
        }
    }

    /// Takes the end of all snapshots: whatever the last one said, nothing more will come.
    pub(super) fn conclude(&mut self) {
        self.latest.snapshot.ended = true;
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match () {
            () if key.kind == KeyEventKind::Release => Action::None,
            () if control_c => Action::Quit,
            () if self.help => self.help_key(key),
            () if self.filter_box.is_some() => self.filter_key(key),
            () => self.pane_key(key),
        }
    }
}

fn keys_of(rows: &[FlowRow]) -> Vec<FlowKey> {
    rows.iter().map(|row| row.key).collect()
}
