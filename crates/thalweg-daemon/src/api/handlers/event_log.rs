//! The event log.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{LoggedEvents, UtcTime};

use crate::api::Api;
use crate::api::events::EventTypes;
use crate::event_log;
use thalweg_http::input::Query;
use thalweg_http::output::Json;
use thalweg_http::parameters::{Count, Parsed};

/// Which events to read.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct Wanted {
    /// Only events of these types, separated by commas.
    #[schemars(example = &"congestion,decision,action")]
    r#type: Option<Parsed<EventTypes>>,
    /// Only events that name this link: SWITCH:pPORT:in or SWITCH:pPORT:out, or the ports at its ends.
    #[schemars(example = &"tor0:p3:out")]
    link: Option<String>,
    /// Only events of this collector; `control` is the controller.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
    /// Only events published at this time or later.
    #[schemars(example = &"2026-11-21T22:00:00Z")]
    start: Option<Parsed<UtcTime>>,
    /// Only events published before this time.
    #[schemars(example = &"2026-11-21T23:00:00Z")]
    end: Option<Parsed<UtcTime>>,
    /// Only events before the one with this `event_id`: `next` of an earlier response.
    #[schemars(example = &"18a8f0c2d5e6f708-42")]
    before: Option<Parsed<event_log::Position>>,
    /// Maximum number of events, the latest first: 1 to 10,000; default 100.
    #[serde(default)]
    #[schemars(example = 20)]
    limit: Count<100, 10_000>,
}

/// `GET /v1/event-log`
pub(in crate::api) fn get(api: &Api, Query(wanted): Query<Wanted>) -> Result<Json<LoggedEvents>, Problem> {
    let Some(log) = &api.parts().event_log else {
        let text = "no event log: set event_log.folder in the configuration of the daemon";
        return Err(Problem::new(Code::NotConfigured, text));
    };
    let time = |time: Option<Parsed<UtcTime>>| time.map(|Parsed(time)| time.0);
    let names = |types: &EventTypes| types.names().iter().map(|&name| name.to_owned()).collect();
    let query = event_log::Query {
        types: wanted.r#type.map(|Parsed(types)| names(&types)),
        link: wanted.link,
        collector: wanted.collector,
        start: time(wanted.start),
        end: time(wanted.end),
        before: wanted.before.map(|Parsed(position)| position),
        limit: wanted.limit.0,
    };
    let read = log.read(&query);
    read.map(Json)
        .map_err(|error| Problem::new(Code::Internal, format!("cannot read the event log: {error}")))
}
