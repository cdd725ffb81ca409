//! Subscriptions to events.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{Event, LinkName};

use crate::api::Api;
use crate::api::events::{self, EVENT_STREAM, EventFilter, EventTypes, Subscription};
use crate::event_id::EventId;
use thalweg_http::input::{Content, LastEventId, Query};
use thalweg_http::output::Output;
use thalweg_http::parameters::Parsed;
use thalweg_http::reply::{Reply, Writer};

/// Filters, and where to resume.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Wanted {
    /// Only events of these types, separated by commas: congestion, address_change, cheetah, cheetah_end, collector, decision,
    /// action, rule_faults, link, mastership, redirection, poll, traffic_change.
    #[schemars(example = &"link,collector")]
    r#type: Option<Parsed<EventTypes>>,
    /// Only events of this link: SWITCH:pPORT:in or SWITCH:pPORT:out.
    #[schemars(example = &"tor0:p3:out")]
    link: Option<Parsed<LinkName>>,
    /// Only events of this collector.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
    /// Resume after the event with this `id`, as far as the backlog reaches; the header `Last-Event-ID` does the same. By
    /// default only new events are sent.
    #[schemars(example = &"0")]
    after: Option<Parsed<EventId>>,
}

/// A stream of events.
pub(in crate::api) struct EventStream {
    api: Api,
    subscription: Subscription,
}

impl Output for EventStream {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content { media_type: EVENT_STREAM, schema: generator.subschema_for::<Event>() }]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        let EventStream { api, subscription } = self;
        let writer =
            Writer::new(move |admission, sender| events::stream(api, subscription, admission, sender));
        Ok(Reply::Stream { media_type: EVENT_STREAM, writer })
    }
}

/// `GET /v1/events`
pub(in crate::api) fn subscribe(
    api: &Api,
    Query(wanted): Query<Wanted>,
    LastEventId(last): LastEventId,
) -> Result<EventStream, Problem> {
    let filter = EventFilter {
        types: wanted.r#type.map(|Parsed(types)| types),
        link: wanted.link.map(|Parsed(link)| link),
        collector: wanted.collector,
        changes_only: false,
    };
    let subscription = subscription(api, filter, after(last.as_deref(), wanted.after)?)?;
    Ok(EventStream { api: api.clone(), subscription })
}

/// Returns a subscription that resumes after an event, or gets only new ones.
pub(super) fn subscription(
    api: &Api,
    filter: EventFilter,
    after: Option<EventId>,
) -> Result<Subscription, Problem> {
    let pass = api.subscriber_pass().ok_or_else(|| {
        Problem::new(Code::TooManySubscribers, "the limit of subscribers is reached (api.max_subscribers)")
    })?;
    let is_other_run = after.is_some_and(|after| after.run.is_some_and(|run| run != api.run()));
    let after = match after {
        // All available events of this run are new to the subscriber.
        Some(_) if is_other_run => Some(api.parts().hub.oldest_id() - 1),
        after => after.map(|after| after.id),
    };
    let subscriber = api.parts().hub.subscribe(after);
    Ok(Subscription { filter, subscriber, is_other_run, _pass: pass })
}

/// Where to resume, from the header that a reconnecting browser sends or from the query.
pub(super) fn after(
    header: Option<&str>,
    query: Option<Parsed<EventId>>,
) -> Result<Option<EventId>, Problem> {
    match header {
        // The header is newer than the URL with which the browser first connected.
        Some(header) => {
            let id = header
                .parse()
                .map_err(|error| Problem::new(Code::BadParameter, format!("Last-Event-ID: {error}")));
            id.map(Some)
        }
        None => Ok(query.map(|Parsed(id)| id)),
    }
}
