//! Compares the analysis with a naive one on the same records.

pub(crate) mod files;
mod oracle;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use thalweg_wire::flow_export::batch::UNKNOWN_DIRECTION;
use thalweg_wire::flow_export::{Address, Record};

use super::flow::Flow;
use super::flowset::Flowset;
use super::{AnalyseError, Options, Outputs, Rule, Statistics, analyse};
use files::{LAYOUTS, Layout};

const SECOND: i64 = 1_000_000;

/// Results of an analysis.
#[derive(Debug, PartialEq)]
struct Results {
    flows: Vec<Flow>,
    flowsets: Vec<(Flowset, i64, Option<f64>)>,
    statistics: Statistics,
}

fn run(paths: &[PathBuf], directory: &Path, options: &Options) -> Result<Results, AnalyseError> {
    let (flows, flowsets) = (directory.join("flows.parquet"), directory.join("flowsets.parquet"));
    let outputs = Outputs { flows: Some(flows.clone()), flowsets: Some(flowsets.clone()) };
    let (mut last, mut all) = (0, 0);
    let statistics = analyse(paths, &outputs, options, &mut |done, of| {
        assert!(last <= done && done <= of);
        (last, all) = (done, of);
        ControlFlow::Continue(())
    })?;
    assert_eq!(last, all);
    Ok(Results { flows: files::flows(&flows), flowsets: files::flowsets(&flowsets), statistics })
}

/// Compares with the oracle.
fn check(records: &[Record], options: &Options, mut results: Results) {
    let mut flows = oracle::flows(records, options);
    let sets = oracle::flowsets(&flows, options);
    let order = |f: &Flow| {
        let addresses = (f.source_address, f.destination_address);
        (addresses, f.source_port, f.destination_port, f.protocol, f.flow_start_us)
    };
    flows.sort_by_key(order);
    results.flows.sort_by_key(order);
    assert_eq!(results.flows, flows);
    results.flowsets.sort_by_key(|(s, ..)| (s.source_address, s.destination_address, s.flow_start_us));
    let expected: Vec<_> = sets
        .iter()
        .map(|set| {
            let duration = set.flow_end_us - set.flow_start_us;
            (*set, duration * 1000, (duration > 0).then(|| (set.octets * 8) as f64 * 1e6 / duration as f64))
        })
        .collect();
    assert_eq!(results.flowsets, expected);
    let count = |holds: fn(&Record) -> bool| records.iter().filter(|record| holds(record)).count() as u64;
    let statistics = &results.statistics;
    assert_eq!(statistics.records, records.len() as u64);
    assert_eq!(statistics.swapped_times, count(|record| record.flow_end_us < record.flow_start_us));
    assert_eq!(statistics.flows, flows.len() as u64);
    assert_eq!(statistics.elephants, flows.iter().filter(|flow| flow.elephant).count() as u64);
    assert_eq!(statistics.flowsets, sets.len() as u64);
    assert_eq!(statistics.single_flows, sets.iter().filter(|set| set.flows == 1).count() as u64);
}

fn addresses() -> impl Strategy<Value = Address> {
    prop_oneof![
        6 => (0..3u32).prop_map(|host| Address::v4(0x0A00_0000 + host)),
        2 => (0..2u128).prop_map(|host| Address(0x2001_0DB8 << 96 | host)),
        1 => Just(Address::NONE),
    ]
}

/// Records with few keys, points and times, so that equal times, overlaps, gaps, chains and duplicates occur.
fn records() -> impl Strategy<Value = Record> {
    let point = (
        prop_oneof![Just(9u32), Just(10), Just(200)],
        0..2u32,
        prop_oneof![Just(0), Just(1), Just(UNKNOWN_DIRECTION)],
    );
    let key = (addresses(), addresses(), 0..2u16, 0..2u16, prop_oneof![Just(6u8), Just(17)]);
    let times = (0..600i64, prop_oneof![4 => 0..90i64, 1 => Just(0), 1 => -20..0i64], 0..3i64);
    let sums = (
        prop_oneof![0..1_000u64, 0..2_000_000_000u64],
        0..100u64,
        prop_oneof![Just(0u32), Just(1), Just(10)],
    );
    let fields = (0..3u32, 0..3u32, 0..32u16);
    (point, key, times, sums, fields).prop_map(|(point, key, (start, length, odd), sums, fields)| Record {
        exporter: Address::v4(0x0A00_0000 + point.0),
        observation_domain_id: point.1,
        flow_direction: point.2,
        source_address: key.0,
        destination_address: key.1,
        source_port: key.2,
        destination_port: key.3,
        protocol: key.4,
        flow_start_us: 1_790_000_000 * SECOND + start * SECOND + odd,
        flow_end_us: 1_790_000_000 * SECOND + (start + length) * SECOND,
        octets: sums.0,
        packets: sums.1,
        sampling_interval: sums.2,
        source_as: fields.0,
        destination_as: fields.1,
        tcp_flags: fields.2,
        ..Record::default()
    })
}

fn options() -> impl Strategy<Value = Options> {
    (0..40i64, 0..3_000_000_000i64, 1..90i64, 0..60i64, any::<bool>(), any::<bool>()).prop_map(
        |(gap, threshold_bytes, window, tau, chain, elephants_only)| Options {
            gap_us: gap * SECOND,
            threshold_bytes,
            window_us: window * SECOND,
            tau_us: tau * SECOND,
            rule: if chain { Rule::Chain } else { Rule::Span },
            elephants_only,
            ..Options::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn results_match_the_oracle_for_all_file_layouts(
        records in prop::collection::vec(records(), 1..1500),
        options in options(),
        layout in prop::sample::select(&LAYOUTS[..]),
        group in 100..2000usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (some, others) = records.split_at(records.len() / 3);
        let paths = [
            files::write(directory.path().join("1.parquet"), some, group, layout),
            files::write(directory.path().join("2.parquet"), others, group, layout),
        ];
        let results = run(&paths, directory.path(), &options).unwrap();
        check(&records, &options, results);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn results_do_not_depend_on_memory_threads_or_input_order(
        records in prop::collection::vec(records(), 5000..9000),
        options in options(),
        threads in 2..4usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = files::write(directory.path().join("1.parquet"), &records, 3000, Layout::Dictionary);
        let whole = run(std::slice::from_ref(&path), directory.path(), &options).unwrap();
        prop_assert_eq!(whole.statistics.spilled_bytes, 0);

        let small = Options { memory_bytes: 1 << 16, ..options.clone() };
        let mut spilled = run(&[path], directory.path(), &small).unwrap();
        prop_assert!(spilled.statistics.spilled_bytes > 64 * 4000);
        spilled.statistics.spilled_bytes = 0;
        spilled.statistics.largest_key = 0;
        spilled.statistics.largest_pair = 0;
        prop_assert_eq!(&spilled, &whole);

        let backwards: Vec<Record> = records.iter().rev().copied().collect();
        let path = files::write(directory.path().join("2.parquet"), &backwards, 1000, Layout::Dictionary);
        for memory_bytes in [1 << 30, 1 << 17] {
            let many = Options { threads, memory_bytes, ..options.clone() };
            let mut many = run(std::slice::from_ref(&path), directory.path(), &many).unwrap();
            many.statistics.spilled_bytes = 0;
            many.statistics.largest_key = 0;
            many.statistics.largest_pair = 0;
            prop_assert_eq!(&many, &whole);
        }
        check(&records, &options, whole);
    }
}

/// Returns a record of one flow between two hosts.
fn record(start: i64, end: i64, octets: u64) -> Record {
    Record {
        exporter: Address::v4(0x0A00_0009),
        source_address: Address::v4(0x0A00_0001),
        destination_address: Address::v4(0x0A00_0002),
        flow_start_us: start * SECOND,
        flow_end_us: end * SECOND,
        octets,
        packets: 1,
        ..Record::default()
    }
}

fn analysed(records: &[Record], options: &Options) -> Results {
    let directory = tempfile::tempdir().unwrap();
    let path = files::write(directory.path().join("1.parquet"), records, 1000, Layout::Dictionary);
    run(&[path], directory.path(), options).unwrap()
}

#[test]
fn records_join_up_to_the_gap_after_the_latest_end() {
    // The second record ends before the first; the latest end so far counts.
    let mut records = [record(0, 100, 1), record(10, 20, 2), record(160, 170, 4)];
    let results = analysed(&records, &Options::default());
    assert_eq!(results.flows.iter().map(|flow| flow.octets).collect::<Vec<_>>(), [7]);
    records[2].flow_start_us += 1;
    let results = analysed(&records, &Options::default());
    assert_eq!(results.flows.iter().map(|flow| flow.octets).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_long_chain_of_flows_is_several_flowsets_with_span_and_one_with_chain() {
    let starts = [0, 6, 10, 16, 20, 31];
    let flows = starts
        .iter()
        .zip(1..)
        .map(|(&start, port)| Record { source_port: port, ..record(start, start + 5, 10) });
    let flows: Vec<Record> = flows.collect();
    let options = Options { elephants_only: false, ..Options::default() };
    let counts = |rule| -> Vec<i64> {
        let results = analysed(&flows, &Options { rule, ..options.clone() });
        results.flowsets.iter().map(|(set, ..)| set.flows).collect()
    };
    // Ten seconds from 0, from 16, and from 31.
    assert_eq!(counts(Rule::Span), [3, 2, 1]);
    // 20 to 31 is more than ten seconds.
    assert_eq!(counts(Rule::Chain), [5, 1]);
}

#[test]
fn excess_memory_is_reported() {
    let options = Options { elephants_only: false, memory_bytes: 1 << 16, ..Options::default() };
    let flows: Vec<Record> = (0..1000).map(|port| Record { source_port: port, ..record(0, 5, 10) }).collect();
    let statistics = analysed(&flows, &options).statistics;
    assert_eq!((statistics.largest_key, statistics.largest_pair), (0, 1000));
    let records: Vec<Record> = (0..1000).map(|start| record(start, start + 5, 10)).collect();
    let statistics = analysed(&records, &options).statistics;
    assert_eq!((statistics.largest_key, statistics.largest_pair), (1000, 0));
}

#[test]
fn a_flow_without_duration_has_no_rate() {
    let options = Options { elephants_only: false, ..Options::default() };
    let results = analysed(&[record(5, 5, 10)], &options);
    assert_eq!(results.flowsets[0].1, 0);
    assert_eq!(results.flowsets[0].2, None);
}

#[test]
fn flows_whose_octets_saturate_are_counted() {
    let huge = Record { octets: 1 << 62, sampling_interval: 1000, ..record(0, 1, 0) };
    let results = analysed(&[huge, record(2, 3, 5)], &Options::default());
    assert_eq!(results.flows[0].octets, i64::MAX);
    assert_eq!(results.statistics.saturated, 1);
}

#[test]
fn errors_name_the_file_and_the_expected_value() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let failed = |path: PathBuf| run(&[path], directory.path(), &Options::default()).unwrap_err().to_string();

    assert!(failed(path("none.parquet")).contains("none.parquet"));
    std::fs::write(path("text.parquet"), "no Parquet at all").unwrap();
    assert!(failed(path("text.parquet")).contains("text.parquet"));

    let mut bytes =
        std::fs::read(files::write(path("1.parquet"), &[record(0, 1, 5); 100], 100, Layout::Plain)).unwrap();
    let at = bytes.windows(8).position(|text| text == b"10.0.0.9").unwrap();
    bytes[at + 4] = b'x';
    std::fs::write(path("address.parquet"), bytes).unwrap();
    let error = failed(path("address.parquet"));
    assert!(error.contains("column exporter") && error.contains("dotted decimal"), "{error}");

    let flows = path("flows.parquet");
    run(&[path("1.parquet")], directory.path(), &Options::default()).unwrap();
    let error = failed(flows);
    assert_eq!(
        error.split(": ").skip(1).collect::<Vec<_>>().join(": "),
        "column exporter: expected STRING, found no such column"
    );
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".partial")), "{left:?}");
}

#[test]
fn a_value_out_of_range_is_refused_with_its_row() {
    let directory = tempfile::tempdir().unwrap();
    let mut records = vec![record(0, 1, 5); 9000];
    records[8321].octets = u64::MAX;
    for layout in LAYOUTS {
        let path = files::write(directory.path().join("1.parquet"), &records, 5000, layout);
        let error = run(&[path], directory.path(), &Options::default()).unwrap_err().to_string();
        assert!(
            error.contains("column bytes, row 8321: ") && error.ends_with("found -1"),
            "{layout:?}: {error}"
        );
    }
}

#[test]
fn a_progress_callback_can_stop_the_analysis_without_leftovers() {
    let directory = tempfile::tempdir().unwrap();
    let path = files::write(
        directory.path().join("1.parquet"),
        &vec![record(0, 1, 5); 20_000],
        5000,
        Layout::Dictionary,
    );
    for (threads, limit) in [(1, 1), (1, 30_000), (3, 1)] {
        let outputs = Outputs { flows: Some(directory.path().join("flows.parquet")), flowsets: None };
        let options = Options { threads, ..Options::default() };
        let stopped =
            analyse(std::slice::from_ref(&path), &outputs, &options, &mut |done, _| match done < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
        assert!(matches!(stopped, Err(AnalyseError::Interrupted)), "{stopped:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn options_out_of_range_are_named() {
    let options = Options { threads: 0, ..Options::default() };
    let error =
        analyse(&[], &Outputs::default(), &options, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.to_string(), "threads: expected 1 to 256, found 0");
}
