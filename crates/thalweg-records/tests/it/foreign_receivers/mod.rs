//! Decodes our exports with nfcapd, nfdump and tshark.

mod nfcapd;
mod nfdump_fields;
mod tshark;

use std::process::Command;

use thalweg_wire::flow_export::encode::{Messages, ipfix, netflow5, netflow9};
use thalweg_wire::flow_export::{Address, Record, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

use nfcapd::Nfcapd;
use tshark::{Clock, decode};

use crate::skip::skip;

/// 2026-11-22 13:00:00.25 UTC.
const NOW: Timestamp = Timestamp::new(1_795_352_400, 250_000_000);

/// About an hour earlier.
const BOOT: Timestamp = Timestamp::new(1_795_348_000, 7_000_000);

/// Flows of the last minute, only IPv4 or of both versions; every third has routing fields.
fn one_way(count: u64, only_v4: bool) -> Vec<Record> {
    let flow = |number: u64| {
        let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let flow_start_us = ((NOW.0 / 1_000) - 60_000_000 + number * 12_345) as i64;
        let address = |number: u64| match only_v4 || number.is_multiple_of(2) {
            true => Address::v4(0x0a00_0000 | (number >> 8) as u32 & 0xff_ffff),
            false => Address(0x2001_0db8 << 96 | u128::from(number)),
        };
        let record = Record {
            flow_start_us,
            flow_end_us: flow_start_us + (word >> 42) as i64,
            source_address: address(word & !1 | number & 1),
            destination_address: address((word >> 20) & !1 | number & 1),
            source_port: (word >> 3) as u16,
            destination_port: (word >> 7) as u16,
            protocol: if number.is_multiple_of(4) { 17 } else { 6 },
            tcp_flags: (word >> 11) as u16 & 0x3f,
            class_of_service: (word >> 13) as u8,
            octets: 40 + (word >> 44),
            packets: 1 + (word >> 54),
            ..Record::default()
        };
        match number.is_multiple_of(3) {
            false => record,
            true => Record {
                source_as: (word >> 5) as u16 as u32 | 1,
                destination_as: (word >> 6) as u16 as u32,
                ingress_interface: number as u32 % 50 + 1,
                egress_interface: 7,
                source_prefix_length: 24,
                destination_prefix_length: 16,
                ..record
            },
        }
    };
    (0..count).map(flow).collect()
}

/// Flows of which every other one is bidirectional.
fn both_ways(count: u64) -> Vec<Record> {
    let with_answer = |forward: Record| {
        let forward = Record {
            source_as: 0,
            destination_as: 0,
            ingress_interface: 0,
            egress_interface: 0,
            source_prefix_length: 0,
            destination_prefix_length: 0,
            ..forward
        };
        if forward.packets.is_multiple_of(2) {
            return vec![forward];
        }
        let forward = Record { biflow_direction: 1, ..forward };
        let reverse = Record {
            source_address: forward.destination_address,
            destination_address: forward.source_address,
            source_port: forward.destination_port,
            destination_port: forward.source_port,
            octets: forward.octets * 3,
            packets: forward.packets + 1,
            biflow_direction: 2,
            ..forward
        };
        vec![forward, reverse]
    };
    one_way(count, false).into_iter().flat_map(with_answer).collect()
}

fn batch(rows: &[Record]) -> RecordBatch {
    let mut batch = RecordBatch::default();
    rows.iter().for_each(|row| batch.push(row));
    batch
}

fn as_netflow5(rows: &[Record]) -> Messages {
    let mut messages = Messages::new();
    netflow5::Encoder::new(netflow5::Options::new(BOOT)).unwrap().encode(&batch(rows), NOW, &mut messages);
    messages
}

fn as_netflow9(rows: &[Record]) -> Messages {
    let mut messages = Messages::new();
    netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap().encode(&batch(rows), NOW, &mut messages);
    messages
}

fn as_ipfix(rows: &[Record], times: ipfix::Times) -> Messages {
    let mut messages = Messages::new();
    let mut encoder = ipfix::Encoder::new(ipfix::Options { times, ..Default::default() }).unwrap();
    encoder.encode(&batch(rows), NOW, &mut messages);
    messages
}

/// Returns the exporter's statistics after some rows.
fn statistics(rows: &[Record]) -> Messages {
    let mut messages = Messages::new();
    let mut encoder = ipfix::Encoder::new(ipfix::Options::default()).unwrap();
    encoder.encode(&batch(rows), NOW, &mut Messages::new());
    let metering = ipfix::Metering { ignored_packets: 3, ignored_octets: 180, from: BOOT, until: NOW };
    let exporting = ipfix::Exporting {
        flow_records: encoder.encoded().flow_records,
        not_sent_flow_records: 7,
        from: BOOT,
        until: NOW,
        ..Default::default()
    };
    // Templates come again after a minute.
    encoder.encode_statistics(
        &ipfix::Statistics { metering, exporting },
        NOW + Nanos::from_secs(60),
        &mut messages,
    );
    messages
}

/// Returns whether a program is installed; `question` is an argument with which it exits at once.
fn is_installed(program: &str, question: &str) -> bool {
    Command::new(program).arg(question).output().is_ok()
}

#[test]
fn nfdump_reads_netflow5_of_synth() {
    if !is_installed("nfcapd", "-V") {
        return skip("nfcapd is not installed");
    }
    let rows = one_way(2_000, true);
    assert_eq!(Nfcapd::start().collect(&as_netflow5(&rows)), nfcapd::expected(&rows));
}

#[test]
fn nfdump_reads_netflow9_of_synth() {
    if !is_installed("nfcapd", "-V") {
        return skip("nfcapd is not installed");
    }
    let rows = one_way(2_000, false);
    assert_eq!(Nfcapd::start().collect(&as_netflow9(&rows)), nfcapd::expected(&rows));
}

#[test]
fn nfdump_reads_our_ipfix_and_biflows() {
    if !is_installed("nfcapd", "-V") {
        return skip("nfcapd is not installed");
    }
    for rows in [one_way(2_000, false), both_ways(2_000)] {
        let messages = as_ipfix(&rows, ipfix::Times::Milliseconds);
        assert_eq!(Nfcapd::start().collect(&messages), nfcapd::expected(&rows));
    }
}

#[test]
fn nfdump_applies_our_sampling_interval() {
    if !is_installed("nfcapd", "-V") {
        return skip("nfcapd is not installed");
    }
    let row = |row| Record { sampling_interval: 100, ..row };
    let rows: Vec<Record> = one_way(50, true).into_iter().map(row).collect();
    let scale = |row: &Record| Record { octets: 100 * row.octets, packets: 100 * row.packets, ..*row };
    let scaled = nfcapd::expected(&rows.iter().map(scale).collect::<Vec<_>>());
    // nfcapd 1.7.1 ignores the sampling interval of NetFlow v9.
    for messages in [as_netflow5(&rows), as_ipfix(&rows, ipfix::Times::Milliseconds)] {
        assert_eq!(Nfcapd::start().collect(&messages), scaled);
    }
}

#[test]
fn tshark_decodes_our_ipfix() {
    if !is_installed("tshark", "--version") {
        return skip("tshark is not installed");
    }
    for rows in [one_way(500, false), both_ways(500)] {
        let found = decode(&as_ipfix(&rows, ipfix::Times::Microseconds));
        assert_eq!(found, tshark::expected(&rows, Clock::TimeOfDay));
    }
    let found = decode(&statistics(&one_way(50, false)));
    let value = |field: &str| found[field].join(" ");
    assert_eq!(value("cflow.flowsexp") + " " + &value("cflow.notsent_flows"), "50 7");
    assert_eq!(value("cflow.ignore_packets"), "3");
    assert!(!found.contains_key("_ws.malformed"));
}

#[test]
fn tshark_decodes_our_sparse_columns() {
    if !is_installed("tshark", "--version") {
        return skip("tshark is not installed");
    }
    let mac = |last| format!("02:00:5e:00:ab:{last:02x}").parse().unwrap();
    let row = Record {
        source_mac: mac(1),
        destination_mac: mac(2),
        post_source_mac: mac(3),
        post_destination_mac: mac(4),
        post_vlan_id: 4000,
        customer_vlan_id: 12,
        minimum_ttl: 3,
        maximum_ttl: 64,
        ingress_vrf_id: 7,
        egress_vrf_id: 8,
        bgp_next_hop: Address::v4(0xC000_0204),
        ..one_way(1, true)[0]
    };
    for messages in [as_ipfix(&[row], ipfix::Times::Microseconds), as_netflow9(&[row])] {
        let found = decode(&messages);
        for (field, expected) in [
            ("cflow.srcmac", "02:00:5e:00:ab:01"),
            ("cflow.dstmac", "02:00:5e:00:ab:02"),
            ("cflow.post_srcmac", "02:00:5e:00:ab:03"),
            ("cflow.post_dstmac", "02:00:5e:00:ab:04"),
            ("cflow.post_vlanid", "4000"),
            ("cflow.dot1q_customer_vlan_id", "12"),
            ("cflow.ttl_min", "3"),
            ("cflow.ttl_max", "64"),
            ("cflow.ingress_vrfid", "7"),
            ("cflow.egress_vrfid", "8"),
            ("cflow.bgpnexthop", "192.0.2.4"),
        ] {
            assert_eq!(found[field], [expected], "{field}");
        }
        assert!(!found.contains_key("_ws.malformed"));
    }
}

#[test]
fn tshark_decodes_netflow_of_synth() {
    if !is_installed("tshark", "--version") {
        return skip("tshark is not installed");
    }
    let rows = one_way(500, false);
    assert_eq!(decode(&as_netflow9(&rows)), tshark::expected(&rows, Clock::Uptime(BOOT)));
    let rows = one_way(500, true);
    assert_eq!(decode(&as_netflow5(&rows)), tshark::expected(&rows, Clock::Uptime(BOOT)));
}
