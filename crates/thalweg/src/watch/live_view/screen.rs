//! Implements [`View`] for the live view.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use thalweg_watch::snapshot::{Query, Snapshot};

use super::draw;
use super::view::{Action, LiveView};
use crate::terminal::View;

impl View for LiveView {
    type Update = Snapshot;
    type Query = Query;

    fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }

    fn update(&mut self, snapshot: Snapshot) {
        self.handle_update(snapshot);
    }

    fn end(&mut self) {
        self.finish();
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        self.handle_key(key)
    }

    fn mouse(&mut self, event: MouseEvent) -> Action {
        self.handle_mouse(event)
    }
}
