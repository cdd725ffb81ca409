//! Compares records with the ground truth.

use std::collections::BTreeMap;

use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::{Nanos, Timestamp};

use super::*;

fn all(generator: &mut Generator) -> RecordBatch {
    let mut batch = RecordBatch::default();
    while generator.fill(&mut batch, 7_777) > 0 {}
    batch
}

fn small() -> Options {
    Options {
        records: 40_000,
        flowsets: Some(40),
        single_flows: Some(20),
        ordinary: Some(20),
        chains: 2,
        duration: Nanos::from_secs(20 * 3_600),
        ..Options::default()
    }
}

#[test]
fn the_requested_number_of_records_is_in_order_of_reception() {
    let mut generator = Generator::new(small(), 1).unwrap();
    let batch = all(&mut generator);
    batch.check_invariants();
    assert_eq!((batch.len(), generator.rows_left()), (40_000, 0));
    assert!(batch.received_us.is_sorted());
    assert_eq!(generator.fill(&mut RecordBatch::default(), 1), 0);
}

#[test]
fn the_same_seed_gives_the_same_records_at_any_batch_size() {
    let batch = all(&mut Generator::new(small(), 5).unwrap());
    let mut again = RecordBatch::default();
    let mut generator = Generator::new(small(), 5).unwrap();
    while generator.fill(&mut again, 1_000) > 0 {}
    assert!(batch == again);
    assert!(batch != all(&mut Generator::new(small(), 6).unwrap()));
}

#[test]
fn a_record_is_received_within_five_seconds_of_the_end_of_its_entry() {
    let options = small();
    let batch = all(&mut Generator::new(options, 1).unwrap());
    for row in 0..batch.len() {
        let record = batch.record(row);
        let deadline_us = match record.flow_end_reason {
            flow_cache::IDLE => record.flow_end_us + 15_000_000,
            _ => record.flow_start_us + 60_000_000,
        };
        let delay_us = record.received_us - deadline_us;
        // Times are rounded down to a millisecond.
        assert!((0..=5_001_000).contains(&delay_us), "{delay_us} {record:?}");
        assert!(record.flow_start_us <= record.flow_end_us);
        assert!(record.flow_end_us - record.flow_start_us < 60_000_000 + 1_000);
        assert!(record.packets > 0 && record.octets >= 40 * record.packets);
    }
}

/// Returns the records of each planted flow, matched by key.
fn planted<'a>(truth: &'a Truth, batch: &RecordBatch) -> Vec<(&'a PlantedFlow, Vec<Record>)> {
    let key = |flow: &PlantedFlow| (flow.source_address, flow.destination_address, flow.source_port);
    let mut flows: BTreeMap<_, _> = truth.flows.iter().map(|flow| (key(flow), (flow, Vec::new()))).collect();
    assert_eq!(flows.len(), truth.flows.len(), "keys are unique");
    for record in (0..batch.len()).map(|row| batch.record(row)) {
        let key = (record.source_address, record.destination_address, record.source_port);
        if let Some((_, records)) = flows.get_mut(&key) {
            records.push(record);
        }
    }
    flows.into_values().collect()
}

#[test]
fn without_sampling_each_router_counts_each_planted_flow_exactly() {
    let options =
        Options { sampling_interval: 1, flowsets: Some(5), records: 10_000, meters_egress: true, ..small() };
    let mut generator = Generator::new(options, 3).unwrap();
    let batch = all(&mut generator);
    for (flow, records) in planted(generator.truth(), &batch) {
        let mut points: BTreeMap<_, (u64, u64, i64, i64)> = BTreeMap::new();
        for record in &records {
            let none = (0, 0, i64::MAX, i64::MIN);
            let point = points.entry((record.exporter, record.flow_direction)).or_insert(none);
            *point = (
                point.0 + record.octets,
                point.1 + record.packets,
                point.2.min(record.flow_start_us),
                point.3.max(record.flow_end_us),
            );
        }
        assert_eq!(points.len(), 6);
        let tick = |time_us: i64| time_us / 1_000 * 1_000;
        let whole = (flow.octets, flow.packets, tick(flow.flow_start_us), tick(flow.flow_end_us));
        assert!(points.values().all(|&point| point == whole), "{flow:?} {points:?}");
    }
}

/// Over about 200 flows and three routers each: the relative standard deviation of a flow's scaled size at a router is
/// sqrt((1 - p) / (n p)). The squared deviations over their variance sum to chi-square with as many degrees of freedom,
/// within six standard deviations (a false alarm below 1e-7).
#[test]
fn sampled_sizes_have_the_variance_of_sampling() {
    let mut generator = Generator::new(small(), 11).unwrap();
    let batch = all(&mut generator);
    let (mut chi_square, mut freedom) = (0.0, 0.0);
    for (flow, records) in planted(generator.truth(), &batch) {
        assert_eq!(records.len() as u64, flow.records, "predicted records");
        assert_eq!(records.iter().map(|record| record.packets).sum::<u64>(), flow.sampled_packets);
        for &router in &flow.path {
            let of_router = records.iter().filter(|record| record.exporter == exporter(router));
            let sampled = of_router.map(|record| record.packets).sum::<u64>() as f64;
            let expected = flow.packets as f64 / 1e3;
            chi_square += (sampled - expected).powi(2) / (expected * 0.999);
            freedom += 1.0;
        }
    }
    let deviation: f64 = (chi_square - freedom) / f64::sqrt(2.0 * freedom);
    assert!(deviation.abs() < 6.0, "{chi_square} over {freedom}");
}

#[test]
fn only_elephants_move_more_than_a_gigabyte_in_a_minute() {
    let generator = Generator::new(small(), 2).unwrap();
    for (flow, truth) in generator.flows.iter().zip(&generator.truth.flows) {
        let minute = flow.pace.before(60 * SECOND_NS) * 1_500;
        assert_eq!(minute > 1_400_000_000, truth.kind != Kind::Ordinary, "{truth:?}");
        assert!(truth.kind != Kind::Ordinary || truth.octets < 1_000_000_000);
    }
}

#[test]
fn flowsets_have_the_requested_flows_within_the_spread() {
    let generator = Generator::new(small(), 2).unwrap();
    let transfers = generator.truth().transfers();
    let numbers: Vec<u32> = transfers.iter().take(40).map(|transfer| transfer.flows).collect();
    assert_eq!(numbers, [2, 4, 2, 8, 2, 4, 2, 3, 4, 16].repeat(4));
    let kinds = |kind| transfers.iter().filter(|transfer| transfer.kind == kind).count();
    let all = [Kind::Flowset, Kind::Single, Kind::Ordinary, Kind::Chain].map(kinds);
    assert_eq!(all, [40, 20, 20, 2]);
    for flows in generator.truth().flows.chunk_by(|one, next| one.transfer == next.transfer) {
        let gaps = flows.windows(2).map(|two| two[1].flow_start_us - two[0].flow_start_us);
        let span_us = flows[flows.len() - 1].flow_start_us - flows[0].flow_start_us;
        match flows[0].kind {
            Kind::Chain => assert!(gaps.eq([6_000_000; 5])),
            _ => assert!(span_us <= 2_000_000),
        }
    }
}

#[test]
fn transfers_of_two_hosts_start_apart_and_some_span_midnight() {
    let options = Options { across_midnight: Some(10), ..small() };
    let generator = Generator::new(options.clone(), 4).unwrap();
    let midnight_us = options.midnight_us().unwrap();
    assert_eq!(midnight_us, 1_403_222_400_000_000);
    let across = |transfer: &&PlantedTransfer| {
        transfer.flow_start_us < midnight_us && transfer.flow_end_us > midnight_us
    };
    assert!(generator.truth().transfers().iter().take(10).filter(across).count() == 10);
    let mut starts: BTreeMap<_, Vec<(i64, u32)>> = BTreeMap::new();
    for flow in &generator.truth().flows {
        let pair = (flow.source_address, flow.destination_address);
        starts.entry(pair).or_default().push((flow.flow_start_us, flow.transfer));
    }
    for starts in starts.values_mut() {
        starts.sort_unstable();
        let is_apart = |two: &[(i64, u32)]| two[0].1 == two[1].1 || two[1].0 - two[0].0 > 30_000_000;
        assert!(starts.windows(2).all(is_apart), "{starts:?}");
    }
}

#[test]
fn the_truth_is_written_as_csv_and_json() {
    let generator = Generator::new(small(), 2).unwrap();
    let (mut flows, mut transfers, mut json) = (Vec::new(), Vec::new(), Vec::new());
    generator.truth().write_flows(&mut flows).unwrap();
    generator.truth().write_transfers(&mut transfers).unwrap();
    generator.truth().write_json(&mut json).unwrap();
    let rows = |csv: &[u8]| {
        let columns: Vec<usize> =
            csv.split(|&byte| byte == b'\n').map(|row| row.split(|&byte| byte == b',').count()).collect();
        assert!(columns[..columns.len() - 1].iter().all(|&count| count == columns[0]), "{columns:?}");
        columns.len() - 2
    };
    assert_eq!((rows(&flows), rows(&transfers)), (generator.truth().flows.len(), 82));
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let octets = |of: &serde_json::Value| of["bytes"].as_u64().unwrap();
    for transfer in json["transfers"].as_array().unwrap() {
        let flows = transfer["flows"].as_array().unwrap();
        assert_eq!(flows.iter().map(octets).sum::<u64>(), octets(transfer));
    }
}

#[test]
fn contradictory_options_are_rejected_by_name() {
    let rejected = |options: Options| Generator::new(options, 1).unwrap_err().to_string();
    let cases = [
        (Options { records: 100, ..small() }, "records are too few: the planted transfers alone have"),
        (
            Options { path_routers: 9, ..small() },
            "invalid --path-routers 9: expected 1 to 8, and at most --routers (66)",
        ),
        (
            Options { routers: 2, ..small() },
            "invalid --path-routers 3: expected 1 to 8, and at most --routers (2)",
        ),
        (Options { flowset_flows: vec![], ..small() }, "no --flowset-flows"),
        (Options { flowset_flows: vec![2, 0], ..small() }, "invalid --flowset-flows 0: expected 1 to 1024"),
        (Options { inactive_timeout: Nanos::from_secs(90), ..small() }, "--idle-timeout"),
        (Options { duration: Nanos::from_secs(60), ..small() }, "--duration"),
        (Options { ipv6_share: f64::NAN, ..small() }, "invalid --ipv6-share NaN: expected 0 to 1"),
        (Options { across_midnight: Some(41), ..small() }, "invalid --across-midnight 41: expected 0 to 40"),
        (
            Options { across_midnight: Some(1), duration: Nanos::from_secs(3_600), ..small() },
            "cannot plant 1 flowsets across midnight: no midnight",
        ),
    ];
    for (options, expected) in cases {
        let error = rejected(options);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_background_without_transfers_can_be_short() {
    let options = Options {
        records: 5_000,
        start: Timestamp::new(1_000_000_000, 0),
        duration: Nanos::from_secs(3),
        flowsets: Some(0),
        single_flows: Some(0),
        ordinary: Some(0),
        ..Options::default()
    };
    let batch = all(&mut Generator::new(options, 1).unwrap());
    assert_eq!(batch.len(), 5_000);
    let is_v6 = |address: &thalweg_wire::flow_export::Address| address.as_v4().is_none();
    let share = batch.source_address.iter().filter(|address| is_v6(address)).count() as f64 / 5e3;
    assert!((0.05..0.15).contains(&share), "{share}");
}
