//! Compares the largest groups with a naive map, for all file layouts, memory limits and thread counts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::slice::from_ref;

use proptest::prelude::*;
use thalweg_wire::flow_export::{Address, Format, Record};

use super::{Group, Key, KeyColumn, Once, Options, Order, TopError, Value, top};
use crate::analyse::tests::files::{LAYOUTS, Layout, write};
use crate::read::ReadError;

fn column(name: &str) -> KeyColumn {
    KeyColumn::named(name).unwrap()
}

fn one(name: &str) -> Key {
    Key { column: column(name), either: None }
}

fn either(one: &str, other: &str) -> Key {
    Key { column: column(one), either: Some(column(other)) }
}

/// Keys of one and of several columns, of either end, and the longest key.
fn keys() -> Vec<Vec<Key>> {
    let all = "exporter format src dst src_port dst_port protocol \
               tos ingress_interface egress_interface src_as dst_as next_hop vlan_id";
    vec![
        vec![one("src")],
        vec![one("vlan_id")],
        vec![one("format")],
        vec![either("src", "dst")],
        vec![either("src_port", "dst_port")],
        vec![one("src"), one("dst")],
        vec![one("protocol"), one("dst_port")],
        vec![one("src_mac")],
        vec![either("src_country", "dst_country")],
        vec![one("ingress_interface_name"), one("post_vlan_id"), one("bgp_next_hop"), one("dst_mac")],
        vec![one("exporter"), one("ingress_interface"), either("src_as", "dst_as"), one("next_hop")],
        all.split(' ').map(one).collect(),
    ]
}

fn value(record: &Record, column: KeyColumn) -> Value {
    match column.name() {
        "exporter" => Value::Address(record.exporter),
        "format" => Value::Format(record.format),
        "src" => Value::Address(record.source_address),
        "dst" => Value::Address(record.destination_address),
        "src_port" => Value::Number(record.source_port.into()),
        "dst_port" => Value::Number(record.destination_port.into()),
        "protocol" => Value::Number(record.protocol.into()),
        "tos" => Value::Number(record.class_of_service.into()),
        "ingress_interface" => Value::Number(record.ingress_interface),
        "egress_interface" => Value::Number(record.egress_interface),
        "src_as" => Value::Number(record.source_as),
        "dst_as" => Value::Number(record.destination_as),
        "next_hop" => Value::Address(record.next_hop),
        "vlan_id" => Value::Number(record.vlan_id.into()),
        "post_vlan_id" => Value::Number(record.post_vlan_id.into()),
        "tcp_flags" => Value::Number(record.tcp_flags.into()),
        "min_ttl" => Value::Number(record.minimum_ttl.into()),
        "observation_domain_id" => Value::Number(record.observation_domain_id),
        "observation_point_id" => Value::Count(record.observation_point_id),
        "src_mac" => Value::Mac(record.source_mac),
        "dst_mac" => Value::Mac(record.destination_mac),
        "bgp_next_hop" => Value::Address(record.bgp_next_hop),
        "ingress_interface_name" => Value::Name(record.ingress_interface_name),
        "src_country" => Value::Name(record.source_country),
        "dst_country" => Value::Name(record.destination_country),
        other => panic!("{other}"),
    }
}

/// Returns the sort key of a value: text by bytes, numbers by value.
fn rank(value: &Value) -> (String, u64) {
    match value {
        Value::Address(address) => (address.to_string(), 0),
        Value::Format(format) => (format.name().to_owned(), 0),
        Value::Number(number) => (String::new(), (*number).into()),
        Value::Count(number) => (String::new(), *number),
        Value::Mac(mac) => (mac.to_string(), 0),
        Value::Name(name) => (name.to_string(), 0),
    }
}

/// A key and its records.
type Members<'a> = (Vec<Value>, Vec<&'a Record>);

/// Returns the records that count, by definition: of each flow those of the point that saw it longest.
fn counted(records: &[Record], once: Option<Once>) -> Vec<Record> {
    let Some(once) = once else { return records.to_vec() };
    let times = |record: &Record| {
        let (start, end) = (record.flow_start_us, record.flow_end_us);
        (start.min(end), start.max(end))
    };
    let exporter =
        |record: &Record| if once.per_exporter { record.exporter.to_string() } else { String::new() };
    let mut keys = BTreeMap::<_, Vec<&Record>>::new();
    for record in records {
        let hosts = (record.source_address.0, record.destination_address.0);
        let ports = (record.source_port, record.destination_port, record.protocol);
        keys.entry((hosts, ports, exporter(record))).or_default().push(record);
    }
    let point =
        |record: &Record| (record.exporter.to_string(), record.observation_domain_id, record.flow_direction);
    let mut kept = Vec::new();
    for mut records in keys.into_values() {
        records.sort_by_key(|record| times(record));
        let mut flows: Vec<Vec<&Record>> = Vec::new();
        for record in records {
            let latest = flows.last().and_then(|flow| flow.iter().map(|record| times(record).1).max());
            match latest.is_some_and(|latest| times(record).0 - latest <= once.gap_us) {
                true => flows.last_mut().unwrap().push(record),
                false => flows.push(vec![record]),
            }
        }
        for flow in flows {
            let points: std::collections::BTreeSet<_> = flow.iter().map(|record| point(record)).collect();
            let order = |at: &_| {
                let own: Vec<_> = flow.iter().filter(|record| point(record) == *at).collect();
                let start = own.iter().map(|record| times(record).0).min().unwrap();
                let end = own.iter().map(|record| times(record).1).max().unwrap();
                let interval = own.iter().map(|record| record.sampling_interval.max(1)).min();
                (std::cmp::Reverse(end - start), interval, at.clone())
            };
            let best = points.iter().min_by_key(|at| order(at)).unwrap();
            kept.extend(flow.iter().filter(|record| point(record) == *best).copied().copied());
        }
    }
    kept
}

fn expected(records: &[Record], options: &Options) -> Vec<Group> {
    let records = &counted(records, options.once);
    let clamped = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    let scaled = |count: u64, record: &Record| {
        clamped(u128::from(count) * u128::from(record.sampling_interval.max(1))) as u128
    };
    let mut groups = BTreeMap::<Vec<(String, u64)>, Members<'_>>::new();
    for record in records {
        let first: Vec<Value> = options.key.iter().map(|key| value(record, key.column)).collect();
        let second: Vec<Value> =
            options.key.iter().map(|key| value(record, key.either.unwrap_or(key.column))).collect();
        for key in if first == second { vec![first] } else { vec![first, second] } {
            let order = key.iter().map(rank).collect();
            groups.entry(order).or_insert_with(|| (key, Vec::new())).1.push(record);
        }
    }
    let amount = |records: &[&Record]| {
        clamped(
            records
                .iter()
                .map(|record| match options.order {
                    Order::Bytes => scaled(record.octets, record),
                    Order::Packets => scaled(record.packets, record),
                    Order::Flows => 1,
                })
                .sum(),
        )
    };
    let whole = amount(&records.iter().collect::<Vec<_>>());
    let mut groups: Vec<_> = groups.into_values().collect();
    // A stable sort keeps ties in key order.
    groups.sort_by_key(|(_, records)| std::cmp::Reverse(amount(records)));
    groups.truncate(options.limit.unwrap_or(usize::MAX));
    let group = |(key, records): Members<'_>| Group {
        key,
        bytes: clamped(records.iter().map(|record| scaled(record.octets, record)).sum()),
        packets: clamped(records.iter().map(|record| scaled(record.packets, record)).sum()),
        flows: records.len() as i64,
        share: (whole > 0).then(|| amount(&records) as f64 / whole as f64),
        flow_start_us: records.iter().map(|record| record.flow_start_us).min().unwrap(),
        flow_end_us: records.iter().map(|record| record.flow_end_us).max().unwrap(),
    };
    groups.into_iter().map(group).collect()
}

fn addresses() -> impl Strategy<Value = Address> {
    prop_oneof![
        6 => (0..12u32).prop_map(|host| Address::v4(0x0A00_0000 + host)),
        2 => (0..3u128).prop_map(|host| Address(0x2001_0DB8 << 96 | host)),
        1 => Just(Address::NONE),
    ]
}

/// Few distinct values, so that groups are large and ties occur; counters up to saturation.
fn records() -> impl Strategy<Value = Record> {
    let counts = || prop_oneof![6 => 0..4u64, 1 => Just(1 << 61), 1 => Just(i64::MAX as u64)];
    let ends = (addresses(), addresses(), addresses(), 0..3u16, 0..3u16);
    let fields = (0..3u32, 0..3u32, 0..2u32, 0..5usize, prop_oneof![Just(6u8), Just(17)], 0..2u16);
    let sums = (counts(), counts(), prop_oneof![Just(0u32), Just(1), Just(1000)], -50..50i64, -50..50i64);
    (ends, fields, sums).prop_map(|(ends, fields, sums)| Record {
        source_address: ends.0,
        destination_address: ends.1,
        next_hop: ends.2,
        source_port: ends.3,
        destination_port: ends.4,
        source_as: fields.0,
        destination_as: fields.1,
        ingress_interface: fields.2,
        egress_interface: u32::MAX - fields.2,
        format: Format::ALL[fields.3],
        protocol: fields.4,
        class_of_service: fields.4,
        vlan_id: fields.5,
        exporter: Address::v4(fields.0),
        observation_domain_id: fields.1 % 2,
        flow_direction: fields.5 as u8,
        octets: sums.0,
        packets: sums.1,
        sampling_interval: sums.2,
        flow_start_us: sums.3,
        flow_end_us: sums.4,
        ..Record::default()
    })
}

fn keep_going(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_largest_groups_match_a_naive_map(
        records in prop::collection::vec(records(), 0..400),
        key in prop::sample::select(keys()),
        order in prop::sample::select(vec![Order::Bytes, Order::Packets, Order::Flows]),
        limit in prop_oneof![Just(None), (1..20usize).prop_map(Some)],
        once in prop_oneof![
            Just(None),
            (prop::sample::select(vec![0, 5, 60]), any::<bool>())
                .prop_map(|(gap_us, per_exporter)| Some(Once { gap_us, per_exporter })),
        ],
        layout in prop::sample::select(LAYOUTS.to_vec()),
        (threads, files, group) in (1..4usize, 1..4usize, 1..300usize),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let size = records.len().div_ceil(files).max(1);
        let paths: Vec<PathBuf> = records.chunks(size).enumerate()
            .map(|(at, records)| write(directory.path().join(format!("{at}.parquet")), records, group, layout))
            .collect();
        let options = Options { key, order, limit, once, memory_bytes: 64 << 20, threads };
        let found = top(&paths, &options, &mut keep_going).unwrap();
        prop_assert_eq!(found.groups, expected(&records, &options));
        prop_assert_eq!(found.records_left_out as usize, records.len() - counted(&records, once).len());
    }
}

#[test]
fn too_many_groups_for_memory_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..60_000)
        .map(|host| Record { source_address: Address::v4(host), octets: 1, ..Record::default() })
        .collect();
    let path = write(directory.path().join("scan.parquet"), &records, 20_000, Layout::Dictionary);
    for key in [vec![one("src")], vec![one("src"), one("protocol")]] {
        let mut options = Options {
            key,
            order: Order::Bytes,
            limit: Some(3),
            once: None,
            memory_bytes: 4 << 20,
            threads: 1,
        };
        let refused = top(from_ref(&path), &options, &mut keep_going);
        assert!(matches!(refused, Err(TopError::Memory { groups: 1.., .. })), "{refused:?}");
        options.memory_bytes = 64 << 20;
        assert_eq!(top(from_ref(&path), &options, &mut keep_going).unwrap().groups.len(), 3);
    }
}

#[test]
fn a_progress_callback_can_stop_the_ranking_and_invalid_keys_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let records = vec![Record::default(); 20_000];
    let path = write(directory.path().join("records.parquet"), &records, 5_000, Layout::Plain);
    let key = vec![either("src", "dst")];
    let options =
        Options { key, order: Order::Flows, limit: None, once: None, memory_bytes: 64 << 20, threads: 1 };
    for threads in [1, 3] {
        let options = Options { threads, ..options.clone() };
        let stopped = top(from_ref(&path), &options, &mut |_, _| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(TopError::Interrupted)), "{stopped:?}");
    }
    let wrong = [vec![], vec![one("vlan_id"); 2], vec![options.key[0], either("src_port", "dst_port")]];
    for key in wrong {
        let refused = top(from_ref(&path), &Options { key, ..options.clone() }, &mut keep_going);
        assert!(matches!(refused, Err(TopError::Option { option: "key", .. })), "{refused:?}");
    }
    let missing = top(&[directory.path().join("none.parquet")], &options, &mut keep_going);
    assert!(matches!(missing, Err(TopError::Read(ReadError::Io { .. }))), "{missing:?}");
    assert!(KeyColumn::named("bytes").is_none());
}

/// A flow in five records of a minute each, as three routers see it: the second one misses the last record, and the third
/// samples.
fn flow_of_three_routers(host: u32) -> Vec<Record> {
    let record = |exporter: u32, minute: i64, octets: u64, sampling_interval: u32| Record {
        exporter: Address::v4(exporter),
        source_address: Address::v4(host),
        octets,
        sampling_interval,
        flow_start_us: minute * 60_000_000,
        flow_end_us: (minute + 1) * 60_000_000,
        ..Record::default()
    };
    let minutes = || 0..5;
    let mut records: Vec<_> = minutes().map(|minute| record(2, minute, 1000, 1)).collect();
    records.extend(minutes().take(4).map(|minute| record(1, minute, 1000, 1)));
    records.extend(minutes().map(|minute| record(3, minute, 9, 100)));
    records
}

#[test]
fn a_flow_of_three_routers_counts_once_in_one_pass_or_in_several() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (1..=2000).flat_map(flow_of_three_routers).collect();
    let path = write(directory.path().join("routers.parquet"), &records, 5000, Layout::Dictionary);
    let once = |per_exporter| Some(Once { gap_us: 60_000_000, per_exporter });
    let cases = [(None, 13_500), (once(false), 5000), (once(true), 13_500)];
    for (memory_bytes, threads) in [(64 << 20, 2), (1 << 20, 1)] {
        for (once, octets) in cases {
            let key = vec![one("src"), one("protocol")];
            let options = Options { key, order: Order::Bytes, limit: None, once, memory_bytes, threads };
            let found = top(from_ref(&path), &options, &mut keep_going).unwrap();
            assert_eq!(found.groups.len(), 2000);
            assert!(found.groups.iter().all(|group| group.bytes == octets), "{once:?}");
            let left_out = if octets == 5000 { 9 * 2000 } else { 0 };
            assert_eq!(found.records_left_out, left_out);
        }
    }
}

#[test]
fn points_of_one_router_count_once_where_flows_count_once_per_router() {
    let directory = tempfile::tempdir().unwrap();
    let record = |exporter: u32, flow_direction: u8| Record {
        exporter: Address::v4(exporter),
        flow_direction,
        octets: 7,
        ..Record::default()
    };
    let records = [record(1, 0), record(1, 1), record(2, 0)];
    let path = write(directory.path().join("points.parquet"), &records, 2, Layout::Plain);
    let once = Some(Once { gap_us: 0, per_exporter: true });
    let options = Options {
        key: vec![one("exporter")],
        order: Order::Bytes,
        limit: None,
        once,
        memory_bytes: 64 << 20,
        threads: 2,
    };
    let found = top(&[path], &options, &mut keep_going).unwrap();
    assert_eq!(found.groups.iter().map(|group| group.bytes).collect::<Vec<_>>(), [7, 7]);
    assert_eq!((found.observation_points, found.records_left_out), (3, 1));
}
