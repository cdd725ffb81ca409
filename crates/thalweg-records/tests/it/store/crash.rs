//! Kills an appending process repeatedly at random moments.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use thalweg_records::store::{Store, StoreOptions};
use thalweg_wire::{Nanos, Timestamp};

use super::{now, octets, rows};

const SYNC_INTERVAL: Nanos = Nanos::from_millis(400);

/// Rows that the child appends per batch.
const BATCH: u64 = 50;

/// Number of kills. Their moments are drawn from a seed; the machine adds randomness.
const KILLS: u64 = 12;

/// Small files and short spans, so that kills hit every step: frames, row groups, renames, removals.
fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        sync_interval: SYNC_INTERVAL,
        file_span: Nanos::from_secs(1),
        file_rows: 700,
        row_group_rows: 300,
        ..StoreOptions::new(directory)
    }
}

/// The child process; as a normal test it does nothing.
#[test]
fn helper_process_that_appends_until_it_is_killed() {
    let Ok(arguments) = std::env::var("THALWEG_STORE_CHILD") else { return };
    let (first, directory) = arguments.split_once(' ').unwrap();
    let mut next: u64 = first.parse().unwrap();
    let (mut store, _) = Store::open(options(Path::new(directory)), now()).unwrap();
    // Stops by itself after a minute if it was not killed.
    let end = now() + Nanos::from_secs(60);
    while now() < end {
        let time = now();
        store.append(&rows(next..next + BATCH, time), time);
        next += BATCH;
        store.tick(now());
        println!("appended {next} {}", time.0);
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn a_kill_loses_at_most_one_sync_interval_and_duplicates_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let (mut next, mut seed) = (0, 20_261_122_u64);
    // For each run, the rows appended more than the sync interval before the kill.
    let mut required = Vec::new();
    for _ in 0..KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (appended, killed) =
            run_and_kill(directory.path(), next, Duration::from_millis(700 + (seed >> 33) % 1200));
        let kept = |time: Timestamp| killed.since(time) > SYNC_INTERVAL;
        required.push((next, appended.iter().filter(|(_, time)| kept(*time)).map(|(to, _)| *to).max()));
        // The child may have appended more than it reported.
        next = appended.last().map_or(next, |(to, _)| *to) + 100 * BATCH;
    }
    Store::<thalweg_wire::flow_export::RecordBatch>::open(options(directory.path()), now()).unwrap();
    let kept = octets(directory.path());
    assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "duplicate row");
    for (from, to) in required {
        let to = to.expect("a child that runs for longer than the bound has appended something");
        let first = kept.partition_point(|&octets| octets < from);
        let expected: Vec<_> = (from..to).collect();
        assert!(
            kept[first..].starts_with(&expected),
            "rows from {from} to {to} were appended more than {SYNC_INTERVAL} before the kill, and some are missing"
        );
    }
}

/// Starts a child that numbers its rows from `first`, and kills it after `after`. Returns the number after each appended
/// batch with its time, and the time of the kill.
fn run_and_kill(directory: &Path, first: u64, after: Duration) -> (Vec<(u64, Timestamp)>, Timestamp) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::crash::helper_process_that_appends_until_it_is_killed", "--nocapture"])
        .env("THALWEG_STORE_CHILD", format!("{first} {}", directory.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let appended = |line: &str| {
        let (next, time) = line.strip_prefix("appended ")?.split_once(' ')?;
        Some((next.parse().unwrap(), Timestamp(time.parse().unwrap())))
    };
    // Counts from the first row, so that the start of the process does not matter.
    let first = lines.by_ref().find_map(|line| appended(&line.unwrap())).expect("the child appends");
    std::thread::sleep(after);
    // Taken before the kill: later rows are not required.
    let killed = now();
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = lines.map_while(Result::ok);
    let rest: Vec<_> = rest.filter_map(|line| appended(&line)).collect();
    ([vec![first], rest].concat(), killed)
}
