//! The loop that joins the view to a terminal.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;

use super::model::{Query, Snapshot};
use super::theme::Theme;
use super::view::{Action, LiveView};

/// How long a snapshot or a stop may wait while no key is pressed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Shows snapshots on the terminal until the user quits (`q`, Ctrl-C) or `stop` is set, such as by a handler of
/// SIGTERM. When the snapshots end, the last one stays on the screen.
///
/// Keys come from the terminal even if standard input is something else. The terminal is restored on every
/// way out, a panic of any thread included. Of snapshots that arrive faster than they can be drawn the latest
/// is shown. `queries` gets [`Query::default`] never, and each later query once; a bounded channel that is
/// full blocks the view.
///
/// # Errors
/// If the terminal cannot be set up, read or written.
pub fn run(
    snapshots: &Receiver<Snapshot>,
    queries: &Sender<Query>,
    stop: &AtomicBool,
    theme: Theme,
) -> io::Result<()> {
    let panicked = show_cursor_on_panic();
    let _restore = RestoreOnDrop;
    let mut terminal = ratatui::try_init()?;
    let stopped = || stop.load(Ordering::Relaxed) || panicked.load(Ordering::Relaxed);
    show(&mut terminal, &mut LiveView::new(theme), snapshots, queries, stopped)
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

fn show(
    terminal: &mut DefaultTerminal,
    view: &mut LiveView,
    snapshots: &Receiver<Snapshot>,
    queries: &Sender<Query>,
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
            let (still_open, any) = take_snapshots(view, snapshots);
            changed |= any || !still_open;
            open = still_open;
        }
    }
    Ok(())
}

fn take_event(view: &mut LiveView) -> io::Result<Action> {
    Ok(match event::read()? {
        Event::Key(key) => view.key(key),
        _ => Action::None,
    })
}

/// Takes the latest of the snapshots that have arrived. Says whether there can be more, and whether there was
/// one.
fn take_snapshots(view: &mut LiveView, snapshots: &Receiver<Snapshot>) -> (bool, bool) {
    let mut latest = None;
    let open = loop {
        match snapshots.try_recv() {
            Ok(snapshot) => latest = Some(snapshot),
            Err(TryRecvError::Empty) => break true,
            Err(TryRecvError::Disconnected) => break false,
        }
    };
    let any = latest.is_some();
    if let Some(snapshot) = latest {
        view.update(snapshot);
    }
    if !open {
        view.end();
    }
    (open, any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_snapshots_the_latest_is_shown_and_a_closed_channel_ends_the_input() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let mut view = LiveView::new(Theme::PLAIN);
        assert_eq!(take_snapshots(&mut view, &receiver), (true, false));
        for packets in [1, 2] {
            sender.send(Snapshot { packets, ..Snapshot::default() }).unwrap();
        }
        assert_eq!(take_snapshots(&mut view, &receiver), (true, true));
        assert_eq!(view.shown().snapshot.packets, 2);
        assert!(!view.has_ended());
        drop(sender);
        assert_eq!(take_snapshots(&mut view, &receiver), (false, false));
        assert!(view.has_ended());
    }
}
