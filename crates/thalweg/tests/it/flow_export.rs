//! Export of flow records by `thalweg watch`: by IPFIX and to Parquet files.

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::decode::{Decoded, Decoder, Limits};

use crate::program::{number, root, watch};

fn example() -> String {
    root().join("examples/two-hosts.pcap").to_str().unwrap().to_owned()
}

/// Decodes IPFIX messages.
fn rows<'a>(messages: impl IntoIterator<Item = &'a [u8]>) -> RecordBatch {
    let (mut decoder, mut found) = (Decoder::new(Limits::default()), Decoded::default());
    for message in messages {
        decoder
            .datagram("192.0.2.1:4739".parse().unwrap(), Timestamp::default(), message, &mut found)
            .unwrap();
    }
    found.flows
}

/// Sums packets and bytes.
fn sums(rows: &RecordBatch) -> (u64, u64) {
    (rows.packets.iter().sum(), rows.octets.iter().sum())
}

fn parquet_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                parquet_files(&path)
            } else {
                usize::from(path.extension().is_some_and(|end| end == "parquet"))
            }
        })
        .sum()
}

#[test]
fn every_packet_of_a_file_is_exported_and_stored() {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (destination, folder) = (collector.local_addr().unwrap().to_string(), tempfile::tempdir().unwrap());
    let records = folder.path().to_str().unwrap();
    let run = watch(&["--json", "--ipfix", &destination, "--records", records, &example()]).ended_with(0);
    assert!(run.of_type("flow").is_empty(), "flows are written with --flows only");
    let mut buffer = [0; 2_048];
    let messages: Vec<Vec<u8>> =
        std::iter::from_fn(|| collector.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec()))
            .collect();
    let rows = rows(messages.iter().map(Vec::as_slice));
    let summary = run.summary();
    assert_eq!(sums(&rows), (number(&summary, "ip_packets"), number(&summary, "ip_bytes")));
    let (sent, kept) = (&summary["ipfix"], &summary["store"]);
    assert_eq!(number(sent, "messages"), messages.len() as u64);
    assert_eq!(number(sent, "bytes"), messages.iter().map(Vec::len).sum::<usize>() as u64);
    assert_eq!(
        number(sent, "flow_records"),
        rows.biflow_direction.iter().filter(|way| **way != 2).count() as u64
    );
    assert!(sent["lost_records"].as_object().unwrap().values().all(|lost| lost == 0), "{sent}");
    assert_eq!((number(kept, "written"), number(kept, "lost")), (rows.len() as u64, 0));
    assert_eq!(number(kept, "files"), parquet_files(folder.path()) as u64);
    // Rows are stored under the date of the capture.
    let hour = folder.path().join("flows/date=2026-11-21/hour=22");
    assert_eq!(parquet_files(&hour), parquet_files(folder.path()), "{}", hour.display());
}

#[test]
fn export_over_tcp_uses_one_session_and_reports_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let destination = format!("tcp://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let mut stream = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut stream).unwrap();
        stream
    });
    let run = watch(&["--json", "--ipfix", &destination, &example()]).ended_with(0);
    let stream = collector.join().unwrap();
    let mut rest = &stream[..];
    let messages = std::iter::from_fn(|| {
        let length = u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?]);
        let (message, later) = rest.split_at(length.into());
        rest = later;
        Some(message)
    });
    let summary = run.summary();
    assert_eq!(sums(&rows(messages)), (number(&summary, "ip_packets"), number(&summary, "ip_bytes")));

    let run = watch(&["--summary", "--ipfix", &destination, &example()]).ended_with(1);
    assert!(run.stdout.contains("flow records not exported to tcp://127.0.0.1:"), "{}", run.stdout);
    assert!(run.stdout.contains("no connection (Connection refused"), "{}", run.stdout);
}

#[test]
fn a_run_whose_flow_records_are_all_lost_fails() {
    let destination = "udp://no-such-host.invalid:4739";
    let run = watch(&["--json", "--ipfix", destination, &example()]).ended_with(1);
    let expected = format!("thalweg: none of 27 flow records was exported to {destination}: ");
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    let exported = &run.summary()["ipfix"];
    assert_eq!((number(exported, "flow_records"), number(&exported["lost_records"], "no_session")), (0, 27));
}

#[test]
fn contradictory_options_are_refused_before_reading() {
    for (arguments, message) in [
        (&["--ipfix", "sctp://host"][..], "expected [udp://|tcp://|tls://]HOST[:PORT]"),
        (&["--ipfix", "tls://host"], "a tls:// destination requires --ipfix-ca-file"),
        (&["--ipfix-times", "milliseconds"], "it applies only to IPFIX export (--ipfix)"),
        (&["--tasks", "distinct", "--no-table", "--records", "x"], "(remove --no-table)"),
    ] {
        let run = watch(&[arguments, &[&example()]].concat()).ended_with(2);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}
