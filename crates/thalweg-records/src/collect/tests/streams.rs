use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use thalweg_wire::Nanos;
use thalweg_wire::flow_export::decode::Transport;
use thalweg_wire::flow_export::encode::ipfix;

use super::*;
use crate::collect::stream::End;

fn messages(count: u32) -> Messages {
    let mut messages = Messages::new();
    let options = ipfix::Options::default().over_stream();
    ipfix::Encoder::new(options).unwrap().encode(&rows(count), clock(), &mut messages);
    messages
}

fn ended(report: &Report, end: End) -> u64 {
    report.streams[0].ended.get(&end).copied().unwrap_or_default()
}

#[test]
fn sessions_of_a_connection_are_counted_and_closed() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("tcp:0", &folder));
    let (stream, messages) = (messages(5_000), 2);
    for session in 1..=messages {
        let mut connection = TcpStream::connect(address).unwrap();
        // In pieces that do not match message boundaries.
        for piece in stream.bytes().chunks(10_007) {
            connection.write_all(piece).unwrap();
        }
        wait_for(&mut process, |report| report.records() == 5_000 * session);
        drop(connection);
        wait_for(&mut process, |report| ended(report, End::Closed) == session && report.streams[0].open == 0);
    }
    let report = process.finish(clock());
    let [exporter] = report.exporters[..] else { panic!("{report:#?}") };
    assert_eq!((exporter.transport, exporter.sessions), (Transport::Stream, 2));
    assert_eq!((report.flows.written, stored(folder.path(), "flows")), (10_000, 10_000));
    assert!(report.losses().is_none());
}

#[test]
fn templates_are_local_to_a_connection() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("tcp:0", &folder));
    let mut encoder = ipfix::Encoder::new(ipfix::Options::default().over_stream()).unwrap();
    let [mut first, mut second] = [Messages::new(), Messages::new()];
    encoder.encode(&rows(10), clock(), &mut first);
    encoder.encode(&rows(10), clock(), &mut second);
    let mut one = TcpStream::connect(address).unwrap();
    one.write_all(first.bytes()).unwrap();
    wait_for(&mut process, |report| report.records() == 10);
    // Without templates: the encoder has sent them already.
    TcpStream::connect(address).unwrap().write_all(second.bytes()).unwrap();
    wait_for(&mut process, |report| report.streams[0].ended.values().sum::<u64>() == 1);
    one.write_all(second.bytes()).unwrap();
    wait_for(&mut process, |report| report.records() == 20);
}

#[test]
fn malformed_and_truncated_connections_are_closed() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("tcp:0", &folder));
    let mut noise = TcpStream::connect(address).unwrap();
    noise.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    noise.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(matches!(noise.read(&mut [0]), Ok(0) | Err(_)), "closed by the collector");
    wait_for(&mut process, |report| ended(report, End::Malformed) == 1);
    let stream = messages(100);
    TcpStream::connect(address).unwrap().write_all(&stream.bytes()[..stream.bytes().len() - 1]).unwrap();
    wait_for(&mut process, |report| ended(report, End::CutShort) == 1);
}

#[test]
fn excess_and_idle_connections_are_closed() {
    let folder = TempDir::new().unwrap();
    let streams =
        StreamLimits { connections: 2, idle_timeout: Nanos::from_millis(800), ..StreamLimits::default() };
    let (mut process, address) = start(CollectOptions { streams, ..options("tcp:0", &folder) });
    let _open: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let report = wait_for(&mut process, |report| report.losses().connections_refused == 1);
    assert_eq!((report.streams[0].accepted, report.streams[0].open), (2, 2));
    wait_for(&mut process, |report| ended(report, End::Idle) == 2);
    // There is room again.
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(messages(7).bytes()).unwrap();
    wait_for(&mut process, |report| report.records() == 7);
    let report = process.finish(clock());
    assert_eq!(ended(&report, End::Stopped), 1);
}

#[test]
fn a_message_that_is_not_finished_in_time_closes_the_connection() {
    let folder = TempDir::new().unwrap();
    let streams = StreamLimits { message_timeout: Nanos::from_millis(300), ..StreamLimits::default() };
    let (mut process, address) = start(CollectOptions { streams, ..options("tcp:0", &folder) });
    let mut silent = TcpStream::connect(address).unwrap();
    let mut unfinished = TcpStream::connect(address).unwrap();
    let stream = messages(3);
    let (most, last) = stream.bytes().split_at(stream.bytes().len() - 1);
    unfinished.write_all(most).unwrap();
    wait_for(&mut process, |report| ended(report, End::Unfinished) == 1);
    let report = process.report();
    assert_eq!(
        (report.streams[0].open, report.records()),
        (1, 0),
        "a connection between messages stays open"
    );
    // In two pieces, but in time.
    silent.write_all(most).unwrap();
    silent.write_all(last).unwrap();
    wait_for(&mut process, |report| report.records() == 3);
}

#[test]
fn silent_connections_do_not_block_an_exporter() {
    let folder = TempDir::new().unwrap();
    let streams = StreamLimits {
        connections: 3,
        connections_per_source: 3,
        handshake_timeout: Nanos::from_millis(300),
        ..StreamLimits::default()
    };
    let (mut process, address) = start(CollectOptions { streams, ..options("tcp:0", &folder) });
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(messages(1).bytes()).unwrap();
    wait_for(&mut process, |report| report.records() == 1);
    let _silent: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    wait_for(&mut process, |report| report.streams[0].open == 3);
    let (began, mut exporters) = (Instant::now(), Vec::new());
    while process.report().records() < 3 {
        // Refused until a silent connection has had its time.
        let mut exporter = TcpStream::connect(address).unwrap();
        let _ = exporter.write_all(messages(1).bytes());
        exporters.push(exporter);
        std::thread::sleep(Duration::from_millis(50));
        assert!(began.elapsed() < TIMEOUT, "{:?}", process.report().streams);
    }
    let report = wait_for(&mut process, |report| ended(report, End::Evicted) == 2);
    first.write_all(messages(1).bytes()).unwrap();
    assert!(report.streams[0].open <= 3);
    wait_for(&mut process, |report| report.records() > 3);
}

/// Returns a server configuration with a self-signed certificate, and a client configuration that trusts it.
fn certified() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(cert.der().to_vec());
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = &[&rustls::version::TLS13];
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

#[test]
fn tls_sessions_deliver_records_and_failed_handshakes_are_counted() {
    let folder = TempDir::new().unwrap();
    let (server, client) = certified();
    let streams = StreamLimits { handshake_timeout: Nanos::from_millis(500), ..StreamLimits::default() };
    let (mut process, address) =
        start(CollectOptions { tls: Some(server), streams, ..options("tls:0", &folder) });
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(client, name).unwrap();
    let mut session = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    session.write_all(messages(2_000).bytes()).unwrap();
    session.flush().unwrap();
    wait_for(&mut process, |report| report.records() == 2_000);
    session.conn.send_close_notify();
    session.flush().unwrap();
    drop(session);
    wait_for(&mut process, |report| ended(report, End::Closed) == 1);
    // One client without TLS, and a silent one.
    let mut clear = TcpStream::connect(address).unwrap();
    clear.write_all(messages(10).bytes()).unwrap();
    let _silent = TcpStream::connect(address).unwrap();
    wait_for(&mut process, |report| ended(report, End::Handshake) == 2);
    assert_eq!(process.finish(clock()).records(), 2_000);
}

#[test]
fn tls_without_a_certificate_is_refused() {
    let folder = TempDir::new().unwrap();
    let refused = CollectingProcess::start(options("tls:0", &folder), None);
    assert!(matches!(refused.err(), Some(CollectError::NoCertificate { .. })));
}

#[test]
fn data_of_a_closed_connection_without_a_template_count_as_lost() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("tcp:0", &folder));
    let mut encoder = ipfix::Encoder::new(ipfix::Options::default().over_stream()).unwrap();
    let [mut first, mut second] = [Messages::new(), Messages::new()];
    encoder.encode(&rows(10), clock(), &mut first);
    encoder.encode(&rows(10), clock(), &mut second);
    TcpStream::connect(address).unwrap().write_all(second.bytes()).unwrap();
    let report = wait_for(&mut process, |report| ended(report, End::Closed) == 1);
    assert_eq!(report.losses().sets_without_template, 1);
}
