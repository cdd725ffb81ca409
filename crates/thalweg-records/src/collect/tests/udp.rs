use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_wire::flow_export::{Format, Limits};

use super::*;

/// Sends messages slowly enough for a small buffer.
fn send(messages: &Messages, from: &UdpSocket, to: SocketAddr) {
    for (number, message) in messages.iter().enumerate() {
        from.send_to(message, to).unwrap();
        if number % 32 == 31 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn sender() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[test]
fn all_records_are_in_files_at_the_end() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("udp:0", &folder));
    let messages = netflow9_messages(&mut netflow9_encoder(), 10_000);
    send(&messages, &sender(), address);
    wait_for(&mut process, |report| report.records() == 10_000);
    let report = process.finish(clock());
    assert!(report.losses().is_none(), "{report:#?}");
    assert_eq!((report.flows.records, report.flows.written), (10_000, 10_000));
    assert_eq!(stored(folder.path(), "flows"), 10_000);
    let [exporter] = report.exporters[..] else { panic!("{report:#?}") };
    // Received on an IPv6 socket, reported as IPv4.
    assert_eq!((exporter.from.to_string(), exporter.format), ("127.0.0.1".to_owned(), Format::NetFlow9));
    assert_eq!(report.datagrams(), messages.len() as u64);
}

#[test]
fn datagrams_in_the_socket_buffer_are_read_at_the_stop() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("udp:127.0.0.1:0", &folder));
    send(&netflow9_messages(&mut netflow9_encoder(), 3_000), &sender(), address);
    let report = process.finish(clock());
    assert_eq!((report.records(), stored(folder.path(), "flows")), (3_000, 3_000));
}

#[test]
fn a_restarted_exporter_has_two_sessions() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("udp:0", &folder));
    for life in 1..=2 {
        // Sequence numbers and templates restart.
        send(&netflow9_messages(&mut netflow9_encoder(), 500), &sender(), address);
        wait_for(&mut process, |report| report.records() == 500 * life);
    }
    let report = process.finish(clock());
    let [exporter] = report.exporters[..] else { panic!("{report:#?}") };
    assert_eq!((exporter.sessions, exporter.counts.records, exporter.counts.lost), (2, 1000, 0));
}

#[test]
fn a_lost_message_is_a_sequence_gap() {
    let folder = TempDir::new().unwrap();
    let (mut process, address) = start(options("udp:0", &folder));
    let messages = netflow9_messages(&mut netflow9_encoder(), 3_000);
    let (socket, count) = (sender(), messages.len() as u64);
    for message in messages.iter().enumerate().filter_map(|(number, it)| (number != 5).then_some(it)) {
        socket.send_to(message, address).unwrap();
    }
    let report = wait_for(&mut process, |report| report.counts().messages == count - 1);
    assert_eq!((report.losses().sequence_gaps, report.losses().kernel_datagrams), (1, 0));
}

#[test]
fn several_sockets_share_a_port() {
    let folder = TempDir::new().unwrap();
    let receivers = NonZeroUsize::new(3).unwrap();
    let (mut process, address) = start(CollectOptions { receivers, ..options("udp:0", &folder) });
    // All stay open until the end, so that they have distinct ports.
    let senders: Vec<_> = (0..32).map(|_| sender()).collect();
    for sender in &senders {
        send(&netflow9_messages(&mut netflow9_encoder(), 100), sender, address);
    }
    let report = wait_for(&mut process, |report| report.records() == 3_200);
    let used = report.sockets.iter().filter(|socket| socket.datagrams > 0).count();
    // All 32 on one of three sockets: once in 10^15 runs.
    assert!(report.sockets.len() == 3 && used >= 2, "{:?}", report.sockets);
    assert_eq!(report.exporters[0].sessions, 32);
    assert_eq!(process.finish(clock()).flows.written, 3_200);
}

#[test]
fn a_port_in_use_is_refused_even_if_it_could_be_shared() {
    let folder = TempDir::new().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = format!("udp:{}", taken.local_addr().unwrap());
    let receivers = NonZeroUsize::new(2).unwrap();
    let refused = CollectingProcess::start(CollectOptions { receivers, ..options(&listen, &folder) }, None);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains(&listen) && error.contains("in use"), "{error}");
}

/// A tap that delays the receiver with every batch.
struct Slow(AtomicU64);

impl Tap for Slow {
    fn inspect(&self, flows: &RecordBatch) {
        self.0.fetch_add(flows.len() as u64, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn kernel_drops_are_counted_to_the_last_datagram() {
    let folder = TempDir::new().unwrap();
    let options = CollectOptions { receive_buffer: 16 << 10, ..options("udp:127.0.0.1:0", &folder) };
    let tap = Arc::new(Slow(AtomicU64::new(0)));
    let mut process = CollectingProcess::start(options, Some(tap.clone())).unwrap();
    let messages = netflow9_messages(&mut netflow9_encoder(), 20_000);
    let socket = sender();
    for message in messages.iter() {
        socket.send_to(message, process.addresses()[0].1).unwrap();
    }
    let sent = messages.len() as u64;
    let report =
        wait_for(&mut process, |report| report.datagrams() + report.losses().kernel_datagrams == sent);
    assert!(report.losses().kernel_datagrams > sent / 4, "{:?}", report.sockets);
    let report = process.finish(clock());
    assert_eq!(
        report.datagrams() + report.losses().kernel_datagrams,
        sent,
        "also after the sockets are closed"
    );
    assert_eq!(tap.0.load(Ordering::Relaxed), report.records());
}

#[test]
fn template_and_noise_floods_are_bounded_and_counted() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { templates: 64, sessions: 8, ..Limits::default() };
    let (mut process, address) = start(CollectOptions { limits, ..options("udp:0", &folder) });
    let socket = sender();
    for id in 256..4352u16 {
        // RFC 3954 section 5: a header and a template with one field (octets), with this template ID.
        let mut message = Vec::new();
        for half in [9, 1, 0, 1, 0, 1, 0, id - 256, 0, 0, 0, 12, id, 1, 1, 4] {
            message.extend_from_slice(&u16::to_be_bytes(half));
        }
        socket.send_to(&message, address).unwrap();
        if id % 64 == 0 {
            socket.send_to(b"noise", address).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let report = wait_for(&mut process, |report| report.datagrams() == 4096 + 64);
    let report = wait_for(&mut process, |_| report.counts().templates_defined > 0);
    let report = wait_for(&mut process, |_| report.datagrams() > 0);
    let last = process.finish(clock());
    assert!(report.exporters.iter().all(|exporter| exporter.templates <= 64), "{:?}", report.exporters);
    assert_eq!(last.counts().templates_defined - last.counts().templates_evicted, 64);
    assert_eq!(last.losses().unreadable_messages, 64);
    assert!(last.last_fault.is_some());
}

#[test]
fn the_actual_buffer_size_is_reported() {
    let folder = TempDir::new().unwrap();
    let requested = 3 << 20;
    let (mut process, _) = start(CollectOptions { receive_buffer: requested, ..options("udp:0", &folder) });
    let socket = process.report().sockets[0];
    let largest: usize =
        std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    assert_eq!(socket.receive_buffer_requested, requested);
    // Only a privileged process may exceed the limit.
    assert!(
        socket.receive_buffer == requested || socket.receive_buffer == largest.min(requested),
        "{socket:?}"
    );
}

/// Returns messages with a template, and later ones with data only.
fn template_and_data(count: u32) -> [Messages; 2] {
    let mut encoder = netflow9_encoder();
    let [mut first, mut second] = [Messages::new(), Messages::new()];
    encoder.encode(&rows(1), clock(), &mut first);
    encoder.encode(&rows(count), clock(), &mut second);
    [first, second]
}

#[test]
fn templates_outlive_a_restart_of_the_collector() {
    let folder = TempDir::new().unwrap();
    let exporter = sender();
    let mut encoder = netflow9_encoder();
    let (mut process, address) = start(options("udp:0", &folder));
    // The template, and one record.
    send(&netflow9_messages(&mut encoder, 1), &exporter, address);
    wait_for(&mut process, |report| report.records() == 1);
    process.finish(clock());
    for life in 1..=3 {
        // Any of the receivers may get the datagrams.
        let receivers = NonZeroUsize::new(life).unwrap();
        let (mut process, address) = start(CollectOptions { receivers, ..options("udp:0", &folder) });
        assert_eq!(process.report().templates.sessions, 1);
        send(&netflow9_messages(&mut encoder, 2_000), &exporter, address);
        wait_for(&mut process, |report| report.records() == 2_000);
        let report = process.finish(clock());
        assert_eq!((report.losses().sets_without_template, report.counts().held_sets), (0, 0));
    }
    assert_eq!(stored(folder.path(), "flows"), 6_001);
}

#[test]
fn templates_outlive_a_crash_of_the_collector() {
    let folder = TempDir::new().unwrap();
    let [template, data] = template_and_data(100);
    let exporter = sender();
    let (mut process, address) = start(options("udp:0", &folder));
    send(&template, &exporter, address);
    let file = folder.path().join("spool/collect/templates");
    wait_for(&mut process, |_| file.exists());
    // Without `finish`.
    drop(process);
    let (mut process, address) = start(options("udp:0", &folder));
    send(&data, &exporter, address);
    wait_for(&mut process, |report| report.records() == 100);
}

#[test]
fn data_without_a_template_count_as_lost_at_the_end() {
    let folder = TempDir::new().unwrap();
    let [_, data] = template_and_data(2_000);
    let (mut process, address) = start(options("udp:0", &folder));
    send(&data, &sender(), address);
    let held = data.len() as u64;
    let report = wait_for(&mut process, |report| report.counts().held_sets == held);
    assert_eq!(report.losses().sets_without_template, 0, "they may still be decoded");
    let report = process.finish(clock());
    assert_eq!((report.records(), report.losses().sets_without_template), (0, held));
}
