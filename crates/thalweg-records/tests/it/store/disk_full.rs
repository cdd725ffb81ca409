//! Tests with a disk of a few megabytes, in a mount namespace of their own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use thalweg_records::store::{Statistics, Store, StoreOptions};
use thalweg_wire::{Nanos, Timestamp};

use super::{octets, rows};
use crate::skip::skip;

/// 2026-11-22 13:00:00 UTC.
const BEGIN: Timestamp = Timestamp(1_795_352_400_000_000_000);

/// Rows of a batch.
const BATCH: u64 = 20_000;

/// Mounts a disk of this size, visible to this thread and its children only.
fn small_disk(path: &Path, megabytes: usize) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let size = format!("size={megabytes}m");
    mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
}

/// Appends one batch per second, and waits until each is processed.
fn append(store: &mut Store, batches: std::ops::Range<u64>) {
    for number in batches {
        let now = BEGIN + Nanos::from_secs(number);
        store.append(&rows(number * BATCH..(number + 1) * BATCH, now), now);
        store.tick(now + Nanos::from_millis(900));
        wait(store, |statistics| statistics.queued == 0);
    }
}

fn wait(store: &Store, condition: impl Fn(&Statistics) -> bool) {
    let is_true = (0..2000).any(|_| {
        condition(&store.statistics()) || {
            std::thread::sleep(Duration::from_millis(5));
            false
        }
    });
    assert!(is_true, "{:?}", store.statistics());
}

fn check_balance(statistics: &Statistics) {
    let lost = statistics.lost.total();
    let kept = statistics.queued + statistics.in_spool + statistics.written;
    assert_eq!(statistics.records + statistics.recovered, kept + lost, "{statistics:?}");
}

#[test]
fn losses_to_a_full_disk_are_counted_and_it_recovers() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = small_disk(directory.path(), 16) {
        return skip(format!("cannot mount a small disk: {error}"));
    }
    let ballast = directory.path().join("ballast");
    fs::write(&ballast, vec![1; 12 << 20]).unwrap();
    let data = directory.path().join("data");
    let options = StoreOptions { file_rows: 3 * BATCH, ..StoreOptions::new(&data) };
    let (mut store, _) = Store::open(options.clone(), BEGIN).unwrap();
    append(&mut store, 0..60);
    let full = store.statistics();
    assert!(full.written > 0 && full.lost.spool_failed > 0, "{full:?}");
    assert!(full.last_error.as_ref().is_some_and(|error| error.contains("space")), "{full:?}");
    check_balance(&full);
    assert_eq!(octets(&data).len() as u64, full.written);
    // Room becomes available.
    fs::remove_file(&ballast).unwrap();
    append(&mut store, 60..90);
    wait(&store, |statistics| statistics.pending_segments == 0);
    let statistics = store.finish(BEGIN + Nanos::from_secs(90));
    assert_eq!((statistics.in_spool, statistics.lost), (0, full.lost), "{statistics:?}");
    check_balance(&statistics);
    let kept = octets(&data);
    assert_eq!(kept.len() as u64, statistics.written);
    assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "duplicate row");
    assert!(kept.ends_with(&(60 * BATCH..90 * BATCH).collect::<Vec<_>>()));
}

#[test]
fn the_spool_survives_a_restart_on_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = small_disk(directory.path(), 6) {
        return skip(format!("cannot mount a small disk: {error}"));
    }
    let data = directory.path().join("data");
    let ballast = directory.path().join("ballast");
    let options = StoreOptions { file_rows: 5 * BATCH, ..StoreOptions::new(&data) };
    let (mut store, _) = Store::open(options.clone(), BEGIN).unwrap();
    append(&mut store, 0..3);
    // Room for the spool's segment, but not for a file.
    let mut left = 1 << 20;
    let mut filled = Vec::new();
    while left > 0 {
        filled.resize(filled.len() + left, 1);
        if fs::write(&ballast, &filled).is_err() {
            filled.truncate(filled.len() - left);
            left /= 2;
        }
    }
    let first = store.finish(BEGIN + Nanos::from_secs(3));
    assert_eq!((first.in_spool, first.written, first.lost.total()), (3 * BATCH, 0, 0), "{first:?}");
    assert!(octets(&data).is_empty());
    let (mut store, recovered) = Store::open(options.clone(), BEGIN).unwrap();
    assert_eq!((recovered.segments, recovered.pending, recovered.records), (1, 1, 0));
    fs::remove_file(&ballast).unwrap();
    append(&mut store, 3..5);
    let second = store.finish(BEGIN + Nanos::from_secs(10));
    assert_eq!((second.recovered, second.in_spool), (3 * BATCH, 0), "{second:?}");
    check_balance(&second);
    assert_eq!(octets(&data), (0..5 * BATCH).collect::<Vec<_>>());
}
