//! A disk of a few megabytes, in a mount namespace of the test's own.

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

/// Mounts a disk of so many megabytes, which only this thread and those that it starts see.
fn small_disk(path: &Path, megabytes: usize) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let size = format!("size={megabytes}m");
    mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
}

/// Appends batches, one a second, and waits until each is dealt with.
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
fn a_full_disk_loses_only_what_it_counts_shows_no_broken_file_and_is_got_over_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = small_disk(directory.path(), 16) {
        return skip(format!("no disk of its own: {error}"));
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
    // Somebody makes room.
    fs::remove_file(&ballast).unwrap();
    append(&mut store, 60..90);
    wait(&store, |statistics| statistics.waiting_segments == 0);
    let statistics = store.finish(BEGIN + Nanos::from_secs(90));
    assert_eq!((statistics.in_spool, statistics.lost), (0, full.lost), "{statistics:?}");
    check_balance(&statistics);
    let kept = octets(&data);
    assert_eq!(kept.len() as u64, statistics.written);
    assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "a row is there twice");
    assert!(kept.ends_with(&(60 * BATCH..90 * BATCH).collect::<Vec<_>>()));
}

#[test]
fn what_a_full_disk_keeps_in_the_spool_is_kept_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = small_disk(directory.path(), 6) {
        return skip(format!("no disk of its own: {error}"));
    }
    let data = directory.path().join("data");
    let ballast = directory.path().join("ballast");
    let options = StoreOptions { file_rows: 5 * BATCH, ..StoreOptions::new(&data) };
    let (mut store, _) = Store::open(options.clone(), BEGIN).unwrap();
    append(&mut store, 0..3);
    // Room for the spool's segment as it is, and none for a file.
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
    assert_eq!((recovered.segments, recovered.waiting, recovered.records), (1, 1, 0));
    fs::remove_file(&ballast).unwrap();
    append(&mut store, 3..5);
    let second = store.finish(BEGIN + Nanos::from_secs(10));
    assert_eq!((second.recovered, second.in_spool), (3 * BATCH, 0), "{second:?}");
    check_balance(&second);
    assert_eq!(octets(&data), (0..5 * BATCH).collect::<Vec<_>>());
}
