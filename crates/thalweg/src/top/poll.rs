//! The thread that polls the daemon: four times per second, less often if the daemon is slow.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendError, Sender};
use thalweg_api::client::back_off::BackOff;
use thalweg_api::client::{Client, RequestError, segment};
use thalweg_api::{Collector, CollectorResponse, Collectors, Flows, Health, Links};

use super::model::{Details, FLOWS, FlowRow, ObservedLink, OnLink, Query, Snapshot, Update, busiest};

/// Time between the starts of two polls.
const PERIOD: Duration = Duration::from_millis(250);

/// Minimum pause between polls, as a multiple of the response time.
const REST_FACTOR: u32 = 3;

/// Maximum pause between polls while the daemon responds.
const MAX_PERIOD: Duration = Duration::from_secs(5);

/// Minimum time between two queries, such as while a key is held down.
const QUERY_INTERVAL: Duration = Duration::from_millis(50);

/// Polls until the view is closed.
pub(super) fn poll(client: &Client, queries: &Receiver<Query>, updates: &Sender<Update>) {
    let mut back_off = BackOff::default();
    let mut query = Query::default();
    loop {
        let started = Instant::now();
        let (update, rest) = match snapshot(client, &query) {
            Ok(snapshot) => {
                back_off = BackOff::default();
                (Update::Snapshot(Box::new(snapshot)), rest_after(started.elapsed()))
            }
            Err(error) => {
                let retry_in = back_off.next(&error);
                (Update::PollFailed { error, retry_in }, retry_in)
            }
        };
        if updates.send(update).is_err()
            || answer_queries(client, queries, updates, &mut query, rest).is_err()
        {
            return;
        }
    }
}

/// Returns the pause after a poll that took this long.
fn rest_after(took: Duration) -> Duration {
    (took * REST_FACTOR).max(PERIOD.saturating_sub(took)).min(MAX_PERIOD)
}

/// Waits until the next poll is due, and answers queries meanwhile.
fn answer_queries(
    client: &Client,
    queries: &Receiver<Query>,
    updates: &Sender<Update>,
    query: &mut Query,
    rest: Duration,
) -> Result<(), ViewClosed> {
    let due = Instant::now() + rest;
    loop {
        match queries.recv_deadline(due) {
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(ViewClosed),
            Ok(latest) => *query = queries.try_iter().last().unwrap_or(latest),
        }
        // The next poll reports the error.
        if let Ok(details) = details(client, query, query.link.clone()) {
            updates.send(Update::Details(Box::new(details)))?;
        }
        std::thread::sleep(QUERY_INTERVAL);
    }
}

/// The view is closed.
struct ViewClosed;

impl<T> From<SendError<T>> for ViewClosed {
    fn from(_: SendError<T>) -> ViewClosed {
        ViewClosed
    }
}

/// Polls once.
fn snapshot(client: &Client, query: &Query) -> Result<Snapshot, RequestError> {
    let health: Health = client.get("/healthz")?;
    let Collectors { collectors, .. } = client.get("/v1/collectors")?;
    let Links { responses, links } = match client.get("/v1/links") {
        Err(RequestError::Refused { status: 503, .. }) => unresponsive(&collectors),
        links => links?,
    };
    let link =
        query.link.clone().filter(|selected| links.iter().any(|link| ObservedLink::from(link) == *selected));
    let link = link.or_else(|| busiest(&links).map(ObservedLink::from));
    let details = details(client, query, link)?;
    Ok(Snapshot { health, collectors, responses, links, details })
}

/// Returns an empty list of links if no collector responded; the collectors are shown anyway.
fn unresponsive(collectors: &[Collector]) -> Links {
    let responses = collectors.iter().map(|collector| CollectorResponse {
        collector: collector.name.clone(),
        time: None,
        error: None,
    });
    Links { responses: responses.collect(), links: Vec::new() }
}

fn details(client: &Client, query: &Query, link: Option<ObservedLink>) -> Result<Details, RequestError> {
    let on_link = match link {
        Some(link) => {
            let (name, collector) = (segment(&link.link), segment(&link.collector));
            let mut path = format!("/v1/links/{name}/flows?limit={FLOWS}&collector={collector}");
            if !query.filter.is_empty() {
                path = format!("{path}&filter={}", segment(query.filter.text()));
            }
            let answer = flows(client, &path)?;
            let filter = query.filter.clone();
            answer.map(|(flows, total)| OnLink { link, filter, flows, total })
        }
        None => None,
    };
    let flow = match query.flow {
        Some(key) => {
            let path = format!("/v1/flows/{}", segment(&key.to_string()));
            Some(flows(client, &path)?.map_or_else(Vec::new, |(flows, _)| flows))
        }
        None => None,
    };
    Ok(Details { on_link, flow })
}

/// Returns flows and their total number; `None` if the link or flow is gone, or no collector responded.
fn flows(client: &Client, path: &str) -> Result<Option<(Vec<FlowRow>, u64)>, RequestError> {
    match client.get::<Flows>(path) {
        Err(RequestError::Refused { status: 404 | 503, .. }) => Ok(None),
        flows => {
            let flows = flows?;
            let total = flows.total;
            Ok(Some((FlowRow::all(flows, path)?, total)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_daemon_is_polled_less_often() {
        let rests = [0, 10, 200, 1_000, 60_000].map(|ms| rest_after(Duration::from_millis(ms)).as_millis());
        assert_eq!(rests, [250, 240, 600, 3_000, 5_000]);
    }
}
