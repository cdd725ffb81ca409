//! Clicks and the wheel.

use ratatui::crossterm::event::MouseEvent;

use super::model::SortBy;
use super::view::{Action, Pane, TopView, keys_of, names_of};
use crate::terminal::mouse::{Gesture, Hit};

/// A list whose rows a click selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Links,
    Flows,
    Events,
}

impl TopView {
    /// Handles the mouse: a click selects a row, a second click opens it, a click on a column title sorts, one on a key of the
    /// last line presses it, the wheel moves the selection. A click on a flow or event below the links opens its list.
    pub(super) fn handle_mouse(&mut self, event: MouseEvent) -> Action {
        match self.hits.gesture(event) {
            Some(Gesture::Click(_)) if self.help.is_open() => self.help.close(),
            Some(Gesture::Wheel(step)) if self.help.is_open() => self.help.scroll(step),
            Some(Gesture::Click(Some(Hit::Key(key)))) => return self.handle_key(key),
            _ if self.input.is_some() => {}
            Some(Gesture::Wheel(step)) => self.step(step),
            Some(Gesture::Click(Some(Hit::Row(list, index)))) => self.click_row(list, index),
            Some(Gesture::Click(Some(Hit::Title(sort)))) => self.click_title(sort),
            Some(Gesture::Click(None)) | None => {}
        }
        self.changed_query()
    }

    fn click_row(&mut self, list: List, index: usize) {
        match list {
            List::Links => {
                if self.links.click(index, &names_of(&self.link_rows)) {
                    self.enter();
                }
            }
            List::Flows if self.pane == Pane::Links => self.click_flow_below_links(index),
            List::Flows => {
                if self.flows.click(index, &keys_of(&self.flow_rows)) {
                    self.enter();
                }
            }
            List::Events => {
                if self.pane == Pane::Links {
                    self.pane = Pane::Events { from_link: false };
                }
                let numbers = self.event_numbers();
                self.events.click(index, &numbers);
            }
        }
    }

    /// Opens the link whose flows are below the links, with the flow selected. Does nothing if the filter hides the link.
    fn click_flow_below_links(&mut self, index: usize) {
        let Some(link) = self.displayed().details.on_link.as_ref().map(|on_link| on_link.link.clone()) else {
            return;
        };
        let names = names_of(&self.link_rows);
        let Some(row) = names.iter().position(|name| *name == link) else { return };
        self.links.click(row, &names);
        self.enter();
        self.flows.click(index, &keys_of(&self.flow_rows));
    }

    /// Sorts by a column; reverses the order if the table is already sorted by it.
    fn click_title(&mut self, sort: SortBy) {
        self.set_sort(sort, self.sort == sort && !self.is_reversed);
    }
}
