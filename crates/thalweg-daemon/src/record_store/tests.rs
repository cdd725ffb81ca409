use std::fs;
use std::path::Path;

use thalweg_measure::filter::RECORDS;
use thalweg_records::store::parquet::write_file;
use thalweg_wire::flow_export::{Record, RecordBatch};

use super::*;

/// 2026-11-22 13:00:00 UTC.
const HOUR: i64 = 1_795_352_400_000_000;
const MINUTE: i64 = 60_000_000;

/// Writes a store with one record per second of an hour, in files of ten minutes.
fn store(folder: &Path) -> RecordStore {
    let hour = folder.join("flows/date=2026-11-22/hour=13");
    fs::create_dir_all(&hour).unwrap();
    for file in 0..6 {
        let mut batch = RecordBatch::default();
        for second in 0..600 {
            let received_us = HOUR + file * 10 * MINUTE + second * 1_000_000;
            batch.push(&Record { received_us, octets: 1, packets: 1, ..Record::default() });
        }
        write_file(&hour.join(format!("serve-{file}.parquet")), [&batch], 1 << 20, 1).unwrap();
    }
    RecordStore::new(folder.to_owned(), None, Duration::from_secs(30))
}

fn range(filter: &str) -> RecordRange {
    let filter = FlowFilter::compile(filter, &RECORDS).unwrap();
    RecordRange { start_us: HOUR, end_us: HOUR + 60 * MINUTE, filter }
}

#[test]
fn a_query_ends_within_the_timeout_of_requests() {
    let store = |timeout| RecordStore::new("/".into(), None, Duration::from_secs(timeout)).max_time;
    assert_eq!((store(30), store(5)), (MAX_TIME, Duration::from_secs(4)));
}

#[test]
fn a_range_with_too_many_records_is_answered_for_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = RecordStore { max_records: 1_300, ..store(folder.path()) };
    let ((), selection) = store.query(&range(""), |_, _| Ok(())).unwrap();
    assert!(selection.is_partial());
    assert_eq!((selection.rows(), selection.covered_start_us()), (1_200, HOUR + 39 * MINUTE + 59_000_001));
}

#[test]
fn an_analysis_that_takes_too_long_is_repeated_with_fewer_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = RecordStore { max_time: Duration::from_millis(1_000), ..store(folder.path()) };
    let mut rows = Vec::new();
    // Takes a millisecond for each record.
    let slow = |selection: &Selection, progress: &mut Progress<'_>| {
        rows.push(selection.rows());
        for done in 0..selection.rows() {
            std::thread::sleep(Duration::from_millis(1));
            if progress(done, selection.rows()).is_break() {
                return Err(Stopped::Interrupted);
            }
        }
        Ok(())
    };
    // A file is read whole, and takes longer than what is left.
    let refused = store.query(&range(""), slow).map(drop);
    assert!(matches!(refused, Err(QueryError::Slow(_))), "{refused:?}");
    assert_eq!(rows, [3_600, 600]);
    // Thrice as fast.
    let (mut rows, store) = (Vec::new(), RecordStore { max_time: Duration::from_millis(6_000), ..store });
    let slow = |selection: &Selection, progress: &mut Progress<'_>| {
        rows.push(selection.rows());
        for done in 0..selection.rows() {
            std::thread::sleep(Duration::from_millis(1));
            // Sleeping takes longer than asked for, so the pace is not exactly known.
            if progress(done, selection.rows()).is_break() {
                return Err(Stopped::Interrupted);
            }
        }
        Ok(selection.covered_start_us())
    };
    let (covered_us, selection) = store.query(&range(""), slow).unwrap();
    assert!(selection.is_partial() && covered_us > HOUR && selection.rows() >= 600);
    assert_eq!((rows.len(), rows[0], rows[1]), (2, 3_600, selection.rows()));
}

#[test]
fn groups_that_do_not_fit_in_memory_are_those_of_fewer_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let mut rows = Vec::new();
    let most = |max: u64| {
        move |selection: &Selection, _: &mut Progress<'_>| match selection.rows() > max {
            true => Err(Stopped::Failed(QueryError::Memory("too many groups".to_owned()))),
            false => Ok(selection.rows()),
        }
    };
    let (found, selection) = store
        .query(&range(""), |selection, progress| {
            rows.push(selection.rows());
            most(1_000)(selection, progress)
        })
        .unwrap();
    assert_eq!((found, &rows[..], selection.is_partial()), (600, &[3_600, 1_800, 600][..], true));
    // A file is read whole.
    let refused = store.query(&range(""), most(500)).map(drop);
    assert!(matches!(refused, Err(QueryError::Memory(_))), "{refused:?}");
}

#[test]
fn one_query_runs_at_a_time_and_few_wait() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(store(folder.path()));
    let (begun, has_begun) = bounded(0);
    let (finish, may_finish) = bounded::<()>(0);
    let first = {
        let store = Arc::clone(&store);
        std::thread::spawn(move || {
            store.query(&range(""), |_, _| {
                begun.send(()).unwrap();
                may_finish.recv().unwrap();
                Ok(())
            })
        })
    };
    has_begun.recv().unwrap();
    let others: Vec<_> = (0..MAX_WAITING)
        .map(|_| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || store.query(&range(""), |_, _| Ok(())).map(drop))
        })
        .collect();
    while store.waiting.load(Ordering::Relaxed) < MAX_WAITING {
        std::thread::yield_now();
    }
    let refused = store.query(&range(""), |_, _| Ok(())).map(drop);
    assert!(matches!(refused, Err(QueryError::Busy)), "{refused:?}");
    finish.send(()).unwrap();
    first.join().unwrap().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap().unwrap());
    // Also after an error.
    let failed = |_: &Selection, _: &mut Progress<'_>| Err::<(), _>(Stopped::Failed(QueryError::Busy));
    assert!(store.query(&range(""), failed).is_err());
    assert!(store.query(&range("any"), |_, _| Ok(())).is_ok());
}
