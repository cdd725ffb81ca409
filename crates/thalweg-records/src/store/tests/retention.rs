use super::*;
use crate::store::retention::enforce;

/// Creates a file of 100 bytes for each hour from 10 to 14 of one day.
fn hours_of_files(directory: &Path) {
    for hour in 10..15 {
        let hour_directory = directory.join(format!("date=2026-11-22/hour={hour}"));
        fs::create_dir_all(&hour_directory).unwrap();
        let name = format!("collect-20261122T{hour}0000-00000000.parquet");
        fs::write(hour_directory.join(name), [0; 100]).unwrap();
    }
}

/// Returns the hours that still have a file.
fn left(directory: &Path) -> Vec<String> {
    names(directory).iter().map(|name| name["date=2026-11-22/hour=".len()..][..2].to_owned()).collect()
}

#[test]
fn files_are_removed_by_age() {
    let directory = tempfile::tempdir().unwrap();
    hours_of_files(directory.path());
    // It is 13:59:59; two hours ago was 11:59:59, before the end of hour 11.
    let removed = enforce(directory.path(), BEGIN, Some(seconds(7200)), None, None).unwrap();
    assert_eq!((removed.files, removed.bytes), (1, 100));
    assert_eq!(left(directory.path()), ["11", "12", "13", "14"]);
    enforce(directory.path(), BEGIN + seconds(1), Some(seconds(7200)), None, None).unwrap();
    assert_eq!(left(directory.path()), ["12", "13", "14"]);
    assert!(!directory.path().join("date=2026-11-22/hour=11").exists());
}

#[test]
fn the_oldest_files_are_removed_by_size_except_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    hours_of_files(directory.path());
    let removed = enforce(directory.path(), BEGIN, None, Some(250), None).unwrap();
    assert_eq!(removed.files, 3);
    assert_eq!(left(directory.path()), ["13", "14"]);
    let newest = directory.path().join("date=2026-11-22/hour=13/collect-20261122T130000-00000000.parquet");
    enforce(directory.path(), BEGIN, None, Some(1), Some(&newest)).unwrap();
    assert_eq!(left(directory.path()), ["13"]);
}

#[test]
fn without_limits_nothing_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    hours_of_files(directory.path());
    enforce(directory.path(), BEGIN + seconds(1 << 30), None, None, None).unwrap();
    assert_eq!(left(directory.path()).len(), 5);
}

#[test]
fn a_store_applies_retention_while_it_writes() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        StoreOptions { file_rows: 1000, keep_bytes: Some(1), ..StoreOptions::new(directory.path()) };
    let (mut store, _) = Store::open(options, BEGIN).unwrap();
    for number in 0..5 {
        store.append(&rows(number * 1000..(number + 1) * 1000, BEGIN), BEGIN);
        store.tick(BEGIN + seconds(1));
        wait_until_idle(&store);
    }
    // The oldest are removed after the newest is published.
    assert!(eventually(|| store.statistics().files == 5 && store.statistics().removed_files == 4));
    assert_eq!(octets(directory.path()), (4000..5000).collect::<Vec<_>>());
}
