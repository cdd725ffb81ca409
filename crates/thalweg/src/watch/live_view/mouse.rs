//! Clicks and the wheel.

use ratatui::crossterm::event::MouseEvent;
use thalweg_watch::groups::Grouping;
use thalweg_watch::snapshot::SortBy;

use super::view::{Action, LiveView, Pane, groups_of_rows, keys_of};
use crate::terminal::mouse::{Gesture, Hit};

/// A list whose rows a click selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Flows, hosts or pairs.
    Table,
    Cheetahs,
    Tasks,
    /// The keys of the selected task.
    TaskKeys,
}

impl LiveView {
    /// Handles the mouse: a click selects a row, a second click opens it, a click on a column title sorts, one on a key of the
    /// last line presses it, the wheel moves the selection.
    pub(super) fn handle_mouse(&mut self, event: MouseEvent) -> Action {
        match self.hits.gesture(event) {
            Some(Gesture::Click(_)) if self.help.is_open() => self.help.close(),
            Some(Gesture::Wheel(step)) if self.help.is_open() => self.help.scroll(step),
            Some(Gesture::Click(Some(Hit::Key(key)))) => return self.handle_key(key),
            _ if self.filter_input.is_some() => {}
            Some(Gesture::Wheel(step)) => self.step(step),
            Some(Gesture::Click(Some(Hit::Row(list, index)))) => return self.click_row(list, index),
            Some(Gesture::Click(Some(Hit::Title(sort)))) => return self.click_title(sort),
            Some(Gesture::Click(None)) | None => {}
        }
        Action::None
    }

    fn click_row(&mut self, list: List, index: usize) -> Action {
        let was_selected = match list {
            List::Table if self.query.grouping == Grouping::Flow => {
                self.flows.click(index, &keys_of(&self.rows))
            }
            List::Table => self.groups.click(index, &groups_of_rows(&self.group_rows)),
            List::Cheetahs => {
                let names = self.cheetah_names();
                self.cheetahs.click(index, &names)
            }
            List::Tasks => {
                self.task_keys.reset();
                let tasks: Vec<usize> = (0..self.task_count()).collect();
                self.tasks.click(index, &tasks)
            }
            List::TaskKeys => {
                // A task has no more to open than its keys.
                self.pane = Pane::OneTask;
                let names = self.task_key_names();
                self.task_keys.click(index, &names);
                false
            }
        };
        if was_selected { self.open() } else { Action::None }
    }

    /// Sorts by a column; reverses the order if the table is already sorted by it.
    fn click_title(&mut self, sort: SortBy) -> Action {
        self.set_sort(|query| {
            query.descending = query.sort != sort || !query.descending;
            query.sort = sort;
        })
    }
}
