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

/// Waits until this many connections are open.
fn wait_for_connections(fixture: &Fixture, count: u64) {
    let until = Instant::now() + TIMEOUT;
    while fixture.server.api().counts().http.connections < count {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_connection_above_the_limit_replaces_the_longest_wait() {
    let fixture = Fixture::with(|options| options.limits.connections = 2);
    let mut held: Vec<_> = (0..2).map(|_| fixture.client.raw()).collect();
    wait_for_connections(&fixture, 2);
    assert_eq!(fixture.client.get("/healthz").status, 200);
    let mut rest = Vec::new();
    let _ = held[0].read_to_end(&mut rest);
    assert!(rest.is_empty(), "the first is closed without an answer");
    let counts = fixture.server.api().counts().http;
    assert_eq!((counts.connections_evicted, counts.connections_refused), (1, 0));
}

#[test]
fn connections_above_the_limit_are_refused_if_all_are_answered() {
    let fixture = Fixture::with(|options| options.limits.connections = 1);
    let mut stream = fixture.client.raw();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    let mut second = fixture.client.raw();
    let mut rest = Vec::new();
    let _ = second.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let counts = fixture.server.api().counts().http;
    assert_eq!((counts.connections_evicted, counts.connections_refused), (0, 1));
}

/// Allows this process to open so many files.
fn allow_files(count: u32) -> bool {
    let pid = std::process::id().to_string();
    let limit = format!("--nofile={count}:");
    let set = std::process::Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    set.is_ok_and(|status| status.success())
}

#[test]
fn slow_clients_do_not_keep_health_checks_out() {
    const SLOW: usize = 1_400;
    if !allow_files(8_192) {
        let _ = writeln!(std::io::stderr(), "skipped: slow clients: too few files may be open");
        return;
    }
    // They would have to wait for this long.
    let fixture = Fixture::with(|options| {
        options.limits.header_timeout = Duration::from_secs(3_600);
        options.limits.request_timeout = Duration::from_secs(3_600);
        // All clients have the same address here.
        options.limits.request_burst = 1_000_000;
    });
    let slow = |head: &str| {
        let mut stream = fixture.client.raw();
        let _ = stream.write_all(head.as_bytes());
        stream
    };
    let body = "PUT /v1/topology HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/toml\r\ncontent-length: 9\r\n\r\n1";
    let heads = ["", "GET /healthz HTTP/1.1\r\nhost: loc", body];
    let held: Vec<_> = (0..SLOW).map(|number| slow(heads[number % 3])).collect();
    wait_for_connections(&fixture, fixture.options.limits.connections);
    // As many as before, and each connects while all others are taken.
    for _ in 0..100 {
        assert_eq!(fixture.client.get_anew("/healthz"), 200);
    }
    let counts = fixture.server.api().counts().http;
    assert!(counts.connections_evicted >= 100 && counts.connections_refused == 0, "{counts:?}");
    drop(held);
}

#[test]
fn repeated_and_missing_headers_are_refused() {
    let fixture = Fixture::new();
    let status = |headers: &str| {
        let answer = fixture
            .client
            .raw_answer(&format!("GET /healthz HTTP/1.1\r\n{headers}connection: close\r\n\r\n"));
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("host: localhost\r\n"), "200");
    let host = "host: localhost\r\n";
    for wrong in [
        "",
        "host: localhost\r\nhost: localhost\r\n",
        "host: localhost\r\nHost: evil.example\r\n",
        "host: evil.example\r\nhost: localhost\r\n",
        &format!("{host}authorization: Bearer a\r\nauthorization: Bearer b\r\n"),
        &format!("{host}origin: http://localhost\r\norigin: http://evil.example\r\n"),
    ] {
        assert_eq!(status(wrong), "400", "{wrong:?}");
    }
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
