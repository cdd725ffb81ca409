//! The live stream of a dashboard, the past of links and flows, and what the client may do.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use thalweg_api::problem::Problem;
use thalweg_api::{AccessGranted, FlowHistory, LinkHistory, LiveLinks, LiveLoads, LiveStatus};
use thalweg_http::access::Scope;

use super::events::{after, subscription};
use super::flows::FlowPath;
use super::links::{LinkPath, named_link};
use crate::api::Api;
use crate::api::events::{EVENT_STREAM, EventFilter, Subscription};
use crate::api::live;
use crate::event_id::EventId;
use crate::live::Viewer;
use thalweg_http::input::{Content, LastEventId, Path, Permitted, Query};
use thalweg_http::output::{Json, Output};
use thalweg_http::parameters::Parsed;
use thalweg_http::reply::{Reply, Writer};

/// Where to resume.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Resume {
    /// Resume after the event with this `id`, as far as the backlog reaches; the header `Last-Event-ID` does the same.
    #[schemars(example = &"0")]
    after: Option<Parsed<EventId>>,
}

/// A live stream.
pub(in crate::api) struct LiveStream {
    api: Api,
    subscription: Subscription,
    viewer: Viewer,
}

impl Output for LiveStream {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        let _ = (generator.subschema_for::<LiveLinks>(), generator.subschema_for::<LiveLoads>());
        vec![Content { media_type: EVENT_STREAM, schema: generator.subschema_for::<LiveStatus>() }]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        let LiveStream { api, subscription, viewer } = self;
        let writer =
            Writer::new(move |admission, sender| live::stream(api, subscription, viewer, admission, sender));
        Ok(Reply::Stream { media_type: EVENT_STREAM, writer })
    }
}

/// `GET /v1/live`
pub(in crate::api) fn watch(
    api: &Api,
    Query(Resume { after: query }): Query<Resume>,
    LastEventId(last): LastEventId,
) -> Result<LiveStream, Problem> {
    let filter = EventFilter { changes_only: true, ..EventFilter::default() };
    let subscription = subscription(api, filter, after(last.as_deref(), query)?)?;
    Ok(LiveStream { api: api.clone(), subscription, viewer: api.parts().live.watch() })
}

/// `GET /v1/links/{link}/history`
pub(in crate::api) fn of_link(
    api: &Api,
    Path(LinkPath { link }): Path<LinkPath>,
) -> Result<Json<LinkHistory>, Problem> {
    let network = api.parts().network.versions();
    let link = named_link(network.as_ref().map(|versions| versions.newest().state.topology()), &link)?;
    let link = link.to_string();
    let history = api.parts().live.history();
    let (end, [mean, max]) = history.link(&link).unwrap_or_else(|| (history.end(), Default::default()));
    Ok(Json(LinkHistory { link, end: end.into(), mean, max }))
}

/// `GET /v1/flows/{key}/history`
pub(in crate::api) fn of_flow(
    api: &Api,
    Path(FlowPath { key: Parsed(key) }): Path<FlowPath>,
) -> Result<Json<FlowHistory>, Problem> {
    let history = api.parts().live.history();
    let (end, rate_bps) = history.flow(&key).unwrap_or_else(|| (history.end(), Vec::new()));
    Ok(Json(FlowHistory { key: key.to_string(), end: end.into(), rate_bps }))
}

/// `GET /v1/access`
pub(in crate::api) fn access(_: &Api, Permitted(permit): Permitted) -> Result<Json<AccessGranted>, Problem> {
    // Without a token file everybody who reaches the API may write.
    let write = permit.scope.is_none_or(|scope| scope.includes(Scope::Write));
    Ok(Json(AccessGranted { token: permit.token.as_deref().map(str::to_owned), write }))
}
