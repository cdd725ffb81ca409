use std::path::Path;

use thalweg_api::{HostSample, ReportRows, Transfer, TransferDirection};
use thalweg_wire::Nanos;

use super::*;

const OPTIONS: TransferOptions =
    TransferOptions { rows_per_second: 1_000, max_hosts: 2, report_age: Nanos::ZERO, mail: None };

fn store(folder: &Path) -> StoreOptions {
    StoreOptions { name: "serve".to_owned(), ..StoreOptions::new(folder) }
}

fn open(folder: &Path) -> Transfers {
    Transfers::open(&store(folder), OPTIONS, None).unwrap()
}

fn transfer(name: &str) -> Transfer {
    Transfer {
        transfer: name.to_owned(),
        application: "rsync".to_owned(),
        direction: TransferDirection::Send,
        user: String::new(),
        file: String::new(),
        src: None,
        dst: Some("2001:db8::1".parse().unwrap()),
        src_port: 0,
        dst_port: 873,
        start_us: 1,
        end_us: 2,
        bytes: 3,
        streams: 1,
        send_buffer_bytes: 0,
        receive_buffer_bytes: 0,
        congestion_control: String::new(),
        error: String::new(),
    }
}

fn report(host: &str, number: u64) -> AgentReport {
    AgentReport {
        host: host.to_owned(),
        queue: "q1".to_owned(),
        number,
        sent_us: 0,
        rows: ReportRows::Transfers(vec![transfer(&format!("{host}-{number}")), transfer("other")]),
    }
}

/// Finishes the stores, and returns the number of transfers that they wrote to files, now or when they were opened.
fn written(transfers: &Transfers) -> u64 {
    let [(dataset, statistics), ..] = transfers.lock().stores.finish(realtime());
    assert_eq!((dataset, statistics.in_spool), ("transfers", 0));
    statistics.written
}

#[test]
fn a_repeated_report_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = open(folder.path());
    let answer = |number| transfers.report(None, report("a", number)).unwrap();
    assert_eq!(answer(1), ReportAnswer { acknowledged: 1, duplicate: false });
    assert_eq!(answer(1), ReportAnswer { acknowledged: 1, duplicate: true });
    assert_eq!(answer(4), ReportAnswer { acknowledged: 4, duplicate: false });
    let [host] = &transfers.hosts()[..] else { panic!("one host") };
    let counts = TransferHostCounts { reports: 2, rows: 4, duplicates: 1, missing: 2, refused: 0 };
    assert_eq!((host.number, host.counts), (4, counts));
    assert_eq!(written(&transfers), 4);
}

#[test]
fn a_killed_daemon_knows_what_it_stored() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = open(folder.path());
    transfers.report(None, report("a", 1)).unwrap();
    // Not finished: rows are in the spool only, as after kill -9.
    drop(transfers);
    let transfers = open(folder.path());
    assert!(transfers.report(None, report("a", 1)).unwrap().duplicate);
    assert!(!transfers.report(None, report("a", 2)).unwrap().duplicate);
    assert_eq!(written(&transfers), 4);
}

/// The report was announced; the daemon was killed before its rows were stored, or between that and the acknowledgement.
#[test]
fn a_report_in_doubt_is_looked_up() {
    for was_stored in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let transfers = open(folder.path());
        transfers.report(None, report("a", 1)).unwrap();
        let mut state = transfers.lock();
        let received_us = (realtime().0 / 1_000) as i64;
        let announced = Announced { queue: "q1".to_owned(), number: 2, received_us };
        let entry = Entry { announced: Some(announced), ..state.ledger.entry("a").unwrap().clone() };
        state.ledger.set("a", entry).unwrap();
        if was_stored {
            let origin = Origin { received_us, reporter: "a".into(), queue: "q1".into(), report: 2 };
            let commit = state.stores.commit(report("a", 2).rows, &origin, realtime(), COMMIT_TIMEOUT);
            commit.unwrap().wait(COMMIT_TIMEOUT).unwrap().unwrap();
        }
        drop(state);
        drop(transfers);
        let transfers = open(folder.path());
        assert_eq!(transfers.report(None, report("a", 2)).unwrap().duplicate, was_stored);
        assert!(transfers.report(None, report("a", 2)).unwrap().duplicate);
        assert_eq!(written(&transfers), 4);
    }
}

#[test]
fn a_new_queue_starts_at_any_number() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = open(folder.path());
    transfers.report(None, report("a", 7)).unwrap();
    let other = AgentReport { queue: "q2".to_owned(), ..report("a", 1) };
    assert!(!transfers.report(None, other.clone()).unwrap().duplicate);
    assert!(transfers.report(None, other).unwrap().duplicate);
}

#[test]
fn a_token_reports_for_its_host_only() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = open(folder.path());
    let refusal = transfers.report(Some("b"), report("a", 1)).unwrap_err();
    assert_eq!(
        (refusal.code, &*refusal.detail),
        (Code::Forbidden, "the token is that of \"b\", the report that of \"a\"")
    );
    assert!(transfers.report(Some("a"), report("a", 1)).is_ok());
    assert!(transfers.report(None, report("../a", 1)).unwrap_err().detail.starts_with("invalid host name"));
}

#[test]
fn invalid_and_excessive_reports_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = open(folder.path());
    let refusal = |rows| {
        let error = transfers.report(None, AgentReport { rows, ..report("a", 1) }).unwrap_err();
        (error.code, error.detail)
    };
    let reversed = Transfer { end_us: 0, ..transfer("t") };
    assert_eq!(
        refusal(ReportRows::Transfers(vec![transfer("t"), reversed])),
        (Code::BadBody, "row 1: the end is before the start".to_owned())
    );
    let long = Transfer { file: "x".repeat(1_025), ..transfer("t") };
    assert!(refusal(ReportRows::Transfers(vec![long])).1.starts_with("row 0: text of 1025 bytes"));
    assert_eq!(refusal(ReportRows::Hosts(Vec::new())).1, "0 rows: expected 1 to 10000");
    let samples = |count| ReportRows::HostMetrics(vec![HostSample::default(); count]);
    assert_eq!(refusal(samples(10_001)).1, "10001 rows: expected 1 to 10000");
    // A minute of 1,000 rows per second.
    let report_of = |number, count| AgentReport { rows: samples(count), ..report("a", number) };
    for number in 1..=6 {
        transfers.report(None, report_of(number, 10_000)).unwrap();
    }
    let error = transfers.report(None, report_of(7, 10_000)).unwrap_err();
    assert_eq!(error.code, Code::TooManyRequests);
    assert!(error.retry_after.is_some());
    assert_eq!(transfers.hosts()[0].counts.refused, 5);
    transfers.report(None, report("b", 1)).unwrap();
    assert!(transfers.report(None, report("c", 1)).unwrap_err().detail.contains("transfers.max_hosts"));
}

#[test]
fn a_full_spool_makes_agents_wait_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let full = StoreOptions { spool_bytes: 1, ..store(folder.path()) };
    let transfers = Transfers::open(&full, OPTIONS, None).unwrap();
    // The first segment finds room, because its size is checked before.
    transfers.report(None, report("a", 1)).unwrap();
    for _ in 0..2 {
        let error = transfers.report(None, report("a", 2)).unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.retry_after.is_some() && error.detail.contains("spool is full"), "{error:?}");
    }
    let counts = transfers.hosts()[0].counts;
    assert_eq!((counts.reports, counts.refused), (1, 0));
    let [(_, statistics), ..] = transfers.statistics();
    assert_eq!((statistics.lost.total(), statistics.records), (0, 2), "the agent keeps them");
    drop(transfers);
    let transfers = open(folder.path());
    assert!(!transfers.report(None, report("a", 2)).unwrap().duplicate);
    assert_eq!(written(&transfers), 4);
}
