//! The routes of the API: scope, documentation and handler of each.

use std::sync::OnceLock;

use thalweg_api::problem::Code;

use super::Api;
use super::handlers::{
    alerts, collectors, control, event_log, events, experiments, flows, health, interfaces, links, live,
    metrics, open_api, records, redirections, samples, tasks, threshold, topology, transfers,
};
use thalweg_http::access::Scope;
use thalweg_http::route::Method::{Delete, Get, Post, Put};
use thalweg_http::route::{Operation, Route, Routes};

/// Scope of queries.
const READ: Option<Scope> = Some(Scope::Read);

/// Scope of changes.
const WRITE: Option<Scope> = Some(Scope::Write);

/// Scope of reports in the name of the token.
const REPORT: Option<Scope> = Some(Scope::Report);

/// No token is needed.
const ANYBODY: Option<Scope> = None;

/// Returns the routes as a table.
pub fn table() -> &'static [Route] {
    static TABLE: OnceLock<Vec<Route>> = OnceLock::new();
    TABLE.get_or_init(|| routes().into_table())
}

/// Returns all routes.
pub fn routes() -> Routes<Api> {
    let routes = of_dashboard(of_network(Routes::new()));
    let routes = of_experiments(of_records(of_events(routes)));
    of_program(of_transfers(of_isolation(of_control(routes))))
}

/// Links, flows, collectors and the topology.
fn of_network(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/links",
            Operation {
                scope: READ,
                summary: "Links and their utilisation",
                description: "Both directions of all links of the monitored switches. Rates are on the wire, framing \
                              included, so that they compare with the capacity.",
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
                description: "The fastest flows whose input or output port is that of the link.",
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
                description: "A flow that several collectors see is listed once per collector.",
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
                description: "Listed once per collector that sees it; 404 if none does.",
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
                summary: "Current cheetah flows",
                description: "Sorted by rate, the fastest first.",
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
                summary: "Measurement tasks",
                description: "The latest result of each task.",
                errors: &[Code::NotFound],
                waits: true,
            },
            tasks::all,
        )
        .add(
            Get,
            "/v1/tasks/{collector}/{task}",
            Operation {
                scope: READ,
                summary: "Latest results of a measurement task",
                description: "The results of the last 60 windows, the oldest first. `change` has one only after each period.",
                errors: &[Code::NotFound],
                waits: true,
            },
            tasks::history,
        )
        .add(
            Get,
            "/v1/collectors",
            Operation {
                scope: READ,
                summary: "Collectors: state and counters",
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
                summary: "The topology",
                description: "JSON, or a topology file in TOML if `Accept` is `application/toml`.",
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
                summary: "Replace the topology",
                description: "Validates the whole topology. If it is invalid, nothing changes, and `errors` lists each error \
                              with its line. The JSON format is that of `network` in the response to GET.",
                errors: &[Code::UnsupportedMediaType, Code::Conflict],
                waits: true,
            },
            topology::put,
        )
}

/// Stored flow records.
fn of_records(routes: Routes<Api>) -> Routes<Api> {
    const ERRORS: &[Code] = &[Code::NotConfigured, Code::TooManyRequests, Code::Unavailable];
    routes
        .add(
            Get,
            "/v1/records/top",
            Operation {
                scope: READ,
                summary: "The largest groups of stored flow records",
                description: "As `thalweg flows top`: a flow that several routers exported counts once. Needs \
                              `records.folder` in the configuration of the daemon. If the time range has more records than can \
                              be read in time, the response covers the latest of them, and `partial` is true.",
                errors: ERRORS,
                waits: true,
            },
            records::top,
        )
        .add(
            Get,
            "/v1/records/series",
            Operation {
                scope: READ,
                summary: "Traffic of stored flow records over time",
                description: "As `thalweg flows series`: the bytes of a record are spread evenly over its duration. Otherwise \
                              as `/v1/records/top`.",
                errors: ERRORS,
                waits: true,
            },
            records::over_time,
        )
        .add(
            Get,
            "/v1/records/flowsets",
            Operation {
                scope: READ,
                summary: "The largest parallel flowsets of stored flow records",
                description: "As `thalweg flows flowsets`: flows between two hosts that start together. Otherwise as \
                              `/v1/records/top`.",
                errors: ERRORS,
                waits: true,
            },
            records::flowsets,
        )
}

/// Results of emulated experiments.
fn of_experiments(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/experiments",
            Operation {
                scope: READ,
                summary: "Emulated experiments with results",
                description: "The folders with results of `thalweg emulate --output` in `experiments.folder` of the \
                              configuration, and in the folders in it. Results that cannot be read are listed with the error.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            experiments::all,
        )
        .add(
            Get,
            "/v1/experiments/{name}",
            Operation {
                scope: READ,
                summary: "Results of an experiment",
                description: "A run: its summary, throughput and queue lengths over time, and flow completion times. A sweep: \
                              the table of its runs.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            experiments::one,
        )
        .add(
            Get,
            "/v1/experiments/{name}/{run}",
            Operation {
                scope: READ,
                summary: "Results of an experiment in a group, or of a run of a sweep",
                description: "As `/v1/experiments/{name}`.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            experiments::nested,
        )
}

/// What a dashboard needs: the live stream, and the past of links and flows.
fn of_dashboard(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/live",
            Operation {
                scope: READ,
                summary: "Live stream of loads, state and events",
                description: "Server-sent events: `links` names the link directions, `loads` has their utilisation ten times a \
                              second, `status` the state of the daemon once a second. Events that change something \
                              follow as in `/v1/events`, with an `id` from which to resume. Repeated congestion, changed \
                              addresses of flows and decisions to keep a path are left out.",
                errors: &[Code::TooManySubscribers],
                waits: false,
            },
            live::watch,
        )
        .add(
            Get,
            "/v1/links/{link}/history",
            Operation {
                scope: READ,
                summary: "Utilisation of a link in the last ten minutes",
                description: "One value per second of this machine's clock, also if the network is emulated; none before the first \
                              second.",
                errors: &[Code::NotFound],
                waits: false,
            },
            live::of_link,
        )
        .add(
            Get,
            "/v1/flows/{key}/history",
            Operation {
                scope: READ,
                summary: "Rate of a flow in the last ten minutes",
                description: "One value per second, of the fastest flows, while somebody watches `/v1/live`; otherwise none.",
                errors: &[],
                waits: false,
            },
            live::of_flow,
        )
        .add(
            Get,
            "/v1/access",
            Operation {
                scope: READ,
                summary: "What the client may do",
                description: "The name of the token, and whether it may change the network.",
                errors: &[],
                waits: false,
            },
            live::access,
        )
        .add(
            Get,
            "/v1/alerts",
            Operation {
                scope: READ,
                summary: "Alert rules",
                description: "The rules of the configuration (`[[alert]]`), and what each has sent.",
                errors: &[],
                waits: false,
            },
            alerts::all,
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
                summary: "Save the latest samples",
                description: "Writes the sample buffers of the collectors to the configured folder and returns the names of \
                              the files. If `Accept` is `application/pcapng`, returns the samples of `collector` instead.",
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
                summary: "Stream of events",
                description: "Server-sent events: `event` is the type, `data` the event as JSON, `id` the position from which \
                              to resume. A slow subscriber whose next event was overwritten receives a `lost` event with the \
                              count, then the oldest available event.",
                errors: &[Code::TooManySubscribers],
                waits: false,
            },
            events::subscribe,
        )
        .add(
            Get,
            "/v1/event-log",
            Operation {
                scope: READ,
                summary: "Logged events",
                description: "Events of this run of the daemon and of earlier ones, the newest first. Needs `event_log.folder` in \
                              the configuration of the daemon.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            event_log::get,
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
                summary: "State of the controller",
                description: "404 if the configuration has no `[control]`.",
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
                summary: "Latest decisions of the controller",
                description: "Includes decisions to keep a pair on its path. Each decision lists all paths that were compared, \
                              with the rate expected on each.",
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
                summary: "Latest actions of the controller",
                description: "Reroutes and their outcomes.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::actions,
        )
        .add(
            Get,
            "/v1/control/paths/{src}/{dst}",
            Operation {
                scope: READ,
                summary: "Paths from one host to another",
                description: "The path by each tree: its links and its capacity.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::paths,
        )
        .add(
            Put,
            "/v1/control/pins/{src}/{dst}",
            Operation {
                scope: WRITE,
                summary: "Pin a pair of hosts to a tree",
                description: "Reroutes all flows from one host to the other, now and in future, also while the controller is \
                              frozen. 409 if another daemon is the master of the switches.",
                errors: &[Code::NotFound, Code::Conflict],
                waits: true,
            },
            control::pin,
        )
        .add(
            Delete,
            "/v1/control/pins/{src}/{dst}",
            Operation {
                scope: WRITE,
                summary: "Unpin a pair of hosts",
                description: "The pair stays on its path until the controller reroutes it; 404 if it is not pinned.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::unpin,
        )
        .add(
            Put,
            "/v1/links/{link}/state",
            Operation {
                scope: WRITE,
                summary: "Report that a link is down or up",
                description: "For monitoring systems that know about a failed link, such as a handler of SNMP traps. The \
                              controller reroutes around a link while this report, its switches or a carrier say that it \
                              is down. A link that flaps is held down. Report to every daemon with a controller.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::report_link,
        )
        .add(
            Put,
            "/v1/control/frozen",
            Operation {
                scope: WRITE,
                summary: "Freeze or resume the controller",
                description: "A frozen controller decides but does not reroute. Pairs stay on their paths.",
                errors: &[Code::NotFound],
                waits: true,
            },
            control::freeze,
        )
}

/// Isolation of cheetah flows, and the interface counters that show its effect.
fn of_isolation(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/redirections",
            Operation {
                scope: READ,
                summary: "Redirections of cheetah flows",
                description: "Active redirections, the latest that have ended, the queues, and counters.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            redirections::all,
        )
        .add(
            Get,
            "/v1/redirections/{key}",
            Operation {
                scope: READ,
                summary: "One redirection",
                description: "The active redirection of a flow, otherwise its latest that has ended. 404 if the daemon has \
                              none.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            redirections::one,
        )
        .add(
            Put,
            "/v1/redirections/{key}",
            Operation {
                scope: WRITE,
                summary: "Redirect a flow",
                description: "The flow stays redirected until it is released by the API. 409 if the configuration excludes \
                              it, or the maximum number of redirections is reached.",
                errors: &[Code::NotConfigured, Code::Conflict],
                waits: true,
            },
            redirections::pin,
        )
        .add(
            Delete,
            "/v1/redirections/{key}",
            Operation {
                scope: WRITE,
                summary: "Release a redirected flow",
                description: "The flow moves back when its packets have left the scavenger queue. 404 if it is not \
                              redirected.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            redirections::release,
        )
        .add(
            Get,
            "/v1/interfaces",
            Operation {
                scope: READ,
                summary: "Interface counters of routers and of this host",
                description: "The latest counters, the losses of the primary queue, and errors of each `[[poll]]`.",
                errors: &[Code::NotConfigured],
                waits: false,
            },
            interfaces::all,
        )
        .add(
            Get,
            "/v1/threshold",
            Operation {
                scope: READ,
                summary: "The rate threshold of cheetah flows",
                description: "How it follows the traffic: the current threshold and its reason, past periods, and loss by \
                              flow rate.",
                errors: &[Code::NotConfigured],
                waits: false,
            },
            threshold::get,
        )
}

/// Reports of transfer hosts.
fn of_transfers(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Post,
            "/v1/transfers/agent-reports",
            Operation {
                scope: REPORT,
                summary: "Report transfers and the load of a transfer host",
                description: "For agents on transfer hosts (`thalweg transfers agent`). Answers when the rows are on the disk. \
                              A report that was stored before is acknowledged and not stored again. 403 if the report is not of \
                              the host that the token names; 503 if the disk is full or slow: repeat the report.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            transfers::agent_report,
        )
        .add(
            Get,
            "/v1/transfers/hosts",
            Operation {
                scope: READ,
                summary: "Hosts that report transfers",
                description: "The latest report of each host, the difference of its clock, and counters.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            transfers::hosts,
        )
        .add(
            Get,
            "/v1/transfers/reports",
            Operation {
                scope: READ,
                summary: "Reports on slow transfers",
                description: "The PRCA reports (Performance and Root Cause Analysis) of analyses, for each user and host. The \
                              daemon makes none itself: `thalweg transfers report` writes them into the store. 404 before the first.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            transfers::reports,
        )
        .add(
            Get,
            "/v1/transfers/reports/{period}/{report}",
            Operation {
                scope: READ,
                summary: "One report on slow transfers",
                description: "As a page or as JSON, depending on its name in the list.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            transfers::report_file,
        )
        .add(
            Get,
            "/v1/transfers/subscriptions",
            Operation {
                scope: WRITE,
                summary: "Subscriptions to reports on slow transfers",
                description: "With their addresses, so it needs the scope write.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            transfers::subscriptions,
        )
        .add(
            Put,
            "/v1/transfers/subscriptions/{subject}/{name}",
            Operation {
                scope: WRITE,
                summary: "Subscribe to the reports about a user or a host",
                description: "Each new report with slow transfers is sent to the webhook, the e-mail address or both, at most one a \
                              day. A failed delivery is repeated.",
                errors: &[Code::NotConfigured],
                waits: true,
            },
            transfers::subscribe,
        )
        .add(
            Delete,
            "/v1/transfers/subscriptions/{subject}/{name}",
            Operation {
                scope: WRITE,
                summary: "Remove a subscription",
                description: "404 if there is none.",
                errors: &[Code::NotConfigured, Code::NotFound],
                waits: true,
            },
            transfers::unsubscribe,
        )
}

/// The program: documentation, health and metrics.
fn of_program(routes: Routes<Api>) -> Routes<Api> {
    routes
        .add(
            Get,
            "/v1/openapi.json",
            Operation {
                scope: ANYBODY,
                summary: "OpenAPI document",
                description: "This API as an OpenAPI document, for client generators.",
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
                summary: "Liveness",
                description: "Responds while the daemon runs.",
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
                summary: "Readiness",
                description: "200 once every collector has opened its source or reported a failure; 503 before that and while \
                              the daemon stops.",
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
                summary: "Metrics",
                description: "All metrics in Prometheus text format.",
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
    fn changes_need_the_write_scope_and_reports_their_own() {
        for route in table() {
            let scope = match (route.method, route.path) {
                // Addresses of subscribers.
                (Get, "/v1/transfers/subscriptions") => WRITE,
                (Get, _) => continue,
                (_, "/v1/transfers/agent-reports") => REPORT,
                _ => WRITE,
            };
            assert_eq!(route.operation.scope, scope, "{}", route.path);
        }
    }
}
