//! Tests of an exporter with collectors on loopback sockets.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use thalweg_wire::flow_export::{Address, Record, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

use super::*;

const NOW: Timestamp = Timestamp::new(1_795_352_400, 0);

fn after(ms: u64) -> Timestamp {
    NOW + Nanos::from_millis(ms)
}

fn rows(count: usize) -> RecordBatch {
    let record = Record {
        source_address: Address::v4(1),
        destination_address: Address::v4(2),
        packets: 2,
        octets: 100,
        ..Record::default()
    };
    let mut rows = RecordBatch::default();
    (0..count).for_each(|_| rows.push(&record));
    rows
}

fn exporter(options: ExportOptions) -> (Exporter, Arc<ExportCounters>) {
    let counters = Arc::new(ExportCounters::default());
    (Exporter::new(options, Arc::clone(&counters), NOW).unwrap(), counters)
}

fn options(text: String) -> ExportOptions {
    ExportOptions::new(text.parse().unwrap())
}

/// A UDP collector.
struct Datagrams(UdpSocket);

impl Datagrams {
    fn new() -> Datagrams {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        Datagrams(socket)
    }

    fn options(&self) -> ExportOptions {
        options(self.0.local_addr().unwrap().to_string())
    }

    fn received(&self) -> Vec<Vec<u8>> {
        let mut buffer = [0; 2_048];
        std::iter::from_fn(|| self.0.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec())).collect()
    }
}

/// Splits a stream into messages.
fn messages(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while !stream.is_empty() {
        let length = u16::from_be_bytes([stream[2], stream[3]]).into();
        messages.push(&stream[..length]);
        stream = &stream[length..];
    }
    messages
}

fn sequence(message: &[u8]) -> u32 {
    u32::from_be_bytes(message[8..12].try_into().unwrap())
}

#[test]
fn rows_wait_at_most_the_maximum_delay() {
    let collector = Datagrams::new();
    let (mut exporter, counters) = exporter(collector.options());
    exporter.add(&rows(1), NOW);
    exporter.add(&rows(2), after(999));
    assert_eq!(counters.sent().messages, 0);
    exporter.tick(after(1_000));
    assert_eq!(counters.sent().flow_records, 3);
    exporter.add(&rows(1_024), after(1_001));
    assert_eq!(counters.sent().flow_records, 1_027, "a full batch does not wait");
    let received = collector.received();
    assert_eq!(received.len() as u64, counters.sent().messages);
    assert_eq!(received.iter().map(Vec::len).sum::<usize>() as u64, counters.sent().octets);
    assert!(received.iter().all(|message| message.len() <= 1_400));
}

#[test]
fn a_full_queue_drops_and_counts_and_a_blocking_sender_loses_nothing() {
    let counters = Arc::new(ExportCounters::default());
    let (sender, batches) = queue(2, Arc::clone(&counters));
    (0..5).for_each(|_| sender.try_send(rows(10)));
    assert_eq!(counters.not_sent(Reason::QueueFull), counters.total_not_sent());
    let lost = counters.total_not_sent();
    assert_eq!((lost.flow_records, lost.packets, lost.octets), (30, 60, 3_000));

    let collector = Datagrams::new();
    let exporter = Exporter::new(collector.options(), Arc::clone(&counters), NOW).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || run(exporter, &batches, || NOW));
        (0..20).for_each(|_| sender.send(rows(10)));
        drop(sender);
    });
    assert_eq!(counters.sent().flow_records, 220);
    assert_eq!(counters.total_not_sent().flow_records, 30);
}

#[test]
fn rows_wait_for_a_session_up_to_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (mut exporter, counters) =
        exporter(ExportOptions { max_pending_rows: 3_000, ..options(format!("tcp://{address}")) });
    for _ in 0..5 {
        exporter.add(&rows(1_000), NOW);
    }
    assert_eq!(counters.not_sent(Reason::NoSession).flow_records, 2_000);
    assert_eq!(counters.sessions(), (0, 1), "no immediate retry");
    assert!(counters.last_error().unwrap().contains("refused"));

    let listener = TcpListener::bind(address).unwrap();
    exporter.tick(after(499));
    assert_eq!(counters.sessions(), (0, 1));
    exporter.tick(after(500));
    assert_eq!((counters.sessions(), counters.has_session()), ((1, 1), true));
    assert_eq!((counters.sent().flow_records, counters.last_error()), (3_000, None));
    exporter.finish(after(501));
    let mut stream = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut stream).unwrap();
    let messages = messages(&stream);
    assert_eq!(messages.len() as u64, counters.sent().messages);
    assert_eq!(sequence(messages[messages.len() - 1]), 3_000, "statistics follow all records");
}

#[test]
fn a_new_session_starts_with_templates() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut exporter, counters) = exporter(options(format!("tcp://{}", listener.local_addr().unwrap())));
    exporter.add(&rows(1_024), NOW);
    drop(listener.accept().unwrap());
    std::thread::sleep(Duration::from_millis(50));
    exporter.add(&rows(1_024), after(10));
    assert!(!counters.has_session());
    assert_eq!(counters.total_not_sent().flow_records, 0, "rows wait for the next session");
    exporter.tick(after(600));
    assert_eq!((counters.sessions().0, counters.sent().flow_records), (2, 2_048));
    exporter.finish(after(700));
    let mut stream = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut stream).unwrap();
    let first = messages(&stream)[0];
    assert_eq!((sequence(first), first[16..18].to_vec()), (0, vec![0, 2]), "a template set has ID 2");
}

#[test]
fn records_of_a_refused_datagram_are_counted() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut exporter, counters) = exporter(options(address.to_string()));
    for number in 0..10 {
        exporter.add(&rows(1_024), after(number));
    }
    exporter.finish(after(100));
    let lost = counters.not_sent(Reason::SendFailed);
    assert!(lost.flow_records > 0, "the system reports a closed port");
    assert_eq!(lost.packets, 2 * lost.flow_records);
    assert_eq!(counters.sent().flow_records + lost.flow_records, 10_240);
}

#[test]
fn statistics_have_sent_and_unsent_records_and_packets_outside_flows() {
    let collector = Datagrams::new();
    let (mut exporter, counters) = exporter(collector.options());
    counters.set_ignored(5, 300);
    counters.count_not_sent(Reason::QueueFull, contents_of(7));
    exporter.add(&rows(1_024), NOW);
    let before = counters.sent();
    exporter.tick(after(59_999));
    assert_eq!(counters.sent(), before);
    exporter.tick(after(60_000));
    let message = collector.received().pop().unwrap();
    let value =
        |from_end: usize| u64::from_be_bytes(message[message.len() - from_end..][..8].try_into().unwrap());
    // Offsets from the end. Sets, each with a 4-byte header and scope: sent (32 bytes), not sent (48), ignored (40).
    assert_eq!([value(112), value(104), value(96)], [before.messages, before.flow_records, before.octets]);
    assert_eq!([value(80), value(72), value(64)], [7, 14, 700]);
    assert_eq!([value(32), value(24)], [5, 300]);
}

fn contents_of(flow_records: u64) -> thalweg_wire::flow_export::encode::Contents {
    super::counters::contents(&rows(flow_records as usize))
}

#[test]
fn tls_sends_only_to_a_trusted_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let (trusted, server) = certificate(folder.path(), "trusted.pem");
    let (other, _) = certificate(folder.path(), "other.pem");
    // More than the sockets buffer, so that some data is unsent when the session ends.
    const ROWS: u64 = 50_000;
    for (authority, records) in [(trusted, ROWS), (other, 0)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::clone(&server);
        let collector = std::thread::spawn(move || {
            let mut connection = rustls::ServerConnection::new(server).unwrap();
            let mut stream = listener.accept().unwrap().0;
            let mut bytes = Vec::new();
            // An untrusted server receives an alert.
            while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
            std::thread::sleep(std::time::Duration::from_millis(100));
            let _ = rustls::Stream::new(&mut connection, &mut stream).read_to_end(&mut bytes);
            bytes
        });
        let tls = TlsFiles { authority, identity: None };
        let (mut exporter, counters) =
            exporter(ExportOptions { tls: Some(tls), ..options(format!("tls://{address}")) });
        exporter.add(&rows(ROWS as usize), NOW);
        exporter.finish(after(1));
        assert_eq!(counters.sent().flow_records, records, "{:?}", counters.last_error());
        assert_eq!(counters.not_sent(Reason::NoSession).flow_records, ROWS - records);
        let stream = collector.join().unwrap();
        assert_eq!(messages(&stream).len() as u64, counters.sent().messages);
    }
    let missing = Exporter::new(options("tls://127.0.0.1".to_owned()), Arc::default(), NOW);
    assert!(matches!(missing.err(), Some(ExportError::Tls(TlsError::NoAuthority))));
}

/// Writes a self-signed certificate to a file, and returns a server that uses it.
fn certificate(folder: &std::path::Path, name: &str) -> (std::path::PathBuf, Arc<rustls::ServerConfig>) {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, own.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .unwrap();
    (file, Arc::new(config))
}
