//! All that can be asked, by whom, and what documents it.

use std::sync::OnceLock;

use thalweg_api::problem::Code;

use super::Api;
use super::handlers::{
    collectors, control, events, flows, health, links, metrics, open_api, samples, tasks, topology,
};
use thalweg_http::access::Scope;
use thalweg_http::route::Method::{Delete, Get, Post, Put};
use thalweg_http::route::{Operation, Route, Routes};

/// Who may read.
const READ: Option<Scope> = Some(Scope::Read);

/// Who may change something.
const WRITE: Option<Scope> = Some(Scope::Write);

/// Everybody: no token is needed.
const ANYBODY: Option<Scope> = None;

/// The routes as a table.
pub fn table() -> &'static [Route] {
    static TABLE: OnceLock<Vec<Route>> = OnceLock::new();
    TABLE.get_or_init(|| routes().into_table())
}

/// All routes.
pub fn routes() -> Routes<Api> {
    let routes = of_network(Routes::new());
    let routes = of_events(routes);
    of_program(of_control(routes))
}

/// Links, flows, collectors, and the network.
fn of_network(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/links",
            Operation {
                scope: READ,
                summary: "All links, and how much they carry",
                description: "Both directions of the links at the switches that are watched. Rates are on the wire, \
                              framing included, so that they compare with the capacity.",
                errors: &[Code::NotFound],
                waits: true,
            },
            links::all,
        )
        .add(
            Get,
            "/v1/links/{link}/flows",
            Operation {
                scope: READ,
                summary: "Flows on a link",
                description: "The fastest flows whose input or output port was inferred to be that of the link.",
                errors: &[Code::NotFound],
                waits: true,
            },
            links::flows,
        )
        .add(
            Get,
            "/v1/flows",
            Operation {
                scope: READ,
                summary: "The fastest flows",
                description: "A flow that is seen by several collectors is there once for each.",
                errors: &[Code::NotFound],
                waits: true,
            },
            flows::top,
        )
        .add(
            Get,
            "/v1/flows/{key}",
            Operation {
                scope: READ,
                summary: "One direction of a flow",
                description: "Once for each collector that sees it; 404 if none does.",
                errors: &[Code::NotFound],
                waits: true,
            },
            flows::one,
        )
        .add(
            Get,
            "/v1/cheetahs",
            Operation {
                scope: READ,
                summary: "Flows that are cheetahs now",
                description: "The fastest first.",
                errors: &[Code::NotFound],
                waits: true,
            },
            flows::cheetahs,
        )
        .add(
            Get,
            "/v1/tasks",
            Operation {
                scope: READ,
                summary: "What sketches say",
                description: "The last answer of each measurement task.",
                errors: &[Code::NotFound],
                waits: true,
            },
            tasks::all,
        )
        .add(
            Get,
            "/v1/collectors",
            Operation {
                scope: READ,
                summary: "Collectors: what they are, and how they do",
                description: "",
                errors: &[],
                waits: true,
            },
            collectors::all,
        )
        .add(
            Get,
            "/v1/topology",
            Operation {
                scope: READ,
                summary: "The network as it is known",
                description: "As TOML, in the form of a topology file, if `Accept` asks for `application/toml`.",
                errors: &[Code::NotFound],
                waits: true,
            },
            topology::get,
        )
        .add(
            Put,
            "/v1/topology",
            Operation {
                scope: WRITE,
                summary: "A new version of the network",
                description: "Checked whole first; if anything is wrong, nothing changes, and `errors` says what, with \
                              lines. The JSON is what `network` is in the answer to GET.",
                errors: &[Code::UnsupportedMediaType, Code::Conflict],
                waits: true,
            },
            topology::put,
        )
}

/// Samples and events.
fn of_events(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Post,
            "/v1/samples",
            Operation {
                scope: WRITE,
                summary: "Have the last samples written",
                description: "Writes what is in the rings of samples to the configured folder, and says which files there \
                              are now. If `Accept` asks for `application/pcapng`, nothing is written: the samples of \
                              `collector` are the answer.",
                errors: &[Code::NotFound, Code::NotConfigured],
                waits: true,
            },
            samples::post,
        )
        .add(
            Get,
            "/v1/events",
            Operation {
                scope: READ,
                summary: "Events, as they come",
                description: "Server-sent events: `event` is the type, `data` the event as JSON, `id` what to resume \
                              from. A subscriber that falls so far behind that its next event has been overwritten gets \
                              an event `lost` with the count, and goes on with the oldest that is left.",
                errors: &[Code::TooManySubscribers],
                waits: false,
            },
            events::subscribe,
        )
}

/// The controller.
fn of_control(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/control",
            Operation {
                scope: READ,
                summary: "The controller, and how it does",
                description: "404 if there is no `[control]` in the configuration.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::get,
        )
        .add(
            Get,
            "/v1/control/decisions",
            Operation {
                scope: READ,
                summary: "What the controller has decided, and by what",
                description: "Decisions to let flows stay where they are among them. A decision has all ways that there \
                              were, and what the flows could expect of each.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::decisions,
        )
        .add(
            Get,
            "/v1/control/actions",
            Operation {
                scope: READ,
                summary: "What the controller has done, and what came of it",
                description: "",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::actions,
        )
        .add(
            Get,
            "/v1/control/ways/{source}/{destination}",
            Operation {
                scope: READ,
                summary: "The ways from one host to another",
                description: "By each of the destination's addresses: the links on the way, and what they can carry.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::ways,
        )
        .add(
            Put,
            "/v1/control/pins/{source}/{destination}",
            Operation {
                scope: WRITE,
                summary: "Send flows by an address, and leave them there",
                description: "All that the one host sends to the other, now and later. It is done even while the \
                              controller is frozen.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::pin,
        )
        .add(
            Delete,
            "/v1/control/pins/{source}/{destination}",
            Operation {
                scope: WRITE,
                summary: "Let pinned flows go",
                description: "They stay where they are until the controller sends them elsewhere; 404 if they were not \
                              pinned.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::unpin,
        )
        .add(
            Put,
            "/v1/control/frozen",
            Operation {
                scope: WRITE,
                summary: "Have the controller only watch, or steer again",
                description: "A controller that is frozen goes on deciding, and does nothing about it. Flows stay where \
                              they are.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::freeze,
        )
}

/// The program: its documentation, its health, what it counts.
fn of_program(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/openapi.json",
            Operation {
                scope: ANYBODY,
                summary: "This document",
                description: "",
                errors: &[],
                waits: false,
            },
            open_api::get,
        )
        .add(
            Get,
            "/healthz",
            Operation {
                scope: ANYBODY,
                summary: "Whether the daemon is alive",
                description: "",
                errors: &[],
                waits: false,
            },
            health::alive,
        )
        .add(
            Get,
            "/readyz",
            Operation {
                scope: ANYBODY,
                summary: "Whether it does what it is for",
                description: "200 once every collector has opened its source or has said why not; 503 before that, and \
                              when the daemon is being stopped.",
                errors: &[],
                waits: false,
            },
            health::ready,
        )
        .add(
            Get,
            "/metrics",
            Operation {
                scope: READ,
                summary: "Everything that is counted, for Prometheus",
                description: "",
                errors: &[],
                waits: true,
            },
            metrics::get,
        )
}

#[cfg(test)]
mod tests {
    use schemars::SchemaGenerator;

    use super::*;

    #[test]
    fn every_route_is_documented() {
        for route in table() {
            let path = route.path;
            let mut generator = SchemaGenerator::default();
            let parameters = (route.parameters)(&mut generator);
            for parameter in &parameters {
                let name = parameter.name;
                assert!(!parameter.description.is_empty(), "{path}: {name} has no description");
                assert!(!parameter.example.is_empty(), "{path}: {name} has no example");
            }
            let in_path = parameters.iter().filter(|parameter| parameter.is_in_path);
            let filled = in_path.fold(path.to_owned(), |path, parameter| {
                path.replace(&format!("{{{}}}", parameter.name), &parameter.example)
            });
            assert!(!filled.contains('{'), "{path}: a parameter is not read");
            assert!(!route.operation.summary.is_empty(), "{path}");
            assert!(!(route.answers)(&mut generator).is_empty(), "{path}");
        }
    }

    #[test]
    fn whatever_changes_something_needs_the_scope_to_write() {
        for route in table() {
            let changes = route.method != Get;
            assert_eq!(route.operation.scope == WRITE, changes, "{}", route.path);
        }
    }
}
