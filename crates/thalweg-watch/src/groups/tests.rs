//! Hosts and pairs against a slow count, and the bound of the totals.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use thalweg_measure::filter::{FlowFilter, METERED};
use thalweg_measure::meter::record::{EndReason, FlowRecord, Traffic as Direction};
use thalweg_wire::{BitRate, Bytes, FlowKey, Protocol, TcpFlags, Timestamp};

use super::*;
use crate::snapshot::{FlowRow, Query, SortBy, groups_of};

fn flow() -> impl Strategy<Value = FlowRow> {
    // Few hosts, so that flows share them, and some flows from a host to itself.
    let key = (0..6u32, 0..6u32, 1..4u16)
        .prop_map(|(src, dst, port)| FlowKey::v4(src, dst, port, 80, Protocol::TCP));
    let amounts = (any::<[u16; 2]>(), any::<[u16; 2]>(), any::<[u16; 2]>(), 1..1_000u64, 0..1_000u64);
    (key, amounts, any::<[bool; 2]>()).prop_map(|(key, (bytes, packets, rate, first, span), cheetah)| {
        FlowRow {
            key,
            traffic: Traffic {
                first: Timestamp(first),
                last: Timestamp(first + span),
                packets: packets.map(u64::from),
                bytes: bytes.map(u64::from),
                rate: rate.map(|rate| BitRate(rate.into())),
                packet_rate: rate.map(|rate| u64::from(rate / 7)),
                flows: 1,
            },
            tcp_flags: [TcpFlags::default(); 2],
            cheetah,
        }
    })
}

fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(0, 0, 0, number).into()
}

/// Returns the bytes and the rates that `from` sends to a host of `to`, and the number of flows between them.
fn sent(flows: &[FlowRow], from: &[IpAddr], to: &[IpAddr]) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for flow in flows {
        let ends = [flow.key.src(), flow.key.dst()];
        for (side, [sender, receiver]) in [(0, ends), (1, [ends[1], ends[0]])] {
            if from.contains(&sender) && to.contains(&receiver) {
                sum.0 += flow.traffic.bytes[side];
                sum.1 += flow.traffic.rate[side].0;
            }
        }
        sum.2 += u64::from(
            from.contains(&ends[0]) && to.contains(&ends[1])
                || from.contains(&ends[1]) && to.contains(&ends[0]),
        );
    }
    sum
}

fn figures(row: &GroupRow) -> [(u64, u64, u64); 2] {
    let traffic = &row.traffic;
    [0, 1].map(|side| (traffic.bytes[side], traffic.rate[side].0, traffic.flows))
}

proptest! {
    #[test]
    fn hosts_and_pairs_have_the_sums_of_their_flows(flows in prop::collection::vec(flow(), 0..40)) {
        let all: Vec<IpAddr> = (0..6).map(address).collect();
        let query = Query { grouping: Grouping::Host, limit: 100, ..Query::default() };
        for row in groups_of(&flows, &query).rows {
            let Group::Host(host) = row.group else { panic!("{row:?} is no host") };
            let expected = [sent(&flows, &[host], &all), sent(&flows, &all, &[host])];
            prop_assert_eq!(figures(&row), expected, "{}", host);
        }
        let query = Query { grouping: Grouping::Pair, ..query };
        let pairs = groups_of(&flows, &query);
        prop_assert_eq!(pairs.rows.iter().map(|row| row.traffic.flows).sum::<u64>(), flows.len() as u64);
        for row in pairs.rows {
            let Group::Pair(low, high) = row.group else { panic!("{row:?} is no pair") };
            prop_assert!(low <= high);
            if low < high {
                let expected = [sent(&flows, &[low], &[high]), sent(&flows, &[high], &[low])];
                prop_assert_eq!(figures(&row), expected, "{}", row.group);
            }
        }
    }

    #[test]
    fn the_first_rows_are_those_of_a_full_sort(flows in prop::collection::vec(flow(), 0..40), limit in 1..8usize) {
        for sort in SortBy::ALL {
            let query = Query { grouping: Grouping::Host, sort, limit, ..Query::default() };
            let all = groups_of(&flows, &Query { limit: 100, ..query.clone() });
            let first = groups_of(&flows, &query);
            prop_assert_eq!(first.matching, all.rows.len() as u64);
            prop_assert_eq!(&first.rows[..], &all.rows[..limit.min(all.rows.len())]);
        }
    }

    #[test]
    fn totals_are_the_same_in_any_distribution_over_workers(
        flows in prop::collection::vec((flow(), any::<bool>(), any::<bool>()), 0..40)
    ) {
        let mut whole = GroupTotals::new(Grouping::Host);
        let mut parts = [GroupTotals::new(Grouping::Host), GroupTotals::new(Grouping::Host)];
        for (row, in_second, is_part) in &flows {
            let record = record(row, if *is_part { EndReason::Active } else { EndReason::Idle });
            whole.add(&record);
            parts[usize::from(*in_second)].add(&record);
        }
        let [mut first, second] = parts;
        first.merge(second);
        prop_assert_eq!(first.rows(), whole.rows());
    }
}

fn record(row: &FlowRow, end_reason: EndReason) -> FlowRecord {
    let side = |side: usize| Direction {
        packets: row.traffic.packets[side],
        bytes: Bytes(row.traffic.bytes[side]),
        tcp_flags: row.tcp_flags[side],
        cheetah: row.cheetah[side],
    };
    let (forward, reverse) = (side(0), side(1));
    FlowRecord {
        key: row.key,
        first: row.traffic.first,
        last: row.traffic.last,
        forward,
        reverse,
        end_reason,
    }
}

fn udp(src: u32, dst: u32, port: u16, bytes: u64) -> FlowRecord {
    let key = FlowKey::v4(src, dst, port, 53, Protocol::UDP);
    let forward = Direction { packets: 1, bytes: Bytes(bytes), ..Direction::default() };
    let (first, last) = (Timestamp(0), Timestamp(1_000_000_000));
    FlowRecord { key, first, last, forward, reverse: Direction::default(), end_reason: EndReason::Idle }
}

#[test]
fn a_full_table_drops_the_smallest_and_counts_them() {
    let mut totals = GroupTotals::with_max_rows(Grouping::Pair, 8);
    for host in 0..1_000 {
        totals.add(&udp(1, 10 + host, 1, 10));
        totals.add(&udp(1, 2, 1, 1_000));
    }
    let (dropped, bytes) = totals.dropped();
    let rows = totals.rows();
    assert!(rows.len() < 8, "{}", rows.len());
    assert_eq!(rows[0].group, Group::Pair(address(1), address(2)));
    assert_eq!(rows[0].traffic.bytes, [1_000_000, 0], "the largest is never dropped");
    assert_eq!(rows[0].traffic.rate, [BitRate(8_000_000), BitRate(0)]);
    let kept: u64 = rows.iter().map(|row| row.traffic.total_bytes().0).sum();
    assert_eq!((dropped + rows.len() as u64, bytes.0 + kept), (1_001, 1_010_000));
}

#[test]
fn a_filter_selects_flows_by_their_key_and_rows_by_their_amounts() {
    let row = |src, dst, port, rate| FlowRow {
        key: FlowKey::v4(src, dst, port, 443, Protocol::TCP),
        traffic: Traffic {
            first: Timestamp(1),
            last: Timestamp(2),
            packets: [1, 1],
            bytes: [100, 100],
            rate: [BitRate(rate), BitRate(0)],
            packet_rate: [rate / 1_000, 0],
            flows: 1,
        },
        tcp_flags: [TcpFlags::default(); 2],
        cheetah: [false; 2],
    };
    let flows = [row(1, 9, 5_000, 6_000_000), row(1, 8, 5_001, 6_000_000), row(2, 9, 5_002, 1_000_000)];
    for (filter, hosts) in [
        ("bps > 10m", &[1u8][..]),
        ("bps > 6m", &[1, 9]),
        ("pps > 10k", &[1]),
        ("flows > 1", &[1, 9]),
        ("port 5002", &[2, 9]),
        ("port 443 and bps > 10m", &[1]),
        ("dst ip 0.0.0.9 and bps > 6m and bps < 8m", &[9]),
        ("not port 5000 and not bps > 5m", &[2, 9]),
    ] {
        let filter = FlowFilter::compile(filter, &METERED).unwrap();
        let query = Query { grouping: Grouping::Host, filter, ..Query::default() };
        let mut found: Vec<Group> = groups_of(&flows, &query).rows.iter().map(|row| row.group).collect();
        found.sort();
        let expected: Vec<Group> = hosts.iter().map(|host| Group::Host(address(*host))).collect();
        assert_eq!(found, expected, "{}", query.filter.text());
    }
}

#[test]
fn a_scope_has_the_flows_of_its_host_or_pair() {
    let key: FlowKey = "tcp 0.0.0.3:1 > 0.0.0.2:2".parse().unwrap();
    assert!(Group::Host(address(2)).contains(&key) && Group::Host(address(3)).contains(&key));
    assert!(Group::Pair(address(2), address(3)).contains(&key));
    assert!(!Group::Pair(address(1), address(3)).contains(&key) && !Group::Host(address(1)).contains(&key));
}
