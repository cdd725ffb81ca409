//! Events as server-sent events (HTML Standard, section 9.2).
//!
//! ```text
//! id: 18f3a2c4d5e6f708-42
//! event: link
//! data: {"id":42,"collector":"tor0",...}
//! ```
//!
//! The `id` is RUN-NUMBER: the run of the daemon and the number of the event. So a subscriber that resumes after a restart
//! of the daemon is recognised, and receives a `lost` event first.

use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use hyper::body::Bytes;
use thalweg_api::{EventBody, LinkName, Lost};
use thalweg_control::decide::Verdict;
use thalweg_measure::collector::CongestionChange;
use thiserror::Error;

use super::{Api, SubscriberPass, convert};
use crate::event::{Event, EventKind};
use crate::event_id::EventId;
use crate::hub::{Delivery, Published, Subscriber};
use crate::link_name;
use thalweg_http::Admission;
use thalweg_http::reply::BodySender;

/// Server-sent events (HTML Standard, section 9.2).
pub const EVENT_STREAM: &str = "text/event-stream";

/// Idle time after which a comment is sent to keep the connection alive.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The comment.
pub(super) const KEEP_ALIVE_COMMENT: &[u8] = b": keep-alive\n\n";

/// A subscriber and its filter of events.
#[derive(Debug)]
pub struct Subscription {
    pub(super) filter: EventFilter,
    pub(super) subscriber: Subscriber,
    /// Whether it resumes from an earlier run of the daemon. Then it receives a `lost` event first.
    pub(super) is_other_run: bool,
    /// Counts it among the subscribers until it is dropped.
    pub(super) _pass: SubscriberPass,
}

/// Selects events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Types to select; `None` selects all.
    pub types: Option<EventTypes>,
    /// Link to select; `None` selects all.
    pub link: Option<LinkName>,
    /// Collector to select; `None` selects all.
    pub collector: Option<String>,
    /// Whether to select events that change something only: no repeated congestion, no changed addresses of flows, no decisions to keep
    /// a path.
    pub changes_only: bool,
}

/// Types of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTypes(Vec<&'static str>);

/// An unknown event type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown event type {word:?}: expected {known}", word = .0, known = EventBody::TYPES.join(", "))]
pub struct ParseEventTypesError(String);

impl EventTypes {
    /// Returns their names.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }
}

impl FromStr for EventTypes {
    type Err = ParseEventTypesError;

    fn from_str(text: &str) -> Result<Self, ParseEventTypesError> {
        let known = |word: &str| {
            let mut types = EventBody::TYPES.into_iter();
            types
                .find(|name| *name == word)
                .ok_or_else(|| ParseEventTypesError(word.chars().take(64).collect()))
        };
        text.split(',').map(known).collect::<Result<_, _>>().map(EventTypes)
    }
}

impl EventFilter {
    /// Whether the filter selects an event.
    pub fn matches(&self, event: &Event) -> bool {
        self.types.as_ref().is_none_or(|types| types.0.contains(&event.kind.type_name()))
            && self.collector.as_ref().is_none_or(|name| **name == *event.collector)
            && self.link.as_ref().is_none_or(|link| concerns(event, link))
            && (!self.changes_only || is_change(event))
    }
}

fn is_change(event: &Event) -> bool {
    match &event.kind {
        EventKind::Congestion(congestion) => congestion.change != CongestionChange::Repeated,
        EventKind::AddressChange(_) => false,
        EventKind::Decision(decision, _) => decision.verdict == Verdict::Reroute,
        _ => true,
    }
}

fn concerns(event: &Event, link: &LinkName) -> bool {
    match &event.kind {
        EventKind::Congestion(congestion) => {
            *link.switch == *event.switch && link_name::side(link) == congestion.link.side
        }
        _ => false,
    }
}

impl Subscription {
    /// Returns an `id` without an event, so that a client that loses the connection before the first event can resume.
    /// `None` if the subscriber resumes from another run of the daemon, because it receives a `lost` event first.
    pub(super) fn position(&self, api: &Api) -> Option<Bytes> {
        let id = EventId { run: Some(api.run()), id: self.subscriber.position() };
        (!self.is_other_run).then(|| format!("id: {id}\n\n").into())
    }

    /// Returns the next selected event or `lost` event as text, or `None` if there is none.
    pub(super) fn next_text(&mut self, api: &Api) -> Option<Bytes> {
        if std::mem::take(&mut self.is_other_run) {
            return Some(lost(api, None, self.subscriber.lost(), 0));
        }
        let hub = &api.parts().hub;
        loop {
            match self.subscriber.next_delivery(hub)? {
                Delivery::Lost { count, last } => {
                    return Some(lost(api, Some(count), self.subscriber.lost(), last));
                }
                Delivery::Event(published) if self.filter.matches(&published.event) => {
                    return Some(published.text(|published| text(api, published)));
                }
                Delivery::Event(_) => {}
            }
        }
    }
}

fn text(api: &Api, published: &Published) -> Bytes {
    frame(api, published.id, published.event.kind.type_name(), &convert::event(published))
}

fn lost(api: &Api, count: Option<u64>, total: u64, last: u64) -> Bytes {
    frame(api, last, "lost", &Lost { kind: "lost".into(), count, total, last })
}

fn frame(api: &Api, id: u64, kind: &str, data: &impl serde::Serialize) -> Bytes {
    let id = EventId { run: Some(api.run()), id };
    let mut text = String::new();
    // Our own types can be written as JSON, which has no line breaks.
    let data = serde_json::to_string(data).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    let _ = write!(text, "id: {id}\nevent: {kind}\ndata: {data}\n\n");
    text.into()
}

/// Sends events to a subscriber until it disconnects or its access ends, one text at a time. A slow subscriber delays
/// only this task.
pub(super) async fn stream(
    api: Api,
    mut subscription: Subscription,
    mut admission: Admission,
    mut out: BodySender,
) {
    let mut event_count = api.event_count().subscribe();
    if let Some(position) = subscription.position(&api)
        && out.send_data(position).await.is_err()
    {
        return;
    }
    loop {
        // Before the reads, so that an event published during them is noticed.
        event_count.mark_unchanged();
        while let Some(text) = subscription.next_text(&api) {
            if !admission.is_valid() || out.send_data(text).await.is_err() {
                return;
            }
        }
        if !admission.is_valid() {
            return;
        }
        let is_disconnected = match tokio::time::timeout(KEEP_ALIVE, event_count.changed()).await {
            Ok(changed) => changed.is_err(),
            Err(_) => out.send_data(Bytes::from_static(KEEP_ALIVE_COMMENT)).await.is_err(),
        };
        if is_disconnected {
            return;
        }
    }
}

/// Wakes all subscribers when an event is published. Ends when the hub closes the `wakeup` socket.
pub(super) async fn notify_subscribers(api: Api, wakeup: tokio::net::UnixStream) {
    let hub = &api.parts().hub;
    let mut buffer = [0; 64];
    loop {
        let seen = hub.store_count();
        api.event_count().send_replace(seen);
        if !hub.prepare_sleep(seen) {
            // All tasks of the API share this thread.
            tokio::task::yield_now().await;
            continue;
        }
        if wakeup.readable().await.is_err() {
            return;
        }
        while matches!(wakeup.try_read(&mut buffer), Ok(1..)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_types_parse_and_unknown_types_are_rejected() {
        assert_eq!("congestion,cheetah_end".parse(), Ok(EventTypes(vec!["congestion", "cheetah_end"])));
        for text in ["", "congestions", "congestion,", "congestion, cheetah"] {
            assert!(text.parse::<EventTypes>().is_err(), "{text}");
        }
    }
}
