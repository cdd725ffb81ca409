//! A plain, slow decoder checks the messages.

mod messages;
mod rows;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::batch::UNKNOWN_DIRECTION;
use super::super::decode::{Decoded, Decoder, Limits};
use super::super::{Address, Format, LabelStack, Mac, Record, RecordBatch};
use super::*;
use crate::Timestamp;

/// 2026-11-22 13:00:00.4 UTC.
const NOW: Timestamp = Timestamp::new(1_795_352_400, 400_000_000);

/// A day and some milliseconds before.
const BOOT: Timestamp = Timestamp::new(1_795_266_000, 123_456_789);

/// A decoded record: its template number, and its values by element (reverse elements are negative).
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
            assert_eq!(usize::from(count), length, "an IPFIX header has the length");
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
            assert_eq!(u32::from(count), all + data, "a v9 header has the number of records");
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

    /// Returns the flow rows; a biflow record gives two.
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
        flow_direction: first(&[61]).map_or(UNKNOWN_DIRECTION, |direction| direction as u8),
        flow_end_reason: or_zero(&[136]) as u8,
        biflow_direction: or_zero(&[239]) as u8,
        source_mac: Mac::from_number(or_zero(&[56]) as u64),
        destination_mac: Mac::from_number(or_zero(&[80]) as u64),
        post_source_mac: Mac::from_number(or_zero(&[81]) as u64),
        post_destination_mac: Mac::from_number(or_zero(&[57]) as u64),
        post_vlan_id: or_zero(&[59]) as u16,
        customer_vlan_id: or_zero(&[245]) as u16,
        minimum_ttl: or_zero(&[52]) as u8,
        maximum_ttl: or_zero(&[53]) as u8,
        forwarding_status: or_zero(&[89]) as u8,
        post_class_of_service: or_zero(&[55]) as u8,
        mpls_labels: LabelStack(std::array::from_fn(|position| {
            let entry = or_zero(&[70 + position as i32]) as u32;
            let [_, bytes @ ..] = entry.to_be_bytes();
            bytes
        })),
        ingress_vrf_id: or_zero(&[234]) as u32,
        egress_vrf_id: or_zero(&[235]) as u32,
        next_as: or_zero(&[128]) as u32,
        previous_as: or_zero(&[129]) as u32,
        observation_point_id: or_zero(&[138]) as u64,
        bgp_next_hop: address(18, 63),
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

/// Returns the other direction of a flow with the same counts.
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

/// Converts NTP time to microseconds since 1970, rounded down.
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
    /// A row with routing information.
    fn routed()(
        record in plain(),
        interfaces in any::<[u32; 2]>(),
        systems in any::<[u32; 2]>(),
        next_hop in an_address(),
        lengths in any::<[u8; 2]>(),
        direction in prop_oneof![Just(0u8), Just(1), Just(UNKNOWN_DIRECTION)],
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

/// A row with sparse columns.
fn detailed(row: impl Strategy<Value = Record>) -> impl Strategy<Value = Record> {
    let words = any::<([u64; 5], [u16; 2], [u8; 4], [u32; 4])>();
    (row, words, any::<[[u8; 3]; 10]>(), prop_oneof![Just(Address::NONE), an_address()]).prop_map(
        |(row, (longs, shorts, bytes, numbers), labels, bgp_next_hop)| Record {
            source_mac: Mac::from_number(longs[0]),
            destination_mac: Mac::from_number(longs[1]),
            post_source_mac: Mac::from_number(longs[2]),
            post_destination_mac: Mac::from_number(longs[3]),
            post_vlan_id: shorts[0],
            customer_vlan_id: shorts[1],
            minimum_ttl: bytes[0],
            maximum_ttl: bytes[1],
            forwarding_status: bytes[2],
            post_class_of_service: bytes[3],
            mpls_labels: LabelStack(labels),
            ingress_vrf_id: numbers[0],
            egress_vrf_id: numbers[1],
            next_as: numbers[2],
            previous_as: numbers[3],
            observation_point_id: longs[4],
            bgp_next_hop,
            ..row
        },
    )
}

prop_compose! {
    /// A row of a flow in the last hour without routing information.
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

/// Rows of all kinds, including pairs that form a biflow.
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
    let one_way =
        prop_oneof![plain(), routed(), detailed(plain()), detailed(routed())].prop_map(|row| vec![row]);
    proptest::collection::vec(prop_oneof![3 => one_way, 1 => both_ways], 0..60)
        .prop_map(|rows| rows.into_iter().flatten().collect())
}

fn batch(rows: &[Record]) -> RecordBatch {
    let mut batch = RecordBatch::with_capacity(rows.len());
    rows.iter().for_each(|row| batch.push(row));
    batch
}

/// Returns a row as it is decoded: IPv4 without next hop gets 0.0.0.0.
fn expected(row: &Record, time: impl Fn(i64) -> i64) -> Record {
    let is_v4 = row.source_address.as_v4().is_some() && row.destination_address.as_v4().is_some();
    let routing = Record { next_hop: row.next_hop, flow_direction: row.flow_direction, ..Record::default() };
    let is_routed = routing != Record::default()
        || row.ingress_interface | row.egress_interface | row.source_as | row.destination_as != 0
        || row.source_prefix_length | row.destination_prefix_length != 0;
    let is_detailed = row.has_sparse_values();
    // IPv4 is sent as such if the next hops are not of IPv6.
    let is_v4_or_none = |address: Address| address == Address::NONE || address.as_v4().is_some();
    let is_v4 = is_v4 && is_v4_or_none(row.next_hop) && is_v4_or_none(row.bgp_next_hop);
    let zero = is_v4 && (is_routed || is_detailed) && row.next_hop == Address::NONE;
    let bgp_zero = is_v4 && is_detailed && row.bgp_next_hop == Address::NONE;
    Record {
        bgp_next_hop: if bgp_zero { Address::v4(0) } else { row.bgp_next_hop },
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
