//! The view joined to a terminal: its state, and how that is drawn.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use thalweg_watch::snapshot::{Query, Snapshot};

use super::draw;
use super::view::{Action, LiveView};
use crate::terminal::View;

impl View for LiveView {
    type News = Snapshot;
    type Query = Query;

    fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }

    fn update(&mut self, snapshot: Snapshot) {
        self.receive(snapshot);
    }

    fn end(&mut self) {
        self.conclude();
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        self.press(key)
    }
}
