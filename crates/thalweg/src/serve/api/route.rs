//! What can be asked: one table, by which requests are answered, from which the OpenAPI document and the reference are
//! written, and against which tests check answers.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use thalweg_api as json;
use thalweg_api::problem::Problem;

use super::Api;
use super::handlers::{
    collectors, control, events, flows, health, links, metrics, open_api, samples, tasks, topology,
};
use super::reply::{JSON, Reply};
use super::request::{Request, decoded};
use crate::serve::access::Scope;

/// TOML; there is no registered media type that is more specific.
pub const TOML: &str = "application/toml";

/// Capture files (draft-ietf-opsawg-pcapng).
pub const PCAPNG: &str = "application/pcapng";

/// Server-sent events (HTML Standard, section 9.2).
pub const EVENT_STREAM: &str = "text/event-stream";

/// Prometheus' text format.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Something that can be asked.
#[derive(Debug)]
pub struct Route {
    /// How.
    pub method: Method,
    /// Where: segments in braces are parameters.
    pub path: &'static str,
    /// What a token must be good for; `None` if nobody needs one.
    pub scope: Option<Scope>,
    /// What it is for, in a few words.
    pub summary: &'static str,
    /// What is to be said beyond that.
    pub description: &'static str,
    /// What can be said along with it.
    pub parameters: &'static [Parameter],
    /// What it takes as a body: one of these.
    pub body: &'static [Content],
    /// The status when all is well.
    pub status: u16,
    /// What it answers then: one of these.
    pub answer: &'static [Content],
    /// Whether the handler may wait for collectors; else it answers at once.
    pub waits: bool,
    /// Does it. If it waits, not without end.
    pub handler: fn(&Api, &Request) -> Result<Reply, Problem>,
}

/// How something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Asks; changes nothing.
    Get,
    /// Has something done.
    Post,
    /// Puts something in the place of what is there.
    Put,
    /// Takes away what is there.
    Delete,
}

/// What can be said along with a request.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a segment of the path; else of the query.
    pub is_in_path: bool,
    /// What it is, its default and range.
    pub description: &'static str,
    /// What values it has.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// One of them.
    pub example: &'static str,
}

/// A kind of body.
#[derive(Debug)]
pub struct Content {
    /// What it is.
    pub media_type: &'static str,
    /// What is in it.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Why there is no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// Nothing is there.
    Path,
    /// Something is there, for other methods.
    Method,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        })
    }
}

/// The route of a path, and what stands where its template has parameters, decoded.
///
/// # Errors
/// If there is none.
pub fn find(method: Method, path: &str) -> Result<(&'static Route, Vec<String>), NoRoute> {
    let mut error = NoRoute::Path;
    for route in &ROUTES {
        match matched(route.path, path) {
            Some(segments) if route.method == method => return Ok((route, segments)),
            Some(_) => error = NoRoute::Method,
            None => {}
        }
    }
    Err(error)
}

/// What can be done at a path.
pub(super) fn methods(path: &str) -> Vec<Method> {
    ROUTES.iter().filter(|route| matched(route.path, path).is_some()).map(|route| route.method).collect()
}

fn matched(template: &str, path: &str) -> Option<Vec<String>> {
    let mut open = Vec::new();
    let (mut expected, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return Some(open),
            (Some(parameter), Some(segment)) if parameter.starts_with('{') => {
                open.push(decoded(segment, false).filter(|text| !text.is_empty())?);
            }
            (Some(expected), Some(found)) if expected == found => {}
            _ => return None,
        }
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn json_of<T: JsonSchema>() -> Content {
    Content { media_type: JSON, schema: of::<T> }
}

const fn text(media_type: &'static str) -> Content {
    Content { media_type, schema: of::<String> }
}

/// Any JSON at all.
fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::default()
}

/// Anything at all that is not text.
fn bytes(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "string", "contentMediaType": PCAPNG})
}

const COLLECTOR: Parameter = Parameter {
    name: "collector",
    is_in_path: false,
    description: "Only of the collector of this name.",
    schema: of::<String>,
    example: "tor0",
};

const FORMAT: Parameter = Parameter {
    name: "format",
    is_in_path: false,
    description: "Of the files: pcapng, or pcap with a file for each output port. What is configured by default.",
    schema: of::<String>,
    example: "pcapng",
};

const TOP: Parameter = Parameter {
    name: "top",
    is_in_path: false,
    description: "How many, the fastest first: 1 to 10,000; 20 by default.",
    schema: of::<u16>,
    example: "10",
};

const LINK: Parameter = Parameter {
    name: "link",
    is_in_path: true,
    description: "Name of the link: SWITCH:pPORT:WAY.",
    schema: of::<String>,
    example: "tor0:p3:out",
};

const KEY: Parameter = Parameter {
    name: "key",
    is_in_path: true,
    description: "The flow's direction, as `key` in other answers, percent-encoded: PROTOCOL SOURCE > DESTINATION.",
    schema: of::<String>,
    example: "tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000",
};

const EVENT_FILTERS: [Parameter; 4] = [
    Parameter {
        name: "kind",
        is_in_path: false,
        description: "Only events of these types, separated by commas: link, address_change, cheetah, cheetah_end, \
                      collector, decision, action.",
        schema: of::<String>,
        example: "link,collector",
    },
    Parameter {
        name: "link",
        is_in_path: false,
        description: "Only events of this link: SWITCH:pPORT:WAY.",
        schema: of::<String>,
        example: "tor0:p3:out",
    },
    COLLECTOR,
    Parameter {
        name: "after",
        is_in_path: false,
        description: "Begin with what came after the event of this `id`, as far as it is kept; `Last-Event-ID` does the \
                      same. Without either, with what comes from now on.",
        schema: of::<String>,
        example: "0",
    },
];

const LAST: Parameter = Parameter {
    name: "last",
    is_in_path: false,
    description: "How many, the latest first: 1 to 1,000; 100 by default. No more than 1,000 are kept.",
    schema: of::<u16>,
    example: "20",
};

/// Between which hosts.
const ENDS: [Parameter; 2] = [
    Parameter {
        name: "source",
        is_in_path: true,
        description: "Name of the host that sends, as the topology has it.",
        schema: of::<String>,
        example: "h0",
    },
    Parameter {
        name: "destination",
        is_in_path: true,
        description: "Name of the host that it sends to.",
        schema: of::<String>,
        example: "h1",
    },
];

/// A question that every route without an entry of its own takes after.
const ROUTE: Route = Route {
    method: Method::Get,
    path: "",
    scope: Some(Scope::Read),
    summary: "",
    description: "",
    parameters: &[],
    body: &[],
    status: 200,
    answer: &[],
    waits: true,
    handler: |_, _| Reply::json(&()),
};

/// All that can be asked.
pub static ROUTES: [Route; 22] = [
    Route {
        path: "/v1/links",
        summary: "All links, and how much they carry",
        description: "Both directions of the links at the switches that are watched. Rates are on the wire, framing \
                      included, so that they compare with the capacity.",
        parameters: &[COLLECTOR],
        answer: &[json_of::<json::Links>()],
        handler: links::all,
        ..ROUTE
    },
    Route {
        path: "/v1/links/{link}/flows",
        summary: "Flows on a link",
        description: "The fastest flows whose input or output port was inferred to be that of the link.",
        parameters: &[LINK, TOP, COLLECTOR],
        answer: &[json_of::<json::Flows>()],
        handler: links::flows,
        ..ROUTE
    },
    Route {
        path: "/v1/flows",
        summary: "The fastest flows",
        description: "A flow that is seen by several collectors is there once for each.",
        parameters: &[TOP, COLLECTOR],
        answer: &[json_of::<json::Flows>()],
        handler: flows::top,
        ..ROUTE
    },
    Route {
        path: "/v1/flows/{key}",
        summary: "One direction of a flow",
        description: "Once for each collector that sees it; 404 if none does.",
        parameters: &[KEY, COLLECTOR],
        answer: &[json_of::<json::Flows>()],
        handler: flows::one,
        ..ROUTE
    },
    Route {
        path: "/v1/cheetahs",
        summary: "Flows that are cheetahs now",
        description: "The fastest first.",
        parameters: &[TOP, COLLECTOR],
        answer: &[json_of::<json::Flows>()],
        handler: flows::cheetahs,
        ..ROUTE
    },
    Route {
        path: "/v1/tasks",
        summary: "What sketches say",
        description: "The last answer of each measurement task.",
        parameters: &[COLLECTOR],
        answer: &[json_of::<json::Tasks>()],
        handler: tasks::all,
        ..ROUTE
    },
    Route {
        path: "/v1/collectors",
        summary: "Collectors: what they are, and how they do",
        answer: &[json_of::<json::Collectors>()],
        handler: collectors::all,
        ..ROUTE
    },
    Route {
        path: "/v1/topology",
        summary: "The network as it is known",
        description: "As TOML, in the form of a topology file, if `Accept` asks for `application/toml`.",
        answer: &[json_of::<json::Topology>(), text(TOML)],
        handler: topology::get,
        ..ROUTE
    },
    Route {
        method: Method::Put,
        path: "/v1/topology",
        scope: Some(Scope::Write),
        summary: "A new version of the network",
        description: "Checked whole first; if anything is wrong, nothing changes, and `errors` says what, with lines. The \
                      JSON is what `network` is in the answer to GET.",
        body: &[Content { media_type: JSON, schema: anything }, text(TOML)],
        answer: &[json_of::<json::NewTopology>()],
        handler: topology::put,
        ..ROUTE
    },
    Route {
        method: Method::Post,
        path: "/v1/samples",
        scope: Some(Scope::Write),
        summary: "Have the last samples written",
        description: "Writes what is in the rings of samples to the configured folder, and says which files there are \
                      now. If `Accept` asks for `application/pcapng`, nothing is written: the samples of `collector` are \
                      the answer.",
        parameters: &[COLLECTOR, FORMAT],
        answer: &[json_of::<json::Samples>(), Content { media_type: PCAPNG, schema: bytes }],
        handler: samples::post,
        ..ROUTE
    },
    Route {
        path: "/v1/events",
        summary: "Events, as they come",
        description: "Server-sent events: `event` is the type, `data` the event as JSON, `id` what to resume from. A \
                      subscriber that falls so far behind that its next event has been overwritten gets an event `lost` \
                      with the count, and goes on with the oldest that is left.",
        parameters: &EVENT_FILTERS,
        answer: &[Content { media_type: EVENT_STREAM, schema: of::<json::Event> }],
        handler: events::subscribe,
        ..ROUTE
    },
    Route {
        path: "/v1/control",
        summary: "The controller, and how it does",
        description: "404 if there is no `[control]` in the configuration.",
        answer: &[json_of::<json::Control>()],
        handler: control::get,
        ..ROUTE
    },
    Route {
        path: "/v1/control/decisions",
        summary: "What the controller has decided, and by what",
        description: "Decisions to let flows stay where they are among them. A decision has all ways that there were, and \
                      what the flows could expect of each.",
        parameters: &[LAST],
        answer: &[json_of::<json::Decisions>()],
        handler: control::decisions,
        ..ROUTE
    },
    Route {
        path: "/v1/control/actions",
        summary: "What the controller has done, and what came of it",
        parameters: &[LAST],
        answer: &[json_of::<json::Actions>()],
        handler: control::actions,
        ..ROUTE
    },
    Route {
        path: "/v1/control/ways/{source}/{destination}",
        summary: "The ways from one host to another",
        description: "By each of the destination's addresses: the links on the way, and what they can carry.",
        parameters: &ENDS,
        answer: &[json_of::<json::Ways>()],
        handler: control::ways,
        ..ROUTE
    },
    Route {
        method: Method::Put,
        path: "/v1/control/pins/{source}/{destination}",
        scope: Some(Scope::Write),
        summary: "Send flows by an address, and leave them there",
        description: "All that the one host sends to the other, now and later. It is done even while the controller is \
                      frozen.",
        parameters: &ENDS,
        body: &[json_of::<json::PinTo>()],
        answer: &[json_of::<json::Control>()],
        handler: control::pin,
        ..ROUTE
    },
    Route {
        method: Method::Delete,
        path: "/v1/control/pins/{source}/{destination}",
        scope: Some(Scope::Write),
        summary: "Let pinned flows go",
        description: "They stay where they are until the controller sends them elsewhere; 404 if they were not pinned.",
        parameters: &ENDS,
        answer: &[json_of::<json::Control>()],
        handler: control::unpin,
        ..ROUTE
    },
    Route {
        method: Method::Put,
        path: "/v1/control/frozen",
        scope: Some(Scope::Write),
        summary: "Have the controller only watch, or steer again",
        description: "A controller that is frozen goes on deciding, and does nothing about it. Flows stay where they are.",
        body: &[json_of::<json::Frozen>()],
        answer: &[json_of::<json::Control>()],
        handler: control::freeze,
        ..ROUTE
    },
    Route {
        path: "/v1/openapi.json",
        scope: None,
        summary: "This document",
        answer: &[Content { media_type: JSON, schema: anything }],
        waits: false,
        handler: open_api::get,
        ..ROUTE
    },
    Route {
        path: "/healthz",
        scope: None,
        summary: "Whether the daemon is alive",
        answer: &[json_of::<json::Health>()],
        waits: false,
        handler: health::alive,
        ..ROUTE
    },
    Route {
        path: "/readyz",
        scope: None,
        summary: "Whether it does what it is for",
        description: "200 once every collector has opened its source or has said why not; 503 before that, and when the \
                      daemon is being stopped.",
        answer: &[json_of::<json::Health>()],
        waits: false,
        handler: health::ready,
        ..ROUTE
    },
    Route {
        path: "/metrics",
        summary: "Everything that is counted, for Prometheus",
        answer: &[text(METRICS_TEXT)],
        handler: metrics::get,
        ..ROUTE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path_and_says_what_it_is_for() {
        for route in &ROUTES {
            let path = route.parameters.iter().filter(|parameter| parameter.is_in_path);
            let path = path.fold(route.path.to_owned(), |path, parameter| {
                path.replace(&format!("{{{}}}", parameter.name), parameter.example)
            });
            assert!(!path.contains('{'), "{path}");
            let (found, segments) = find(route.method, &path).unwrap();
            assert!(std::ptr::eq(found, route), "{path}");
            assert_eq!(segments.len(), route.path.matches('{').count());
            assert!(!route.summary.is_empty() && !route.answer.is_empty(), "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found_and_what_is_there_for_others_says_for_whom() {
        for path in [
            "",
            "/",
            "/v1",
            "/v1/links/",
            "/v1/links/x",
            "/v1/flows/",
            "/v1/flows/a/b",
            "//v1/links",
            "/v1/flows/%ff",
        ] {
            assert!(find(Method::Get, path).is_err(), "{path}");
        }
        assert_eq!(find(Method::Post, "/v1/topology").unwrap_err(), NoRoute::Method);
        assert_eq!(methods("/v1/topology"), [Method::Get, Method::Put]);
        assert_eq!(find(Method::Get, "/nothing").unwrap_err(), NoRoute::Path);
    }

    #[test]
    fn whatever_changes_something_needs_the_scope_to_write() {
        for route in &ROUTES {
            let changes = route.method != Method::Get;
            assert_eq!(route.scope == Some(Scope::Write), changes, "{}", route.path);
        }
    }
}
