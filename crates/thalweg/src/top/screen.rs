//! Implements [`View`] for the live view.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::draw;
use super::model::{Query, Update};
use super::view::{Action, TopView};
use crate::terminal::View;

impl View for TopView {
    type Update = Update;
    type Query = Query;

    fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }

    fn update(&mut self, update: Update) {
        self.handle_update(update);
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
