//! Tests of the decoder with complete messages.

mod bounds;
mod events;
mod layers;
mod losses;
mod names;
mod oracle;
mod packet_sections;
mod saved;
mod sflow;
mod sparse_columns;
mod templates;
mod times;

use std::net::SocketAddr;

use super::{Counts, DecodeErrorKind, Decoded, Decoder, Limits, SourceStatistics};
use crate::flow_export::{Address, Format, Mac, Record};
use crate::time::{Nanos, Timestamp};

/// The default arrival time of messages: 2023-11-14T22:13:20Z.
const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// The time of exporters' clocks at that time.
const NOW_SECONDS: u32 = 1_700_000_000;

fn exporter() -> SocketAddr {
    "192.0.2.1:2055".parse().unwrap()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Encodes a set with its header.
fn set(id: u16, content: &[u8]) -> Vec<u8> {
    [&words(&[id, 4 + content.len() as u16]), content].concat()
}

/// Encodes a set with one template of IANA elements and their lengths.
fn template_set(format: Format, id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut record = vec![id, fields.len() as u16];
    record.extend(fields.iter().flat_map(|&(id, length)| [id, length]));
    set(if format == Format::NetFlow9 { 0 } else { 2 }, &words(&record))
}

/// Encodes a set with one options template; scopes of NetFlow v9 have their own numbering.
fn options_set(format: Format, id: u16, scopes: &[(u16, u16)], fields: &[(u16, u16)]) -> Vec<u8> {
    let (first, second) = (scopes.len() as u16, fields.len() as u16);
    let mut record = match format {
        Format::NetFlow9 => vec![id, 4 * first, 4 * second],
        _ => vec![id, first + second, first],
    };
    record.extend(scopes.iter().chain(fields).flat_map(|&(id, length)| [id, length]));
    set(if format == Format::NetFlow9 { 1 } else { 3 }, &words(&record))
}

fn netflow9(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    netflow9_at(NOW_SECONDS, 90_000_000, sequence, domain, sets)
}

fn netflow9_at(seconds: u32, uptime_ms: u32, sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = words(&[9, sets.len() as u16]);
    bytes.extend([uptime_ms, seconds, sequence, domain].iter().flat_map(|word| word.to_be_bytes()));
    bytes.extend(sets.concat());
    bytes
}

fn ipfix(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let content = sets.concat();
    let mut bytes = words(&[10, 16 + content.len() as u16]);
    bytes.extend([NOW_SECONDS, sequence, domain].iter().flat_map(|word| word.to_be_bytes()));
    bytes.extend(content);
    bytes
}

/// Encodes a NetFlow v9 or IPFIX message.
fn message(format: Format, sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    match format {
        Format::NetFlow9 => netflow9(sequence, domain, sets),
        _ => ipfix(sequence, domain, sets),
    }
}

/// A decoder with its results.
struct Run {
    decoder: Decoder,
    decoded: Decoded,
}

impl Run {
    fn new() -> Run {
        Run::with(Limits::default())
    }

    fn with(limits: Limits) -> Run {
        Run { decoder: Decoder::new(limits), decoded: Decoded::default() }
    }

    /// Decodes a valid datagram of the default exporter; returns its rows.
    fn take(&mut self, bytes: &[u8]) -> Vec<Record> {
        self.take_at(NOW, bytes)
    }

    fn take_at(&mut self, received: Timestamp, bytes: &[u8]) -> Vec<Record> {
        self.take_from(exporter(), received, bytes)
    }

    fn take_from(&mut self, from: SocketAddr, received: Timestamp, bytes: &[u8]) -> Vec<Record> {
        self.decoded.clear();
        self.decoder.datagram(from, received, bytes, &mut self.decoded).unwrap();
        self.rows()
    }

    /// Decodes an invalid datagram.
    fn take_invalid(&mut self, bytes: &[u8]) -> DecodeErrorKind {
        let before = self.decoded.clone();
        let error = self.decoder.datagram(exporter(), NOW, bytes, &mut self.decoded).unwrap_err();
        assert_eq!(self.decoded, before, "nothing is added");
        assert_eq!(error.from, exporter());
        error.kind
    }

    /// Decodes a valid message of a connection.
    fn take_stream(&mut self, bytes: &[u8]) -> Vec<Record> {
        self.decoded.clear();
        self.decoder.message(exporter(), NOW, bytes, &mut self.decoded).unwrap();
        self.rows()
    }

    fn rows(&self) -> Vec<Record> {
        self.decoded.flows.check_invariants();
        self.decoded.counters.check_invariants();
        (0..self.decoded.flows.len()).map(|row| self.decoded.flows.record(row)).collect()
    }

    /// Returns the statistics of the only domain.
    fn source(&self) -> SourceStatistics {
        let sources = self.decoder.sources();
        assert_eq!(sources.len(), 1, "{sources:?}");
        sources[0]
    }

    fn counts(&self) -> Counts {
        self.source().counts
    }
}

/// Returns the octets of each row, by which most tests distinguish rows.
fn octets(rows: &[Record]) -> Vec<u64> {
    rows.iter().map(|row| row.octets).collect()
}

/// Encodes a template with one field: `octetDeltaCount` of 4 bytes.
fn octets_template(format: Format, id: u16) -> Vec<u8> {
    template_set(format, id, &[(1, 4)])
}

/// Encodes data of [`octets_template`].
fn octets_data(id: u16, octets: &[u32]) -> Vec<u8> {
    set(id, &octets.iter().flat_map(|octets| octets.to_be_bytes()).collect::<Vec<_>>())
}

const BOTH: [Format; 2] = [Format::NetFlow9, Format::Ipfix];

#[test]
fn every_field_of_netflow_5_is_decoded() {
    let mut bytes = words(&[5, 1]);
    bytes.extend([90_000_000, NOW_SECONDS, 123_456_789, 77].iter().flat_map(|word: &u32| word.to_be_bytes()));
    bytes.extend([3, 4, 0x40 | 0x03, 0xE8]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3, 0, 5, 0, 6]);
    bytes.extend([7, 1500, 89_999_000, 89_999_500].iter().flat_map(|word: &u32| word.to_be_bytes()));
    bytes.extend([0x01, 0xBB, 0xC0, 0x00, 0, 0x1B, 6, 0xB8, 0xFB, 0xF0, 0xFB, 0xF1, 24, 16, 0, 0]);
    let mut run = Run::new();
    let expected = Record {
        received_us: 1_700_000_000_000_000,
        exporter: Address::v4(0xC000_0201),
        observation_domain_id: 3 * 256 + 4,
        format: Format::NetFlow5,
        sampling_interval: 1000,
        flow_start_us: 1_699_999_999_123_456,
        flow_end_us: 1_699_999_999_623_456,
        source_address: Address::v4(0x0A00_0001),
        destination_address: Address::v4(0x0A00_0002),
        next_hop: Address::v4(0x0A00_0003),
        source_port: 443,
        destination_port: 0xC000,
        protocol: 6,
        tcp_flags: 0x1B,
        class_of_service: 0xB8,
        octets: 1500,
        packets: 7,
        ingress_interface: 5,
        egress_interface: 6,
        source_as: 0xFBF0,
        destination_as: 0xFBF1,
        source_prefix_length: 24,
        destination_prefix_length: 16,
        ..Record::default()
    };
    assert_eq!(run.take(&bytes), [expected]);
    assert_eq!((run.counts().messages, run.counts().records), (1, 1));
    let truncated = DecodeErrorKind::Truncated {
        structure: "records of a NetFlow v5 message",
        offset: 24,
        needed: 48,
        found: 47,
    };
    assert_eq!(run.take_invalid(&bytes[..71]), truncated);
    bytes.push(1);
    assert!(matches!(run.take_invalid(&bytes), DecodeErrorKind::Length { offset: 2, claimed: 1, .. }));
}

#[test]
fn invalid_messages_are_rejected_and_counted() {
    let mut run = Run::new();
    assert_eq!(run.take_invalid(&[0, 8, 0, 0]), DecodeErrorKind::Version { found: 8 });
    assert_eq!(run.take_invalid(&[0, 0, 0, 4]), DecodeErrorKind::Version { found: 0 });
    let cut = DecodeErrorKind::Truncated { structure: "export message", offset: 0, needed: 2, found: 1 };
    assert_eq!(run.take_invalid(&[0]), cut);
    assert_eq!(run.decoder.totals().dropped_unreadable, 3);
    assert_eq!(run.decoder.totals().sessions, 0, "garbage makes no session");
    let error = run.decoder.datagram(exporter(), NOW, &[0], &mut Decoded::default()).unwrap_err();
    let text = "export message from 192.0.2.1:2055: export message at offset 0 is truncated: expected 2 bytes, found 1";
    assert_eq!(error.to_string(), text);
}

#[test]
fn an_icmp_type_is_decoded_from_any_of_its_elements() {
    let icmp = [4u8, 1];
    // NetFlow v9 without ICMP elements: the destination port.
    let mut run = Run::new();
    let ports = template_set(Format::NetFlow9, 256, &[(4, 1), (7, 2), (11, 2)]);
    let row = |protocol: u8, source: u8| [protocol, 0, source, 8, 1];
    // Without addresses and counters it is not a flow.
    assert_eq!(run.take(&netflow9(1, 1, &[ports, set(256, &row(1, 0))])), []);
    let ports = template_set(Format::NetFlow9, 256, &[(4, 1), (7, 2), (11, 2), (1, 1)]);
    let data = set(
        256,
        &[[1, 0, 0, 8, 1, 9], [58, 0, 0, 128, 0, 9], [17, 0, 0, 8, 1, 9], [1, 0, 5, 8, 1, 9]].concat(),
    );
    let rows = run.take(&netflow9(2, 1, &[ports.clone(), data.clone()]));
    assert_eq!(rows.iter().map(|row| row.icmp_type_code).collect::<Vec<_>>(), [0x0801, 0x8000, 0, 0]);
    // IPFIX has ICMP elements: type and code in one or two, adjacent or not.
    let mut ports = ports;
    ports[1] = 2;
    let rows = run.take(&ipfix(0, 2, &[ports, data]));
    assert!(rows.iter().all(|row| row.icmp_type_code == 0));
    for fields in [&[(32u16, 2u16), (1, 1)][..], &[(176, 1), (177, 1), (1, 1)], &[(139, 2), (1, 1)]] {
        let rows = run.take(&ipfix(0, 3, &[template_set(Format::Ipfix, 300, fields), set(300, &[3, 1, 9])]));
        assert_eq!(rows[0].icmp_type_code, 0x0301, "{fields:?}");
    }
    let apart = template_set(Format::Ipfix, 300, &[(177, 1), (1, 1), (176, 1)]);
    assert_eq!(run.take(&ipfix(0, 3, &[apart, set(300, &[icmp[1], 9, 3])]))[0].icmp_type_code, 0x0301);
}

#[test]
fn of_several_elements_for_a_column_the_first_with_a_value_is_taken() {
    let mut run = Run::new();
    let fields = [(8, 4), (27, 16), (85, 8), (1, 4), (10, 2), (252, 4)];
    let template = template_set(Format::Ipfix, 256, &fields);
    let row = |v4: u32, v6: u128, total: u64, delta: u32, interface: u16| {
        let mut bytes = v4.to_be_bytes().to_vec();
        bytes.extend(v6.to_be_bytes());
        bytes.extend(total.to_be_bytes());
        bytes.extend(delta.to_be_bytes());
        bytes.extend(interface.to_be_bytes());
        bytes.extend(77u32.to_be_bytes());
        bytes
    };
    let v6 = 0x2001_0DB8 << 96 | 1;
    let data = [row(0, v6, 900, 0, 0), row(0x0A00_0001, 0, 900, 5, 6)].concat();
    let rows = run.take(&ipfix(0, 1, &[template, set(256, &data)]));
    assert_eq!((rows[0].source_address, rows[0].octets, rows[0].ingress_interface), (Address(v6), 900, 77));
    assert_eq!((rows[1].source_address, rows[1].octets), (Address::v4(0x0A00_0001), 5));
    assert_eq!(rows[1].ingress_interface, 6);
}

#[test]
fn the_sampling_interval_is_taken_from_the_most_specific_source() {
    let sampling_of = |run: &mut Run, domain, fields: &[(u16, u16)], data: &[u8]| -> Vec<u32> {
        let sets = [template_set(Format::NetFlow9, 256, fields), set(256, data)];
        run.take(&netflow9(0, domain, &sets)).iter().map(|row| row.sampling_interval).collect()
    };
    let mut run = Run::with(Limits { default_sampling: 7, ..Limits::default() });
    assert_eq!(sampling_of(&mut run, 1, &[(1, 1)], &[9]), [7], "the default");
    // Scope "system", sampling interval 1000.
    let system =
        [options_set(Format::NetFlow9, 400, &[(1, 4)], &[(34, 4)]), set(400, &[0, 0, 0, 0, 0, 0, 3, 232])];
    assert_eq!(run.take(&netflow9(0, 1, &system)), []);
    assert_eq!(sampling_of(&mut run, 1, &[(1, 1)], &[9]), [1000], "the domain's");
    assert_eq!(run.source().sampling_interval, 1000);
    // Scope "interface" 5, sampler 3.
    let divided = [
        options_set(Format::NetFlow9, 401, &[(2, 2)], &[(34, 1)]),
        set(401, &[0, 5, 50]),
        options_set(Format::NetFlow9, 402, &[(1, 4)], &[(48, 1), (49, 1), (50, 1)]),
        set(402, &[0, 0, 0, 0, 3, 2, 30]),
    ];
    run.take(&netflow9(0, 1, &divided));
    assert_eq!(sampling_of(&mut run, 1, &[(10, 1), (1, 1)], &[5, 9, 4, 9]), [50, 1000]);
    assert_eq!(sampling_of(&mut run, 1, &[(10, 1), (48, 1), (1, 1)], &[5, 3, 9, 5, 2, 9]), [30, 50]);
    assert_eq!(sampling_of(&mut run, 1, &[(10, 1), (34, 1), (1, 1)], &[5, 20, 9]), [20], "its own");
    assert_eq!(sampling_of(&mut run, 2, &[(1, 1)], &[9]), [7], "another domain has its own");
    run.decoder.set_sampling("192.0.2.1".parse().unwrap(), 8);
    assert_eq!(sampling_of(&mut run, 1, &[(10, 1), (34, 1), (1, 1)], &[5, 20, 9]), [8], "as configured");
    assert_eq!(sampling_of(&mut run, 2, &[(1, 1)], &[9]), [8]);
    assert!(run.decoder.sources().iter().all(|source| source.sampling_interval == 8));
    run.decoder.set_sampling("192.0.2.1".parse().unwrap(), 0);
    assert_eq!(sampling_of(&mut run, 1, &[(1, 1)], &[9]), [1000]);
}

#[test]
fn a_counter_of_16_bytes_is_decoded_and_saturates() {
    let mut run = Run::new();
    let template = template_set(Format::Ipfix, 256, &[(1, 16), (2, 1)]);
    let data = [vec![0; 14], vec![1, 2], vec![3], vec![1; 16], vec![4]].concat();
    let rows = run.take(&ipfix(0, 1, &[template, set(256, &data)]));
    assert_eq!(
        [(rows[0].octets, rows[0].packets), (rows[1].octets, rows[1].packets)],
        [(258, 3), (u64::MAX, 4)]
    );
}

#[test]
fn a_next_hop_of_zero_is_null() {
    let mut run = Run::new();
    for (element, length) in [(15, 4), (62, 16)] {
        let template = template_set(Format::Ipfix, 256, &[(element, length), (1, 1)]);
        let data = [vec![0; length.into()], vec![1], vec![7; length.into()], vec![1]].concat();
        let rows = run.take(&ipfix(0, 1, &[template, set(256, &data)]));
        assert_eq!(rows[0].next_hop, Address::NONE);
        assert!(rows[1].next_hop.is_some());
    }
}

#[test]
fn a_record_can_contain_the_address_of_another_exporter() {
    let mut run = Run::new();
    let template = template_set(Format::Ipfix, 256, &[(130, 4), (1, 1)]);
    let rows = run.take(&ipfix(0, 1, &[template, set(256, &[10, 0, 0, 9, 1, 0, 0, 0, 0, 1])]));
    assert_eq!([rows[0].exporter, rows[1].exporter], [Address::v4(0x0A00_0009), Address::v4(0xC000_0201)]);
}

#[test]
fn expiry_removes_idle_sessions_and_keeps_their_counts() {
    let mut run = Run::with(Limits { session_lifetime: Nanos::from_secs(60), ..Limits::default() });
    run.take(&netflow9(0, 1, &[octets_template(Format::NetFlow9, 256), octets_data(256, &[1, 2])]));
    run.decoder.expire(NOW + Nanos::from_secs(60));
    assert_eq!(run.counts().records, 2);
    run.decoder.expire(NOW + Nanos::from_secs(61));
    assert_eq!(run.decoder.sources(), []);
    let totals = run.decoder.totals();
    assert_eq!((totals.sessions, totals.sessions_expired, totals.gone.records), (0, 1, 2));
}
