//! The state of the view between two frames, and what keys do to it.
//!
//! A key goes to the first that wants it: the help overlay, the filter box, the pane. `Esc` undoes one thing at a time: it
//! closes the help, leaves the box, leaves the pane, clears the filter, forgets the selection.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thalweg_api::Link;
use thalweg_measure::filter::{FlowFilter, SAMPLED};
use thalweg_wire::FlowKey;

use super::model::{FlowRow, LinkFilter, News, Query, SeenLink, SortBy};
use super::shown::{Frozen, Shown};
use crate::terminal::cursor::{Cursor, Step, step_of};
use crate::terminal::filter_box::{FilterBox, Typed};
use crate::terminal::line_box::{Edit, LineBox};
use crate::terminal::{self, Theme};

/// What a key asks of the caller.
pub(super) type Action = terminal::Action<Query>;

/// The live view: takes news and keys, draws frames, says what it wants to know.
#[derive(Debug)]
pub struct TopView {
    pub(super) theme: Theme,
    /// Address of the daemon.
    pub(super) api: String,
    pub(super) pane: Pane,
    pub(super) help: bool,
    pub(super) open_box: Option<OpenBox>,
    pub(super) link_filter: LinkFilter,
    pub(super) flow_filter: FlowFilter,
    pub(super) sort: SortBy,
    pub(super) is_reversed: bool,
    /// The latest of everything.
    latest: Shown,
    /// What stands on the screen while the display is paused.
    held: Option<Box<Shown>>,
    /// Rows of the tables: what is shown of what matches the filters, in order.
    pub(super) link_rows: Vec<Link>,
    pub(super) flow_rows: Vec<FlowRow>,
    pub(super) links: Cursor<SeenLink>,
    pub(super) flows: Cursor<FlowKey>,
    /// By the number in which they came.
    pub(super) events: Cursor<u64>,
    /// What was asked for last.
    query: Query,
}

/// The line in which a filter is typed.
#[derive(Debug)]
pub(super) enum OpenBox {
    /// Words of links; they apply while they are typed.
    Links(LineBox),
    /// A flow filter.
    Flows(FilterBox),
}

/// What the lower part of the screen has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    /// Links, the flows on the chosen one, events.
    Links,
    /// The flows on one link.
    OnLink,
    /// Events.
    Events {
        /// Where to go back to: the flows on one link.
        from_link: bool,
    },
    /// One flow.
    Flow,
}

impl TopView {
    /// A view of the daemon at this address that has been told nothing yet and asks for [`Query::default`].
    pub fn new(theme: Theme, api: &str) -> TopView {
        TopView::with_filter(theme, api, FlowFilter::default())
    }

    /// The same with a filter of flows.
    pub fn with_filter(theme: Theme, api: &str, flow_filter: FlowFilter) -> TopView {
        let query = Query { filter: flow_filter.clone(), ..Query::default() };
        TopView {
            theme,
            api: api.to_owned(),
            pane: Pane::Links,
            help: false,
            open_box: None,
            link_filter: LinkFilter::default(),
            flow_filter,
            sort: SortBy::default(),
            is_reversed: false,
            latest: Shown::default(),
            held: None,
            link_rows: Vec::new(),
            flow_rows: Vec::new(),
            links: Cursor::default(),
            flows: Cursor::default(),
            events: Cursor::default(),
            query,
        }
    }

    /// What it wants to know.
    pub(super) fn query(&self) -> &Query {
        &self.query
    }

    /// What is on the screen.
    pub(super) fn shown(&self) -> &Shown {
        self.held.as_deref().unwrap_or(&self.latest)
    }

    /// Whether the display is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.held.is_some()
    }

    fn help_key(&mut self, key: KeyEvent) -> Action {
        self.help = false;
        if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None }
    }

    fn box_key(&mut self, key: KeyEvent) {
        match (&mut self.open_box, key.code) {
            (Some(OpenBox::Flows(line)), _) => {
                if let Typed::Closed(filter) = line.key(key) {
                    self.open_box = None;
                    self.set_flow_filter(filter);
                }
            }
            (Some(OpenBox::Links(_)), KeyCode::Esc) => {
                self.open_box = None;
                self.set_link_filter("");
            }
            (Some(OpenBox::Links(_)), KeyCode::Enter) => self.open_box = None,
            (Some(OpenBox::Links(line)), _) => {
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
        // The flows below are those of a link that is seen.
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
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char(' ') => self.toggle_pause(),
            KeyCode::Char('e') => self.toggle_events(),
            KeyCode::Char('/') => self.open_box(self.pane == Pane::OnLink),
            KeyCode::Char('f') => self.open_box(true),
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

    fn step(&mut self, step: Step) {
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
        self.held = if self.held.is_none() { Some(Box::new(self.latest.clone())) } else { None };
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

    /// Opens the box for a filter of flows, or of links, where these are shown.
    fn open_box(&mut self, of_flows: bool) {
        if !matches!(self.pane, Pane::Links | Pane::OnLink) {
            return;
        }
        self.open_box = Some(match of_flows {
            true => OpenBox::Flows(FilterBox::new(&self.flow_filter, &SAMPLED)),
            false => OpenBox::Links(LineBox::new(self.link_filter.text())),
        });
    }

    fn set_sort(&mut self, sort: SortBy, is_reversed: bool) {
        (self.sort, self.is_reversed) = (sort, is_reversed);
        self.links.reset();
        self.refresh_rows();
    }

    /// Goes to the chosen link, and from there to the chosen flow; to the first where none is chosen.
    fn enter(&mut self) {
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
                let frozen = Frozen::new(row);
                for shown in self.all_shown() {
                    shown.frozen = Some(frozen.clone());
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
                self.all_shown().for_each(|shown| shown.frozen = None);
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

    fn all_shown(&mut self) -> impl Iterator<Item = &mut Shown> {
        std::iter::once(&mut self.latest).chain(self.held.as_deref_mut())
    }

    /// The link that the user has chosen.
    pub(super) fn chosen_link(&self) -> Option<&SeenLink> {
        self.links.chosen()
    }

    /// What it wants to know now.
    fn wanted(&self) -> Query {
        Query {
            link: self.chosen_link().cloned(),
            filter: self.flow_filter.clone(),
            flow: self.latest.frozen.as_ref().map(|frozen| frozen.key),
        }
    }

    /// Filters and order are applied here, so that a key shows at once, paused or not.
    fn refresh_rows(&mut self) {
        let links = self.shown().snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.links);
        let mut links: Vec<Link> =
            links.iter().filter(|link| self.link_filter.matches(link)).cloned().collect();
        links.sort_by(|a, b| self.sort.compare(a, b));
        if self.is_reversed {
            links.reverse();
        }
        self.links.follow(&names_of(&links));
        self.link_rows = links;
        let on_link = self.shown().details.on_link.as_ref();
        let is_about = on_link.filter(|on_link| self.chosen_link().is_none_or(|link| *link == on_link.link));
        let flows = is_about.map_or(&[][..], |on_link| &on_link.flows);
        self.flow_rows = flows.iter().filter(|row| self.flow_filter.matches(*row)).cloned().collect();
        self.flows.follow(&keys_of(&self.flow_rows));
        let numbers = self.event_numbers();
        self.events.follow(&numbers);
    }

    fn event_numbers(&self) -> Vec<u64> {
        self.shown().events.iter().map(|(number, _)| *number).collect()
    }
}

impl TopView {
    /// Takes news. While the display is paused they are kept and not shown.
    pub(super) fn receive(&mut self, news: News) {
        self.latest.take(news);
        if self.held.is_none() {
            self.refresh_rows();
        }
    }

    /// Takes the end of all news.
    pub(super) fn conclude(&mut self) {
        self.latest.trouble.get_or_insert(("is not asked any more".to_owned(), Duration::ZERO));
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        let action = match () {
            () if key.kind == KeyEventKind::Release => return Action::None,
            () if control_c => Action::Quit,
            () if self.help => self.help_key(key),
            () if self.open_box.is_some() => {
                self.box_key(key);
                Action::None
            }
            () => self.pane_key(key),
        };
        let wanted = self.wanted();
        if action == Action::Quit || wanted == self.query {
            return action;
        }
        self.query.clone_from(&wanted);
        self.refresh_rows();
        Action::Query(wanted)
    }
}

fn names_of(rows: &[Link]) -> Vec<SeenLink> {
    rows.iter().map(SeenLink::from).collect()
}

fn keys_of(rows: &[FlowRow]) -> Vec<FlowKey> {
    rows.iter().map(|row| row.key).collect()
}
