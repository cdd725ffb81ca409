//! The records of a block.

use std::collections::HashMap;

use super::error::{NfcapdError, NfcapdProblem, truncated};
use super::header::{u16_at, u32_at, u64_at};
use crate::flow_export::{Address, Format, Mac, Name, Record, RecordBatch};

const EXPORTER_INFO: u16 = 7;
const EXPORTER_STATISTICS: u16 = 8;
const SAMPLER_INFO: u16 = 9;
const FLOW: u16 = 11;
const INTERFACE_NAMES: u16 = 13;
const VRF_NAMES: u16 = 14;
/// `AF_INET` of the machines that nfdump runs on.
const IPV4: u16 = 2;
/// The version that nfpcapd writes, whose times of reception are those of the conversion.
const METERED: u8 = 0x41;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMP6: u8 = 58;

/// What a decoder came upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Flow records.
    pub flows: u64,
    /// Of these, records with counters of the output: of the reverse direction, or after the device. They have no column.
    pub output_counters: u64,
    /// Flow records without addresses: firewall events and others.
    pub without_addresses: u64,
    /// Records about exporters, samplers and the file.
    pub about_exporters: u64,
    /// Records with names of interfaces or VRFs.
    pub names: u64,
    /// Names of these that were left out, because there are too many.
    pub names_refused: u64,
    /// Records of other types.
    pub unknown: u64,
}

/// Decodes the blocks of a file, in their order.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// Address, observation domain of each exporter by nfdump's number.
    exporters: HashMap<u16, (Address, u32)>,
    /// Names of interfaces and of VRFs by their number. nfdump's records do not tell their exporter.
    interface_names: HashMap<u32, Name>,
    vrf_names: HashMap<u32, Name>,
    tally: Tally,
}

impl Decoder {
    /// Returns what it came upon so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Appends the flow records of an uncompressed block.
    ///
    /// # Errors
    /// If a size contradicts the others; the records before it have been appended.
    pub fn block(&mut self, block: &[u8], records: &mut RecordBatch) -> Result<(), NfcapdError> {
        let mut at = 0;
        while at < block.len() {
            let rest = &block[at..];
            if rest.len() < 4 {
                return Err(truncated(at, "a record header", 4, rest.len()));
            }
            let (kind, size) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
            if size < 4 {
                let problem = NfcapdProblem::Size { what: "a record", found: size as u64, least: 4 };
                return Err(NfcapdError { offset: at as u64, problem });
            }
            let body = rest.get(..size).ok_or_else(|| truncated(at, "a record", size, rest.len()))?;
            match kind {
                FLOW => self.flow(body, at, records)?,
                EXPORTER_INFO => self.exporter(body),
                INTERFACE_NAMES | VRF_NAMES => self.names(kind, body),
                EXPORTER_STATISTICS | SAMPLER_INFO => self.tally.about_exporters += 1,
                _ => self.tally.unknown += 1,
            }
            at += size;
        }
        Ok(())
    }

    fn exporter(&mut self, body: &[u8]) {
        self.tally.about_exporters += 1;
        if body.len() < 32 {
            return;
        }
        let address = match u16_at(body, 24) {
            IPV4 => Address::v4(u32_at(body, 20)),
            _ => v6(body, 8),
        };
        self.exporters.insert(u16_at(body, 26), (address, u32_at(body, 28)));
    }

    /// Reads an array of numbers and names of equal size. nfcapd 1.7.1 writes arrays of words instead, with parts of the
    /// names in them: they are left out, as records of unknown types are.
    fn names(&mut self, kind: u16, body: &[u8]) {
        const HEADER: usize = 8;
        let (count, size) = match body.len() {
            HEADER.. => (usize::from(u16_at(body, 4)), usize::from(u16_at(body, 6))),
            _ => (0, 0),
        };
        let elements = body.get(HEADER..).and_then(|elements| elements.get(..count * size));
        let Some(elements) = elements.filter(|_| size > 4) else {
            self.tally.unknown += 1;
            return;
        };
        self.tally.names += 1;
        let names = if kind == INTERFACE_NAMES { &mut self.interface_names } else { &mut self.vrf_names };
        for element in elements.chunks_exact(size) {
            match Name::of_bytes(&element[4..]) {
                Some(name) => drop(names.insert(u32_at(element, 0), name)),
                None => self.tally.names_refused += 1,
            }
        }
    }

    /// Fills the names of a record's interfaces and VRFs.
    fn fill_names(&self, record: &mut Record) {
        let name = |names: &HashMap<u32, Name>, number: u32| names.get(&number).copied().unwrap_or_default();
        if !self.interface_names.is_empty() {
            record.ingress_interface_name = name(&self.interface_names, record.ingress_interface);
            record.egress_interface_name = name(&self.interface_names, record.egress_interface);
        }
        if !self.vrf_names.is_empty() {
            record.ingress_vrf_name = name(&self.vrf_names, record.ingress_vrf_id);
            record.egress_vrf_name = name(&self.vrf_names, record.egress_vrf_id);
        }
    }

    fn flow(&mut self, body: &[u8], at: usize, records: &mut RecordBatch) -> Result<(), NfcapdError> {
        const HEADER: usize = 12;
        if body.len() < HEADER {
            return Err(truncated(at, "the header of a flow record", HEADER, body.len()));
        }
        let (exporter_number, version) = (u16_at(body, 8), body[11]);
        let mut record = Record { sampling_interval: 1, ..Record::default() };
        if let Some(&(address, domain)) = self.exporters.get(&exporter_number) {
            (record.exporter, record.observation_domain_id) = (address, domain);
        }
        record.format = match version {
            5 => Format::NetFlow5,
            9 => Format::NetFlow9,
            10 => Format::Ipfix,
            _ => Format::Metered,
        };
        if version == 5 {
            record.observation_domain_id = u32::from(body[6]) << 8 | u32::from(body[7]);
        }
        let (mut extension, mut has_output) = (HEADER, false);
        for _ in 0..u16_at(body, 4) {
            let rest = &body[extension..];
            if rest.len() < 4 {
                return Err(truncated(at + extension, "an extension header", 4, rest.len()));
            }
            let (kind, length) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
            if length < 4 || length > rest.len() {
                let least = length.max(4);
                return Err(truncated(at + extension, "an extension", least, rest.len()));
            }
            has_output |= apply(kind, &rest[4..length], &mut record);
            extension += length;
        }
        if version == METERED || record.received_us == 0 {
            record.received_us = record.flow_end_us;
        }
        self.fill_names(&mut record);
        self.tally.flows += 1;
        self.tally.output_counters += u64::from(has_output);
        self.tally.without_addresses += u64::from(!record.source_address.is_some());
        records.push(&record);
        Ok(())
    }
}

/// Applies an extension to a record; a longer one, of a later version, by its known part. Returns whether it has counters of
/// the output.
fn apply(kind: u16, body: &[u8], record: &mut Record) -> bool {
    match (kind, body.len()) {
        // EXgenericFlow
        (1, 48..) => {
            record.flow_start_us = microseconds(u64_at(body, 0));
            record.flow_end_us = microseconds(u64_at(body, 8));
            record.received_us = microseconds(u64_at(body, 16));
            record.packets = u64_at(body, 24);
            record.octets = u64_at(body, 32);
            record.protocol = body[44];
            record.tcp_flags = u16::from(body[45]);
            record.forwarding_status = body[46];
            record.class_of_service = body[47];
            match record.protocol {
                PROTOCOL_ICMP | PROTOCOL_ICMP6 => record.icmp_type_code = u16_at(body, 42),
                _ => (record.source_port, record.destination_port) = (u16_at(body, 40), u16_at(body, 42)),
            }
        }
        // EXipv4Flow
        (2, 8..) => {
            record.source_address = Address::v4(u32_at(body, 0));
            record.destination_address = Address::v4(u32_at(body, 4));
        }
        // EXipv6Flow
        (3, 32..) => {
            (record.source_address, record.destination_address) = (v6(body, 0), v6(body, 16));
        }
        // EXflowMisc; the last two fields came with 1.7.1.
        (4, 12..) => {
            (record.ingress_interface, record.egress_interface) = (u32_at(body, 0), u32_at(body, 4));
            (record.source_prefix_length, record.destination_prefix_length) = (body[8], body[9]);
            // nfdump does not tell an unknown direction from ingress, and shows ingress.
            record.post_class_of_service = body[11];
            record.flow_direction = u8::from(body[10] == 1);
            if let [_, reason, ..] = body[12..] {
                record.flow_end_reason = reason;
            }
        }
        // EXcntFlow
        (5, 24..) => return u64_at(body, 8) > 0 || u64_at(body, 16) > 0,
        // EXvLan
        (6, 8..) => {
            (record.vlan_id, record.post_vlan_id) = (u32_at(body, 0) as u16, u32_at(body, 4) as u16);
        }
        // EXasRouting
        (7, 8..) => (record.source_as, record.destination_as) = (u32_at(body, 0), u32_at(body, 4)),
        // EXbgpNextHopV4, EXbgpNextHopV6
        (8, 4..) => record.bgp_next_hop = next_hop(Address::v4(u32_at(body, 0))),
        (9, 16..) => record.bgp_next_hop = next_hop(v6(body, 0)),
        // EXipNextHopV4, EXipNextHopV6
        (10, 4..) => record.next_hop = next_hop(Address::v4(u32_at(body, 0))),
        (11, 16..) => record.next_hop = next_hop(v6(body, 0)),
        // EXipReceivedV4, EXipReceivedV6
        (12, 4..) => record.exporter = Address::v4(u32_at(body, 0)),
        (13, 16..) => record.exporter = v6(body, 0),
        // EXmplsLabel: ten numbers of 24 bits.
        (14, 40..) => {
            for (position, entry) in record.mpls_labels.0.iter_mut().enumerate() {
                let [_, high, middle, low] = u32_at(body, 4 * position).to_be_bytes();
                *entry = [high, middle, low];
            }
        }
        // EXmacAddr
        (15, 32..) => {
            let mac = |number: usize| Mac::from_number(u64_at(body, 8 * number));
            (record.source_mac, record.post_destination_mac) = (mac(0), mac(1));
            (record.destination_mac, record.post_source_mac) = (mac(2), mac(3));
        }
        // EXasAdjacent
        (16, 8..) => (record.next_as, record.previous_as) = (u32_at(body, 0), u32_at(body, 4)),
        // EXobservation
        (33, 12..) => {
            record.observation_point_id = u64_at(body, 0);
            record.observation_domain_id = u32_at(body, 8);
        }
        // EXvrf
        (36, 8..) => (record.egress_vrf_id, record.ingress_vrf_id) = (u32_at(body, 0), u32_at(body, 4)),
        // EXlayer2, since 1.7.3.
        (38, 8..) => {
            fill(&mut record.vlan_id, u16_at(body, 0));
            fill(&mut record.customer_vlan_id, u16_at(body, 2));
            fill(&mut record.post_vlan_id, u16_at(body, 4));
        }
        // EXipInfo, since 1.7.4.
        (42, 4..) => (record.minimum_ttl, record.maximum_ttl) = (body[2], body[3]),
        _ => {}
    }
    false
}

/// Sets a number that has no value yet.
fn fill(number: &mut u16, value: u16) {
    if *number == 0 {
        *number = value;
    }
}

/// Returns no address for zeros, which nfdump stores if there is no next hop.
fn next_hop(address: Address) -> Address {
    if address.0 == 0 || address.as_v4() == Some(0) { Address::NONE } else { address }
}

/// An IPv6 address, as two numbers of which the first is the prefix.
fn v6(body: &[u8], at: usize) -> Address {
    Address(u128::from(u64_at(body, at)) << 64 | u128::from(u64_at(body, at + 8)))
}

fn microseconds(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds).unwrap_or(i64::MAX).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An ICMP echo request of nfpcapd 1.7.1, from 192.0.2.1 to 192.0.2.2.
    fn echo_request() -> Vec<u8> {
        let mut record = vec![0x0b, 0, 0x4c, 0, 2, 0, 0x11, 1, 0, 0, 0, 0x41, 1, 0, 0x34, 0];
        for number in [1_795_299_369_974u64, 1_795_299_369_974, 1_795_951_497_827, 1, 84] {
            record.extend(number.to_le_bytes());
        }
        record.extend([0, 0, 0, 8, 1, 0, 0, 0, 2, 0, 12, 0, 1, 2, 0, 0xc0, 2, 2, 0, 0xc0]);
        record
    }

    #[test]
    fn a_flow_record_of_nfdump_is_decoded() {
        let mut batch = RecordBatch::default();
        let mut decoder = Decoder::default();
        decoder.block(&echo_request(), &mut batch).unwrap();
        let expected = Record {
            received_us: 1_795_299_369_974_000,
            sampling_interval: 1,
            flow_start_us: 1_795_299_369_974_000,
            flow_end_us: 1_795_299_369_974_000,
            source_address: Address::v4(0xc000_0201),
            destination_address: Address::v4(0xc000_0202),
            protocol: 1,
            icmp_type_code: 0x0800,
            packets: 1,
            octets: 84,
            ..Record::default()
        };
        assert_eq!(batch.record(0), expected);
        assert_eq!(decoder.tally(), Tally { flows: 1, ..Tally::default() });
    }

    #[test]
    fn exporters_are_known_from_their_records() {
        let mut block = vec![7, 0, 32, 0, 9, 0, 0, 0];
        block.extend([0; 12]);
        block.extend([1, 0, 0, 10, 2, 0, 3, 0, 77, 0, 0, 0]);
        let mut flow = echo_request();
        (flow[8], flow[11]) = (3, 9);
        block.extend(flow);
        let mut batch = RecordBatch::default();
        Decoder::default().block(&block, &mut batch).unwrap();
        let record = batch.record(0);
        assert_eq!((record.exporter, record.observation_domain_id), (Address::v4(0x0a00_0001), 77));
        assert_eq!((record.format, record.received_us), (Format::NetFlow9, 1_795_951_497_827_000));
    }

    #[test]
    fn names_apply_to_the_flows_after_them() {
        let mut block = Vec::new();
        for (kind, names) in [(13, [(3, "xe-0/0/3"), (4, "xe-0/0/4")]), (14, [(7, "red"), (8, "blue")])] {
            block.extend([kind, 0, 8 + 2 * 20, 0, 2, 0, 20, 0]);
            for (number, name) in names {
                block.extend(u32::to_le_bytes(number));
                block.extend(name.bytes().chain([0; 16]).take(16));
            }
        }
        let mut flow = echo_request();
        // Two more extensions: interfaces, VRFs.
        (flow[2], flow[4]) = (flow[2] + 20 + 12, 4);
        flow.extend([4, 0, 20, 0, 3, 0, 0, 0, 4, 0, 0, 0, 24, 16, 1, 0xB8, 0, 2, 0, 0]);
        flow.extend([36, 0, 12, 0, 8, 0, 0, 0, 7, 0, 0, 0]);
        block.extend(flow);
        let (mut decoder, mut batch) = (Decoder::default(), RecordBatch::default());
        decoder.block(&block, &mut batch).unwrap();
        let row = batch.record(0);
        let names = [
            row.ingress_interface_name,
            row.egress_interface_name,
            row.ingress_vrf_name,
            row.egress_vrf_name,
        ];
        assert_eq!(names.map(Name::text), ["xe-0/0/3", "xe-0/0/4", "red", "blue"]);
        assert_eq!((row.post_class_of_service, row.flow_end_reason), (0xB8, 2));
        assert_eq!((decoder.tally().names, decoder.tally().unknown), (2, 0));
        // More names than the record has room for, and the words of nfcapd 1.7.1.
        for (at, value) in [(4, 9), (6, 4)] {
            let mut block = block.clone();
            block[at] = value;
            let (mut decoder, mut batch) = (Decoder::default(), RecordBatch::default());
            decoder.block(&block, &mut batch).unwrap();
            assert_eq!((decoder.tally().names, decoder.tally().unknown), (1, 1));
            assert_eq!(batch.record(0).ingress_interface_name, Name::NONE);
        }
    }

    #[test]
    fn contradicting_sizes_are_named_with_their_offset() {
        let refused = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
            let mut block = echo_request();
            block.extend(echo_request());
            change(&mut block);
            let mut batch = RecordBatch::default();
            let error = Decoder::default().block(&block, &mut batch).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(batch.len(), 1, "the record before it is kept");
        };
        refused(&|block| block[78] = 2, "byte 76: a record of 2 bytes: expected at least 4");
        refused(&|block| block[78] = 80, "byte 76: 76 bytes left: expected 80 for a record");
        refused(&|block| block[90] = 200, "byte 88: 64 bytes left: expected 200 for an extension");
        refused(&|block| block[80] = 3, "byte 152: 0 bytes left: expected 4 for an extension header");
        refused(&|block| block.truncate(78), "byte 76: 2 bytes left: expected 4 for a record header");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..152, byte: u8) {
            let mut batch = RecordBatch::default();
            let _ = Decoder::default().block(&bytes, &mut batch);
            let mut block = [echo_request(), echo_request()].concat();
            block[at] = byte;
            let _ = Decoder::default().block(&block, &mut batch);
            batch.check_invariants();
        }
    }
}
