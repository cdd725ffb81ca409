//! The thread that asks what is shown: four times a second, less often where the daemon takes long to answer.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendError, Sender};
use thalweg_api::client::back_off::BackOff;
use thalweg_api::client::{Client, RequestError, segment};
use thalweg_api::{Answered, Collector, Collectors, Flows, Health, Links};

use super::model::{Details, FLOWS, FlowRow, News, OnLink, Query, SeenLink, Snapshot, busiest};

/// Time from one round of questions to the next.
const PERIOD: Duration = Duration::from_millis(250);

/// A daemon has at least this many times as long for itself as it took to answer.
const RESTS: u32 = 3;

/// Longest time between two rounds while the daemon answers.
const LONGEST_PERIOD: Duration = Duration::from_secs(5);

/// Time between two questions for what the user chooses: a key held down asks no more often.
const SPACING: Duration = Duration::from_millis(50);

/// Asks until nobody wants to know any more.
pub(super) fn poll(client: &Client, queries: &Receiver<Query>, news: &Sender<News>) {
    let mut back_off = BackOff::default();
    let mut query = Query::default();
    loop {
        let began = Instant::now();
        let (told, rest) = match snapshot(client, &query) {
            Ok(snapshot) => {
                back_off = BackOff::default();
                (News::Asked(Box::new(snapshot)), rest_after(began.elapsed()))
            }
            Err(error) => {
                let retry_in = back_off.next(&error);
                (News::Trouble { error, retry_in }, retry_in)
            }
        };
        if news.send(told).is_err() || rest_and_answer(client, queries, news, &mut query, rest).is_err() {
            return;
        }
    }
}

/// How long to leave a daemon alone that took this long.
fn rest_after(took: Duration) -> Duration {
    (took * RESTS).max(PERIOD.saturating_sub(took)).min(LONGEST_PERIOD)
}

/// The next round is due after `rest`; what the user chooses meanwhile is asked at once.
fn rest_and_answer(
    client: &Client,
    queries: &Receiver<Query>,
    news: &Sender<News>,
    query: &mut Query,
    rest: Duration,
) -> Result<(), Gone> {
    let due = Instant::now() + rest;
    loop {
        match queries.recv_deadline(due) {
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
            Ok(latest) => *query = queries.try_iter().last().unwrap_or(latest),
        }
        // What fails here fails in the next round again, which tells of it.
        if let Ok(details) = details(client, query, query.link.clone()) {
            news.send(News::Chosen(Box::new(details)))?;
        }
        std::thread::sleep(SPACING);
    }
}

/// The view is gone.
struct Gone;

impl<T> From<SendError<T>> for Gone {
    fn from(_: SendError<T>) -> Gone {
        Gone
    }
}

/// One round of questions.
fn snapshot(client: &Client, query: &Query) -> Result<Snapshot, RequestError> {
    let health: Health = client.get("/healthz")?;
    let Collectors { collectors, .. } = client.get("/v1/collectors")?;
    let Links { answered, links } = match client.get("/v1/links") {
        Err(RequestError::Refused { status: 503, .. }) => silent(&collectors),
        links => links?,
    };
    let link = query.link.clone().filter(|chosen| links.iter().any(|link| SeenLink::from(link) == *chosen));
    let link = link.or_else(|| busiest(&links).map(SeenLink::from));
    let details = details(client, query, link)?;
    Ok(Snapshot { health, collectors, answered, links, details })
}

/// No collector told of its links: there are collectors to show all the same.
fn silent(collectors: &[Collector]) -> Links {
    let answered = collectors.iter().map(|collector| Answered {
        collector: collector.name.clone(),
        at: None,
        error: None,
    });
    Links { answered: answered.collect(), links: Vec::new() }
}

fn details(client: &Client, query: &Query, link: Option<SeenLink>) -> Result<Details, RequestError> {
    let on_link = match link {
        Some(link) => {
            let (name, collector) = (segment(&link.link), segment(&link.collector));
            let mut path = format!("/v1/links/{name}/flows?top={FLOWS}&collector={collector}");
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

/// Flows, and how many there are; `None` if there is nothing of that name any more, or nobody to tell of it.
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
    fn a_slow_daemon_is_asked_less_often() {
        let rests = [0, 10, 200, 1_000, 60_000].map(|ms| rest_after(Duration::from_millis(ms)).as_millis());
        assert_eq!(rests, [250, 240, 600, 3_000, 5_000]);
    }
}
