//! Compares analyses of a selection with those of a store that has the selected records only.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use thalweg_measure::filter::RECORDS;
use thalweg_wire::flow_export::{Address, Format, Name, Record};

use super::*;
use crate::analyse::{self, FlowsetOrder, largest_flowsets};
use crate::store::parquet::{PAGE_ROWS, write_file};
use crate::top::dimension::Dimensions;
use crate::top::series::{Intervals, Series, series};
use crate::top::{Once, Options, Order, Top, top, top_of};

/// 2026-11-22 13:00:00 UTC.
const HOUR: i64 = 1_795_352_400_000_000;
const SECOND: i64 = 1_000_000;

/// Filters, each with the same condition on a record.
type Filter = (&'static str, fn(&Record) -> bool);

fn scaled(record: &Record, count: u64) -> u64 {
    count * u64::from(record.sampling_interval.max(1))
}

const FILTERS: [Filter; 9] = [
    ("", |_| true),
    ("src net 10.0.0.0/30", |r| r.source_address.as_v4().is_some_and(|a| a >> 2 == 0x0A00_0000 >> 2)),
    ("not ip 10.0.0.1", |r| {
        [r.source_address, r.destination_address].iter().all(|a| *a != Address::v4(0x0A00_0001))
    }),
    ("ipv6", |r| r.source_address.as_v4().is_none()),
    ("bytes > 2k and port 1", |r| {
        scaled(r, r.octets) > 2_000 && (r.source_port == 1 || r.destination_port == 1)
    }),
    ("bps > 1k or vlan 1", |r| {
        let duration = (r.flow_end_us - r.flow_start_us).max(0) as u64;
        let bits = scaled(r, r.octets) * 8 * 1_000_000;
        bits.checked_div(duration).unwrap_or(0) > 1_000 || r.vlan_id == 1
    }),
    ("flags S", |r| r.protocol == 6 && r.tcp_flags & 2 != 0),
    ("router ip 10.9.0.1 and observation domain id 1", |r| {
        r.exporter == Address::v4(0x0A09_0001) && r.observation_domain_id == 1
    }),
    ("duration > 5000 and not mask 24", |r| {
        r.flow_end_us - r.flow_start_us >= 5_001_000
            && r.source_prefix_length != 24
            && r.destination_prefix_length != 24
    }),
];

fn records() -> impl Strategy<Value = Record> {
    let address = || {
        prop_oneof![
            6 => (0..8u32).prop_map(|host| Address::v4(0x0A00_0000 + host)),
            1 => (1..3u128).prop_map(|host| Address(0x2001_0DB8 << 96 | host)),
        ]
    };
    let times = (0..3 * 3600 * SECOND, 0..90 * SECOND, 0..30 * SECOND);
    let key = (address(), address(), 0..3u16, 0..3u16, prop_oneof![Just(6u8), Just(17)]);
    let rest = (0..4_000u64, 0..9u64, 0..3u32, 0..2u32, 0..4u16, 0..2u16, prop_oneof![Just(0u8), Just(24)]);
    (times, key, rest).prop_map(|((received, length, delay), key, rest)| Record {
        received_us: HOUR + received,
        flow_end_us: HOUR + received - delay,
        flow_start_us: HOUR + received - delay - length,
        source_address: key.0,
        destination_address: key.1,
        source_port: key.2,
        destination_port: key.3,
        protocol: key.4,
        octets: rest.0,
        packets: rest.1,
        exporter: Address::v4(0x0A09_0000 + rest.2),
        observation_domain_id: rest.3,
        sampling_interval: if rest.2 == 2 { 10 } else { 1 },
        tcp_flags: rest.4,
        vlan_id: rest.5,
        source_prefix_length: rest.6,
        format: Format::Ipfix,
        ..Record::default()
    })
}

/// Writes a file of records that were received in one hour.
fn write(path: &Path, records: &[Record]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut batch = RecordBatch::default();
    records.iter().for_each(|record| batch.push(record));
    assert!(records.len() <= PAGE_ROWS);
    write_file(path, [&batch], PAGE_ROWS, 1).unwrap();
}

/// Writes a store with files of at most `rows` records, in the order of reception.
fn write_store(directory: &Path, records: &[Record], rows: usize) -> Vec<PathBuf> {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.received_us);
    let hour = |record: &Record| partition(Timestamp(record.received_us as u64 * 1000));
    let mut paths = Vec::new();
    for of_hour in records.chunk_by(|one, other| hour(one) == hour(other)) {
        let [date, hour] = hour(&of_hour[0]);
        for (number, records) in of_hour.chunks(rows).enumerate() {
            let path = directory.join("flows").join(&date).join(&hour).join(format!("a-{number:03}.parquet"));
            write(&path, records);
            paths.push(path);
        }
    }
    paths
}

fn query(directory: &Path, start_us: i64, end_us: i64) -> Query {
    let (directory, filter) = (directory.to_owned(), FlowFilter::default());
    Query { directory, start_us, end_us, filter, max_rows: u64::MAX }
}

fn select(query: &Query) -> Selection {
    Selection::new(query, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn options(by: &str, limit: usize) -> Options {
    let by: Dimensions = by.parse().unwrap();
    Options {
        key: by.key().to_vec(),
        order: Order::Bytes,
        limit: Some(limit),
        once: Some(Once { gap_us: 60 * SECOND, per_exporter: by.is_per_router() }),
        memory_bytes: 64 << 20,
        threads: 1,
    }
}

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Spreads the bytes of each record by definition: interval by interval.
fn spread(records: &[Record], intervals: Intervals) -> Vec<i64> {
    let mut bytes = vec![0; intervals.count];
    for record in records {
        let (start, end) = (record.flow_start_us, record.flow_end_us);
        let whole = scaled(record, record.octets) as i64;
        let interval = |at: i64| at.div_euclid(intervals.length_us);
        let mut left = whole;
        for index in interval(start)..=interval(end) {
            let (from, to) = (index * intervals.length_us, (index + 1) * intervals.length_us);
            let overlap = to.min(end) - from.max(start);
            let share = match index == interval(end) {
                true => left,
                false => (whole as f64 * overlap as f64 / (end - start).max(1) as f64).floor() as i64,
            };
            left -= share;
            let at = index - interval(intervals.first_us);
            if let Some(sum) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at)) {
                *sum += share;
            }
        }
        assert_eq!(left, 0);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_selection_equals_a_store_of_the_selected_records(
        records in prop::collection::vec(records(), 1..300),
        (text, condition) in prop::sample::select(FILTERS.to_vec()),
        (from, length, rows) in (0..3 * 3600i64, 1..3 * 3600i64, 1..200usize),
        by in prop::sample::select(vec!["src", "pair", "protocol,dst-port", "exporter", "egress-interface"]),
    ) {
        let (all, some) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_store(all.path(), &records, rows);
        let (start_us, end_us) = (HOUR + from * SECOND, HOUR + (from + length) * SECOND);
        let is_selected = |record: &&Record| (start_us..end_us).contains(&record.received_us) && condition(record);
        let selected: Vec<Record> = records.iter().filter(is_selected).copied().collect();
        let paths = write_store(some.path(), &selected, PAGE_ROWS);
        let filter = FlowFilter::compile(text, &RECORDS).unwrap();
        let selection = select(&Query { filter, ..query(all.path(), start_us, end_us) });
        prop_assert_eq!(selection.selected() as usize, selected.len());
        prop_assert!(!selection.is_partial() && selection.covered_start_us() == start_us);

        let options = options(by, 3);
        let found = top_of(&selection, &options, &mut go_on).unwrap();
        let expected = top(&paths, &options, &mut go_on).unwrap();
        prop_assert_eq!(&found, &expected);

        let whole = select(&query(some.path(), i64::MIN / 2, i64::MAX / 2));
        let intervals = Intervals::of_range(start_us, end_us, 60 * SECOND).unwrap();
        let of = |selection: &Selection, options: &Options| series(selection, options, intervals, &mut go_on).unwrap();
        let Series { groups, other, .. } = of(&selection, &options);
        let expected_series = of(&whole, &options);
        prop_assert_eq!((&groups, &other), (&expected_series.groups, &expected_series.other));
        let Top { groups: largest, total, .. } = expected;
        prop_assert_eq!(groups.iter().map(|group| group.total_bytes).collect::<Vec<_>>(),
            largest.iter().map(|group| group.bytes).collect::<Vec<_>>());
        let sum: i64 = groups.iter().chain(&other).map(|group| group.total_bytes).sum();
        prop_assert_eq!(sum, total.bytes);
        // Every record counts, so that the definition is short.
        let plain = Options { key: Vec::new(), once: None, ..options };
        let Series { groups, .. } = of(&selection, &plain);
        prop_assert_eq!(&groups[0].bytes, &spread(&selected, intervals));

        let rules = analyse::Options { elephants_only: false, ..analyse::Options::default() };
        let sets = |selection: &Selection, order, limit| {
            largest_flowsets(selection, (order, limit), &rules, &mut go_on).unwrap()
        };
        for order in [FlowsetOrder::Bytes, FlowsetOrder::Duration, FlowsetOrder::Rate, FlowsetOrder::Flows] {
            let (found, statistics) = sets(&selection, order, 5);
            let (mut expected, all) = sets(&whole, order, 10_000);
            prop_assert_eq!(expected.len() as u64, all.flowsets);
            prop_assert_eq!(&statistics, &all);
            expected.truncate(5);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_partial_selection_covers_the_end_of_the_range(
        records in prop::collection::vec(records(), 1..300),
        (max_rows, rows) in (1..300u64, 1..50usize),
    ) {
        let directory = tempfile::tempdir().unwrap();
        write_store(directory.path(), &records, rows);
        let (start_us, end_us) = (HOUR, HOUR + 3 * 3600 * SECOND);
        let selection = select(&Query { max_rows, ..query(directory.path(), start_us, end_us) });
        let from = selection.covered_start_us();
        let covered = records.iter().filter(|record| record.received_us >= from).count() as u64;
        prop_assert_eq!(selection.selected(), covered);
        prop_assert_eq!(selection.is_partial(), from > start_us);
        // A file is read whole, even if it has more rows.
        prop_assert!(selection.rows() <= max_rows.max(rows as u64), "{} of {max_rows}", selection.rows());
        if !selection.is_partial() {
            prop_assert_eq!(selection.selected() as usize, records.len());
        }
        let again = select(&query(directory.path(), from, end_us));
        let options = options("src", 9);
        let top = |selection: &Selection| top_of(selection, &options, &mut go_on).unwrap();
        prop_assert_eq!(top(&selection), top(&again));
    }
}

fn minute(minute: i64) -> Record {
    let received_us = HOUR + minute * 60 * SECOND;
    let (flow_start_us, flow_end_us) = (received_us - SECOND, received_us);
    Record { received_us, flow_start_us, flow_end_us, octets: 100, packets: 1, ..Record::default() }
}

#[test]
fn files_that_cannot_be_read_are_left_out_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..180).map(minute).collect();
    let paths = write_store(directory.path(), &records, 30);
    fs::write(&paths[1], "not Parquet").unwrap();
    // A damaged page: the footer is whole.
    let mut bytes = fs::read(&paths[2]).unwrap();
    let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
    let end = bytes.len() - 8 - footer;
    bytes[4..end].fill(0xFF);
    fs::write(&paths[2], bytes).unwrap();
    let mut selection = select(&query(directory.path(), HOUR, HOUR + 3 * 3600 * SECOND));
    assert_eq!((selection.files(), selection.rows(), selection.unreadable().len()), (5, 150, 1));
    assert_eq!(selection.unreadable()[0].path, paths[1]);
    let options = options("src", 9);
    let found = loop {
        match top_of(&selection, &options, &mut go_on) {
            Err(crate::top::TopError::Read(error)) => assert!(selection.leave_out_file(&error), "{error}"),
            found => break found.unwrap(),
        }
    };
    assert_eq!((found.total.flows, selection.rows(), selection.selected()), (120, 120, 120));
    let unreadable: Vec<&Path> = selection.unreadable().iter().map(|file| file.path.as_path()).collect();
    assert_eq!(unreadable, [&paths[1], &paths[2]]);
    assert!(!selection.unreadable()[1].error.contains("flows"), "{:?}", selection.unreadable());
    // It is found earlier if the times of reception have to be read.
    let selection = select(&query(directory.path(), HOUR + 65 * 60 * SECOND, HOUR + 3 * 3600 * SECOND));
    assert_eq!((selection.unreadable().len(), selection.rows(), selection.selected()), (1, 90, 90));
}

#[test]
fn a_store_without_flows_has_no_records() {
    let directory = tempfile::tempdir().unwrap();
    let selection = select(&query(directory.path(), 0, i64::MAX / 2));
    assert_eq!((selection.files(), selection.rows(), selection.is_partial()), (0, 0, false));
    assert_eq!(top_of(&selection, &options("src", 9), &mut go_on).unwrap().groups, []);
    let intervals = Intervals::of_range(HOUR, HOUR + 60 * SECOND, 30 * SECOND).unwrap();
    let found = series(&selection, &options("src", 9), intervals, &mut go_on).unwrap();
    assert_eq!((found.groups, found.other), (Vec::new(), None));
    fs::write(directory.path().join("flows"), "a file").unwrap();
    let refused = Selection::new(&query(directory.path(), 0, 1), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(SelectError::Directory { .. })), "{refused:?}");
}

#[test]
fn a_selection_that_is_stopped_while_it_lists_files_is_partial_and_later_fails() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..180).map(minute).collect();
    write_store(directory.path(), &records, 30);
    let query = query(directory.path(), HOUR, HOUR + 3 * 3600 * SECOND);
    let stopped = Selection::new(&query, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.covered_start_us(), stopped.selected()), (HOUR + 2 * 3600 * SECOND, 60));
    let filter = FlowFilter::compile("any", &RECORDS).unwrap();
    let mut later = |rows| if rows == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let refused = Selection::new(&Query { filter, ..query }, &mut later);
    assert!(matches!(refused, Err(SelectError::Interrupted)), "{refused:?}");
}

/// A file that the version before 3 of the columns wrote: 600 records of `thalweg synth`.
const VERSION_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-2.parquet");

#[test]
fn files_of_an_earlier_version_have_no_values_in_new_columns() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("flows/date=2014-06-19/hour=13");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(VERSION_2, folder.join("a.parquet")).unwrap();
    let (start_us, end_us) = (1_403_182_800_000_000, 1_403_186_400_000_000);
    let new = Record {
        received_us: start_us + 5,
        source_mac: "02:00:00:00:00:01".parse().unwrap(),
        source_country: Name::of("DE").unwrap(),
        mpls_labels: "16-0-0 100-5-1".parse().unwrap(),
        ..Record::default()
    };
    write(&folder.join("b.parquet"), &[new]);
    let selected = |text: &str| {
        let filter = FlowFilter::compile(text, &RECORDS).unwrap();
        let selection = select(&Query { filter, ..query(directory.path(), start_us, end_us) });
        assert!(selection.unreadable().is_empty(), "{:?}", selection.unreadable());
        selection.selected()
    };
    assert_eq!((selected("any"), selected("geo DE"), selected("not src geo DE")), (601, 1, 600));
    assert_eq!((selected("mpls label2 100"), selected("mpls eos 0"), selected("ttl 0")), (1, 600, 601));
    assert_eq!(
        (selected("if name ''"), selected("in src mac 2:0:0:0:0:1"), selected("bgpnext ip 192.0.2.1")),
        (601, 1, 0)
    );
    let filter = FlowFilter::default();
    let selection = select(&Query { filter, ..query(directory.path(), start_us, end_us) });
    for (by, groups) in [("src-mac", 2), ("country", 2), ("ingress-interface-name", 67), ("egress-vrf", 1)] {
        let found = top_of(&selection, &Options { once: None, ..options(by, 100) }, &mut go_on).unwrap();
        assert!(
            found.total_groups as usize <= groups && found.total_groups > 0,
            "{by}: {}",
            found.total_groups
        );
    }
}
