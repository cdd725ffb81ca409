//! The event loop that runs a view on a terminal.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossbeam_channel::{Receiver, Sender, TryRecvError};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEvent, MouseEvent};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::{DefaultTerminal, Frame};

/// Maximum delay of updates and of a stop while no key is pressed.
const POLL_TIMEOUT: Duration = Duration::from_millis(50);

/// Maximum updates between two frames, so that keys are handled under any load.
const MAX_UPDATES: usize = 1_024;

/// A full-screen view: handles updates and keys, draws frames, issues queries.
pub(crate) trait View {
    /// Data to show.
    type Update;
    /// A request for other data.
    type Query;

    /// Draws one frame.
    fn draw(&mut self, frame: &mut Frame);

    /// Handles an update.
    fn update(&mut self, update: Self::Update);

    /// Handles the end of updates.
    fn end(&mut self);

    /// Handles a key.
    fn key(&mut self, key: KeyEvent) -> Action<Self::Query>;

    /// Handles a mouse button or wheel, at a position of the last frame.
    fn mouse(&mut self, _: MouseEvent) -> Action<Self::Query> {
        Action::None
    }
}

/// An action that a key requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action<Q> {
    /// Nothing except a new frame.
    None,
    /// Quit the view.
    Quit,
    /// Send this query; the next updates answer it.
    Query(Q),
    /// Copy this text to the clipboard of the terminal (OSC 52), which may not support it.
    Copy(String),
}

/// Shows a view on the terminal until the user quits (`q`, Ctrl-C) or `stop` is set, such as by a SIGTERM handler. When
/// updates end, the last one stays on the screen.
///
/// With `mouse`, the terminal reports the mouse to the view. Its own selection of text then needs Shift.
///
/// Reads keys from the terminal even if standard input is redirected. Always restores the terminal, even if a thread
/// panics. Sends each query once to `queries`; a full bounded channel blocks the view.
///
/// # Errors
/// If the terminal cannot be set up, read or written.
pub(crate) fn run<V: View>(
    view: &mut V,
    updates: &Receiver<V::Update>,
    queries: &Sender<V::Query>,
    mouse: bool,
    stop: &AtomicBool,
) -> io::Result<()> {
    let panicked = show_cursor_on_panic();
    let _restore = RestoreOnDrop { mouse };
    let mut terminal = ratatui::try_init()?;
    if mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    let stopped = || stop.load(Ordering::Relaxed) || panicked.load(Ordering::Relaxed);
    show(&mut terminal, view, updates, queries, stopped)
}

/// Extends the panic hook of [`ratatui::try_init`]: shows the cursor again, and sets a flag that stops drawing, so that the
/// view does not overwrite the panic message of another thread.
fn show_cursor_on_panic() -> Arc<AtomicBool> {
    let panicked = Arc::new(AtomicBool::new(false));
    let (flag, message) = (Arc::clone(&panicked), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        flag.store(true, Ordering::Relaxed);
        // Nowhere to report that the terminal is gone.
        let _ = execute!(io::stdout(), Show);
        message(info);
    }));
    panicked
}

/// Restores the terminal when dropped.
struct RestoreOnDrop {
    mouse: bool,
}

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        if self.mouse {
            // Nowhere to report that the terminal is gone.
            let _ = execute!(io::stdout(), DisableMouseCapture);
        }
        ratatui::restore();
    }
}

fn show<V: View>(
    terminal: &mut DefaultTerminal,
    view: &mut V,
    updates: &Receiver<V::Update>,
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
        if event::poll(POLL_TIMEOUT)? {
            changed = true;
            match handle_event(view)? {
                Action::None => {}
                Action::Quit => return Ok(()),
                // If no thread answers, the view keeps its data.
                Action::Query(query) => drop(queries.send(query)),
                Action::Copy(text) => {
                    execute!(io::stdout(), Print(format_args!("\x1b]52;c;{}\x07", STANDARD.encode(text))))?;
                }
            }
        }
        if open {
            let (still_open, any) = drain_updates(view, updates);
            changed |= any || !still_open;
            open = still_open;
        }
    }
    Ok(())
}

fn handle_event<V: View>(view: &mut V) -> io::Result<Action<V::Query>> {
    Ok(match event::read()? {
        Event::Key(key) => view.key(key),
        Event::Mouse(event) => view.mouse(event),
        _ => Action::None,
    })
}

/// Handles all pending updates. Returns whether the channel is open, and whether an update arrived.
fn drain_updates<V: View>(view: &mut V, updates: &Receiver<V::Update>) -> (bool, bool) {
    for taken in 0..MAX_UPDATES {
        match updates.try_recv() {
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

    /// Records its updates.
    #[derive(Default)]
    struct Recorder {
        updates: Vec<u32>,
        has_ended: bool,
    }

    impl View for Recorder {
        type Update = u32;
        type Query = ();

        fn draw(&mut self, _: &mut Frame) {}

        fn update(&mut self, update: u32) {
            self.updates.push(update);
        }

        fn end(&mut self) {
            self.has_ended = true;
        }

        fn key(&mut self, _: KeyEvent) -> Action<()> {
            Action::None
        }
    }

    #[test]
    fn updates_arrive_in_order_until_the_channel_closes() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let mut view = Recorder::default();
        assert_eq!(drain_updates(&mut view, &receiver), (true, false));
        for update in [1, 2] {
            sender.send(update).unwrap();
        }
        assert_eq!(drain_updates(&mut view, &receiver), (true, true));
        assert_eq!(view.updates, [1, 2]);
        assert!(!view.has_ended);
        drop(sender);
        assert_eq!(drain_updates(&mut view, &receiver), (false, false));
        assert!(view.has_ended);
    }

    #[test]
    fn updates_between_two_frames_are_limited() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        (0..2 * MAX_UPDATES as u32).for_each(|update| sender.send(update).unwrap());
        let mut view = Recorder::default();
        assert_eq!(drain_updates(&mut view, &receiver), (true, true));
        assert_eq!(view.updates.len(), MAX_UPDATES);
    }
}
