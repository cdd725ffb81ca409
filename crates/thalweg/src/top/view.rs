//! State and key handling of the view.
//!
//! The help overlay handles a key first, then the filter input, then the pane. `Esc` undoes one step: it closes the help,
//! closes the filter input, leaves the pane, clears the filter, clears the selection.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thalweg_api::Link;
use thalweg_measure::filter::{FlowFilter, SAMPLED};
use thalweg_wire::FlowKey;

use super::daemon_state::{DaemonState, PinnedFlow};
use super::model::{FlowRow, LinkFilter, ObservedLink, Query, SortBy, Update};
use super::mouse::List;
use crate::terminal::cursor::{Cursor, Step, step_of};
use crate::terminal::filter_input::{FilterInput, Outcome};
use crate::terminal::help::Help;
use crate::terminal::mouse::Hits;
use crate::terminal::text_input::{Edit, TextInput};
use crate::terminal::{self, Theme};

/// An action that a key requests.
pub(super) type Action = terminal::Action<Query>;

/// The live view: handles updates and keys, draws frames, issues queries.
#[derive(Debug)]
pub struct TopView {
    pub(super) theme: Theme,
    /// URL of the daemon.
    pub(super) api: String,
    pub(super) pane: Pane,
    pub(super) help: Help,
    pub(super) input: Option<Input>,
    pub(super) link_filter: LinkFilter,
    pub(super) flow_filter: FlowFilter,
    pub(super) sort: SortBy,
    pub(super) is_reversed: bool,
    /// The latest state.
    latest: DaemonState,
    /// The state on the screen while the display is paused.
    paused: Option<Box<DaemonState>>,
    /// Rows of the tables after filtering and sorting.
    pub(super) link_rows: Vec<Link>,
    pub(super) flow_rows: Vec<FlowRow>,
    pub(super) links: Cursor<ObservedLink>,
    pub(super) flows: Cursor<FlowKey>,
    /// Selected event, by sequence number.
    pub(super) events: Cursor<u64>,
    /// What the last frame has where.
    pub(super) hits: Hits<List, SortBy>,
    /// The last query.
    query: Query,
}

/// The filter being typed.
#[derive(Debug)]
pub(super) enum Input {
    /// Words that select links. They apply as they are typed.
    Links(TextInput),
    /// A flow filter.
    Flows(FilterInput),
}

/// Content of the lower part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    /// Links, the flows on the selected one, events.
    Links,
    /// The flows on one link.
    OnLink,
    /// Events.
    Events {
        /// Whether `Esc` goes back to the flows on a link.
        from_link: bool,
    },
    /// One flow.
    Flow,
}

impl TopView {
    /// Creates an empty view of the daemon at this URL. Its initial query is [`Query::default`].
    pub fn new(theme: Theme, api: &str) -> TopView {
        TopView::with_filter(theme, api, FlowFilter::default())
    }

    /// Creates an empty view whose initial query has this flow filter.
    pub fn with_filter(theme: Theme, api: &str, flow_filter: FlowFilter) -> TopView {
        let query = Query { filter: flow_filter.clone(), ..Query::default() };
        TopView {
            theme,
            api: api.to_owned(),
            pane: Pane::Links,
            help: Help::default(),
            input: None,
            link_filter: LinkFilter::default(),
            flow_filter,
            sort: SortBy::default(),
            is_reversed: false,
            latest: DaemonState::default(),
            paused: None,
            link_rows: Vec::new(),
            flow_rows: Vec::new(),
            links: Cursor::default(),
            flows: Cursor::default(),
            events: Cursor::default(),
            hits: Hits::default(),
            query,
        }
    }

    /// Returns the last query.
    pub(super) fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the state on the screen.
    pub(super) fn displayed(&self) -> &DaemonState {
        self.paused.as_deref().unwrap_or(&self.latest)
    }

    /// Whether the display is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    fn help_key(&mut self, key: KeyEvent) -> Action {
        self.help.key(key.code);
        if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None }
    }

    fn input_key(&mut self, key: KeyEvent) {
        match (&mut self.input, key.code) {
            (Some(Input::Flows(input)), _) => {
                if let Outcome::Closed(filter) = input.key(key) {
                    self.input = None;
                    self.set_flow_filter(filter);
                }
            }
            (Some(Input::Links(_)), KeyCode::Esc) => {
                self.input = None;
                self.set_link_filter("");
            }
            (Some(Input::Links(_)), KeyCode::Enter) => self.input = None,
            (Some(Input::Links(line)), _) => {
                if line.key(key) == Edit::Changed {
                    let text = line.text();
                    self.set_link_filter(&text);
                }
            }
            (None, _) => {}
        }
    }

    fn set_flow_filter(&mut self, filter: FlowFilter) {
        self.flow_filter = filter;
        self.refresh_rows();
    }

    fn set_link_filter(&mut self, text: &str) {
        self.link_filter = LinkFilter::new(text);
        self.refresh_rows();
        // The flows below must belong to a visible link.
        if !text.is_empty() && self.links.index().is_none() {
            self.links.step(Step::First, &names_of(&self.link_rows));
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
            KeyCode::Char('e') => self.toggle_events(),
            KeyCode::Char('/') => self.open_input(self.pane == Pane::OnLink),
            KeyCode::Char('f') => self.open_input(true),
            KeyCode::Char('s') if self.pane == Pane::Links => self.set_sort(self.sort.next(), false),
            KeyCode::Char('r' | 'S') if self.pane == Pane::Links => {
                self.set_sort(self.sort, !self.is_reversed)
            }
            KeyCode::Enter => self.enter(),
            KeyCode::Esc => self.escape(),
            _ => {}
        }
        Action::None
    }

    pub(super) fn step(&mut self, step: Step) {
        match self.pane {
            Pane::Links => self.links.step(step, &names_of(&self.link_rows)),
            Pane::OnLink => self.flows.step(step, &keys_of(&self.flow_rows)),
            Pane::Events { .. } => {
                let numbers = self.event_numbers();
                self.events.step(step, &numbers);
            }
            Pane::Flow => {}
        }
    }

    fn toggle_pause(&mut self) {
        self.paused = if self.paused.is_none() { Some(Box::new(self.latest.clone())) } else { None };
        self.refresh_rows();
    }

    fn toggle_events(&mut self) {
        self.pane = match self.pane {
            Pane::Events { from_link: false } => Pane::Links,
            Pane::Events { from_link: true } => Pane::OnLink,
            Pane::Links | Pane::OnLink => Pane::Events { from_link: self.pane == Pane::OnLink },
            Pane::Flow => Pane::Flow,
        };
    }

    /// Opens the input of a flow filter or of a link filter, in the panes that show links or flows.
    fn open_input(&mut self, of_flows: bool) {
        if !matches!(self.pane, Pane::Links | Pane::OnLink) {
            return;
        }
        self.input = Some(match of_flows {
            true => Input::Flows(FilterInput::new(&self.flow_filter, &SAMPLED)),
            false => Input::Links(TextInput::new(self.link_filter.text())),
        });
    }

    pub(super) fn set_sort(&mut self, sort: SortBy, is_reversed: bool) {
        (self.sort, self.is_reversed) = (sort, is_reversed);
        self.links.reset();
        self.refresh_rows();
    }

    /// Opens the selected link or flow; the first if none is selected.
    pub(super) fn enter(&mut self) {
        match self.pane {
            Pane::Links if !self.link_rows.is_empty() => {
                if self.links.index().is_none() {
                    self.links.step(Step::First, &names_of(&self.link_rows));
                }
                self.flows.reset();
                self.pane = Pane::OnLink;
            }
            Pane::OnLink => {
                let Some(row) = self.flow_rows.get(self.flows.index().unwrap_or(0)) else { return };
                let pinned = PinnedFlow::new(row);
                for shown in self.all_states() {
                    shown.pinned = Some(pinned.clone());
                }
                self.pane = Pane::Flow;
            }
            _ => {}
        }
    }

    fn escape(&mut self) {
        match self.pane {
            Pane::Flow => {
                self.pane = Pane::OnLink;
                self.all_states().for_each(|shown| shown.pinned = None);
            }
            Pane::Events { .. } => self.toggle_events(),
            Pane::OnLink if !self.flow_filter.is_empty() => self.set_flow_filter(FlowFilter::default()),
            Pane::OnLink => self.pane = Pane::Links,
            Pane::Links if !self.link_filter.text().is_empty() => self.set_link_filter(""),
            Pane::Links => {
                self.links.reset();
            }
        }
    }

    fn all_states(&mut self) -> impl Iterator<Item = &mut DaemonState> {
        std::iter::once(&mut self.latest).chain(self.paused.as_deref_mut())
    }

    /// Returns the selected link.
    pub(super) fn selected_link(&self) -> Option<&ObservedLink> {
        self.links.selected()
    }

    /// Returns the current query.
    fn current_query(&self) -> Query {
        Query {
            link: self.selected_link().cloned(),
            filter: self.flow_filter.clone(),
            flow: self.latest.pinned.as_ref().map(|pinned| pinned.key),
        }
    }

    /// Applies filters and sort order, so that keys take effect at once, even while paused.
    fn refresh_rows(&mut self) {
        let links = self.displayed().snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.links);
        let mut links: Vec<Link> =
            links.iter().filter(|link| self.link_filter.matches(link)).cloned().collect();
        links.sort_by(|a, b| self.sort.compare(a, b));
        if self.is_reversed {
            links.reverse();
        }
        self.links.follow(&names_of(&links));
        self.link_rows = links;
        let on_link = self.displayed().details.on_link.as_ref();
        let is_about =
            on_link.filter(|on_link| self.selected_link().is_none_or(|link| *link == on_link.link));
        let flows = is_about.map_or(&[][..], |on_link| &on_link.flows);
        self.flow_rows = flows.iter().filter(|row| self.flow_filter.matches(*row)).cloned().collect();
        self.flows.follow(&keys_of(&self.flow_rows));
        let numbers = self.event_numbers();
        self.events.follow(&numbers);
    }

    pub(super) fn event_numbers(&self) -> Vec<u64> {
        self.displayed().events.iter().map(|(number, _)| *number).collect()
    }
}

impl TopView {
    /// Applies an update. While paused, it is kept but not shown.
    pub(super) fn handle_update(&mut self, update: Update) {
        self.latest.update(update);
        if self.paused.is_none() {
            self.refresh_rows();
        }
    }

    /// Handles the end of updates.
    pub(super) fn finish(&mut self) {
        self.latest.poll_error.get_or_insert(("polling has stopped".to_owned(), Duration::ZERO));
    }

    /// Handles a key.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> Action {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match () {
            () if key.kind == KeyEventKind::Release => Action::None,
            () if control_c => Action::Quit,
            () if self.help.is_open() => self.help_key(key),
            () if self.input.is_some() => {
                self.input_key(key);
                self.changed_query()
            }
            () => match self.pane_key(key) {
                Action::None => self.changed_query(),
                action => action,
            },
        }
    }

    /// Returns the query, if it has changed.
    pub(super) fn changed_query(&mut self) -> Action {
        let query = self.current_query();
        if query == self.query {
            return Action::None;
        }
        self.query.clone_from(&query);
        self.refresh_rows();
        Action::Query(query)
    }
}

pub(super) fn names_of(rows: &[Link]) -> Vec<ObservedLink> {
    rows.iter().map(ObservedLink::from).collect()
}

pub(super) fn keys_of(rows: &[FlowRow]) -> Vec<FlowKey> {
    rows.iter().map(|row| row.key).collect()
}
