//! Limits of size, time and rate.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use thalweg_daemon::event::CollectorState;

use crate::api::bench_collector;
use crate::api::client::TIMEOUT;
use crate::api::fixture::Fixture;

#[test]
fn a_body_above_the_limit_is_refused() {
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
fn a_slow_request_head_closes_the_connection() {
    let fixture = Fixture::with(|options| options.limits.header_timeout = Duration::from_millis(100));
    let mut stream = fixture.client.raw();
    stream.write_all(b"GET /v1/links HTTP/1.1\r\nhost: loc").unwrap();
    let start = Instant::now();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(start.elapsed() < TIMEOUT, "the connection is still open");
    assert_eq!(fixture.client.get("/healthz").status, 200, "others are answered");
    assert!(fixture.server.api().counts().http.connections_broken >= 1);
}

#[test]
fn a_slow_body_is_refused() {
    let fixture = Fixture::with(|options| options.limits.request_timeout = Duration::from_millis(100));
    let answer = fixture.client.raw_answer(
        "PUT /v1/topology HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/toml\r\ncontent-length: 5\r\n\r\n12",
    );
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("slow_request"), "{answer}");
}

#[test]
fn a_rate_limited_peer_learns_when_to_retry() {
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
fn connections_above_the_limit_are_closed_and_counted() {
    let fixture = Fixture::with(|options| options.limits.connections = 2);
    let held: Vec<_> = (0..2).map(|_| fixture.client.raw()).collect();
    let until = Instant::now() + TIMEOUT;
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
fn invalid_http_is_refused() {
    let fixture = Fixture::new();
    let endless = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(200_000));
    let answer = fixture.client.raw_answer(&endless);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = fixture.client.raw_answer("\x16\x03\x01 nonsense\r\n\r\n");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(fixture.client.get("/healthz").status, 200);
}

#[test]
fn a_peer_that_does_not_read_is_disconnected() {
    let fixture = Fixture::with(|options| {
        options.limits.request_timeout = Duration::from_millis(200);
        options.limits.request_burst = 10_000;
    });
    let mut greedy = fixture.client.raw();
    let request = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
    // The server may close the connection before all requests are sent.
    let _ = greedy.write_all(request.as_bytes());
    let until = Instant::now() + TIMEOUT;
    while fixture.server.api().counts().http.connections_broken == 0 {
        assert!(Instant::now() < until, "the connection is still held");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(fixture.server.api().counts().http.answered < 1_000, "it was not answered to the end");
    drop(greedy);
}

#[test]
fn health_responds_while_collectors_block() {
    let fixture = Fixture::new();
    // It runs, but its mailbox is not read.
    let (deaf, mailbox) = bench_collector::new("deaf");
    mailbox.set_state(CollectorState::Running);
    fixture.daemon.set_collectors(vec![deaf]);
    let clients: Vec<_> = (0..24)
        .map(|_| {
            let client = fixture.client.clone();
            std::thread::spawn(move || _ = client.try_get("/v1/flows?collector=deaf", &[]))
        })
        .collect();
    // The requests now block for two seconds each.
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        fixture.client.get(path);
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    clients.into_iter().for_each(|client| client.join().unwrap());
}
