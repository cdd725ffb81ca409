//! Polls of a port of a switch by OpenFlow.

#[path = "../../../../thalweg-poll/tests/openflow/device.rs"]
#[expect(dead_code, reason = "the tests of the source use more of it")]
mod device;

use std::net::TcpListener;

use serde_json::json;
use thalweg_wire::openflow::{DatapathId, ErrorMessage, ErrorType};

use super::polls::poll;
use super::*;
use device::{Model, local, port_of, queue_of};

const SWITCH: DatapathId = DatapathId(0xd1);

#[test]
fn queues_of_a_switch_are_polled_and_its_errors_are_named() {
    let model = Model::default();
    model.change(|it| {
        it.ports = vec![port_of("wan0", 1, 100), port_of("lan0", 2, 100)];
        it.queues = vec![queue_of(1, 0, 5_000, 10, 90), queue_of(1, 1, 700, 300, 90)];
    });
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let section = |name: &str, keys: &str| {
        format!(
            "[[poll]]\nname = \"{name}\"\nsource = \"openflow\"\nswitch = \"d1\"\nopenflow_connect = \"{address}\"\n\
             interval = \"100ms\"\ntimeout = \"500ms\"\n{keys}"
        )
    };
    let wan = section("wan", "interface = \"wan0\"\nprimary_queue = 0\nscavenger_queue = 1\n");
    let lan = section("lan", "interface = \"lan0\"\n");
    let mut serve = Serve::new(&[CAPTURE, &wan, &lan, "[records]\nfolder = \"records\"\n"].concat());
    let check = thalweg_in(serve.folder.path(), &["check", "thalweg.toml"]).ended_with(0);
    let line = format!(
        "poll wan: OpenFlow of switch 00000000000000d1 (at {address}), port wan0, queue 0, every 100 ms, average over 6; drops of the primary queue"
    );
    assert!(check.stdout.contains(&line), "{}", check.stdout);
    let line = "drops of all queues, so the loss of the primary queue is unknown: see primary_queue and has_scavenger";
    assert!(check.stdout.contains(line), "{}", check.stdout);
    serve.launch(Command::new(THALWEG));
    let device = model.accept(&listener, SWITCH);
    serve.wait("there are intervals", |serve| {
        serve.get("/v1/interfaces").is_some_and(|answer| answer["interfaces"][0]["average"]["intervals"] == 6)
    });
    model.change(|it| it.queues = vec![queue_of(1, 0, 5_990, 20, 90), queue_of(1, 1, 800, 500, 90)]);
    serve.wait("the drops are counted", |serve| {
        serve.metric("thalweg_poll_drops_total{poll=\"wan\",queue=\"primary\"}") == Some(10)
    });
    assert_eq!(serve.metric("thalweg_poll_packets_total{poll=\"wan\",queue=\"primary\"}"), Some(1_000));
    assert_eq!(serve.metric("thalweg_poll_drops_total{poll=\"wan\",queue=\"scavenger\"}"), Some(200));
    let counters = poll(&serve, 0)["counters"].clone();
    assert_eq!((&counters["scope"], &counters["index"]), (&json!("primary_queue"), &json!(1)), "{counters}");
    // Without a queue, the loss is unknown.
    let lan = poll(&serve, 1);
    assert_eq!(
        (&lan["counters"]["scope"], &lan["interval"]["unusable"], &lan["average"]),
        (&json!("all_queues"), &json!("sum_of_queues"), &Value::Null)
    );
    // Errors.
    let error = ErrorMessage { error_type: ErrorType::QUEUE_OP_FAILED, code: 2, data: vec![] };
    model.change(|it| it.refused = Some(("Queue", error)));
    serve.wait("the refusal is reported", |serve| {
        serve.metric("thalweg_polls_failed_total{poll=\"wan\",reason=\"refused\"}").is_some()
    });
    let reported = poll(&serve, 0)["error"].as_str().unwrap().to_owned();
    assert!(
        reported.ends_with("queue 0 of port 1: queue operation failed: eperm (type 9, code 2)"),
        "{reported}"
    );
    model.change(|it| it.refused = None);
    drop(device);
    serve.wait("the switch is missing", |serve| {
        serve.metric("thalweg_polls_failed_total{poll=\"lan\",reason=\"connection\"}").is_some()
    });
    let _device = model.accept(&listener, SWITCH);
    serve.wait("both are read again", |serve| (0..2).all(|number| poll(serve, number)["error"].is_null()));
    assert!(serve.log().contains("interface counters available again poll=\"wan\""), "{}", serve.log());
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    assert!(serve.path("records/interface-counters").is_dir());
}
