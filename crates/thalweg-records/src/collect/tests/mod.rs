//! End-to-end tests with exporters on the loopback interface.

#[cfg(feature = "kafka")]
mod kafka;
mod replay;
mod streams;
mod udp;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::encode::{Messages, netflow9};
use thalweg_wire::flow_export::{Address, Record, RecordBatch};

use super::*;
use crate::store::StoreOptions;

/// Deadline of waits that usually end at once.
const TIMEOUT: Duration = Duration::from_secs(20);

fn clock() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::new(now.as_secs(), now.subsec_nanos())
}

/// Options with a folder of its own and a small buffer.
fn options(listen: &str, folder: &TempDir) -> CollectOptions {
    CollectOptions {
        listen: vec![listen.parse().unwrap()],
        receive_buffer: 1 << 20,
        ..CollectOptions::new(StoreOptions::new(folder.path()), clock)
    }
}

fn start(options: CollectOptions) -> (CollectingProcess, SocketAddr) {
    let process = CollectingProcess::start(options, None).unwrap();
    let address = process.addresses()[0].1;
    (process, SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())))
}

/// Polls the report until `is_so` holds.
#[track_caller]
fn wait_for(process: &mut CollectingProcess, is_so: impl Fn(&Report) -> bool) -> Report {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        process.tick(clock());
        let report = process.report();
        if is_so(&report) {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns rows of distinct flows that have just ended.
fn rows(count: u32) -> RecordBatch {
    let now_us = (clock().0 / 1000) as i64;
    let mut batch = RecordBatch::default();
    for number in 0..count {
        batch.push(&Record {
            flow_start_us: now_us - 1_000_000,
            flow_end_us: now_us,
            source_address: Address::v4(0x0A00_0000 + number),
            destination_address: Address::v4(0xC000_0201),
            source_port: 443,
            protocol: 6,
            octets: 1000,
            packets: 1,
            ..Record::default()
        });
    }
    batch
}

fn netflow9_encoder() -> netflow9::Encoder {
    netflow9::Encoder::new(netflow9::Options::new(Timestamp::new(clock().seconds() - 100, 0))).unwrap()
}

fn netflow9_messages(encoder: &mut netflow9::Encoder, count: u32) -> Messages {
    let mut messages = Messages::new();
    encoder.encode(&rows(count), clock(), &mut messages);
    messages
}

/// Returns the number of rows in all Parquet files of a dataset.
fn stored(folder: &Path, dataset: &str) -> i64 {
    let Ok(entries) = std::fs::read_dir(folder.join(dataset)) else { return 0 };
    entries.map(|entry| rows_below(&entry.unwrap().path())).sum()
}

fn rows_below(path: &Path) -> i64 {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().map(|entry| rows_below(&entry.unwrap().path())).sum();
    }
    if path.extension().is_none_or(|extension| extension != "parquet") {
        return 0;
    }
    SerializedFileReader::new(File::open(path).unwrap()).unwrap().metadata().file_metadata().num_rows()
}
