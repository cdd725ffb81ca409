use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::RowAccessor;
use thalweg_wire::flow_export::{Address, CounterBatch, CounterRecord, Format, Record, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

use crate::schema::Dataset;

use super::appender::Message;
use super::parquet::PAGE_ROWS;
use super::*;

mod recovery;
mod retention;

/// 2026-11-22 13:59:59 UTC.
const BEGIN: Timestamp = Timestamp(1_795_355_999_000_000_000);

fn seconds(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

/// Returns rows that are numbered by their octets.
fn rows(octets: std::ops::Range<u64>, received: Timestamp) -> RecordBatch {
    let mut batch = RecordBatch::default();
    for octets in octets {
        batch.push(&Record {
            received_us: (received.0 / 1000) as i64,
            exporter: Address::v4(0xC000_0201),
            format: Format::NetFlow9,
            source_address: Address::v4(octets as u32),
            octets,
            ..Record::default()
        });
    }
    batch
}

/// Returns the sorted `*.parquet` files below a directory.
fn visible(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(visible(&path));
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the sorted octets of all rows of all files.
fn octets(directory: &Path) -> Vec<u64> {
    let column = RecordBatch::columns().iter().position(|column| column.name == "bytes").unwrap();
    let mut octets = Vec::new();
    for path in visible(directory) {
        let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        for row in file.get_row_iter(None).unwrap() {
            octets.push(row.unwrap().get_long(column).unwrap() as u64);
        }
    }
    octets.sort_unstable();
    octets
}

fn names(directory: &Path) -> Vec<String> {
    let relative = |path: PathBuf| path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
    visible(directory).into_iter().map(relative).collect()
}

fn check_balance(statistics: &Statistics) {
    assert_eq!(
        statistics.records + statistics.recovered,
        statistics.queued + statistics.in_spool + statistics.written + statistics.lost.total(),
        "{statistics:?}"
    );
}

#[test]
fn rows_are_partitioned_by_the_hour_of_reception() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, recovered) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    assert_eq!(recovered, Recovered::default());
    let mut both = rows(0..3, BEGIN);
    both.append(&rows(3..5, BEGIN + seconds(1)));
    store.append(&both, BEGIN + seconds(1));
    let statistics = store.finish(BEGIN + seconds(1));
    assert_eq!((statistics.records, statistics.written, statistics.files), (5, 5, 2));
    assert_eq!(
        names(directory.path()),
        [
            "flows/date=2026-11-22/hour=13/collect-20261122T135500-00000000.parquet",
            "flows/date=2026-11-22/hour=14/collect-20261122T140000-00000001.parquet",
        ]
    );
    assert_eq!(octets(&directory.path().join("flows/date=2026-11-22/hour=14")), [3, 4]);
    check_balance(&statistics);
    // Only the lock remains in the spool.
    let spool = directory.path().join("spool/collect/flows");
    assert_eq!(fs::read_dir(spool).unwrap().count(), 1);
}

#[test]
fn late_rows_go_to_the_open_file_of_their_hour() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    for (number, received) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)] {
        store.append(&rows(number..number + 1, BEGIN + seconds(received)), BEGIN + seconds(1));
    }
    let statistics = store.finish(BEGIN + seconds(2));
    assert_eq!((statistics.written, statistics.files), (5, 2));
}

#[test]
fn a_file_is_published_at_the_end_of_its_interval() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    store.append(&rows(0..3, BEGIN), BEGIN);
    // Ticks that send the rows and then, in the next hour, close the file.
    for tick in [1, 2, 4] {
        wait_until_idle(&store);
        store.tick(BEGIN + seconds(tick));
    }
    wait_until_idle(&store);
    let written = || store.statistics().written;
    assert!(eventually(|| written() == 3), "{:?}", store.statistics());
    assert_eq!(octets(directory.path()), [0, 1, 2]);
    let statistics = store.finish(BEGIN + seconds(4));
    assert_eq!(statistics.files, 1);
}

#[test]
fn extreme_reception_times_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    let mut batch = rows(0..6, BEGIN);
    batch.received_us = vec![i64::MIN, i64::MAX, 0, i64::MAX - 1, -1, i64::MIN + 1];
    store.append(&batch, BEGIN);
    assert_eq!(store.finish(BEGIN).written, 6);
    assert_eq!(octets(directory.path()), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn an_appender_queues_its_rows_when_it_goes_out_of_scope() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    let mut appender = store.appender();
    appender.append(&rows(0..6, BEGIN), BEGIN);
    drop(appender);
    assert_eq!(store.finish(BEGIN).written, 6);
}

#[test]
fn a_file_is_closed_at_its_row_limit() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { file_rows: 1000, ..StoreOptions::new(directory.path()) };
    let (mut store, _) = Store::open(options, BEGIN).unwrap();
    for number in 0..10 {
        store.append(&rows(number * 500..(number + 1) * 500, BEGIN), BEGIN);
        store.tick(BEGIN + seconds(number));
        wait_until_idle(&store);
    }
    let statistics = store.finish(BEGIN);
    assert_eq!((statistics.written, statistics.files), (5000, 5));
    assert_eq!(octets(directory.path()), (0..5000).collect::<Vec<_>>());
}

/// The disk is stalled: nothing reads the queue.
#[test]
fn rows_beyond_a_full_queue_are_lost_and_counted() {
    let options = StoreOptions { queue_rows: 2 * PAGE_ROWS, ..StoreOptions::new("unused") };
    let statistics = Arc::new(Mutex::new(Statistics::default()));
    let (mut appender, queue) = Appender::<RecordBatch>::new(&options, statistics.clone());
    let batch = rows(0..1000, BEGIN);
    for _ in 0..200 {
        appender.append(&batch, BEGIN);
    }
    // Two batches in the queue, and a partial one.
    let room = 3 * PAGE_ROWS as u64;
    let mut so_far = statistics.lock().unwrap().clone();
    appender.add_to(&mut so_far);
    assert_eq!(so_far.records, 200_000);
    assert_eq!((so_far.queued, so_far.lost.queue_full), (room, 200_000 - room));
    // The disk responds again: queued rows arrive in order, and there is room for more.
    let mut taken = Vec::new();
    while let Ok(message) = queue.messages.try_recv() {
        if let Message::Rows(rows, _) = message {
            taken.extend(rows.octets);
        }
    }
    appender.append(&batch, BEGIN);
    appender.tick(BEGIN + seconds(1));
    while let Ok(message) = queue.messages.try_recv() {
        if let Message::Rows(rows, _) = message {
            taken.extend(rows.octets);
        }
    }
    assert_eq!(taken.len() as u64, room + 1000);
    assert!(taken[..room as usize].iter().enumerate().all(|(row, &octets)| octets == row as u64 % 1000));
}

#[test]
fn a_blocking_appender_loses_rows_only_to_a_stalled_writer() {
    let options = StoreOptions { queue_rows: PAGE_ROWS, ..StoreOptions::new("unused") };
    let statistics = Arc::new(Mutex::new(Statistics::default()));
    let (appender, queue) = Appender::<RecordBatch>::new(&options, statistics.clone());
    let mut appender = appender.blocking();
    let batch = rows(0..PAGE_ROWS as u64, BEGIN);
    let slow = std::thread::spawn(move || {
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(2));
            assert!(matches!(queue.messages.recv(), Ok(Message::Rows(..))));
        }
        queue
    });
    (0..10).for_each(|_| appender.append(&batch, BEGIN));
    let queue = slow.join().unwrap();
    assert_eq!(statistics.lock().unwrap().lost.queue_full, 0);

    // One batch in the queue, and a partial one; only the next append waits.
    (0..50).for_each(|_| appender.append(&batch, BEGIN));
    assert_eq!(statistics.lock().unwrap().lost.queue_full, 48 * PAGE_ROWS as u64);
    // The writer continues: appends wait again.
    let back = std::thread::spawn(move || {
        let mut taken = 0;
        while let Ok(Message::Rows(rows, _)) = queue.messages.recv() {
            taken += rows.rows();
        }
        taken
    });
    while !appender.is_idle() {
        std::thread::yield_now();
    }
    (0..10).for_each(|_| appender.append(&batch, BEGIN));
    drop(appender);
    assert_eq!(back.join().unwrap(), 12 * PAGE_ROWS);
    assert_eq!(statistics.lock().unwrap().lost.queue_full, 48 * PAGE_ROWS as u64);
}

#[test]
fn a_tick_with_a_full_queue_does_not_mark_the_writer_stalled() {
    let options = StoreOptions { queue_rows: PAGE_ROWS, ..StoreOptions::new("unused") };
    let statistics = Arc::new(Mutex::new(Statistics::default()));
    let (appender, queue) = Appender::<RecordBatch>::new(&options, statistics.clone());
    let mut appender = appender.blocking();
    let batch = rows(0..PAGE_ROWS as u64, BEGIN);
    appender.append(&batch, BEGIN);
    appender.append(&rows(0..1, BEGIN), BEGIN);
    appender.tick(BEGIN + seconds(1));
    let slow = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        queue.messages.iter().count()
    });
    // All but one row go to the queue, which has no room for the first of them yet.
    (0..5).for_each(|_| appender.append(&batch, BEGIN));
    drop(appender);
    assert_eq!(slow.join().unwrap(), 7);
    let statistics = statistics.lock().unwrap();
    assert_eq!((statistics.records, statistics.lost.queue_full), (6 * PAGE_ROWS as u64 + 1, 0));
}

#[test]
fn rows_beyond_a_full_spool_are_lost_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { spool_bytes: 100_000, ..StoreOptions::new(directory.path()) };
    let (mut store, _) = Store::open(options, BEGIN).unwrap();
    for number in 0..100 {
        store.append(&rows(number * 1000..(number + 1) * 1000, BEGIN), BEGIN);
        store.tick(BEGIN + seconds(number));
        wait_until_idle(&store);
    }
    let statistics = store.finish(BEGIN + seconds(100));
    assert!(statistics.lost.spool_full > 0);
    assert_eq!(statistics.written + statistics.lost.spool_full, 100_000);
    assert_eq!(octets(directory.path()).len() as u64, statistics.written);
    check_balance(&statistics);
}

#[test]
fn stores_of_one_directory_need_different_names() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions::new(directory.path());
    let (_first, _) = Store::<RecordBatch>::open(options.clone(), BEGIN).unwrap();
    let second = Store::<RecordBatch>::open(options.clone(), BEGIN);
    assert!(matches!(second, Err(StoreError::InUse { .. })));
    let other_name = StoreOptions { name: "watch".to_owned(), ..options.clone() };
    assert!(Store::<RecordBatch>::open(other_name, BEGIN).is_ok());
    assert!(Store::<CounterBatch>::open(options, BEGIN).is_ok());
}

#[test]
fn an_invalid_option_is_named_with_the_accepted_values() {
    let wrong = [
        (
            StoreOptions { name: "a/b".to_owned(), ..StoreOptions::new("x") },
            "invalid name \"a/b\": expected letters",
        ),
        (
            StoreOptions { file_span: seconds(7), ..StoreOptions::new("x") },
            "invalid file span 7.00 s: expected a time that divides one hour",
        ),
        (
            StoreOptions { sync_interval: Nanos::ZERO, ..StoreOptions::new("x") },
            "invalid sync interval 0 ns: expected",
        ),
        (
            StoreOptions { compression_level: 0, ..StoreOptions::new("x") },
            "invalid compression level 0: expected",
        ),
    ];
    for (options, expected) in wrong {
        let error = Store::<RecordBatch>::open(options, BEGIN).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn several_threads_append_to_one_store() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let mut appender = store.appender();
            scope.spawn(move || {
                let from = thread * 10_000;
                appender.append(&rows(from..from + 10_000, BEGIN), BEGIN);
                appender.tick(BEGIN + seconds(1));
            });
        }
    });
    let statistics = store.finish(BEGIN + seconds(1));
    assert_eq!(statistics.written, 40_000);
    assert_eq!(octets(directory.path()), (0..40_000).collect::<Vec<_>>());
}

fn wait_until_idle(store: &Store) {
    assert!(eventually(|| store.appender.is_idle()), "the store's thread is too slow");
}

/// Returns whether a condition becomes true within ten seconds.
fn eventually(condition: impl Fn() -> bool) -> bool {
    (0..10_000).any(|_| {
        condition() || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            false
        }
    })
}
