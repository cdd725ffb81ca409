//! Messages are taken apart again by a plain, slow decoder that knows of the RFCs what these tests need.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::batch::NOT_TOLD;
use super::super::decode::{Decoded, Decoder, Limits};
use super::super::{Address, Format, Record, RecordBatch};
use super::*;
use crate::Timestamp;

/// 2026-11-22 13:00:00.4 UTC.
const NOW: Timestamp = Timestamp::new(1_795_352_400, 400_000_000);

/// A day and some milliseconds before.
const BOOT: Timestamp = Timestamp::new(1_795_266_000, 123_456_789);

/// A record as found: number of its template, and values by element (reverse ones by minus their element).
type Found = (u16, BTreeMap<i32, u128>);

/// The oracle of v9 and IPFIX.
#[derive(Default)]
struct Collector {
    templates: BTreeMap<u16, Vec<(i32, usize)>>,
    found: Vec<Found>,
    /// By message: sequence number, data records, all records, export time.
    headers: Vec<(u32, u32, u32, u32)>,
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn take_u16(bytes: &mut &[u8]) -> u16 {
    number(take(bytes, 2)) as u16
}

impl Collector {
    fn message(&mut self, mut bytes: &[u8]) {
        let length = bytes.len();
        let version = take_u16(&mut bytes);
        let count = take_u16(&mut bytes);
        if version == 10 {
            assert_eq!(usize::from(count), length, "an IPFIX header tells the length");
        } else {
            take(&mut bytes, 4);
        }
        let (time, sequence) = (number(take(&mut bytes, 4)) as u32, number(take(&mut bytes, 4)) as u32);
        take(&mut bytes, 4);
        let (mut data, mut all) = (0, 0);
        while !bytes.is_empty() {
            let id = take_u16(&mut bytes);
            let length = take_u16(&mut bytes);
            let set = take(&mut bytes, usize::from(length) - 4);
            match (version, id) {
                (9, 0) | (10, 2) => all += self.templates(set, false),
                (9, 1) => all += self.options_v9(set),
                (10, 3) => all += self.templates(set, true),
                _ => data += self.data(id, set),
            }
        }
        self.headers.push((sequence, data, all + data, time));
        if version == 9 {
            assert_eq!(u32::from(count), all + data, "a v9 header tells the number of records");
        }
    }

    fn templates(&mut self, mut set: &[u8], are_options: bool) -> u32 {
        let mut count = 0;
        while set.len() >= 4 {
            let (id, fields) = (take_u16(&mut set), take_u16(&mut set));
            if are_options {
                assert_eq!(take_u16(&mut set), 1, "one scope field");
            }
            self.template(id, (0..fields).map(|_| specifier(&mut set)).collect());
            count += 1;
        }
        count
    }

    fn options_v9(&mut self, mut set: &[u8]) -> u32 {
        let id = take_u16(&mut set);
        let fields = (take_u16(&mut set) + take_u16(&mut set)) / 4;
        self.template(id, (0..fields).map(|_| specifier(&mut set)).collect());
        1
    }

    fn template(&mut self, id: u16, fields: Vec<(i32, usize)>) {
        let before = self.templates.insert(id, fields.clone());
        assert!(before.is_none_or(|before| before == fields), "template {id} has changed");
    }

    fn data(&mut self, id: u16, mut set: &[u8]) -> u32 {
        let template = &self.templates[&id];
        let length = template.iter().map(|(_, length)| length).sum();
        let mut count = 0;
        while set.len() >= length {
            let values = template.iter().map(|&(element, length)| (element, number(take(&mut set, length))));
            self.found.push((id, values.collect()));
            count += 1;
        }
        assert!(set.iter().all(|byte| *byte == 0), "padding is zeros");
        count
    }

    /// Rows of flows, a record of both ways being two.
    fn rows(&self, time_us: impl Fn(u128) -> i64) -> Vec<Record> {
        let flows = self.found.iter().filter(|(_, values)| values.contains_key(&7));
        flows.flat_map(|(_, values)| rows_of(values, &time_us)).collect()
    }

    fn options(&self, element: i32) -> Vec<u128> {
        self.found.iter().filter_map(|(_, values)| values.get(&element).copied()).collect()
    }
}

fn specifier(set: &mut &[u8]) -> (i32, usize) {
    let (element, length) = (take_u16(set), take_u16(set).into());
    if element & 0x8000 == 0 {
        return (element.into(), length);
    }
    assert_eq!(number(take(set, 4)), 29_305, "RFC 5103's enterprise number");
    (-i32::from(element & 0x7fff), length)
}

fn rows_of(values: &BTreeMap<i32, u128>, time_us: impl Fn(u128) -> i64) -> Vec<Record> {
    let first = |elements: &[i32]| elements.iter().find_map(|element| values.get(element).copied());
    let or_zero = |elements: &[i32]| first(elements).unwrap_or(0);
    let address = |v4: i32, v6: i32| match (values.get(&v4), values.get(&v6)) {
        (Some(v4), _) => Address::v4(*v4 as u32),
        (_, Some(v6)) => Address(*v6),
        _ => Address::NONE,
    };
    let forward = Record {
        flow_start_us: time_us(or_zero(&[154, 152, 22])),
        flow_end_us: time_us(or_zero(&[155, 153, 21])),
        source_address: address(8, 27),
        destination_address: address(12, 28),
        source_port: or_zero(&[7]) as u16,
        destination_port: or_zero(&[11]) as u16,
        protocol: or_zero(&[4]) as u8,
        tcp_flags: or_zero(&[6]) as u16,
        class_of_service: or_zero(&[5]) as u8,
        icmp_type_code: or_zero(&[32, 139]) as u16,
        octets: or_zero(&[1]) as u64,
        packets: or_zero(&[2]) as u64,
        ingress_interface: or_zero(&[10]) as u32,
        egress_interface: or_zero(&[14]) as u32,
        source_as: or_zero(&[16]) as u32,
        destination_as: or_zero(&[17]) as u32,
        next_hop: address(15, 62),
        source_prefix_length: or_zero(&[9, 29]) as u8,
        destination_prefix_length: or_zero(&[13, 30]) as u8,
        vlan_id: or_zero(&[58]) as u16,
        flow_direction: first(&[61]).map_or(NOT_TOLD, |direction| direction as u8),
        flow_end_reason: or_zero(&[136]) as u8,
        biflow_direction: or_zero(&[239]) as u8,
        ..Record::default()
    };
    if !values.contains_key(&-1) {
        return vec![forward];
    }
    let reverse = Record {
        flow_start_us: time_us(or_zero(&[-154, -152])),
        flow_end_us: time_us(or_zero(&[-155, -153])),
        class_of_service: or_zero(&[-5]) as u8,
        tcp_flags: or_zero(&[-6]) as u16,
        octets: or_zero(&[-1]) as u64,
        packets: or_zero(&[-2]) as u64,
        ..mirrored(&forward)
    };
    vec![forward, reverse]
}

/// The other direction of a flow, with the same counts.
fn mirrored(forward: &Record) -> Record {
    Record {
        source_address: forward.destination_address,
        destination_address: forward.source_address,
        source_port: forward.destination_port,
        destination_port: forward.source_port,
        biflow_direction: 2,
        ..*forward
    }
}

/// NTP's time to microseconds since 1970, rounded down.
fn from_ntp(time: u128) -> i64 {
    let seconds = (time >> 32) as i64 - 2_208_988_800;
    seconds * 1_000_000 + (((time & 0xffff_ffff) * 1_000_000) >> 32) as i64
}

prop_compose! {
    fn an_address()(is_v4 in any::<bool>(), number in any::<u128>()) -> Address {
        match is_v4 {
            true => Address::v4(number as u32),
            false => Address(number & !(0xffff << 32)),
        }
    }
}

prop_compose! {
    /// What a router tells of routing.
    fn routed()(
        record in plain(),
        interfaces in any::<[u32; 2]>(),
        systems in any::<[u32; 2]>(),
        next_hop in an_address(),
        lengths in any::<[u8; 2]>(),
        direction in prop_oneof![Just(0u8), Just(1), Just(NOT_TOLD)],
    ) -> Record {
        Record {
            ingress_interface: interfaces[0],
            egress_interface: interfaces[1],
            source_as: systems[0],
            destination_as: systems[1],
            next_hop,
            source_prefix_length: lengths[0],
            destination_prefix_length: lengths[1],
            flow_direction: direction,
            ..record
        }
    }
}

prop_compose! {
    /// What every exporter tells, of a flow of the last hour.
    fn plain()(
        (source_address, destination_address) in (an_address(), an_address()),
        age_us in 0i64..3_600_000_000,
        lasts_us in 0i64..60_000_000,
        ports in any::<[u16; 2]>(),
        protocol in any::<u8>(),
        tcp_flags in any::<u16>(),
        bytes in any::<[u8; 3]>(),
        words in any::<[u16; 2]>(),
        counts in any::<[u64; 2]>(),
    ) -> Record {
        let flow_end_us = (NOW.0 / 1_000) as i64 - age_us;
        Record {
            flow_start_us: flow_end_us - lasts_us,
            flow_end_us,
            source_address,
            destination_address,
            source_port: ports[0],
            destination_port: ports[1],
            protocol,
            tcp_flags,
            class_of_service: bytes[0],
            icmp_type_code: words[0],
            octets: counts[0],
            packets: counts[1],
            vlan_id: words[1],
            flow_end_reason: bytes[1],
            ..Record::default()
        }
    }
}

/// Rows of all kinds, now and then two that are one flow.
fn some_rows() -> impl Strategy<Value = Vec<Record>> {
    let both_ways = (plain(), plain()).prop_map(|(forward, other)| {
        let forward = Record { biflow_direction: 1, ..forward };
        let reverse = Record {
            flow_start_us: other.flow_start_us,
            flow_end_us: other.flow_end_us,
            tcp_flags: other.tcp_flags,
            class_of_service: other.class_of_service,
            octets: other.octets,
            packets: other.packets,
            ..mirrored(&forward)
        };
        vec![forward, reverse]
    });
    let one_way = prop_oneof![plain(), routed()].prop_map(|row| vec![row]);
    proptest::collection::vec(prop_oneof![3 => one_way, 1 => both_ways], 0..60)
        .prop_map(|rows| rows.into_iter().flatten().collect())
}

fn batch(rows: &[Record]) -> RecordBatch {
    let mut batch = RecordBatch::with_capacity(rows.len());
    rows.iter().for_each(|row| batch.push(row));
    batch
}

/// A row as it should come back: without next hop, IPv4 has 0.0.0.0.
fn expected(row: &Record, time: impl Fn(i64) -> i64) -> Record {
    let is_v4 = row.source_address.as_v4().is_some() && row.destination_address.as_v4().is_some();
    let told = Record { next_hop: row.next_hop, flow_direction: row.flow_direction, ..Record::default() };
    let is_routed = told != Record::default()
        || row.ingress_interface | row.egress_interface | row.source_as | row.destination_as != 0
        || row.source_prefix_length | row.destination_prefix_length != 0;
    let zero = is_v4 && is_routed && row.next_hop == Address::NONE;
    Record {
        flow_start_us: time(row.flow_start_us),
        flow_end_us: time(row.flow_end_us),
        next_hop: if zero { Address::v4(0) } else { row.next_hop },
        ..*row
    }
}

fn whole_milliseconds(time_us: i64) -> i64 {
    time_us.div_euclid(1_000) * 1_000
}

fn check_sequence(headers: &[(u32, u32, u32, u32)], step: impl Fn(u32) -> u32) {
    let mut expected = 0;
    for (sequence, data, ..) in headers {
        assert_eq!(*sequence, expected);
        expected += step(*data);
    }
}

proptest! {
    #[test]
    fn ipfix_gives_every_row_back(rows in some_rows(), length in LEAST_MESSAGE_LENGTH..4_000) {
        let mut encoder = ipfix::Encoder::new(ipfix::Options { message_length: length, ..Default::default() }).unwrap();
        let (mut messages, mut collector) = (Messages::new(), Collector::default());
        encoder.encode(&batch(&rows), NOW, &mut messages);
        for message in messages.iter() {
            prop_assert!(message.len() <= usize::from(length) && message.len() % 4 == 0);
            collector.message(message);
        }
        let expected: Vec<_> = rows.iter().map(|row| expected(row, |us| us)).collect();
        prop_assert_eq!(collector.rows(from_ntp), expected);
        check_sequence(&collector.headers, |data| data);
        let contents = (0..messages.len()).map(|message| messages.contents(message));
        let packets = rows.iter().fold(0u64, |sum, row| sum.wrapping_add(row.packets));
        prop_assert_eq!(contents.fold(0, |sum, contents| contents.packets.wrapping_add(sum)), packets);
        prop_assert_eq!(encoder.encoded().flow_records, collector.found.len() as u64);
        prop_assert_eq!(encoder.encoded().octets, messages.bytes().len() as u64);
        prop_assert_eq!(encoder.misfits(), Misfits::default());
    }

    #[test]
    fn netflow9_gives_every_row_back_in_whole_milliseconds(rows in some_rows(), ms in 0u64..2_000) {
        let now = NOW + Nanos::from_millis(ms);
        let mut encoder = netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap();
        let (mut messages, mut collector) = (Messages::new(), Collector::default());
        encoder.encode(&batch(&rows), now, &mut messages);
        messages.iter().for_each(|message| collector.message(message));
        let boot_ms = (BOOT.0 / 1_000_000) as i64;
        let found = collector.rows(|uptime| (boot_ms + uptime as i64) * 1_000);
        let expected: Vec<_> = rows.iter().map(|row| expected(row, whole_milliseconds)).collect();
        prop_assert_eq!(found, expected);
        check_sequence(&collector.headers, |_| 1);
        for (message, header) in messages.iter().zip(&collector.headers) {
            let boot = i64::from(header.3) * 1_000 - number(&message[4..8]) as i64;
            prop_assert_eq!(boot, boot_ms, "header times agree on the start of the device");
        }
    }

    #[test]
    fn netflow5_gives_what_it_has_room_for(rows in some_rows()) {
        let mut encoder = netflow5::Encoder::new(netflow5::Options::new(BOOT)).unwrap();
        let mut messages = Messages::new();
        encoder.encode(&batch(&rows), NOW, &mut messages);
        let v4 = rows.iter().filter(|row| row.source_address.as_v4().is_some() && row.destination_address.as_v4().is_some());
        let v4: Vec<_> = v4.collect();
        let found: Vec<_> = messages.iter().flat_map(|message| message[24..].chunks_exact(48)).collect();
        prop_assert_eq!(found.len(), v4.len());
        prop_assert_eq!(encoder.misfits().rows, (rows.len() - v4.len()) as u64);
        let at = |bytes: &[u8], place: usize, length: usize| number(&bytes[place..place + length]) as u64;
        for (row, bytes) in v4.into_iter().zip(found) {
            prop_assert_eq!(at(bytes, 0, 4), u64::from(row.source_address.as_v4().unwrap()));
            prop_assert_eq!(at(bytes, 16, 4), row.packets.min(u32::MAX.into()));
            prop_assert_eq!(at(bytes, 20, 4), row.octets.min(u32::MAX.into()));
            let boot_ms = (BOOT.0 / 1_000_000) as i64;
            prop_assert_eq!((boot_ms + at(bytes, 24, 4) as i64) * 1_000, whole_milliseconds(row.flow_start_us));
            prop_assert_eq!(at(bytes, 40, 2), u64::from(u16::try_from(row.source_as).unwrap_or(23_456)));
        }
    }
}

/// What our own decoder finds, with what it adds taken away again.
fn decoded(messages: &Messages) -> Vec<Record> {
    let (mut decoder, mut found) = (Decoder::new(Limits::default()), Decoded::default());
    for message in messages.iter() {
        decoder.datagram("192.0.2.1:9995".parse().unwrap(), NOW, message, &mut found).unwrap();
    }
    assert!(decoder.sources().iter().all(|source| source.counts.lost == 0), "{:?}", decoder.sources());
    let told = |row| Record {
        received_us: 0,
        exporter: Address::NONE,
        observation_domain_id: 0,
        format: Format::Metered,
        ..found.flows.record(row)
    };
    sorted((0..found.flows.len()).map(told))
}

/// In an order of its own: a decoder may put what came back after all that went forth.
fn sorted(rows: impl Iterator<Item = Record>) -> Vec<Record> {
    let mut rows: Vec<Record> = rows.collect();
    rows.sort_by_cached_key(|row| format!("{row:?}"));
    rows
}

proptest! {
    #[test]
    fn our_decoder_gives_every_row_back(rows in some_rows(), intervals in any::<[u16; 2]>()) {
        // Half of the rows are sampled in one way, half in another.
        let half = rows.len() / 2;
        let interval = |number: usize| u32::from(intervals[usize::from(number < half)]) + 1;
        let sampled = rows.iter().enumerate();
        let rows: Vec<_> = sampled.map(|(number, row)| Record { sampling_interval: interval(number), ..*row }).collect();
        let as_decoded = |row: &Record, time: fn(i64) -> i64| {
            let row = expected(row, time);
            // A router that says 0.0.0.0 says that there is none.
            let is_none = row.next_hop == Address::v4(0) || row.next_hop == Address(0);
            Record { next_hop: if is_none { Address::NONE } else { row.next_hop }, ..row }
        };
        let mut messages = Messages::new();
        ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&batch(&rows), NOW, &mut messages);
        let microseconds = sorted(rows.iter().map(|row| as_decoded(row, |us| us)));
        prop_assert_eq!(decoded(&messages), microseconds);
        messages.clear();
        netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap().encode(&batch(&rows), NOW, &mut messages);
        let milliseconds = sorted(rows.iter().map(|row| as_decoded(row, whole_milliseconds)));
        prop_assert_eq!(decoded(&messages), milliseconds);
    }
}

#[test]
fn every_microsecond_comes_back_rounded_down_or_to_the_nearest() {
    for us in (0..1_000_000).step_by(7).chain([999_999]) {
        let rows = [Record { flow_start_us: us, flow_end_us: us, ..Record::default() }];
        let mut messages = Messages::new();
        ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&batch(&rows), NOW, &mut messages);
        let mut collector = Collector::default();
        collector.message(messages.bytes());
        let nearest = |time| from_ntp(time + (1 << 32) / 2_000_000);
        assert_eq!(collector.rows(from_ntp)[0].flow_start_us, us);
        assert_eq!(collector.rows(nearest)[0].flow_start_us, us);
    }
}

#[test]
fn the_least_message_has_room_for_all_templates_the_interval_and_any_record() {
    let address = Address(1);
    let forward = Record {
        source_address: address,
        destination_address: address,
        biflow_direction: 1,
        sampling_interval: 10,
        ..Record::default()
    };
    let routed = Record { biflow_direction: 0, source_as: 1, ..forward };
    for rows in [vec![forward, mirrored(&forward)], vec![routed]] {
        let options = ipfix::Options { message_length: LEAST_MESSAGE_LENGTH, ..Default::default() };
        let mut messages = Messages::new();
        ipfix::Encoder::new(options).unwrap().encode(&batch(&rows), NOW, &mut messages);
        assert_eq!(messages.len(), 1, "{} bytes", messages.bytes().len());
    }
    let options = ipfix::Options { message_length: LEAST_MESSAGE_LENGTH - 1, ..Default::default() };
    assert_eq!(ipfix::Encoder::new(options).unwrap_err(), OptionsError::MessageLength { asked: 1_023 });
}

#[test]
fn templates_and_the_interval_are_sent_again_after_the_time_and_after_the_messages() {
    let refresh = Refresh { interval: Nanos::from_secs(60), messages: 3 };
    let options = ipfix::Options { refresh: Some(refresh), ..Default::default() };
    let rows = batch(&[Record { sampling_interval: 100, ..Record::default() }]);
    let sent_at = |options, seconds: &[u64]| -> Vec<bool> {
        let mut encoder = ipfix::Encoder::new(options).unwrap();
        let message = |seconds: &u64| {
            let mut messages = Messages::new();
            encoder.encode(&rows, NOW + Nanos::from_secs(*seconds), &mut messages);
            let mut collector = Collector { templates: templates(), ..Default::default() };
            collector.message(messages.bytes());
            let (_, data, all, _) = collector.headers[0];
            assert_eq!(collector.options(306).len() as u32, data - 1, "the interval comes with templates");
            all > data
        };
        seconds.iter().map(message).collect()
    };
    assert_eq!(
        sent_at(options, &[0, 1, 2, 3, 4, 62, 63, 130]),
        [true, false, false, true, false, false, true, true]
    );
    assert_eq!(sent_at(options.over_stream(), &[0, 1, 2, 3, 100_000]), [true, false, false, false, false]);
}

/// The templates of IPFIX as a session begins with them.
fn templates() -> BTreeMap<u16, Vec<(i32, usize)>> {
    let mut messages = Messages::new();
    ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(
        &batch(&[Record::default()]),
        NOW,
        &mut messages,
    );
    let mut collector = Collector::default();
    collector.message(messages.bytes());
    collector.templates
}

#[test]
fn a_row_with_another_sampling_interval_follows_the_record_that_tells_it() {
    let row = |sampling_interval| Record {
        sampling_interval,
        octets: u64::from(sampling_interval),
        ..Record::default()
    };
    let rows = batch(&[row(0), row(100), row(100), row(1_000), row(0), row(1)]);
    let mut messages = Messages::new();
    ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&rows, NOW, &mut messages);
    let mut collector = Collector::default();
    messages.iter().for_each(|message| collector.message(message));
    let told = collector.found.iter().map(|(_, values)| match values.get(&306) {
        Some(space) => format!("told {}", space + 1),
        None => format!("row {}", values[&1]),
    });
    let expected =
        ["row 0", "told 100", "row 100", "row 100", "told 1000", "row 1000", "row 0", "told 1", "row 1"];
    assert_eq!(told.collect::<Vec<_>>(), expected);

    messages.clear();
    netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap().encode(&rows, NOW, &mut messages);
    let mut collector = Collector::default();
    messages.iter().for_each(|message| collector.message(message));
    assert_eq!(collector.options(34), [100, 1_000, 1]);

    messages.clear();
    let mut encoder = netflow5::Encoder::new(netflow5::Options::new(BOOT)).unwrap();
    let v4 = |record| {
        let ends = [1, 2].map(Address::v4);
        let flow_end_us = (NOW.0 / 1_000) as i64;
        Record {
            source_address: ends[0],
            destination_address: ends[1],
            flow_start_us: flow_end_us,
            flow_end_us,
            ..record
        }
    };
    encoder.encode(&batch(&[row(0), row(100), row(100), row(20_000)].map(v4)), NOW, &mut messages);
    let headers: Vec<_> =
        messages.iter().map(|header| number(&header[16..20]) << 16 | number(&header[22..24])).collect();
    assert_eq!(headers, [0, 1 << 16 | 0x4000 | 100, 3 << 16 | 0x7fff]);
    assert_eq!(encoder.misfits().values, 1);
}

#[test]
fn two_rows_that_are_not_each_others_mirror_stay_two_records() {
    let forward = Record {
        source_address: Address::v4(1),
        destination_address: Address::v4(2),
        biflow_direction: 1,
        ..Record::default()
    };
    let reverse = mirrored(&forward);
    let records = |rows: &[Record]| {
        let mut encoder = ipfix::Encoder::new(ipfix::Options::default()).unwrap();
        encoder.encode(&batch(rows), NOW, &mut Messages::new());
        encoder.encoded().flow_records
    };
    assert_eq!(records(&[forward, reverse]), 1);
    assert_eq!(records(&[reverse, forward]), 2);
    assert_eq!(records(&[forward, Record { vlan_id: 1, ..reverse }]), 2);
    assert_eq!(records(&[forward, Record { source_as: 1, ..reverse }]), 2);
    assert_eq!(records(&[Record { source_as: 1, ..forward }, Record { source_as: 1, ..reverse }]), 2);
    assert_eq!(records(&[forward, forward, reverse]), 2);
}

#[test]
fn statistics_are_told_by_the_templates_of_section_4() {
    let until = Timestamp::new(1_795_352_400, 0);
    let statistics = ipfix::Statistics {
        metering: ipfix::Metering { ignored_packets: 3, ignored_octets: 180, from: BOOT, until },
        exporting: ipfix::Exporting {
            messages: 10,
            flow_records: 200,
            octets: 13_000,
            not_sent_flow_records: 7,
            not_sent_packets: 70,
            not_sent_octets: 7_000,
            from: BOOT,
            until,
        },
    };
    let mut messages = Messages::new();
    let mut encoder =
        ipfix::Encoder::new(ipfix::Options { observation_domain_id: 5, ..Default::default() }).unwrap();
    encoder.tell(&statistics, NOW, &mut messages);
    let mut collector = Collector::default();
    collector.message(messages.bytes());
    let values = [41, 42, 40, 164, 165, 166, 167, 168].map(|element| collector.options(element)[0]);
    assert_eq!(values, [10, 200, 13_000, 3, 180, 7, 70, 7_000]);
    assert_eq!((collector.options(149), collector.options(144)), (vec![5, 5], vec![1]));
    assert_eq!(from_ntp(collector.options(155)[0]), 1_795_352_400_000_000);
    assert_eq!(collector.headers[0].1, 3, "options records are data records");
    assert_eq!(encoder.encoded().flow_records, 0);
}

#[test]
fn a_time_that_32_bits_of_uptime_cannot_say_is_counted() {
    let record = |flow_end_us| Record { flow_start_us: flow_end_us, flow_end_us, ..Record::default() };
    let now_us = (NOW.0 / 1_000) as i64;
    let days = 86_400_000_000;
    for (time, misfits) in
        [(now_us - 24 * days, 0), (now_us - 25 * days, 2), (0, 2), (i64::MIN, 2), (i64::MAX, 2)]
    {
        let mut encoder = netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap();
        encoder.encode(&batch(&[record(time)]), NOW, &mut Messages::new());
        assert_eq!(encoder.misfits().values, misfits, "at {time}");
    }
}
