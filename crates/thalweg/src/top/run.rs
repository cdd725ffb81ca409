//! One run of `thalweg top`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_api::client::Client;
use thalweg_measure::filter::FlowFilter;

use super::model::{News, Query};
use super::options::{Show, TopOptions};
use super::view::TopView;
use super::{event_feed, links_table, poll};
use crate::terminal::{self, Theme};

/// News that a slow terminal may be behind.
const NEWS_IN_FLIGHT: usize = 256;

/// Shows what a daemon says: once, returning the text; or live until the user quits, returning none.
///
/// # Errors
/// If the options cannot be used, the terminal fails, or, shown once, the daemon does not answer.
pub fn run(options: &TopOptions) -> anyhow::Result<Option<String>> {
    let client = Client::new(&options.client)?;
    let unanswered = || client.base().to_owned();
    match options.show {
        Show::LiveView => show(&client, &options.filter).map(|()| None),
        Show::Once => {
            let links = client.get("/v1/links").with_context(unanswered)?;
            Ok(Some(links_table::table(&links)))
        }
        Show::Json => {
            let mut text = client.text("/v1/links").with_context(unanswered)?;
            text.push('\n');
            Ok(Some(text))
        }
    }
}

/// What a daemon is asked, and what it says, as long as both ends are kept.
#[derive(Debug)]
pub struct Feed {
    /// What it says, as it comes.
    pub news: Receiver<News>,
    /// What to ask beside what is always asked.
    pub queries: Sender<Query>,
}

impl Feed {
    /// Begins to ask. The threads that do so end once the feed is dropped and what they wait for has come: they hold
    /// nothing that needs to be put in order.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(client: &Client) -> io::Result<Feed> {
        let (tell, news) = bounded(NEWS_IN_FLIGHT);
        let (ask, queries) = unbounded();
        let (polled, heard, telling) = (client.clone(), client.clone(), tell.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("poll").spawn(move || poll::poll(&polled, &queries, &tell))?;
        named("events").spawn(move || event_feed::listen(&heard, &telling))?;
        Ok(Feed { news, queries: ask })
    }
}

fn show(client: &Client, filter: &FlowFilter) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    let Feed { news, queries } = Feed::start(client).context("cannot start a thread")?;
    let mut view = TopView::with_filter(Theme::of_process(), client.base(), filter.clone());
    // The thread that polls has no filter before it is sent one. If it is gone, the view says so.
    let _ = queries.send(view.query().clone());
    terminal::run(&mut view, &news, &queries, &stop).context("cannot use the terminal")
}
