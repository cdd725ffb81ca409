//! The OpenAPI document lists every route, and responses match it.

use std::sync::Arc;

use serde_json::{Value, json};
use thalweg_control::Pair;
use thalweg_control::action::{Action, ActionId};
use thalweg_control::decide::{Alternative, Cause, Decision, Verdict};
use thalweg_control::isolate::message::FlowCounters;
use thalweg_control::isolate::{EndCause, Phase, Reason, RedirectionId, RedirectionReport};
use thalweg_control::routes::{LinkNumber, RuleFaults};
use thalweg_daemon::api::routes;
use thalweg_daemon::control::{ActionOutcome, ActionReport, ActionTimes};
use thalweg_daemon::event::TrafficChange;
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::api::fixture::Fixture;
use crate::api::schema::faults;

/// Returns the schema of the response of a route.
fn schema<'a>(document: &'a Value, path: &str, method: &str, status: &str, media_type: &str) -> &'a Value {
    let responses = &document["paths"][path][method]["responses"];
    let schema = &responses[status]["content"][media_type]["schema"];
    assert!(schema.is_object(), "{method} {path} {status} {media_type}: {responses}");
    schema
}

#[test]
fn the_document_lists_exactly_the_routes() {
    let document = Fixture::new().client.get("/v1/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.1");
    let mut described = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let route = routes::table()
                .iter()
                .find(|route| route.path == path && route.method.to_string().eq_ignore_ascii_case(method));
            let route = route.unwrap_or_else(|| panic!("{method} {path} is no route"));
            assert_eq!(operation["summary"], route.operation.summary);
            described += 1;
        }
    }
    assert_eq!(described, routes::table().len());
}

#[test]
fn all_references_resolve_and_all_items_are_described() {
    let document = Fixture::new().client.get("/v1/openapi.json").json();
    fn walk(document: &Value, value: &Value) {
        if let Some(reference) = value["$ref"].as_str() {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|value| walk(document, value)),
            Value::Array(items) => items.iter().for_each(|value| walk(document, value)),
            _ => {}
        }
    }
    walk(&document, &document);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in [
        "Links",
        "Flows",
        "Tasks",
        "Collectors",
        "Topology",
        "NewTopology",
        "Event",
        "Lost",
        "Problem",
        "Health",
        "Control",
        "Decisions",
        "Actions",
    ] {
        let schema = schemas.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(schema["description"].is_string(), "{name}");
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_described = schema["description"].is_string() || schema["$ref"].is_string();
            assert!(is_described, "{name}.{field} is not described");
        }
    }
}

#[test]
fn every_response_matches_the_document() {
    let fixture = Fixture::new();
    let document = fixture.client.get("/v1/openapi.json").json();
    for (path, request) in [
        ("/v1/links", "/v1/links"),
        ("/v1/links/{link}/flows", "/v1/links/tor0:p3:out/flows?limit=5"),
        ("/v1/flows", "/v1/flows?limit=100"),
        ("/v1/flows/{key}", "/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.1.7:51000"),
        ("/v1/cheetahs", "/v1/cheetahs"),
        ("/v1/tasks", "/v1/tasks"),
        ("/v1/tasks/{collector}/{task}", "/v1/tasks/tor0/change:1s"),
        ("/v1/collectors", "/v1/collectors"),
        ("/v1/links/{link}/history", "/v1/links/tor0:p3:out/history"),
        ("/v1/flows/{key}/history", "/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.1.7:51000/history"),
        ("/v1/access", "/v1/access"),
        ("/v1/alerts", "/v1/alerts"),
        ("/v1/topology", "/v1/topology"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
    ] {
        let answer = fixture.client.get(request);
        assert_eq!(
            (answer.status, &answer.headers["content-type"]),
            (200, &"application/json".parse().unwrap()),
            "{request}"
        );
        let schema = schema(&document, path, "get", "200", "application/json");
        assert_eq!(faults(&document, schema, &answer.json()), Vec::<String>::new(), "{request}");
    }
    // Every response had content.
    let tasks = fixture.client.get("/v1/tasks").json();
    let tasks = tasks["collectors"][0]["tasks"].as_array().unwrap().clone();
    let kinds: Vec<_> = tasks.iter().map(|task| task["result"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["heavy", "change", "distinct", "entropy", "spread", "moments", "hhh"]);
    assert!(tasks[0]["result"]["keys"][0]["flow"]["src"].is_string(), "{}", tasks[0]);
    let topology = fixture.client.get("/v1/topology").json()["network"].to_string();
    let json = [("content-type", "application/json")];
    let put = fixture.client.send("PUT", "/v1/topology", &json, topology.as_bytes());
    let schema = schema(&document, "/v1/topology", "put", "200", "application/json");
    assert_eq!(faults(&document, schema, &put.json()), Vec::<String>::new());
}

#[test]
fn every_problem_matches_the_document() {
    let fixture = Fixture::new();
    let document = fixture.client.get("/v1/openapi.json").json();
    let schema = schema(&document, "/v1/flows", "get", "default", "application/problem+json");
    for path in
        ["/v1/flows?limit=0", "/v1/flows?x=1", "/v1/flows/nonsense", "/nothing", "/v1/links?collector=x"]
    {
        let answer = fixture.client.get(path);
        answer.problem();
        assert_eq!(faults(&document, schema, &answer.json()), Vec::<String>::new(), "{path}");
    }
    let json = [("content-type", "application/json")];
    let put = fixture.client.send("PUT", "/v1/topology", &json, b"{\n  \"rooter\": []\n}");
    assert_eq!(faults(&document, schema, &put.json()), Vec::<String>::new());
}

#[test]
fn every_event_matches_the_document() {
    use thalweg_daemon::event::CollectorState;
    use thalweg_daemon::event::EventKind;
    use thalweg_measure::collector::AddressChange;
    use thalweg_measure::detect::{Cheetah, CheetahEnd, Finding};
    use thalweg_wire::{Bytes, EthernetAddresses, MacAddress};

    let fixture = Fixture::new();
    let document = fixture.client.get("/v1/openapi.json").json();
    let key = crate::api::bench_collector::flow(5).key;
    let (first, last) = (Timestamp(1), Timestamp(2));
    let ethernet = |destination| EthernetAddresses {
        destination: MacAddress([2, b'T', b'W', destination, 0, 1]),
        source: MacAddress([2, b'T', b'W', 0, 0, 0]),
    };
    let kinds = [
        EventKind::AddressChange(AddressChange { key, from: ethernet(0), to: ethernet(2), time: last }),
        EventKind::Cheetah(Finding::Began(Cheetah {
            key,
            first,
            detected: last,
            rate: BitRate(5_000_000),
            bytes: Bytes(600_000),
        })),
        EventKind::Cheetah(Finding::Ended(CheetahEnd { key, first, last, packets: 5, bytes: Bytes(7_500) })),
        EventKind::State(CollectorState::Running),
        EventKind::State(CollectorState::Failed { error: "eth0 is down".into(), retry_at: Some(last) }),
        EventKind::Decision(decision(), Arc::default()),
        EventKind::Action(
            ActionReport {
                action: action(),
                times: Some(times()),
                outcome: ActionOutcome::Confirmed(Nanos(9)),
            },
            Arc::default(),
        ),
        EventKind::Action(
            ActionReport { action: action(), times: None, outcome: ActionOutcome::Refused("no way".into()) },
            Arc::default(),
        ),
        EventKind::RuleFaults(RuleFaults { missing: 1, changed: 2, foreign: 3 }),
        EventKind::Mastership(true),
        EventKind::Redirection(redirection(key)),
        EventKind::Link { name: "leaf0:p2 - spine0:p0".into(), is_up: false },
        EventKind::TrafficChange(traffic_change()),
    ];
    let mut events = fixture.client.events("", &[]);
    fixture.publish(1);
    for kind in kinds {
        fixture
            .daemon
            .hub()
            .publish(thalweg_daemon::event::Event { kind, ..crate::api::fixture::event("tor0", 3) });
    }
    let types: Vec<_> = (0..14)
        .map(|_| {
            let sent = events.next();
            let found = faults(&document, &json!({"$ref": "#/components/schemas/Event"}), &sent.data);
            assert_eq!(found, Vec::<String>::new(), "{}", sent.data);
            assert_eq!(sent.data["type"], sent.event);
            sent.event
        })
        .collect();
    let collector = ["collector", "collector"];
    let control = [
        "decision",
        "action",
        "action",
        "rule_faults",
        "mastership",
        "redirection",
        "link",
        "traffic_change",
    ];
    assert_eq!(
        types,
        [&["congestion", "address_change", "cheetah", "cheetah_end"], &collector[..], &control].concat()
    );
}

/// The change that the task of the fixture's collectors has found.
fn traffic_change() -> TrafficChange {
    let tasks = crate::api::bench_collector::tasks();
    let mut answers = tasks.tasks.iter().flat_map(|task| &task.answers);
    answers.find_map(|answer| TrafficChange::of(&answer.result)).expect("the traffic of keys changed")
}

fn redirection(key: thalweg_wire::FlowKey) -> RedirectionReport {
    RedirectionReport {
        id: RedirectionId(1),
        key,
        reason: Reason::Pinned,
        phase: Phase::Released,
        requested: Timestamp(1),
        redirected: Some(Timestamp(2)),
        confirmed: None,
        ended: Some(Timestamp(3)),
        end_cause: Some(EndCause::FlowEnded),
        is_forced: true,
        counters: Some(FlowCounters { packets: 3, bytes: thalweg_wire::Bytes(4_500), first: None }),
        primary_backlog_before: None,
        primary_backlog_after: None,
        error: None,
        try_number: 1,
        retry_at: None,
    }
}

fn pair() -> Pair {
    Pair { source: EndpointId(0), destination: EndpointId(1) }
}

fn decision() -> Decision {
    let way = |address| Alternative { address, expected: BitRate(5), tightest: LinkNumber(0) };
    Decision {
        pair: pair(),
        time: Timestamp(1),
        cause: Cause::Congestion(LinkNumber(0)),
        rate: BitRate(3),
        from: 0,
        to: 1,
        verdict: Verdict::Reroute,
        flow_moves: 1,
        alternatives: vec![way(0), way(1)],
    }
}

fn times() -> ActionTimes {
    ActionTimes { handled: Timestamp(1), started: Timestamp(2) }
}

fn action() -> Action {
    Action { id: ActionId(1), pair: pair(), address: 1, issued: Timestamp(1), deadline: Timestamp(2) }
}
