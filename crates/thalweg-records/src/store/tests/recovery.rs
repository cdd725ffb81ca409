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
fn damaged_bytes_of_a_spool_segment_cost_their_block_only() {
    let made = tempfile::tempdir().unwrap();
    let segment = crashed(made.path(), 0..1000);
    let whole = fs::read(&segment).unwrap();
    for at in (16..whole.len()).step_by(whole.len() / 60) {
        let directory = tempfile::tempdir().unwrap();
        let spool = directory.path().join("spool/collect/flows");
        fs::create_dir_all(&spool).unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(spool.join(segment.file_name().unwrap()), &damaged).unwrap();
        let recovered = reopen(directory.path());
        // Ten blocks of 100 records.
        let octets = octets(directory.path());
        let lost: Vec<u64> = (0..1000).filter(|number| !octets.contains(number)).collect();
        assert_eq!((octets.len(), lost.len(), lost[0] % 100, lost[99] - lost[0]), (900, 100, 0, 99), "{at}");
        let is_last = lost[0] == 900;
        assert_eq!((recovered.torn, recovered.kept.len()), (is_last.into(), (!is_last).into()), "{at}");
        assert!(segments(directory.path()).is_empty());
        if let [kept] = &recovered.kept[..] {
            assert_eq!(fs::read(&kept.path).unwrap(), damaged);
            assert!(kept.path.to_str().unwrap().ends_with(".spool.damaged"), "{kept:?}");
            assert_eq!(reopen(directory.path()).segments, 0, "it is not read again");
        }
    }
}

/// A segment that a collector of version 2 of the columns left after a crash, see `tests/data/version-2/README.md`.
const VERSION_2: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-2/collect-20261129T171500-00000000.spool");

/// Puts a segment into the spool of an empty directory, and returns its path.
fn place(directory: &Path, name: &str, segment: &[u8]) -> PathBuf {
    let spool = directory.join("spool/collect/flows");
    fs::create_dir_all(&spool).unwrap();
    fs::write(spool.join(name), segment).unwrap();
    spool.join(name)
}

#[test]
fn a_spool_segment_of_the_previous_version_becomes_a_file_of_this_version() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = fs::read(VERSION_2).unwrap();
    // Format 2, version 2, 37 columns.
    assert_eq!(bytes[8..16], [2, 0, 2, 0, 37, 0, 0, 0]);
    place(directory.path(), "collect-20261129T171500-00000000.spool", &bytes);
    let recovered = reopen(directory.path());
    assert_eq!((recovered.segments, recovered.files, recovered.records), (1, 1, 200));
    assert_eq!((recovered.torn, recovered.kept.len(), recovered.pending), (0, 0, 0));
    assert!(segments(directory.path()).is_empty());
    let mut expected: Vec<u64> = (1000..1100).flat_map(|octets| [octets, octets]).collect();
    expected.sort();
    assert_eq!(octets(directory.path()), expected);
    let [file] = &visible(directory.path())[..] else { panic!("one file") };
    let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
    let names: Vec<&str> = RecordBatch::columns().iter().map(|column| column.name).collect();
    for (number, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let fields: Vec<(&String, String)> =
            row.get_column_iter().map(|(name, field)| (name, field.to_string())).collect();
        assert_eq!(fields.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        let number = number % 100;
        let value = |name: &str| fields.iter().find(|(field, _)| *field == name).unwrap().1.as_str();
        assert_eq!(value("src_as"), (64500 + number).to_string());
        assert_eq!((value("sampling_interval"), value("tcp_flags")), ("100", "27"));
        assert_eq!(value("vlan_id"), number.to_string());
        assert_eq!(value("dst").contains("2001:db8::ffff"), number % 4 == 0);
        assert!(fields[37..].iter().all(|(_, value)| matches!(value.as_str(), "0" | "\"\"")), "{fields:?}");
    }
}

#[test]
fn a_torn_spool_segment_of_the_previous_version_ends_at_its_last_complete_block() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = fs::read(VERSION_2).unwrap();
    place(directory.path(), "collect-20261129T171500-00000000.spool", &bytes[..bytes.len() - 1]);
    let recovered = reopen(directory.path());
    assert_eq!((recovered.torn, recovered.records), (1, 0));
    assert_eq!(recovered.torn_bytes, bytes.len() as u64 - 17);
}

#[test]
fn a_spool_segment_of_an_unknown_version_is_kept_named_and_counted() {
    let made = tempfile::tempdir().unwrap();
    let segment = crashed(made.path(), 0..1000);
    let name = segment.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(&segment).unwrap();
    // The header's bytes of magic, format, version and number of columns.
    for (at, expected) in [
        (0, "it is not a spool segment"),
        (8, "it has format 4 with version 3"),
        (10, "with version 4 and 61 columns"),
        (12, "with version 3 and 62 columns"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut newer = bytes.clone();
        newer[at] += 1;
        let path = place(directory.path(), name, &newer);
        let (mut store, recovered) = Store::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
        let [kept] = &recovered.kept[..] else { panic!("{recovered:?}") };
        assert_eq!(kept.path, path);
        assert!(kept.reason.contains(expected), "{}", kept.reason);
        assert_eq!((recovered.segments, recovered.records, store.statistics().kept_segments), (1, 0, 1));
        store.append(&rows(0..10, BEGIN), BEGIN);
        assert_eq!(store.finish(BEGIN).written, 10);
        // A file of the same name does not make it superfluous.
        fs::create_dir_all(made.path().join("flows")).unwrap();
        let [file] = &visible(directory.path())[..] else { panic!("one file") };
        fs::rename(file, file.with_file_name(name).with_extension("parquet")).unwrap();
        assert_eq!(reopen(directory.path()).kept.len(), 1);
        assert_eq!(fs::read(&path).unwrap(), newer);
    }
}

#[test]
fn spool_segments_of_other_datasets_are_read_in_the_previous_format() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::<CounterBatch>::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    let mut counters = CounterBatch::default();
    counters.push(&CounterRecord { received_us: (BEGIN.0 / 1000) as i64, ..CounterRecord::default() });
    store.append(&counters, BEGIN);
    store.tick(BEGIN + seconds(1));
    drop(store);
    let spool = directory.path().join("spool/collect/interface-counters");
    let entries = fs::read_dir(spool).unwrap().map(|entry| entry.unwrap().path());
    let segment = entries.into_iter().find(|path| path.extension().is_some()).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    // Their encoding has not changed.
    bytes[8] = 2;
    fs::write(&segment, bytes).unwrap();
    let (_, recovered) = Store::<CounterBatch>::open(StoreOptions::new(directory.path()), BEGIN).unwrap();
    assert_eq!((recovered.records, recovered.kept.len()), (1, 0));
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
