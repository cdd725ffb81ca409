//! The loop that joins a view to a terminal.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};

/// How long news or a stop may wait while no key is pressed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Most news taken between two frames, so that keys are answered however much there is.
const MOST_NEWS: usize = 1_024;

/// A full-screen view: takes news and keys, draws frames, says what it wants to know.
pub(crate) trait View {
    /// What it shows.
    type News;
    /// What it asks for.
    type Query;

    /// Draws one frame.
    fn draw(&mut self, frame: &mut Frame);

    /// Takes news.
    fn update(&mut self, news: Self::News);

    /// Takes the end of all news.
    fn end(&mut self);

    /// Takes a key.
    fn key(&mut self, key: KeyEvent) -> Action<Self::Query>;
}

/// What a key asks of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action<Q> {
    /// Nothing beyond a new frame.
    None,
    /// End the view.
    Quit,
    /// Let the next news answer this.
    Query(Q),
}

/// Shows a view on the terminal until the user quits (`q`, Ctrl-C) or `stop` is set, such as by a handler of
/// SIGTERM. When the news end, the last stay on the screen.
///
/// Keys come from the terminal even if standard input is something else. The terminal is restored on every
/// way out, a panic of any thread included. `queries` gets each query once; a bounded channel that is full
/// blocks the view.
///
/// # Errors
/// If the terminal cannot be set up, read or written.
pub(crate) fn run<V: View>(
    view: &mut V,
    news: &Receiver<V::News>,
    queries: &Sender<V::Query>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let panicked = show_cursor_on_panic();
    let _restore = RestoreOnDrop;
    let mut terminal = ratatui::try_init()?;
    let stopped = || stop.load(Ordering::Relaxed) || panicked.load(Ordering::Relaxed);
    show(&mut terminal, view, news, queries, stopped)
}

/// Adds to what [`ratatui::try_init`] does on a panic: the cursor comes back, and whoever draws learns of it,
/// so that the view does not write over the message of another thread's panic.
fn show_cursor_on_panic() -> Arc<AtomicBool> {
    let panicked = Arc::new(AtomicBool::new(false));
    let (flag, message) = (Arc::clone(&panicked), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        flag.store(true, Ordering::Relaxed);
        // There is no better place to report that the terminal is gone.
        let _ = execute!(io::stdout(), Show);
        message(info);
    }));
    panicked
}

/// Gives the terminal back as it was.
struct RestoreOnDrop;

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn show<V: View>(
    terminal: &mut DefaultTerminal,
    view: &mut V,
    news: &Receiver<V::News>,
    queries: &Sender<V::Query>,
    stopped: impl Fn() -> bool,
) -> io::Result<()> {
    let mut open = true;
    let mut changed = true;
    while !stopped() {
        if changed {
            terminal.draw(|frame| view.draw(frame))?;
        }
        changed = false;
        if event::poll(PATIENCE)? {
            changed = true;
            match take_event(view)? {
                Action::None => {}
                Action::Quit => return Ok(()),
                // Nobody left to answer: the view goes on with what it has.
                Action::Query(query) => drop(queries.send(query)),
            }
        }
        if open {
            let (still_open, any) = take_news(view, news);
            changed |= any || !still_open;
            open = still_open;
        }
    }
    Ok(())
}

fn take_event<V: View>(view: &mut V) -> io::Result<Action<V::Query>> {
    Ok(match event::read()? {
        Event::Key(key) => view.key(key),
        _ => Action::None,
    })
}

/// Takes all news that have arrived. Says whether there can be more, and whether there were any.
fn take_news<V: View>(view: &mut V, news: &Receiver<V::News>) -> (bool, bool) {
    for taken in 0..MOST_NEWS {
        match news.try_recv() {
            Ok(latest) => view.update(latest),
            Err(TryRecvError::Empty) => return (true, taken > 0),
            Err(TryRecvError::Disconnected) => {
                view.end();
                return (false, taken > 0);
            }
        }
    }
    (true, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it was told.
    #[derive(Default)]
    struct Listener {
        heard: Vec<u32>,
        has_ended: bool,
    }

    impl View for Listener {
        type News = u32;
        type Query = ();

        fn draw(&mut self, _: &mut Frame) {}

        fn update(&mut self, news: u32) {
            self.heard.push(news);
        }

        fn end(&mut self) {
            self.has_ended = true;
        }

        fn key(&mut self, _: KeyEvent) -> Action<()> {
            Action::None
        }
    }

    #[test]
    fn all_news_are_taken_in_order_and_a_closed_channel_ends_them() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let mut view = Listener::default();
        assert_eq!(take_news(&mut view, &receiver), (true, false));
        for news in [1, 2] {
            sender.send(news).unwrap();
        }
        assert_eq!(take_news(&mut view, &receiver), (true, true));
        assert_eq!(view.heard, [1, 2]);
        assert!(!view.has_ended);
        drop(sender);
        assert_eq!(take_news(&mut view, &receiver), (false, false));
        assert!(view.has_ended);
    }

    #[test]
    fn keys_are_looked_at_however_many_news_there_are() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        (0..2 * MOST_NEWS as u32).for_each(|news| sender.send(news).unwrap());
        let mut view = Listener::default();
        assert_eq!(take_news(&mut view, &receiver), (true, true));
        assert_eq!(view.heard.len(), MOST_NEWS);
    }
}
