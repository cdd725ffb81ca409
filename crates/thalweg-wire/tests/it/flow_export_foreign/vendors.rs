//! Compares the decoder on payloads of about 35 vendors' exporters and sFlow captures with the crates `netflow_parser`
//! and `sflow-parser`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netflow_parser::{AutoScopedParser, NetflowPacket};
use sflow_parser::models::{CounterData, FlowRecord, SampleData};
use thalweg_wire::capture_file;
use thalweg_wire::flow_export::decode::Limits;
use thalweg_wire::flow_export::{Address, Decoder, Format, Record};

use super::{decode, entries, exporter, folder, rows};

/// The compared part of a flow: addresses, ports, protocol.
type Flow = (Address, Address, u16, u16, u8);

fn ours(rows: &[Record]) -> Vec<Flow> {
    // The other decoder does not support biflows: each record is one flow.
    let is_forward = |row: &&Record| row.biflow_direction != 2;
    let flow = |row: &Record| {
        (row.source_address, row.destination_address, row.source_port, row.destination_port, row.protocol)
    };
    rows.iter().filter(is_forward).map(flow).collect()
}

/// Returns the flows of the other decoder, which also decodes options and events without addresses.
fn theirs(payloads: &[Vec<u8>]) -> Vec<Flow> {
    let mut parser = AutoScopedParser::new();
    let mut flows = Vec::new();
    for payload in payloads {
        for packet in parser.parse_from_source(exporter(), payload).packets {
            flows.extend(flows_of(&packet));
        }
    }
    flows
}

fn flows_of(packet: &NetflowPacket) -> Vec<Flow> {
    let address = |address: Option<IpAddr>| address.map_or(Address::NONE, Address::from);
    let common = packet.as_netflow_common().expect("NetFlow or IPFIX");
    let flows = common.flowsets.iter().map(|set| {
        (
            address(set.src_addr),
            address(set.dst_addr),
            set.src_port.unwrap_or(0),
            set.dst_port.unwrap_or(0),
            set.protocol_number.unwrap_or(0),
        )
    });
    flows.filter(|flow| flow.0.is_some() || flow.1.is_some()).collect()
}

/// The payloads of an exporter: those with templates only, and those with data.
#[derive(Default)]
struct Exporter {
    templates: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
}

/// Exporters whose data the other decoder does not support, and the number of flows (for ixia and procera confirmed by
/// Wireshark): several templates of variable length in one message, fields of variable length in NetFlow v9, a message
/// padded with zeros.
const UNREAD: [(&str, usize); 4] = [
    ("ipfix_test_ixia", 3),
    ("ipfix_test_procera", 8),
    ("netflow9_test_h3c_netstream_varstring", 1),
    ("netflow9_test_paloalto_81", 1),
];

/// Returns the files by exporter: `FORMAT_test_VENDOR_..._tpl256.dat`, `..._data256.dat`.
fn exporters() -> Option<BTreeMap<String, Exporter>> {
    let folder = folder("netflow-vendors")?;
    let mut exporters: BTreeMap<String, Exporter> = BTreeMap::new();
    for path in entries(&folder) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_part =
            |part: &&str| part.starts_with("tpl") || part.starts_with("data") || part.starts_with("opttpl");
        let exporter: Vec<_> = name.split('_').take_while(|part| !is_part(part)).collect();
        let exporter = exporters.entry(exporter.join("_")).or_default();
        let payloads = messages(&std::fs::read(&path).unwrap());
        if name.contains("tpl") && !name.contains("data") {
            exporter.templates.extend(payloads);
        } else {
            exporter.data.extend(payloads);
        }
    }
    Some(exporters)
}

/// Splits a file with several messages.
fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let [high, version, third, fourth, ..] = *bytes {
        let number = usize::from(u16::from_be_bytes([third, fourth]));
        let length = match (high, version) {
            (0, 5) => 24 + 48 * number,
            (0, 10) => number.max(16),
            _ => bytes.len(),
        };
        let (message, rest) = bytes.split_at(length.min(bytes.len()));
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

#[test]
fn records_of_every_vendor_equal_those_of_another_decoder() {
    let Some(exporters) = exporters() else { return };
    let mut checked = 0;
    for (name, Exporter { templates, data }) in exporters {
        let payloads = [templates, data].concat();
        let mut decoder = Decoder::new(Limits::default());
        let rows = rows(&decode(&mut decoder, &payloads));
        let events: u64 = decoder.sources().iter().map(|source| source.counts.dropped_nat_event).sum();
        // Our rows without addresses, which the other list omits.
        let ours: Vec<_> =
            ours(&rows).into_iter().filter(|flow| flow.0.is_some() || flow.1.is_some()).collect();
        match UNREAD.iter().find(|(unread, _)| *unread == name) {
            Some((_, flows)) => assert_eq!((ours.len(), theirs(&payloads)), (*flows, vec![]), "{name}"),
            None => {
                let theirs = theirs(&payloads);
                // It lists NAT and firewall events as flows.
                assert_eq!(ours.len() + events as usize, theirs.len(), "{name}");
                assert!(is_subsequence(&ours, &theirs), "{name}: {ours:?} of {theirs:?}");
                assert!(events == 0 || EVENTS.contains(&&*name), "{name}: {events} events");
            }
        }
        checked += ours.len();
    }
    assert!(checked > 280, "{checked} flows");
}

/// Exporters of NAT and firewall events without counters.
const EVENTS: [&str; 4] = [
    "ipfix_test_barracuda",
    "ipfix_test_barracuda_extended_uniflow",
    "netflow9_test_cisco_asa_1",
    "netflow9_test_cisco_asa_2",
];

/// Whether all elements of `part` occur in `whole` in this order.
fn is_subsequence<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|element| whole.any(|other| other == element))
}

#[test]
fn data_before_their_templates_give_the_same_rows() {
    let Some(exporters) = exporters() else { return };
    for (name, Exporter { templates, data }) in exporters {
        let sorted = |payloads: &[Vec<u8>]| {
            let mut decoder = Decoder::new(Limits::default());
            let mut rows = rows(&decode(&mut decoder, payloads));
            // The sampling interval depends on whether options came before.
            rows.iter_mut().for_each(|row| row.sampling_interval = 0);
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        };
        let in_order = sorted(&[&templates[..], &data].concat());
        assert_eq!(sorted(&[&data[..], &templates].concat()), in_order, "{name}");
    }
}

#[test]
fn every_truncated_payload_is_decoded_or_rejected() {
    let Some(exporters) = exporters() else { return };
    for Exporter { templates, data } in exporters.into_values() {
        let mut decoder = Decoder::new(Limits::default());
        decode(&mut decoder, &templates);
        for payload in templates.iter().chain(&data) {
            let cuts: Vec<_> = (0..payload.len()).step_by(7).map(|cut| payload[..cut].to_vec()).collect();
            rows(&decode(&mut decoder, &cuts));
        }
    }
}

/// Returns the UDP payloads of a capture of Ethernet frames with IPv4 or IPv6.
fn payloads_of(path: &std::path::Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let mut frames = Vec::new();
    capture_file::Decoder::new().decode(&bytes, 0, usize::MAX, &mut frames).unwrap();
    let payload = |frame: &thalweg_wire::FrameRef| {
        let ethernet = &bytes[frame.offset..][..frame.captured_length as usize];
        let header = match ethernet.get(12..14)? {
            [0x08, 0x00] => usize::from(ethernet[14] & 0x0F) * 4,
            [0x86, 0xDD] => 40,
            _ => return None,
        };
        ethernet.get(14 + header + 8..).map(<[u8]>::to_vec)
    };
    frames.iter().filter_map(payload).collect()
}

#[test]
fn every_captured_sflow_sample_equals_that_of_another_decoder() {
    let (Some(captures), Some(expected)) = (folder("captures"), folder("netflow-expected")) else { return };
    let captured = entries(&captures)
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("sflow"))
        .flat_map(|path| payloads_of(&path));
    let single = entries(&expected)
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("sflow"))
        .flat_map(|path| entries(&path))
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| std::fs::read(path).unwrap());
    let (mut sound, mut samples, mut counters) = (0, 0, 0);
    for payload in captured.chain(single) {
        let mut decoder = Decoder::new(Limits::default());
        let decoded = decode(&mut decoder, std::slice::from_ref(&payload));
        let Ok(datagram) = sflow_parser::parse_datagram(&payload) else { continue };
        let Some(source) = decoder.sources().first().copied() else { continue };
        if source.counts.dropped_malformed > 0 {
            continue;
        }
        sound += 1;
        assert_eq!(source.format, Format::Sflow5);
        let mut flows = 0;
        let mut interfaces = Vec::new();
        let mut rates = Vec::new();
        for sample in &datagram.samples {
            match &sample.sample_data {
                SampleData::FlowSample(sample) => {
                    flows += u64::from(has_packet(&sample.flow_records));
                    rates.push(sample.sampling_rate);
                }
                SampleData::FlowSampleExpanded(sample) => {
                    flows += u64::from(has_packet(&sample.flow_records));
                    rates.push(sample.sampling_rate);
                }
                SampleData::CountersSample(sample) => {
                    interfaces.extend(sample.counters.iter().filter_map(counted))
                }
                SampleData::CountersSampleExpanded(sample) => {
                    interfaces.extend(sample.counters.iter().filter_map(counted));
                }
                _ => {}
            }
        }
        let dropped = source.counts.dropped_not_ip + source.counts.dropped_bad_frame;
        assert_eq!(source.counts.records + dropped, flows);
        assert!(decoded.flows.sampling_interval.iter().all(|interval| rates.contains(interval)));
        let ours: Vec<_> = (0..decoded.counters.len()).map(|row| decoded.counters.record(row)).collect();
        let ours: Vec<_> = ours.iter().map(|row| (row.interface, row.in_octets, row.out_octets)).collect();
        assert_eq!(ours, interfaces);
        samples += flows;
        counters += ours.len();
    }
    assert!(
        sound > 3 && samples > 5 && counters > 5,
        "{sound} datagrams, {samples} samples, {counters} counters"
    );
}

fn has_packet(records: &[FlowRecord]) -> bool {
    records.iter().any(|record| {
        record.flow_format.enterprise() == 0 && matches!(record.flow_format.format(), 1 | 3 | 4)
    })
}

fn counted(record: &sflow_parser::models::CounterRecord) -> Option<(u32, u64, u64)> {
    match &record.counter_data {
        CounterData::GenericInterface(counters) => {
            Some((counters.if_index, counters.if_in_octets, counters.if_out_octets))
        }
        _ => None,
    }
}
