//! The live stream of a dashboard, and its files.

use serde_json::json;
use thalweg_daemon::event::{CollectorState, Event, EventKind};
use thalweg_measure::collector::CongestionChange;

use crate::api::client::Events;
use crate::api::fixture::{Fixture, event};

/// Returns the next message of a type, and skips others.
fn next_of(stream: &mut Events, kind: &str) -> serde_json::Value {
    (0..200).map(|_| stream.next()).find(|sent| sent.event == kind).expect("it is sent").data
}

#[test]
fn a_viewer_gets_links_loads_and_status() {
    let fixture = Fixture::new();
    let mut stream = fixture.client.stream("/v1/live", &[]);
    let links = next_of(&mut stream, "links");
    assert_eq!(links["links"].as_array().unwrap().len(), 8, "tor0 has four ports, quiet none");
    assert_eq!(links["links"][1], "tor0:p0:out");
    let loads = next_of(&mut stream, "loads");
    assert_eq!((&loads["list"], &loads["loads"]), (&links["list"], &json!(vec![910; 8])));
    // Nothing changes.
    let next = next_of(&mut stream, "loads");
    assert_eq!(next["changed"], json!([]));
    let status = next_of(&mut stream, "status");
    assert_eq!(status["collectors"][0]["name"], "tor0");
    assert_eq!(status["configured"], json!(["tasks", "topology"]));
    assert_eq!(status["control"], serde_json::Value::Null);
}

#[test]
fn a_viewer_gets_changes_and_no_repetitions() {
    let fixture = Fixture::new();
    let mut stream = fixture.client.stream("/v1/live", &[]);
    let hub = fixture.daemon.hub();
    let congestion = |change| {
        let Event { kind: EventKind::Congestion(congestion), .. } = event("tor0", 3) else { unreachable!() };
        let kind =
            EventKind::Congestion(thalweg_measure::collector::CongestionEvent { change, ..congestion });
        Event { kind, ..event("tor0", 3) }
    };
    for change in [CongestionChange::Began, CongestionChange::Repeated, CongestionChange::Cleared] {
        hub.publish(congestion(change));
    }
    assert_eq!(next_of(&mut stream, "congestion")["change"], "began");
    assert_eq!(next_of(&mut stream, "congestion")["change"], "cleared");
}

#[test]
fn a_viewer_that_resumes_gets_missed_events_and_current_loads() {
    let fixture = Fixture::new();
    fixture.publish(3);
    let mut stream = fixture.client.stream("/v1/live?after=1", &[]);
    assert_eq!(next_of(&mut stream, "congestion")["id"], 2);
    assert_eq!(next_of(&mut stream, "congestion")["id"], 3);
    assert!(next_of(&mut stream, "loads")["loads"].is_array());
    let other_run = &[("last-event-id", "00000000000000aa-9000")];
    let mut stream = fixture.client.stream("/v1/live", other_run);
    assert_eq!(next_of(&mut stream, "lost")["count"], serde_json::Value::Null);
}

#[test]
fn the_load_of_a_collector_that_does_not_respond_is_unknown() {
    let fixture = Fixture::new();
    let mut stream = fixture.client.stream("/v1/live", &[]);
    let _ = next_of(&mut stream, "loads");
    fixture.silence();
    let changed = (0..50).map(|_| next_of(&mut stream, "loads")).find(|loads| loads["changed"] != json!([]));
    let changed = changed.expect("the load becomes unknown")["changed"].clone();
    assert_eq!(changed[1], -1, "{changed}");
    let kind = EventKind::State(CollectorState::Stopped);
    fixture.daemon.hub().publish(Event { kind, ..event("tor0", 0) });
    assert_eq!(next_of(&mut stream, "collector")["state"]["name"], "stopped");
}

#[test]
fn the_past_of_links_and_flows_is_kept() {
    let fixture = Fixture::new();
    let mut stream = fixture.client.stream("/v1/live", &[]);
    for _ in 0..3 {
        let _ = next_of(&mut stream, "status");
    }
    let link = fixture.client.get("/v1/links/tor0:p0:out/history").json();
    assert_eq!(link["link"], "tor0:p0:out");
    assert_eq!(link["mean"].as_array().unwrap().last().unwrap().as_f64().unwrap() as f32, 0.91);
    let flow = fixture.client.get("/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.1.99:51000/history").json();
    assert_eq!(flow["rate_bps"].as_array().unwrap().last().unwrap(), 99e6);
    let unknown = fixture.client.get("/v1/flows/tcp%20192.0.2.1:1%20%3E%20192.0.2.2:2/history");
    assert_eq!(unknown.json()["rate_bps"], json!([]));
    assert_eq!(fixture.client.get("/v1/links/nowhere:p0:out/history").problem().0, 404);
}

#[test]
fn viewers_are_limited_as_subscribers_are() {
    let fixture = Fixture::with(|options| options.limits.subscribers = 1);
    let _stream = fixture.client.stream("/v1/live", &[]);
    let refused = fixture.client.get("/v1/live").problem();
    assert_eq!(refused, (503, "too_many_subscribers".into()));
}

#[test]
fn the_page_is_served_to_everybody_and_may_load_nothing_else() {
    let fixture = Fixture::new();
    let page = fixture.client.get("/");
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    // What the page loads is there, and none of it is written within the page.
    for path in ["/dashboard/app.js", "/dashboard/app.css", "/dashboard/worker.js", "/dashboard/icon.svg"] {
        assert_eq!(fixture.client.get(path).status, 200, "{path}");
    }
    assert!(
        page.text.contains("src=\"/dashboard/app.js\"") && !page.text.contains("<style"),
        "{}",
        page.text
    );
    assert_eq!(fixture.client.get("/dashboard/../secret").status, 404);
    assert_eq!(fixture.client.send("PUT", "/", &[], b"x").problem().0, 405);
    let tag = page.headers["etag"].to_str().unwrap();
    assert_eq!(fixture.client.get_with("/", &[("if-none-match", tag)]).status, 304);
}
