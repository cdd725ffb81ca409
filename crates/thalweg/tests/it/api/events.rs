//! Events: order, resumption, losses of slow subscribers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use thalweg_daemon::hub::Hub;

use crate::api::client::TIMEOUT;
use crate::api::fixture::{Fixture, event};

#[test]
fn events_arrive_in_order_and_once() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events("", &[]);
    for round in 0..20 {
        fixture.publish(3);
        assert_eq!(events.numbers(3), [3 * round + 1, 3 * round + 2, 3 * round + 3]);
    }
}

#[test]
fn an_event_names_its_link_and_flows() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events("", &[]);
    fixture.publish(1);
    let sent = events.next();
    assert_eq!((sent.event.as_str(), &sent.data["link"]), ("congestion", &"tor0:p3:out".into()));
    assert_eq!(sent.data["change"], "began");
    assert_eq!(sent.data["flows"][0]["key"], "tcp 10.0.0.1:443 > 10.0.1.1:51000");
    assert_eq!(sent.data["time"], "2026-11-21T22:16:16.495499720Z");
    assert_eq!(sent.data["emitted"], "2026-11-21T22:16:16.495503920Z");
    assert!(sent.data["rate_bps"].is_number() && sent.data["flows"][0]["rate_bps"].is_number());
}

#[test]
fn a_resumed_stream_sends_missed_events() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events("", &[]);
    fixture.publish(10);
    let fourth = (0..4).map(|_| events.next().id).last().unwrap();
    drop(events);
    fixture.publish(2);
    let by_header = fixture.client.events("", &[("last-event-id", &fourth)]).numbers(8);
    assert_eq!(by_header, [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(fixture.client.events("?after=9", &[]).numbers(3), [10, 11, 12]);
    let refused = fixture.client.get_with("/v1/events", &[("last-event-id", "what")]);
    assert_eq!(refused.problem(), (400, "bad_parameter".into()));
}

#[test]
fn a_stream_resumed_from_another_run_starts_over() {
    let fixture = Fixture::new();
    fixture.publish(2);
    let mut events = fixture.client.events("", &[("last-event-id", "00000000000000aa-9000")]);
    let lost = events.next();
    assert_eq!((lost.event.as_str(), &lost.data["count"]), ("lost", &serde_json::Value::Null));
    assert_eq!(events.numbers(2), [1, 2]);
}

#[test]
fn filters_select_types_links_and_collectors() {
    let fixture = Fixture::new();
    let mut of_link = fixture.client.events("?link=tor0:p1:out&type=congestion", &[]);
    let mut of_collector = fixture.client.events("?collector=tor1", &[]);
    let mut of_kind = fixture.client.events("?type=collector,cheetah", &[]);
    let hub = fixture.daemon.hub();
    for (switch, port) in [("tor0", 0), ("tor0", 1), ("tor1", 1)] {
        hub.publish(event(switch, port));
    }
    let kind = thalweg_daemon::event::EventKind::State(thalweg_daemon::event::CollectorState::Ended);
    hub.publish(thalweg_daemon::event::Event { kind, ..event("tor0", 0) });
    assert_eq!(of_link.numbers(1), [2]);
    assert_eq!(of_collector.numbers(1), [3]);
    assert_eq!(of_kind.numbers(1), [4]);
    assert_eq!(fixture.client.get("/v1/events?type=congestions").problem().0, 400);
    assert_eq!(fixture.client.get("/v1/events?link=tor0").problem().0, 400);
}

#[test]
fn subscribers_above_the_limit_are_refused() {
    let fixture = Fixture::with(|options| options.limits.subscribers = 2);
    let first = fixture.client.events("", &[]);
    let _second = fixture.client.events("", &[]);
    assert_eq!(fixture.client.get("/v1/events").problem(), (503, "too_many_subscribers".into()));
    drop(first);
    let until = Instant::now() + TIMEOUT;
    while fixture.server.api().counts().subscribers > 1 {
        assert!(Instant::now() < until, "the place of who has gone is not given back");
        // The server notices a closed connection only when it writes.
        fixture.publish(10);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _third = fixture.client.events("", &[]);
}

/// A subscriber that does not read.
fn slow(fixture: &Fixture) -> TcpStream {
    let mut stream = fixture.client.raw();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream
}

#[test]
fn slow_subscribers_block_nobody_and_learn_their_losses() {
    const SUBSCRIBERS: u64 = 1_000;
    let fixture = Fixture::with_hub(Hub::new(256), |options| {
        options.limits.subscribers = SUBSCRIBERS + 10;
        options.limits.connections = SUBSCRIBERS + 50;
        (options.limits.requests_per_second, options.limits.request_burst) = (100_000, 10_000);
    });
    let mut streams: Vec<_> = (0..SUBSCRIBERS).map(|_| slow(&fixture)).collect();
    let until = Instant::now() + TIMEOUT;
    while fixture.server.api().counts().subscribers < SUBSCRIBERS {
        assert!(Instant::now() < until, "{:?}", fixture.server.api().counts());
        std::thread::sleep(Duration::from_millis(10));
    }
    // Far more than socket buffers hold: about 3 kB each.
    const EVENTS: u64 = 20_000;
    fixture.publish(EVENTS);
    assert_eq!(fixture.daemon.hub().last_id(), EVENTS, "who publishes waits for nobody");
    // A reading subscriber is served while the others block.
    let mut quick = fixture.client.events("", &[]);
    fixture.publish(1);
    assert_eq!(quick.numbers(1), [EVENTS + 1]);
    assert_eq!(fixture.client.get("/healthz").status, 200);
    // A slow subscriber starts to read: events are in order, and losses are reported.
    let mut slow = streams.pop().unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 65_536]);
    while !text.contains(&format!("\"id\":{},", EVENTS + 1)) {
        let length = slow.read(&mut buffer).unwrap();
        assert!(length > 0, "the server has closed the connection");
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    let mut next = 1;
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut lost = 0;
    for data in data.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok()) {
        match data["type"].as_str() {
            Some("lost") => {
                let count = data["count"].as_u64().unwrap();
                (next, lost) = (next + count, lost + count);
                assert_eq!(data["last"], next - 1);
                assert_eq!(data["total"], lost);
            }
            _ => {
                assert_eq!(data["id"], next);
                next += 1;
            }
        }
    }
    assert!(lost > 0 && next == EVENTS + 2, "lost {lost}, next {next}");
    assert!(fixture.daemon.hub().lost() >= lost);
}
