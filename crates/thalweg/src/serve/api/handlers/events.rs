//! Subscribers to events.

use thalweg_api::problem::{Code, Problem};

use crate::serve::api::Api;
use crate::serve::api::events::{EventFilter, EventId, Subscription};
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;

/// `GET /v1/events`
pub(in crate::serve::api) fn subscribe(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let filter = EventFilter {
        kinds: request.get("kind")?,
        link: request.get("link")?,
        collector: request.text("collector").map(str::to_owned),
    };
    let after = after(request)?;
    let pass = api.subscriber_pass().ok_or_else(|| {
        Problem::new(
            Code::TooManySubscribers,
            "there are as many subscribers as there may be (api.max_subscribers)",
        )
    })?;
    let is_of_other_run = after.is_some_and(|after| after.run.is_some_and(|run| run != api.run()));
    let after = match after {
        // All that is left of this run is news.
        Some(_) if is_of_other_run => Some(api.daemon().hub().oldest_id() - 1),
        after => after.map(|after| after.id),
    };
    let subscriber = api.daemon().hub().subscribe(after);
    Ok(Reply::Events(Box::new(Subscription { filter, subscriber, is_of_other_run, _pass: pass })))
}

/// Where to go on: by the header, which a browser that reconnects sends, or by the query.
fn after(request: &Request) -> Result<Option<EventId>, Problem> {
    match (&request.last_event_id, request.get("after")?) {
        // A browser's header is newer than the address that it was given once.
        (Some(header), _) => {
            let id = header
                .parse()
                .map_err(|error| Problem::new(Code::BadParameter, format!("Last-Event-ID: {error}")));
            id.map(Some)
        }
        (None, after) => Ok(after),
    }
}
