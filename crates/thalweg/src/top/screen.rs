//! The view joined to a terminal: its state, and how that is drawn.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;

use super::draw;
use super::model::{News, Query};
use super::view::{Action, TopView};
use crate::terminal::View;

impl View for TopView {
    type News = News;
    type Query = Query;

    fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }

    fn update(&mut self, news: News) {
        self.receive(news);
    }

    fn end(&mut self) {
        self.conclude();
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        self.press(key)
    }
}
