//! What is too large, too slow or too much.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use thalweg_daemon::event::CollectorState;

use crate::api::bench_collector;
use crate::api::client::PATIENCE;
use crate::api::fixture::Fixture;

#[test]
fn a_body_over_the_limit_is_refused_whether_it_says_how_long_it_is_or_not() {
    let fixture = Fixture::with(|options| options.limits.body_bytes = 2_048);
    let toml = [("content-type", "application/toml")];
    let announced = fixture.client.send("PUT", "/v1/topology", &toml, &[b'#'; 2_049]);
    assert_eq!(announced.problem(), (413, "too_large".into()));
    let at_most = fixture.client.send("PUT", "/v1/topology", &toml, &[b'#'; 2_048]);
    assert_eq!(at_most.problem().1, "bad_body", "as large as it may be, it is read");
    let mut chunks = "PUT /v1/topology HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/toml\r\n\
                      transfer-encoding: chunked\r\n\r\n"
        .to_owned();
    (0..5).for_each(|_| chunks.push_str(&format!("200\r\n{}\r\n", "#".repeat(512))));
    let answer = fixture.client.raw_answer(&chunks);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn a_head_that_takes_too_long_to_come_ends_the_connection() {
    let fixture = Fixture::with(|options| options.limits.header_timeout = Duration::from_millis(100));
    let mut stream = fixture.client.raw();
    stream.write_all(b"GET /v1/links HTTP/1.1\r\nhost: loc").unwrap();
    let start = Instant::now();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(start.elapsed() < PATIENCE, "the connection is still open");
    assert_eq!(fixture.client.get("/healthz").status, 200, "others are answered");
    assert!(fixture.server.api().counts().http.connections_broken >= 1);
}

#[test]
fn a_body_that_takes_too_long_to_come_is_refused() {
    let fixture = Fixture::with(|options| options.limits.request_timeout = Duration::from_millis(100));
    let answer = fixture.client.raw_answer(
        "PUT /v1/topology HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/toml\r\ncontent-length: 5\r\n\r\n12",
    );
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("slow_request"), "{answer}");
}

#[test]
fn a_peer_that_asks_too_often_is_told_when_to_come_back() {
    let fixture = Fixture::with(|options| {
        (options.limits.request_burst, options.limits.requests_per_second) = (3, 1);
    });
    let statuses: Vec<_> = (0..4).map(|_| fixture.client.get("/healthz").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let refused = fixture.client.get("/healthz");
    assert_eq!(refused.problem(), (429, "too_many_requests".into()));
    assert_eq!(refused.headers["retry-after"], "1");
}

#[test]
fn connections_over_the_limit_are_closed_and_counted() {
    let fixture = Fixture::with(|options| options.limits.connections = 2);
    let held: Vec<_> = (0..2).map(|_| fixture.client.raw()).collect();
    let until = Instant::now() + PATIENCE;
    while fixture.server.api().counts().http.connections < 2 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut third = fixture.client.raw();
    let mut rest = Vec::new();
    let _ = third.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert!(fixture.server.api().counts().http.connections_refused >= 1);
    drop(held);
}

#[test]
fn a_head_without_end_and_bytes_that_are_no_http_are_refused() {
    let fixture = Fixture::new();
    let endless = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(200_000));
    let answer = fixture.client.raw_answer(&endless);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = fixture.client.raw_answer("\x16\x03\x01 nonsense\r\n\r\n");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(fixture.client.get("/healthz").status, 200);
}

#[test]
fn a_peer_that_does_not_read_what_it_asked_for_loses_its_connection() {
    let fixture = Fixture::with(|options| {
        options.limits.request_timeout = Duration::from_millis(200);
        options.limits.request_burst = 10_000;
    });
    let mut greedy = fixture.client.raw();
    let asked = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
    // It may be cut off before all has been asked.
    let _ = greedy.write_all(asked.as_bytes());
    let until = Instant::now() + PATIENCE;
    while fixture.server.api().counts().http.connections_broken == 0 {
        assert!(Instant::now() < until, "the connection is still held");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(fixture.server.api().counts().http.answered < 1_000, "it was not answered to the end");
    drop(greedy);
}

#[test]
fn health_is_told_while_all_that_wait_for_collectors_wait() {
    let fixture = Fixture::new();
    // It runs, and nobody reads its mailbox.
    let (deaf, mailbox) = bench_collector::new("deaf");
    mailbox.set_state(CollectorState::Running);
    fixture.daemon.set_collectors(vec![deaf]);
    let clients: Vec<_> = (0..24)
        .map(|_| {
            let client = fixture.client.clone();
            std::thread::spawn(move || _ = client.try_get("/v1/flows?collector=deaf", &[]))
        })
        .collect();
    // By then they wait; each does for two seconds.
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        fixture.client.get(path);
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    clients.into_iter().for_each(|client| client.join().unwrap());
}
