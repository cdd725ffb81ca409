//! Templates with outer and inner headers.

use super::*;

const V6: u128 = 0x2001_0DB8 << 96;

fn v4(host: u8) -> Vec<u8> {
    vec![10, 0, 0, host]
}

fn v6(host: u8) -> Vec<u8> {
    (V6 | u128::from(host)).to_be_bytes().to_vec()
}

fn none_v6() -> Vec<u8> {
    vec![0; 16]
}

fn row(fields: &[(u16, u16)], values: &[Vec<u8>]) -> Record {
    rows(&mut Run::new(), fields, values)[0]
}

fn rows(run: &mut Run, fields: &[(u16, u16)], values: &[Vec<u8>]) -> Vec<Record> {
    run.take(&ipfix(0, 1, &[template_set(Format::Ipfix, 256, fields), set(256, &values.concat())]))
}

/// The header fields of a layer: addresses, ports, protocol, TCP flags, class of service, prefix lengths.
type Layer = (Address, Address, u16, u16, u8, u16, u8, u8, u8);

fn outer(row: &Record) -> Layer {
    (
        row.source_address,
        row.destination_address,
        row.source_port,
        row.destination_port,
        row.protocol,
        row.tcp_flags,
        row.class_of_service,
        row.source_prefix_length,
        row.destination_prefix_length,
    )
}

fn inner(row: &Record) -> Layer {
    (
        row.inner_source_address,
        row.inner_destination_address,
        row.inner_source_port,
        row.inner_destination_port,
        row.inner_protocol,
        row.inner_tcp_flags,
        row.inner_class_of_service,
        row.inner_source_prefix_length,
        row.inner_destination_prefix_length,
    )
}

fn v4_pair(from: u8, to: u8) -> (Address, Address) {
    (Address::v4(0x0A00_0000 | u32::from(from)), Address::v4(0x0A00_0000 | u32::from(to)))
}

fn v6_pair(from: u8, to: u8) -> (Address, Address) {
    (Address(V6 | u128::from(from)), Address(V6 | u128::from(to)))
}

#[test]
fn srv6_and_its_ipv4_packet_are_two_layers() {
    // The outer header with its protocol and prefix lengths, then the inner one.
    let fields = [
        (27, 16),
        (28, 16),
        (29, 1),
        (30, 1),
        (4, 1),
        (5, 1),
        (8, 4),
        (12, 4),
        (9, 1),
        (13, 1),
        (7, 2),
        (11, 2),
        (1, 1),
    ];
    let bytes = [v6(1), v6(2), vec![64, 48, 4, 0xB8], v4(3), v4(4), vec![24, 16, 1, 187, 0, 80, 99]];
    let found = row(&fields, &bytes);
    let ((a, b), (c, d)) = (v6_pair(1, 2), v4_pair(3, 4));
    assert_eq!(outer(&found), (a, b, 0, 0, 4, 0, 0xB8, 64, 48));
    assert_eq!(inner(&found), (c, d, 443, 80, 0, 0, 0, 24, 16));
    assert_eq!(found.octets, 99);
}

#[test]
fn repeated_elements_follow_the_order_of_the_headers() {
    // IPv4 in IPv4: all fields twice, header by header, and element by element.
    let by_header =
        [(8, 4), (12, 4), (4, 1), (5, 1), (8, 4), (12, 4), (4, 1), (5, 1), (7, 2), (11, 2), (6, 1), (1, 1)];
    let bytes = [v4(1), v4(2), vec![4, 0xB8], v4(3), v4(4), vec![6, 0, 1, 187, 0, 80, 0x12, 99]];
    let by_element =
        [(8, 4), (8, 4), (12, 4), (12, 4), (4, 1), (4, 1), (5, 1), (5, 1), (7, 2), (11, 2), (6, 1), (1, 1)];
    let sorted = [v4(1), v4(3), v4(2), v4(4), vec![4, 6, 0xB8, 0, 1, 187, 0, 80, 0x12, 99]];
    let ((a, b), (c, d)) = (v4_pair(1, 2), v4_pair(3, 4));
    for found in [row(&by_header, &bytes), row(&by_element, &sorted)] {
        assert_eq!(outer(&found), (a, b, 0, 0, 4, 0, 0xB8, 0, 0));
        assert_eq!(inner(&found), (c, d, 443, 80, 6, 0x12, 0, 0, 0));
    }
}

#[test]
fn an_outer_ipv6_header_with_an_inner_packet_of_either_version() {
    let fields = [(27, 16), (28, 16), (4, 1), (8, 4), (12, 4), (27, 16), (28, 16), (4, 1), (7, 2), (1, 1)];
    let with_v4 = [v6(1), v6(2), vec![4], v4(3), v4(4), none_v6(), none_v6(), vec![17, 0, 53, 99]];
    let with_v6 = [v6(1), v6(2), vec![41], vec![0; 8], v6(5), v6(6), vec![6, 0, 22, 99]];
    let plain = [v6(1), v6(2), vec![6], vec![0; 8], none_v6(), none_v6(), vec![0, 0, 22, 99]];
    let found = rows(&mut Run::new(), &fields, &[with_v4.concat(), with_v6.concat(), plain.concat()]);
    let ((a, b), (c, d), (e, f)) = (v6_pair(1, 2), v4_pair(3, 4), v6_pair(5, 6));
    assert_eq!(outer(&found[0]), (a, b, 0, 0, 4, 0, 0, 0, 0));
    assert_eq!(inner(&found[0]), (c, d, 53, 0, 17, 0, 0, 0, 0));
    assert_eq!(outer(&found[1]), (a, b, 0, 0, 41, 0, 0, 0, 0));
    assert_eq!(inner(&found[1]), (e, f, 22, 0, 6, 0, 0, 0, 0));
    assert_eq!(outer(&found[2]), (a, b, 22, 0, 6, 0, 0, 0, 0));
    assert_eq!(inner(&found[2]), inner(&Record::default()));
}

#[test]
fn a_template_for_both_versions_has_one_layer_in_each_record() {
    let fields = [(8, 4), (27, 16), (12, 4), (28, 16), (9, 1), (29, 1), (4, 1), (7, 2), (11, 2), (1, 1)];
    let with_v4 = [v4(1), none_v6(), v4(2), none_v6(), vec![24, 0, 6, 1, 187, 0, 80, 99]];
    let with_v6 = [vec![0; 4], v6(3), vec![0; 4], v6(4), vec![0, 64, 17, 1, 187, 0, 80, 99]];
    // DHCP: the source is unspecified.
    let discover = [vec![0; 4], none_v6(), v4(2), none_v6(), vec![0, 0, 17, 0, 68, 0, 67, 99]];
    let found = rows(&mut Run::new(), &fields, &[with_v4.concat(), with_v6.concat(), discover.concat()]);
    let ((a, b), (c, d)) = (v4_pair(1, 2), v6_pair(3, 4));
    assert_eq!(outer(&found[0]), (a, b, 443, 80, 6, 0, 0, 24, 0));
    assert_eq!(outer(&found[1]), (c, d, 443, 80, 17, 0, 0, 64, 0));
    assert_eq!(outer(&found[2]), (Address::v4(0), b, 68, 67, 17, 0, 0, 0, 0));
    assert!(found.iter().all(|row| inner(row) == inner(&Record::default())));
}

#[test]
fn a_protocol_that_announces_ip_is_of_the_outer_header_wherever_it_is() {
    let fields = [(27, 16), (28, 16), (8, 4), (12, 4), (4, 1), (7, 2), (1, 1)];
    let bytes = |protocol: u8| [v6(1), v6(2), v4(3), v4(4), vec![protocol, 0, 53, 99]].concat();
    let found = rows(&mut Run::new(), &fields, &[bytes(4), bytes(17)]);
    assert_eq!(
        [found[0].protocol, found[0].inner_protocol, found[1].protocol, found[1].inner_protocol],
        [4, 0, 0, 17]
    );
    assert!(found.iter().all(|row| (row.source_port, row.inner_source_port) == (0, 53)));
}

#[test]
fn both_layers_are_swapped_in_the_reverse_row_of_a_biflow() {
    let mut record = words(&[256, 7]);
    record.extend(words(&[27, 16, 28, 16, 4, 1, 8, 4, 12, 4, 1, 1]));
    record.extend(words(&[0x8001, 1, 0, 29305]));
    let data = [v6(1), v6(2), vec![4], v4(3), v4(4), vec![9, 8]].concat();
    let rows = Run::new().take(&ipfix(0, 1, &[set(2, &record), set(256, &data)]));
    let ((a, b), (c, d)) = (v6_pair(1, 2), v4_pair(3, 4));
    assert_eq!((octets(&rows), rows.len()), (vec![9, 8], 2));
    assert_eq!(outer(&rows[0]), (a, b, 0, 0, 4, 0, 0, 0, 0));
    assert_eq!(outer(&rows[1]), (b, a, 0, 0, 4, 0, 0, 0, 0));
    assert_eq!(inner(&rows[1]), (d, c, 0, 0, 0, 0, 0, 0, 0));
}

#[test]
fn decapsulation_stores_the_inner_layer_as_the_flow() {
    let fields = [(27, 16), (28, 16), (4, 1), (5, 1), (8, 4), (12, 4), (4, 1), (7, 2), (1, 1)];
    let bytes = [v6(1), v6(2), vec![4, 0xB8], v4(3), v4(4), vec![17, 0, 53, 99]];
    let plain = [v6(1), v6(2), vec![6, 0xB8], vec![0; 8], vec![0, 0, 22, 99]];
    let mut run = Run::new();
    run.decoder.set_decapsulate(true);
    let found = rows(&mut run, &fields, &[bytes.concat(), plain.concat()]);
    let ((a, b), (c, d)) = (v6_pair(1, 2), v4_pair(3, 4));
    assert_eq!(outer(&found[0]), (c, d, 53, 0, 17, 0, 0, 0, 0));
    assert_eq!(outer(&found[1]), (a, b, 22, 0, 6, 0, 0xB8, 0, 0));
    assert!(found.iter().all(|row| inner(row) == inner(&Record::default())));
}
