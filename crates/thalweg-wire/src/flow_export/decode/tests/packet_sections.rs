//! Sampled packets in IPFIX elements.

use super::*;

/// An Ethernet frame in VLAN 42 with a TCP segment of 1,500 bytes, of which the headers are captured.
fn tcp_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x20, 42, 8, 0];
    frame.extend([0x45, 0xB8, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([1, 187, 0xC0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame
}

/// The same in VXLAN over IPv4: 1,550 bytes.
pub(super) fn vxlan_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4, 8, 0];
    frame.extend([0x45, 0, 6, 14, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend([0x80, 0, 0x12, 0xB5, 5, 250, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0]);
    frame.extend(tcp_frame());
    frame
}

/// A UDP packet of 60 bytes over IPv6.
fn udp_v6() -> Vec<u8> {
    let mut packet = vec![0x6B, 0x80, 0, 0, 0, 20, 17, 64];
    packet.extend((0x2001_0DB8u128 << 96 | 1).to_be_bytes());
    packet.extend((0x2001_0DB8u128 << 96 | 2).to_be_bytes());
    packet.extend([0, 53, 0xC0, 0, 0, 20, 0, 0]);
    packet
}

fn variable(bytes: &[u8]) -> Vec<u8> {
    match bytes.len() {
        length @ 0..=254 => [&[length as u8], bytes].concat(),
        length => [&[255], &(length as u16).to_be_bytes()[..], bytes].concat(),
    }
}

fn tcp_row() -> Record {
    Record {
        received_us: 1_700_000_000_000_000,
        exporter: Address::v4(0xC000_0201),
        observation_domain_id: 1,
        format: Format::Ipfix,
        sampling_interval: 1000,
        flow_start_us: 1_699_999_999_000_000,
        flow_end_us: 1_699_999_999_000_000,
        source_address: Address::v4(0x0A00_0001),
        destination_address: Address::v4(0x0A00_0002),
        source_port: 443,
        destination_port: 0xC000,
        protocol: 6,
        tcp_flags: 0x18,
        class_of_service: 0xB8,
        octets: 1500,
        packets: 1,
        ingress_interface: 5,
        egress_interface: 6,
        vlan_id: 42,
        flow_direction: 1,
        source_mac: Mac([2, 0, 0, 0, 0, 2]),
        destination_mac: Mac([2, 0, 0, 0, 0, 1]),
        minimum_ttl: 64,
        maximum_ttl: 64,
        ..Record::default()
    }
}

/// Input and output interface, direction, sampling interval, time, and a frame of variable length with its size.
const FRAMES: [(u16, u16); 7] = [(10, 4), (14, 4), (61, 1), (34, 4), (322, 4), (315, 0xFFFF), (312, 2)];

fn frame_record(frame: &[u8], size: u16) -> Vec<u8> {
    let mut record = vec![0, 0, 0, 5, 0, 0, 0, 6, 1, 0, 0, 3, 0xE8];
    record.extend((NOW_SECONDS - 1).to_be_bytes());
    record.extend(variable(frame));
    record.extend(size.to_be_bytes());
    record
}

#[test]
fn a_sampled_frame_is_one_packet_with_its_headers() {
    let data = [frame_record(&tcp_frame(), 1518), frame_record(&[tcp_frame(), vec![7; 300]].concat(), 1518)];
    let sets = [template_set(Format::Ipfix, 256, &FRAMES), set(256, &data.concat())];
    let mut run = Run::new();
    assert_eq!(run.take(&ipfix(0, 1, &sets)), [tcp_row(); 2]);
    assert_eq!((run.counts().records, run.counts().untimed_records), (2, 0));
}

#[test]
fn the_inner_packet_of_a_tunnel_has_its_columns_or_replaces_the_tunnel() {
    let sets = [template_set(Format::Ipfix, 256, &FRAMES), set(256, &frame_record(&vxlan_frame(), 1564))];
    let message = ipfix(0, 1, &sets);
    let both = Record {
        source_address: Address::v4(0xC000_0201),
        destination_address: Address::v4(0xC000_0202),
        source_port: 0x8000,
        destination_port: 4789,
        protocol: 17,
        tcp_flags: 0,
        class_of_service: 0,
        octets: 1550,
        vlan_id: 0,
        inner_source_address: Address::v4(0x0A00_0001),
        inner_destination_address: Address::v4(0x0A00_0002),
        inner_source_port: 443,
        inner_destination_port: 0xC000,
        inner_protocol: 6,
        inner_tcp_flags: 0x18,
        source_mac: Mac([2, 0, 0, 0, 0, 4]),
        destination_mac: Mac([2, 0, 0, 0, 0, 3]),
        ..tcp_row()
    };
    assert_eq!(Run::new().take(&message), [both]);
    let mut run = Run::new();
    run.decoder.set_decapsulate(true);
    // The class of service and the TTL of an inner packet are not read.
    let inner = Record {
        class_of_service: 0,
        vlan_id: 0,
        source_mac: both.source_mac,
        destination_mac: both.destination_mac,
        minimum_ttl: 0,
        maximum_ttl: 0,
        ..tcp_row()
    };
    assert_eq!(run.take(&message), [inner], "1,500 octets");
}

#[test]
fn both_tags_of_a_frame_are_read() {
    let mut frame = tcp_frame();
    frame.splice(12..12, [0x88, 0xA8, 0, 7]);
    let sets = [template_set(Format::Ipfix, 256, &FRAMES), set(256, &frame_record(&frame, 1522))];
    let row = Run::new().take(&ipfix(0, 1, &sets))[0];
    assert_eq!((row.vlan_id, row.customer_vlan_id, row.octets), (7, 42, 1500));
}

#[test]
fn headers_below_mpls_labels_and_of_netflow_lite_are_read() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 0x88, 0x47];
    frame.extend([0, 1, 0, 64, 0, 2, 1, 1]);
    frame.extend([
        0x45, 0x20, 5, 148, 0, 0, 0, 0, 1, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 3, 0, 0, 0, 9, 0, 1,
    ]);
    let fields = [(103, 2), (104, frame.len() as u16), (48, 1)];
    let data = [&1450u16.to_be_bytes()[..], &frame, &[1]].concat();
    let row =
        Run::new().take(&netflow9(0, 1, &[template_set(Format::NetFlow9, 256, &fields), set(256, &data)]))[0];
    assert_eq!((row.octets, row.packets, row.vlan_id), (1428, 1, 7));
    assert_eq!((row.protocol, row.icmp_type_code, row.class_of_service), (1, 0x0803, 0x20));
    assert_eq!((row.mpls_labels.to_string(), row.maximum_ttl), ("16-0-0 32-0-1".to_owned(), 1));
}

#[test]
fn an_ip_section_is_a_packet_of_either_version() {
    let ip = &tcp_frame()[18..];
    let template = template_set(Format::Ipfix, 256, &[(313, 0xFFFF), (1, 0)]);
    let data = [variable(ip), variable(&udp_v6()), variable(&[&udp_v6()[..], &[1; 12]].concat())].concat();
    let rows = Run::new().take(&ipfix(0, 1, &[template, set(256, &data)]));
    let found: Vec<_> =
        rows.iter().map(|row| (row.protocol, row.source_port, row.octets, row.class_of_service)).collect();
    assert_eq!(found, [(6, 443, 1500, 0xB8), (17, 53, 60, 0xB8), (17, 53, 60, 0xB8)]);
}

#[test]
fn octets_are_those_of_the_packet_whatever_was_exported() {
    // The header states no length (segmentation offload): the length of frame or packet counts.
    let mut unstated = tcp_frame();
    unstated[20..22].fill(0);
    let frame = |size: u16, exported: u16| {
        let fields = [(312, 2), (410, 2), (315, 100)];
        let mut section = unstated.clone();
        section.resize(100, 0xFF);
        let data = [&size.to_be_bytes()[..], &exported.to_be_bytes(), &section].concat();
        Run::new().take(&ipfix(0, 1, &[template_set(Format::Ipfix, 256, &fields), set(256, &data)]))[0].octets
    };
    assert_eq!(frame(9018, 58), 9000, "the frame without its header and tag");
    assert_eq!(frame(0, 58), 40, "the exported octets without padding");
    assert_eq!(frame(60, 0), 42, "no more than the frame");
    for (element, length) in [(190, 2), (224, 8)] {
        let fields = [(element, length), (313, 40)];
        let mut total = vec![0; usize::from(length) - 2];
        total.extend(8000u16.to_be_bytes());
        let data = [&total[..], &unstated[18..58]].concat();
        let rows =
            Run::new().take(&ipfix(0, 1, &[template_set(Format::Ipfix, 256, &fields), set(256, &data)]));
        assert_eq!((rows[0].octets, rows[0].protocol), (8000, 6));
    }
}

#[test]
fn counters_of_the_template_take_precedence() {
    let template = template_set(Format::Ipfix, 256, &[(1, 4), (2, 4), (315, 0xFFFF)]);
    let data = [vec![0, 0, 0x27, 0x10, 0, 0, 0, 9], variable(&tcp_frame())].concat();
    let row = Run::new().take(&ipfix(0, 1, &[template, set(256, &data)]))[0];
    assert_eq!((row.octets, row.packets, row.source_port), (10_000, 9, 443));
    // With addresses, the section is not needed.
    let template = template_set(Format::Ipfix, 256, &[(8, 4), (1, 4), (315, 0xFFFF)]);
    let data = [vec![1, 2, 3, 4, 0, 0, 0x27, 0x10], variable(&[])].concat();
    let row = Run::new().take(&ipfix(0, 1, &[template, set(256, &data)]))[0];
    assert_eq!((row.source_address, row.octets), (Address::v4(0x0102_0304), 10_000));
}

#[test]
fn sections_without_a_packet_are_counted_by_reason() {
    let mut arp = tcp_frame()[..12].to_vec();
    arp.extend([8, 6, 0, 1]);
    let fields = [(408, 2), (315, 0xFFFF)];
    let record = |kind: u8, frame: &[u8]| [vec![0, kind], variable(frame)].concat();
    let data = [
        record(1, &arp),
        // 802.11.
        record(2, &tcp_frame()),
        record(1, &tcp_frame()[..30]),
        record(1, &[]),
        record(1, &tcp_frame()),
    ];
    let mut run = Run::new();
    let sets = [template_set(Format::Ipfix, 256, &fields), set(256, &data.concat())];
    assert_eq!(octets(&run.take(&ipfix(0, 1, &sets))), [1500]);
    let counts = run.counts();
    assert_eq!((counts.dropped_not_ip, counts.dropped_bad_frame, counts.records), (2, 2, 1));
    run.take(&ipfix(5, 1, &[]));
    assert_eq!(run.counts().lost, 0, "all five count for sequence numbers");
}

#[test]
fn the_interval_of_a_selection_sequence_is_that_of_its_selectors() {
    let mut run = Run::new();
    let options = [
        options_set(Format::Ipfix, 400, &[(301, 8)], &[(138, 8), (302, 2), (302, 2)]),
        set(400, &[vec![0, 0, 0, 0, 0, 0, 0, 9], vec![0; 8], vec![0, 5, 0, 6]].concat()),
        options_set(Format::Ipfix, 401, &[(302, 2)], &[(304, 2), (309, 4), (310, 4)]),
        set(401, &[0, 5, 0, 3, 0, 0, 0, 1, 0, 0, 0, 100]),
        set(401, &[0, 6, 0, 3, 0, 0, 0, 1, 0, 0, 0, 20]),
        template_set(Format::Ipfix, 256, &[(301, 8), (313, 40)]),
        set(256, &[&[0, 0, 0, 0, 0, 0, 0, 9], &tcp_frame()[18..58]].concat()),
    ];
    assert_eq!(run.take(&ipfix(0, 1, &options))[0].sampling_interval, 2000);
}
