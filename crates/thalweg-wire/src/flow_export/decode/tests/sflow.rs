//! Tests with sFlow datagrams.

use super::*;

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Encodes a structure with its format and length.
fn structure(format: u32, content: &[u8]) -> Vec<u8> {
    [&bytes(&[format, content.len() as u32]), content].concat()
}

fn datagram(sequence: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    let header = bytes(&[5, 1, 0x0A00_0063, 7, sequence, 90_000_000, samples.len() as u32]);
    [header, samples.concat()].concat()
}

/// Encodes a flow sample of interface 3, sampled 1 in 1,000, from that interface to `output`.
fn flow_sample(number: u32, output: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let words = [number, 3, 1000, 0, 17, 3, output, records.len() as u32];
    structure(1, &[bytes(&words), records.concat()].concat())
}

/// Encodes the same as an expanded flow sample.
fn expanded_flow_sample(number: u32, output: [u32; 2], records: &[Vec<u8>]) -> Vec<u8> {
    let words = [number, 0, 3, 1000, 0, 17, 0, 3, output[0], output[1], records.len() as u32];
    structure(3, &[bytes(&words), records.concat()].concat())
}

/// Encodes a sampled header of a TCP segment of 1,518 bytes in a VLAN.
fn tcp_header() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x20, 42, 8, 0];
    frame.extend([0x45, 0xB8, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([1, 187, 0xC0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    sampled_header(1, 1518, &frame)
}

fn sampled_header(protocol: u32, length: u32, frame: &[u8]) -> Vec<u8> {
    let mut content = bytes(&[protocol, length, 4, frame.len() as u32]);
    content.extend(frame);
    content.resize(content.len().next_multiple_of(4), 0);
    structure(1, &content)
}

fn expected() -> Record {
    Record {
        received_us: 1_700_000_000_000_000,
        exporter: Address::v4(0x0A00_0063),
        observation_domain_id: 7,
        format: Format::Sflow5,
        sampling_interval: 1000,
        flow_start_us: 1_700_000_000_000_000,
        flow_end_us: 1_700_000_000_000_000,
        source_address: Address::v4(0x0A00_0001),
        destination_address: Address::v4(0x0A00_0002),
        source_port: 443,
        destination_port: 0xC000,
        protocol: 6,
        tcp_flags: 0x18,
        class_of_service: 0xB8,
        octets: 1500,
        packets: 1,
        ingress_interface: 3,
        egress_interface: 4,
        vlan_id: 42,
        flow_direction: 0,
        source_mac: Mac([2, 0, 0, 0, 0, 2]),
        destination_mac: Mac([2, 0, 0, 0, 0, 1]),
        minimum_ttl: 64,
        maximum_ttl: 64,
        ..Record::default()
    }
}

/// Removes what only a sampled header has.
fn without_header(row: Record) -> Record {
    let none = Record::default();
    Record {
        vlan_id: 0,
        source_mac: none.source_mac,
        destination_mac: none.destination_mac,
        minimum_ttl: 0,
        maximum_ttl: 0,
        ..row
    }
}

#[test]
fn a_flow_sample_is_a_row_in_either_form() {
    let mut run = Run::new();
    let samples = [
        flow_sample(1, 4, &[tcp_header()]),
        expanded_flow_sample(2, [0, 4], &[tcp_header()]),
        // To several interfaces, dropped, and to the device.
        expanded_flow_sample(3, [2, 4], &[tcp_header()]),
        flow_sample(4, 1 << 30 | 4, &[tcp_header()]),
        flow_sample(5, 0x3FFF_FFFF, &[tcp_header()]),
    ];
    let rows = run.take(&datagram(1, &samples));
    assert_eq!(rows[..2], [expected(); 2]);
    let nowhere = Record { egress_interface: 0, ..expected() };
    assert_eq!(rows[2..], [nowhere; 3]);
    assert_eq!(run.source().sampling_interval, 1000);
    assert_eq!(run.source().exporter, Address::v4(0x0A00_0063));
}

#[test]
fn the_packet_in_a_tunnel_has_its_columns_or_replaces_the_tunnel() {
    let frame = super::packet_sections::vxlan_frame();
    let message = datagram(1, &[flow_sample(1, 4, &[sampled_header(1, 1564, &frame)])]);
    let row = Run::new().take(&message)[0];
    assert_eq!(
        (row.source_address, row.destination_port, row.octets),
        (Address::v4(0xC000_0201), 4789, 1550)
    );
    assert_eq!((row.inner_source_address, row.inner_source_port), (Address::v4(0x0A00_0001), 443));
    assert_eq!((row.inner_protocol, row.inner_tcp_flags), (6, 0x18));
    let mut run = Run::new();
    run.decoder.set_decapsulate(true);
    let expected = Record {
        vlan_id: 0,
        class_of_service: 0,
        source_mac: Mac([2, 0, 0, 0, 0, 4]),
        destination_mac: Mac([2, 0, 0, 0, 0, 3]),
        minimum_ttl: 0,
        maximum_ttl: 0,
        ..expected()
    };
    assert_eq!(run.take(&message), [expected]);
}

#[test]
fn routing_information_is_decoded() {
    let mut run = Run::new();
    let switch = structure(1001, &bytes(&[99, 0, 100, 0]));
    let router = structure(1002, &bytes(&[1, 0x0A00_00FE, 24, 16]));
    // Two segments (a sequence of two, a set of one), no communities, a preference.
    let path = [1, 0x0A00_00FD, 65_000, 65_001, 65_002, 2, 2, 2, 64_512, 64_513, 1, 1, 64_514, 0, 100];
    let gateway = structure(1003, &bytes(&path));
    let rows = run.take(&datagram(1, &[flow_sample(1, 4, &[switch, router, gateway, tcp_header()])]));
    let row = Record {
        vlan_id: 99,
        next_hop: Address::v4(0x0A00_00FE),
        source_prefix_length: 24,
        destination_prefix_length: 16,
        source_as: 65_001,
        destination_as: 64_514,
        post_vlan_id: 100,
        bgp_next_hop: Address::v4(0x0A00_00FD),
        next_as: 64_512,
        previous_as: 65_002,
        ..expected()
    };
    assert_eq!(rows, [row]);
}

#[test]
fn fields_decoded_by_the_agent_are_used_without_a_header() {
    let mut run = Run::new();
    let v4 = structure(3, &bytes(&[1500, 6, 0x0A00_0001, 0x0A00_0002, 443, 0xC000, 0x18, 0xB8]));
    let v6 = structure(4, &bytes(&[900, 17, 0x2001_0DB8, 0, 0, 1, 0x2001_0DB8, 0, 0, 2, 53, 54, 0, 0]));
    let samples = [
        flow_sample(1, 4, std::slice::from_ref(&v4)),
        flow_sample(2, 4, &[v6]),
        flow_sample(3, 4, &[v4.clone(), tcp_header()]),
        flow_sample(
            4,
            4,
            &[structure(2, &bytes(&[1518, 0x0200_0000, 0x0007_0000, 0x0200_0000, 0x0008_0000, 0x800])), v4],
        ),
    ];
    let rows = run.take(&datagram(1, &samples));
    assert_eq!(rows[0], without_header(expected()));
    assert_eq!(rows[1].source_address, Address(0x2001_0DB8 << 96 | 1));
    assert_eq!((rows[1].octets, rows[1].source_port, rows[1].protocol), (900, 53, 17));
    assert_eq!(rows[2], expected());
    let macs = (rows[3].source_mac.to_string(), rows[3].destination_mac.to_string());
    assert_eq!(macs, ("02:00:00:00:00:07".to_owned(), "02:00:00:00:00:08".to_owned()));
}

#[test]
fn icmp_has_its_type_and_code_and_no_ports() {
    let mut run = Run::new();
    let mut v4 = vec![0x45, 0, 0, 84, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    v4.extend([8, 0, 0, 0, 0x12, 0x34, 0, 1]);
    let mut v6 = vec![0x6B, 0x80, 0, 0, 0, 8, 58, 64];
    v6.extend([0; 32]);
    v6.extend([129, 0, 0, 0, 0x12, 0x34, 0, 1]);
    let records = [sampled_header(11, 84, &v4), sampled_header(12, 48, &v6)];
    let samples = records.map(|record| flow_sample(0, 4, &[record]));
    let rows = run.take(&datagram(1, &samples));
    let said =
        |row: &Record| (row.icmp_type_code, row.source_port, row.destination_port, row.class_of_service);
    assert_eq!(rows.iter().map(said).collect::<Vec<_>>(), [(0x0800, 0, 0, 0), (0x8100, 0, 0, 0xB8)]);
    assert_eq!(octets(&rows), [84, 48]);
}

#[test]
fn interface_counters_are_rows_in_either_form() {
    let mut run = Run::new();
    let words = [3, 6, 0, 1_000_000_000, 1, 3, 1, 2, 11, 12, 13, 14, 15, 16, 3, 4, 21, 22, 23, 24, 25, 2];
    let block = structure(1, &bytes(&words));
    let other = structure(2, &[0; 52]);
    let samples = [
        structure(2, &[bytes(&[1, 3, 2]), block.clone(), other].concat()),
        structure(4, &[bytes(&[2, 0, 3, 1]), block].concat()),
    ];
    assert_eq!(run.take(&datagram(1, &samples)), []);
    let counters = &run.decoded.counters;
    assert_eq!((counters.len(), counters.record(0)), (2, counters.record(1)));
    let row = counters.record(0);
    assert_eq!((row.interface, row.interface_type, row.speed_bps, row.duplex), (3, 6, 1_000_000_000, 1));
    assert_eq!((row.administratively_up, row.operationally_up, row.promiscuous), (1, 1, 2));
    assert_eq!((row.in_octets, row.out_octets), ((1 << 32) + 2, (3 << 32) + 4));
    let in_packets = [row.in_unicast_packets, row.in_multicast_packets, row.in_broadcast_packets];
    assert_eq!(
        (in_packets, row.in_discards, row.in_errors, row.in_unknown_protocols),
        ([11, 12, 13], 14, 15, 16)
    );
    let out_packets = [row.out_unicast_packets, row.out_multicast_packets, row.out_broadcast_packets];
    assert_eq!((out_packets, row.out_discards, row.out_errors), ([21, 22, 23], 24, 25));
    assert_eq!((run.counts().counter_records, run.counts().dropped_unknown_sample), (2, 1));
}

#[test]
fn lost_datagrams_and_lost_samples_are_counted_separately() {
    let mut run = Run::new();
    run.take(&datagram(10, &[flow_sample(1, 4, &[tcp_header()])]));
    run.take(&datagram(12, &[flow_sample(5, 4, &[tcp_header()]), expanded_flow_sample(6, [0, 4], &[])]));
    assert_eq!((run.counts().lost, run.counts().lost_samples), (1, 3));
    let mut more = flow_sample(7, 4, &[tcp_header()]);
    more[8 + 16 + 3] = 20;
    run.take(&datagram(13, &[more]));
    assert_eq!(run.counts().dropped_by_agent, 3, "from 17 to 20");
}

#[test]
fn samples_without_row_are_counted_by_reason() {
    let mut run = Run::new();
    let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
    let broken = [&[0; 12][..], &[8, 0], &[0x55; 28]].concat();
    let samples = [
        flow_sample(1, 4, &[sampled_header(1, 64, &arp)]),
        flow_sample(2, 4, &[sampled_header(1, 64, &broken)]),
        flow_sample(3, 4, &[sampled_header(99, 64, &arp)]),
        flow_sample(4, 4, &[structure(77, &[0; 8])]),
        structure(5, &[0; 8]),
    ];
    assert_eq!(run.take(&datagram(1, &samples)), []);
    let counts = run.counts();
    assert_eq!((counts.dropped_not_ip, counts.dropped_bad_frame, counts.dropped_unknown_sample), (2, 1, 2));
}

#[test]
fn a_truncated_or_inconsistent_datagram_is_rejected() {
    let sound = datagram(1, &[flow_sample(1, 4, &[tcp_header()]), flow_sample(2, 4, &[tcp_header()])]);
    for length in 0..sound.len() {
        let mut run = Run::new();
        run.take_invalid(&sound[..length]);
    }
    let mut run = Run::new();
    run.take(&sound);
    let mut lying = sound.clone();
    lying[28 + 6] = 9;
    let kind =
        DecodeErrorKind::Truncated { structure: "sFlow sample", offset: 36, needed: 2304 + 116, found: 240 };
    let found = run.take_invalid(&lying);
    assert!(
        matches!(
            (found, kind),
            (DecodeErrorKind::Truncated { offset: 36, .. }, DecodeErrorKind::Truncated { .. })
        ),
        "{found:?}"
    );
    assert_eq!(run.counts().dropped_malformed, 1);
    let mut agent = sound;
    agent[7] = 3;
    let number = DecodeErrorKind::Number {
        structure: "address type",
        offset: 4,
        found: 3,
        expected: "0, 1 (IPv4) or 2 (IPv6)",
    };
    assert_eq!(run.take_invalid(&agent), number);
}
