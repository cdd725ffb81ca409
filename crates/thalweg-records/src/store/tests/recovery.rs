//! Simulated crashes; `tests/it/store` has real ones.

use super::*;

/// Appends rows and leaves them in the spool as a crash does. Returns the segment.
fn crashed(directory: &Path, octets: std::ops::Range<u64>) -> PathBuf {
    let (mut store, _) = Store::open(StoreOptions::new(directory), BEGIN).unwrap();
    for octets in octets.clone().step_by(100) {
        store.append(&rows(octets..octets + 100, BEGIN), BEGIN);
        store.tick(BEGIN + seconds(octets + 1));
        wait_until_idle(&store);
    }
    drop(store);
    segments(directory).remove(0)
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("spool/collect/flows")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "spool"));
    paths.sort();
    paths
}

fn reopen(directory: &Path) -> Recovered {
    let (store, recovered) = Store::<RecordBatch>::open(StoreOptions::new(directory), BEGIN).unwrap();
    check_balance(&store.statistics());
    recovered
}

#[test]
fn a_spool_segment_becomes_a_file_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    crashed(directory.path(), 0..1000);
    assert!(octets(directory.path()).is_empty());
    let recovered = reopen(directory.path());
    assert_eq!((recovered.segments, recovered.files, recovered.records), (1, 1, 1000));
    assert_eq!((recovered.torn, recovered.unfinished_files), (0, 0));
    assert_eq!(octets(directory.path()), (0..1000).collect::<Vec<_>>());
    assert_eq!(reopen(directory.path()), Recovered::default());
    assert_eq!(octets(directory.path()).len(), 1000);
}

#[test]
fn a_crash_before_removing_a_spool_segment_duplicates_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let segment = crashed(directory.path(), 0..1000);
    let copy = fs::read(&segment).unwrap();
    reopen(directory.path());
    fs::write(&segment, copy).unwrap();
    let recovered = reopen(directory.path());
    assert_eq!((recovered.segments, recovered.already_written, recovered.records), (1, 1, 0));
    assert_eq!(octets(directory.path()).len(), 1000);
    assert!(segments(directory.path()).is_empty());
}

#[test]
fn unfinished_files_are_removed_and_numbers_are_unique() {
    let directory = tempfile::tempdir().unwrap();
    let segment = crashed(directory.path(), 0..1000);
    let stem = segment.file_stem().unwrap().to_str().unwrap().to_owned();
    let hour = directory.path().join("flows/date=2026-11-22/hour=13");
    fs::write(hour.join(format!(".{stem}.parquet.part")), "half a file").unwrap();
    fs::write(hour.join(".watch-20261122T135500-00000000.parquet.part"), "another store's").unwrap();
    assert_eq!(reopen(directory.path()).unfinished_files, 1);
    assert!(hour.join(".watch-20261122T135500-00000000.parquet.part").exists());
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    store.append(&rows(1000..1001, BEGIN), BEGIN);
    assert_eq!(store.finish(BEGIN).written, 1);
    assert_eq!(names(directory.path()).len(), 2);
    assert_eq!(octets(directory.path()).len(), 1001);
}

#[test]
fn a_spool_segment_cut_by_a_crash_ends_at_its_last_complete_block() {
    let made = tempfile::tempdir().unwrap();
    let segment = crashed(made.path(), 0..1000);
    let whole = fs::read(&segment).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 40).chain([whole.len() - 1]) {
        let directory = tempfile::tempdir().unwrap();
        let spool = directory.path().join("spool/collect/flows");
        fs::create_dir_all(&spool).unwrap();
        fs::write(spool.join(segment.file_name().unwrap()), &whole[..length]).unwrap();
        let recovered = reopen(directory.path());
        let octets = octets(directory.path());
        assert_eq!(octets, (0..octets.len() as u64).collect::<Vec<_>>(), "cut at {length}");
        assert_eq!((octets.len() % 100, recovered.records), (0, octets.len() as u64));
        assert_eq!(recovered.torn, u64::from(recovered.torn_bytes > 0));
        assert!(octets.len() < 1000);
        assert!(segments(directory.path()).is_empty());
    }
}

#[test]
fn a_damaged_block_ends_its_spool_segment() {
    let made = tempfile::tempdir().unwrap();
    let segment = crashed(made.path(), 0..1000);
    let whole = fs::read(&segment).unwrap();
    for at in (16..whole.len()).step_by(whole.len() / 60) {
        let directory = tempfile::tempdir().unwrap();
        let spool = directory.path().join("spool/collect/flows");
        fs::create_dir_all(&spool).unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(spool.join(segment.file_name().unwrap()), damaged).unwrap();
        let recovered = reopen(directory.path());
        assert_eq!(recovered.torn, 1, "damaged at {at}");
        let octets = octets(directory.path());
        assert_eq!(octets, (0..octets.len() as u64).collect::<Vec<_>>(), "damaged at {at}");
    }
}

#[test]
fn a_spool_segment_of_another_version_is_left_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let segment = crashed(directory.path(), 0..1000);
    let mut bytes = fs::read(&segment).unwrap();
    bytes[10] += 1;
    fs::write(&segment, &bytes).unwrap();
    assert_eq!(reopen(directory.path()).incompatible, 1);
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let (mut store, _) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    store.append(&rows(0..10, BEGIN), BEGIN);
    assert_eq!(store.finish(BEGIN).written, 10);
}

/// A file blocks the partition's directory, so that no file can be written until it is removed.
#[test]
fn a_file_that_failed_is_converted_from_its_segment_later() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("flows")).unwrap();
    let obstacle = directory.path().join("flows/date=2026-11-22");
    fs::write(&obstacle, "").unwrap();
    let options = StoreOptions { file_rows: 1000, ..StoreOptions::new(directory.path()) };
    let (mut store, _) = Store::open(options, BEGIN).unwrap();
    for number in 0..4 {
        store.append(&rows(number * 1000..(number + 1) * 1000, BEGIN), BEGIN);
        store.tick(BEGIN + seconds(number));
        wait_until_idle(&store);
    }
    let statistics = store.statistics();
    assert!(eventually(|| store.statistics().pending_segments >= 3), "{statistics:?}");
    assert!(store.statistics().last_error.is_some());
    assert!(octets(directory.path()).is_empty());
    fs::remove_file(&obstacle).unwrap();
    // Only time passes until the next attempt.
    store.tick(BEGIN + seconds(100));
    let is_done = || store.statistics().pending_segments == 0;
    assert!(eventually(is_done), "{:?}", store.statistics());
    let statistics = store.finish(BEGIN + seconds(100));
    assert_eq!((statistics.written, statistics.in_spool, statistics.lost.total()), (4000, 0, 0));
    assert_eq!(octets(directory.path()), (0..4000).collect::<Vec<_>>());
    check_balance(&statistics);
}
