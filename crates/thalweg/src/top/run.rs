//! The command `thalweg top`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_api::client::Client;

use super::model::{Query, Update};
use super::options::{Show, TopOptions};
use super::view::TopView;
use super::{event_feed, links_table, poll};
use crate::terminal::{self, Theme};

/// Capacity of the channel of updates to the view.
const UPDATES_IN_FLIGHT: usize = 256;

/// Returns the links as text, or runs the live view until the user quits and returns `None`.
///
/// # Errors
/// If the options are invalid, the terminal fails, or the daemon does not respond (without the live view).
pub fn run(options: &TopOptions) -> anyhow::Result<Option<String>> {
    let client = Client::new(&options.client)?;
    let api = || client.base().to_owned();
    match options.show {
        Show::LiveView => show(&client, options).map(|()| None),
        Show::Once => {
            let links = client.get("/v1/links").with_context(api)?;
            Ok(Some(links_table::table(&links)))
        }
        Show::Json => {
            let mut text = client.text("/v1/links").with_context(api)?;
            text.push('\n');
            Ok(Some(text))
        }
    }
}

/// The channels of the threads that poll the daemon.
#[derive(Debug)]
pub struct Feed {
    /// Updates from the daemon.
    pub updates: Receiver<Update>,
    /// Queries to the polling thread.
    pub queries: Sender<Query>,
}

impl Feed {
    /// Starts the threads. They end after the feed is dropped and their pending request completes. They hold no state that
    /// needs cleaning up.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(client: &Client) -> io::Result<Feed> {
        let (sender, updates) = bounded(UPDATES_IN_FLIGHT);
        let (query_sender, queries) = unbounded();
        let (poll_client, event_client, event_sender) = (client.clone(), client.clone(), sender.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("poll").spawn(move || poll::poll(&poll_client, &queries, &sender))?;
        named("events").spawn(move || event_feed::subscribe(&event_client, &event_sender))?;
        Ok(Feed { updates, queries: query_sender })
    }
}

fn show(client: &Client, options: &TopOptions) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    let Feed { updates, queries } = Feed::start(client).context("cannot start a thread")?;
    let mut view = TopView::with_filter(Theme::of_process(), client.base(), options.filter.clone());
    // Sends the filter to the polling thread. If that thread has ended, the view reports it.
    let _ = queries.send(view.query().clone());
    terminal::run(&mut view, &updates, &queries, options.mouse, &stop).context("cannot use the terminal")
}
