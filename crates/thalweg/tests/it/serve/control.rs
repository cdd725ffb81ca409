//! The control loop with an emulated network, collectors and the controller.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::program::root;
use crate::serve::Serve;

/// Creates the daemon of `examples/rerouting`, ten times faster, with these lines in `[control]`.
fn rerouting(control: &str) -> Serve {
    emulating("", control)
}

/// Like [`rerouting`], with these lines in the experiment file too.
fn emulating(experiment: &str, control: &str) -> Serve {
    let mut serve = Serve::new("");
    let examples = root().join("examples/rerouting");
    let emulated = fs::read_to_string(examples.join("experiment.toml")).unwrap();
    fs::write(serve.path("experiment.toml"), emulated + experiment).unwrap();
    let example = fs::read_to_string(examples.join("thalweg.toml")).unwrap();
    let faster = example.replace("pace = 0.01", "pace = 0.1");
    assert_ne!(faster, example);
    let text = format!("[api]\nlisten = \"{}\"\n{faster}{control}", serve.address);
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve.start();
    serve
}

/// Sends a write request. Returns status and response.
pub(crate) fn send(serve: &Serve, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(serve.address).unwrap();
    let (host, body) = (serve.address, body.to_string());
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn count(serve: &Serve, name: &str) -> u64 {
    serve.get("/v1/control").unwrap()["counts"][name].as_u64().unwrap()
}

#[test]
fn colliding_flows_are_rerouted_and_confirmed() {
    let mut serve = rerouting("");
    serve.wait("some were", |serve| count(serve, "confirmed") >= 5);
    let control = serve.get("/v1/control").unwrap();
    assert_eq!(control["has_routes"], true);
    assert_eq!(control["counts"]["lost_events"], 0);
    assert_eq!(serve.get("/v1/topology").unwrap()["version"], 2, "collectors know of the routes");

    let actions = serve.get("/v1/control/actions?limit=1000").unwrap()["actions"].clone();
    let first = actions.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&first["action"], &first["outcome"]), (&json!(1), &json!("confirmed")), "{first}");
    assert!(first["decision_to_path_ns"].as_u64().unwrap() > 0);
    assert!(serve.log().contains("rerouted src="), "{}", serve.log());

    let decisions = serve.get("/v1/control/decisions?limit=1000").unwrap()["decisions"].clone();
    let decisions = decisions.as_array().unwrap();
    let rerouted = decisions.iter().filter(|decision| decision["verdict"] == "reroute");
    for decision in rerouted {
        let paths = decision["alternatives"].as_array().unwrap();
        let expected = |tree: &Value| {
            let path = paths.iter().find(|path| path["tree"] == *tree).unwrap();
            path["expected_rate_bps"].as_u64().unwrap()
        };
        let (there, here) = (expected(&decision["tree"]), expected(&decision["from_tree"]));
        assert!(10 * there > 11 * here, "it goes where it gains a tenth: {decision}");
        assert!((1..=3).contains(&decision["flow_moves"].as_u64().unwrap()), "{decision}");
    }
    let latest = decisions.iter().find(|decision| decision["verdict"] == "reroute").unwrap();
    let [src, dst] = ["src", "dst"].map(|end| latest[end].as_str().unwrap());
    let paths = serve.get(&format!("/v1/control/paths/{src}/{dst}")).unwrap();
    assert!(paths["reroutes"].as_u64().unwrap() >= 1, "{paths}");
    let flows = paths["flows"].as_array().unwrap();
    assert!(flows.iter().any(|flow| (1..=3).contains(&flow["moves"].as_u64().unwrap())), "{paths}");
    assert!(flows.iter().all(|flow| flow["key"].as_str().unwrap().contains(" > ")), "{paths}");
    assert!(serve.metric("thalweg_control_flow_moves_total{number=\"1\"}").unwrap() >= 1);
    assert!(decisions.iter().any(|decision| decision["verdict"] == "keep"));
    let confirmed = serve.metric("thalweg_control_actions_total{outcome=\"confirmed\"}").unwrap();
    assert!(confirmed >= 5 && serve.metric("thalweg_control_decision_to_path_seconds_count").unwrap() >= 5);
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    assert!(serve.log().contains("controller stopped"), "{}", serve.log());
}

#[test]
fn collectors_and_control_loop_can_share_a_thread() {
    let mut serve = rerouting("[process]\nthreads = \"one\"\n");
    serve.wait("some were rerouted", |serve| count(serve, "confirmed") >= 5);
    let control = serve.get("/v1/control").unwrap();
    assert_eq!((&control["has_routes"], &control["counts"]["lost_events"]), (&json!(true), &json!(0)));
    assert_eq!(serve.get("/v1/topology").unwrap()["version"], 2, "collectors know of the routes");
    let (status, control) = send(&serve, "PUT", "/v1/control/pins/h0/h8", &json!({"tree": 3}));
    assert_eq!((status, &control["pins"][0]["tree"]), (200, &json!(3)), "{control}");
    assert!(!serve.get("/v1/flows").unwrap()["flows"].as_array().unwrap().is_empty(), "they answer");
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    assert!(serve.log().contains("controller stopped"), "{}", serve.log());
}

#[test]
fn trees_avoid_a_failed_link_of_the_emulation_until_it_is_repaired() {
    let failure = "[[failure]]\nlink = [\"edge0\", \"agg0\"]\nat = \"200ms\"\nrepair = \"600ms\"\n";
    let serve = emulating(failure, "");
    serve.wait("the link fails", |serve| count(serve, "recomputed_routes") == 1);
    let failed = serve.get("/v1/control").unwrap()["failed_links"].clone();
    let [link] = &failed.as_array().unwrap()[..] else { panic!("{failed}") };
    assert!(["edge0:p", " - ", "agg0:p"].iter().all(|part| link.as_str().unwrap().contains(part)), "{link}");
    assert_eq!(serve.metric("thalweg_control_failed_links"), Some(1));
    serve.wait("routes are installed", |serve| serve.get("/v1/control").unwrap()["has_routes"] == true);
    let on_failed = |path: &Value| path["links"].to_string().contains("\"edge0:p2:out\"");
    let paths = serve.get("/v1/control/paths/h0/h8").unwrap()["paths"].clone();
    let paths = paths.as_array().unwrap();
    assert!(paths.len() == 4 && !paths.iter().any(on_failed), "{paths:?}");
    serve.wait("the link is repaired", |serve| count(serve, "recomputed_routes") == 2);
    assert_eq!(serve.get("/v1/control").unwrap()["failed_links"], json!([]));
    let paths = serve.get("/v1/control/paths/h0/h8").unwrap()["paths"].clone();
    assert!(paths.as_array().unwrap().iter().any(on_failed), "{paths}");
}

/// The link state that a monitoring system reports.
fn report(serve: &Serve, link: &str, up: bool) -> (u16, Value) {
    send(serve, "PUT", &format!("/v1/links/{link}/state"), &json!({"up": up}))
}

#[test]
fn trees_avoid_a_link_that_a_user_reports_down() {
    let serve = rerouting("");
    serve.wait("routes are installed", |serve| serve.get("/v1/control").unwrap()["has_routes"] == true);
    let (status, control) = report(&serve, "edge0:p2", false);
    assert_eq!(status, 200, "{control}");
    let failed = control["failed_links"].as_array().unwrap();
    assert!(failed.len() == 1 && failed[0].as_str().unwrap().contains("edge0:p2"), "{control}");
    assert_eq!((count(&serve, "recomputed_routes"), count(&serve, "link_failures")), (1, 1));
    let on_failed = |path: &Value| path["links"].to_string().contains("\"edge0:p2:out\"");
    let paths = serve.get("/v1/control/paths/h0/h8").unwrap()["paths"].clone();
    assert!(!paths.as_array().unwrap().iter().any(on_failed), "{paths}");
    // By the other end's port, or one direction.
    let other = failed[0].as_str().unwrap().split(" - ").find(|end| !end.starts_with("edge0")).unwrap();
    let (status, control) = report(&serve, &format!("{other}:in"), true);
    assert_eq!((status, &control["failed_links"]), (200, &json!([])), "{control}");
    for (link, body, expected) in [
        ("edge0:p99", json!({"up": true}), 404),
        ("edge99:p0", json!({"up": true}), 404),
        ("edge0", json!({"up": true}), 404),
        ("edge0:p2", json!({"up": "no"}), 400),
        ("edge0:p2", json!({}), 400),
    ] {
        let (status, answer) = send(&serve, "PUT", &format!("/v1/links/{link}/state"), &body);
        assert_eq!(status, expected, "{link} {body}: {answer}");
    }
}

#[test]
fn a_flapping_link_is_held_down_and_shown() {
    let serve = rerouting("link_hold = \"1h\"\nlink_max_hold = \"2h\"\nlink_failure_window = \"1h\"\n");
    for _ in 0..5 {
        assert_eq!(report(&serve, "edge0:p2", false).0, 200);
        assert_eq!(report(&serve, "edge0:p2", true).0, 200);
    }
    let control = serve.get("/v1/control").unwrap();
    assert_eq!(control["failed_links"].as_array().unwrap().len(), 1, "{control}");
    let damped = control["damped_links"].as_array().unwrap();
    assert!(damped.len() == 1 && damped[0]["link"] == control["failed_links"][0], "{control}");
    let counts = &control["counts"];
    assert_eq!((&counts["link_failures"], &counts["damped_link_failures"]), (&json!(5), &json!(2)));
    assert_eq!(counts["recomputed_routes"], 5, "two failures and repairs, and the third failure");
    for (metric, value) in [
        ("thalweg_control_damped_links", 1),
        ("thalweg_control_link_failures_total", 5),
        ("thalweg_control_link_failures_damped_total", 2),
        ("thalweg_control_link_holds_total", 1),
    ] {
        assert_eq!(serve.metric(metric), Some(value), "{metric}");
    }
}

#[test]
fn pairs_leave_a_reported_link_if_the_daemon_installs_no_routes() {
    let mut serve = Serve::new("");
    let examples = root().join("examples/rerouting");
    fs::copy(examples.join("experiment.toml"), serve.path("experiment.toml")).unwrap();
    let example = fs::read_to_string(examples.join("thalweg.toml")).unwrap();
    let text = example.replace("pace = 0.01", "pace = 0.1").replace("\"emulated\"", "\"log\"");
    let text = format!("[api]\nlisten = \"{}\"\n{text}", serve.address);
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve.start();
    serve.wait("it sees flows", |serve| count(serve, "congestion_events") > 0);
    for port in ["edge0:p2", "edge1:p2", "edge2:p2", "edge3:p2"] {
        assert_eq!(report(&serve, port, false).0, 200);
    }
    serve.wait("pairs leave them", |serve| count(serve, "left_failed_links") > 0);
    assert_eq!(count(&serve, "recomputed_routes"), 0);
    assert!(serve.log().contains("link changed"), "{}", serve.log());
}

#[test]
fn a_frozen_controller_carries_out_only_pins() {
    let serve = rerouting("dry_run = false\n");
    assert_eq!(send(&serve, "PUT", "/v1/control/frozen", &json!({"frozen": true})).0, 200);
    serve.wait("it would do something", |serve| count(serve, "withheld") >= 3);
    assert_eq!(count(&serve, "started"), 0);
    let (status, control) = send(&serve, "PUT", "/v1/control/pins/h0/h8", &json!({"tree": 3}));
    assert_eq!(status, 200, "{control}");
    assert_eq!(control["pins"], json!([{"src": "h0", "dst": "h8", "tree": 3}]));
    assert_eq!(control["counts"]["started"], 1);
    let paths = serve.get("/v1/control/paths/h0/h8").unwrap();
    assert_eq!((&paths["pinned_tree"], paths["paths"].as_array().unwrap().len()), (&json!(3), 4), "{paths}");
    let path = &paths["paths"][3];
    assert_eq!((&path["tree"], path["links"].as_array().unwrap().len()), (&json!(3), 5), "{path}");
    assert_eq!(path["links"][4], "edge4:p0:out", "the last is the host's");
    for (method, path, body, expected) in [
        ("PUT", "/v1/control/pins/h0/h99", json!({"tree": 3}), 404),
        ("PUT", "/v1/control/pins/h0/h8", json!({"tree": 4}), 400),
        ("PUT", "/v1/control/pins/h0/h0", json!({"tree": 1}), 400),
        ("PUT", "/v1/control/pins/h0/h8", json!({"trees": 1}), 400),
        ("DELETE", "/v1/control/pins/h8/h0", json!(null), 404),
        ("DELETE", "/v1/control/pins/h0/h8", json!(null), 200),
        ("PUT", "/v1/control/frozen", json!({"frozen": false}), 200),
    ] {
        let (status, answer) = send(&serve, method, path, &body);
        assert_eq!(status, expected, "{method} {path} {body}: {answer}");
    }
    assert_eq!(serve.get("/v1/control").unwrap()["pins"], json!([]));
    serve.wait("it reroutes again", |serve| count(serve, "confirmed") >= 2);
}

#[test]
fn a_controller_uses_events_of_another_daemon() {
    // The other daemon emulates the network and only installs routes.
    let there = rerouting("");
    assert_eq!(send(&there, "PUT", "/v1/control/frozen", &json!({"frozen": true})).0, 200);
    there.wait("has routes", |serve| serve.get("/v1/control").unwrap()["has_routes"] == true);
    let network = there.get("/v1/topology").unwrap()["network"].to_string();
    let mut here = Serve::new("");
    fs::write(here.path("network.json"), network).unwrap();
    let control = format!("[control]\ndecider = \"greedy\"\nremotes = [\"http://{}\"]\n", there.address);
    let text =
        format!("[api]\nlisten = \"{}\"\n[network]\ntopology = \"network.json\"\n{control}", here.address);
    fs::write(here.path("thalweg.toml"), text).unwrap();
    here.start();
    here.wait("it would do something", |serve| count(serve, "rerouted") >= 3);
    assert_eq!(count(&here, "lost_events"), 0, "{}", here.log());
    assert!(here.log().contains("subscribed"), "{}", here.log());
    drop(there);
    here.wait("it sees that nobody is there", |serve| serve.log().contains("subscription failed"));
    here.signal("-TERM");
    assert_eq!(here.ended(), Some(0), "{}", here.log());
}

#[test]
fn a_daemon_without_a_controller_reports_it() {
    let mut serve = Serve::new(crate::serve::CAPTURE);
    serve.start();
    let (status, problem) = send(&serve, "GET", "/v1/control", &Value::Null);
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{problem}");
}
