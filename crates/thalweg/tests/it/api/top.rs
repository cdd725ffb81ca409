//! `thalweg top`: the program, and the feed of its live view.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg::top::Feed;
use thalweg::top::model::{ObservedLink, Query, Update};
use thalweg_api::client::{Client, ClientOptions, Loss};
use thalweg_measure::filter::{FlowFilter, SAMPLED};

use crate::api::client::TIMEOUT;
use crate::api::fixture::Fixture;

fn top(fixture: &Fixture, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["top", "--api", &fixture.client.base]).args(arguments).output().unwrap()
}

#[test]
fn links_are_printed_as_a_table_or_json() {
    let fixture = Fixture::new();
    let table = top(&fixture, &["--once"]);
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(table.status.success() && text.starts_with("link ") && text.contains("tor0:p3:out"), "{text}");
    assert_eq!(String::from_utf8(top(&fixture, &[]).stdout).unwrap(), text, "not a terminal");
    let json = top(&fixture, &["--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["links"], fixture.client.get("/v1/links").json()["links"]);
}

#[test]
fn a_required_token_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let tokens = write("tokens", "viewer read 0123456789abcdef-viewer\n");
    let fixture = Fixture::with(|options| options.token_file = Some(tokens.clone()));
    let refused = top(&fixture, &["--once"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(message.contains("401") && message.contains("--token-file"), "{message}");
    let own = write("own", "0123456789abcdef-viewer\n");
    for file in [&tokens, &own] {
        assert!(top(&fixture, &["--once", "--token-file", file.to_str().unwrap()]).status.success());
    }
}

#[test]
fn an_unreachable_daemon_is_a_failure() {
    let run = |api: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .args(["top", "--once", "--api", api])
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run("http://127.0.0.1:1");
    assert_eq!(code, Some(1));
    assert!(message.contains("http://127.0.0.1:1: cannot be reached: "), "{message}");
    assert_eq!(run("127.0.0.1:9477").0, Some(2));
}

#[test]
fn a_filter_needs_the_live_view() {
    let fixture = Fixture::new();
    for (arguments, code, message) in [
        (&["--filter", "port 443"][..], 2, "--filter selects the flows of the live view"),
        (&["--once", "--filter", "port 443"], 2, "cannot be used with"),
        (&["--filter", "flags S"], 2, "filter, column 1: 'flags' is not known here; known: any, ipv4"),
    ] {
        let output = top(&fixture, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(message), "{text}");
    }
}

/// Returns the next matching update.
fn next<T>(feed: &Feed, mut wanted: impl FnMut(Update) -> Option<T>) -> T {
    let until = Instant::now() + TIMEOUT;
    loop {
        let update = feed.updates.recv_deadline(until).expect("a matching update");
        if let Some(found) = wanted(update) {
            return found;
        }
    }
}

fn feed(base: &str) -> Feed {
    Feed::start(&Client::new(&ClientOptions::at(base)).unwrap()).unwrap()
}

#[test]
fn the_feed_sends_snapshots_details_and_events() {
    let fixture = Fixture::new();
    let feed = feed(&fixture.client.base);
    let snapshot =
        next(&feed, |update| if let Update::Snapshot(snapshot) = update { Some(snapshot) } else { None });
    assert_eq!(snapshot.health.name, "thalweg");
    assert_eq!(snapshot.collectors.len(), 2);
    let busiest = snapshot.details.on_link.unwrap();
    assert_eq!(busiest.link.link, "tor0:p0:in", "of those that carry the same, the first by name");
    let link = ObservedLink { link: "tor0:p3:out".to_owned(), collector: "tor0".to_owned() };
    let query = Query { link: Some(link.clone()), ..Query::default() };
    feed.queries.send(query).unwrap();
    let selected =
        next(&feed, |update| if let Update::Details(details) = update { Some(details) } else { None });
    let selected = selected.on_link.unwrap();
    assert_eq!(selected.link, link);
    let filter = FlowFilter::compile("dst net 10.0.1.0/28", &SAMPLED).unwrap();
    let query = Query { link: Some(link.clone()), filter: filter.clone(), ..Query::default() };
    feed.queries.send(query).unwrap();
    let filtered = next(&feed, |update| match update {
        Update::Details(details) => details.on_link.filter(|on_link| on_link.filter == filter),
        _ => None,
    });
    assert!(filtered.total > 0 && filtered.total < selected.total, "{}", filtered.total);
    assert_eq!(filtered.total, filtered.flows.len() as u64);
    let query = Query { flow: Some(selected.flows[0].key), ..Query::default() };
    feed.queries.send(query).unwrap();
    let flow = next(&feed, |update| match update {
        Update::Details(details) => details.flow,
        _ => None,
    });
    assert_eq!(flow[0].key, selected.flows[0].key);
}

/// A proxy between client and daemon that can cut their connections.
struct Relay {
    base: String,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn before(fixture: &Fixture) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let daemon = fixture.server.address();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&connections);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(daemon).unwrap());
                for (mut from, mut to) in
                    [(&client, &server), (&server, &client)].map(|(a, b)| (copy(a), copy(b)))
                {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                kept.lock().unwrap().push(client);
            }
        });
        Relay { base, connections }
    }

    fn cut(&self) {
        let connections = self.connections.lock().unwrap().drain(..).collect::<Vec<_>>();
        connections.iter().for_each(|connection| drop(connection.shutdown(Shutdown::Both)));
    }
}

fn copy(stream: &TcpStream) -> TcpStream {
    stream.try_clone().unwrap()
}

#[test]
fn events_are_received_once_across_reconnects() {
    let fixture = Fixture::new();
    fixture.publish(5);
    let relay = Relay::before(&fixture);
    let feed = feed(&relay.base);
    for round in 0..2 {
        next(&feed, |update| matches!(update, Update::Subscribed).then_some(()));
        // Wait until the stream has its position, which nothing signals.
        std::thread::sleep(Duration::from_millis(200));
        relay.cut();
        next(&feed, |update| matches!(update, Update::Unsubscribed { .. }).then_some(()));
        fixture.publish(3);
        let mut numbers = Vec::new();
        next(&feed, |update| {
            match update {
                Update::Event(event) => numbers.push(event.id),
                Update::Lost(loss) => panic!("{loss:?}"),
                _ => {}
            }
            (numbers.len() == 3).then_some(())
        });
        let first = 6 + 3 * round;
        assert_eq!(numbers, [first, first + 1, first + 2]);
        // So that the next round waits for its own connection.
        relay.cut();
    }
}

#[test]
fn a_slow_view_learns_its_losses() {
    use thalweg_daemon::hub::Hub;
    let fixture = Fixture::with_hub(Hub::new(8), |_| {});
    let feed = feed(&fixture.client.base);
    next(&feed, |update| matches!(update, Update::Subscribed).then_some(()));
    fixture.publish(20_000);
    let (mut received, mut lost) = (0, 0);
    next(&feed, |update| {
        match update {
            Update::Event(_) => received += 1,
            Update::Lost(Loss::Overwritten(count)) => lost += count,
            _ => {}
        }
        (received + lost == 20_000).then_some(())
    });
    assert!(lost > 0);
}
