//! Tests of columns that most exporters do not send.

use super::*;
use crate::flow_export::LabelStack;

/// Every such element, and its length.
const ELEMENTS: [(u16, u16); 19] = [
    (56, 6),
    (80, 6),
    (81, 6),
    (57, 6),
    (59, 2),
    (245, 2),
    (52, 1),
    (53, 1),
    (55, 1),
    (89, 1),
    (70, 3),
    (71, 3),
    (79, 3),
    (234, 4),
    (235, 4),
    (18, 4),
    (128, 4),
    (129, 4),
    (138, 8),
];

fn data() -> Vec<u8> {
    let mut bytes = Vec::new();
    for last in 1..=4 {
        bytes.extend([2, 0, 0, 0, 0, last]);
    }
    bytes.extend([0, 7, 0, 8, 60, 64, 0xB8, 0x40, 0, 1, 0, 0, 6, 0x4A, 0, 2, 1]);
    bytes.extend(words(&[0, 100, 0, 101, 0x0A00, 9, 0, 65_001, 0, 65_002, 0, 0, 0, 33]));
    bytes
}

#[test]
fn every_element_has_its_column_in_both_formats() {
    for format in BOTH {
        let fields = [&[(1, 4)][..], &ELEMENTS].concat();
        let record = [vec![0, 0, 0, 9], data()].concat();
        let mut run = Run::new();
        let row =
            run.take(&message(format, 0, 1, &[template_set(format, 256, &fields), set(256, &record)]))[0];
        let mut mpls_labels = LabelStack::default();
        (mpls_labels.0[0], mpls_labels.0[1], mpls_labels.0[9]) = ([0, 1, 0], [0, 6, 0x4A], [0, 2, 1]);
        let expected = Record {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            post_source_mac: Mac([2, 0, 0, 0, 0, 3]),
            post_destination_mac: Mac([2, 0, 0, 0, 0, 4]),
            post_vlan_id: 7,
            customer_vlan_id: 8,
            minimum_ttl: 60,
            maximum_ttl: 64,
            post_class_of_service: 0xB8,
            forwarding_status: 64,
            mpls_labels,
            ingress_vrf_id: 100,
            egress_vrf_id: 101,
            bgp_next_hop: Address::v4(0x0A00_0009),
            next_as: 65_001,
            previous_as: 65_002,
            observation_point_id: 33,
            ..row
        };
        assert_eq!(row, expected);
        assert_eq!((row.octets, row.next_hop, row.vlan_id), (9, Address::NONE, 0));
    }
}

#[test]
fn templates_without_them_leave_them_empty_whatever_came_before() {
    let plain = template_set(Format::Ipfix, 256, &[(1, 1)]);
    let tagged = template_set(Format::Ipfix, 257, &[(1, 1), (59, 2)]);
    let mut run = Run::new();
    let rows = run.take(&ipfix(0, 1, &[plain, set(256, &[1, 2])]));
    assert_eq!((rows.len(), run.decoded.flows.post_vlan_id.values()), (2, None));
    let rows = run.take(&ipfix(2, 1, &[tagged, set(256, &[1]), set(257, &[2, 0, 7]), set(256, &[3, 4])]));
    assert_eq!(rows.iter().map(|row| row.post_vlan_id).collect::<Vec<_>>(), [0, 7, 0, 0]);
}

#[test]
fn alternatives_fill_what_is_unreported() {
    // postVlanId before postDot1qVlanId, an IPv6 next hop, and a TTL that is minimum and maximum.
    let fields = [(254, 2), (59, 2), (18, 4), (63, 16), (192, 1), (1, 1)];
    let record = |post: u8, last: u8| {
        let mut record = vec![0, 5, 0, post, 0, 0, 0, 0];
        record.extend([[0; 15].as_slice(), &[last, 64, 1]].concat());
        record
    };
    let sets = [template_set(Format::Ipfix, 256, &fields), set(256, &[record(7, 1), record(0, 0)].concat())];
    let rows = Run::new().take(&ipfix(0, 1, &sets));
    assert_eq!((rows[0].post_vlan_id, rows[0].bgp_next_hop), (7, Address(1)));
    assert_eq!((rows[1].post_vlan_id, rows[1].bgp_next_hop), (5, Address::NONE));
    assert_eq!((rows[0].minimum_ttl, rows[0].maximum_ttl), (64, 64));
}

#[test]
fn the_forwarding_status_may_have_one_byte_or_four() {
    let status = |length: u16, bytes: &[u8]| {
        let sets =
            [template_set(Format::Ipfix, 256, &[(89, length), (1, 1)]), set(256, &[bytes, &[1]].concat())];
        Run::new().take(&ipfix(0, 1, &sets))[0].forwarding_status
    };
    assert_eq!(
        (status(1, &[0x82]), status(4, &[0, 0, 0, 0x82]), status(4, &[0x82, 0, 0, 0])),
        (0x82, 0x82, 0x82)
    );
    assert_eq!((status(4, &[0; 4]), status(2, &[0, 0x40])), (0, 0x40));
}

#[test]
fn invalid_lengths_are_ignored() {
    let fields = [(56, 4), (70, 4), (18, 6), (1, 1)];
    let sets = [template_set(Format::Ipfix, 256, &fields), set(256, &[1; 15])];
    let row = Run::new().take(&ipfix(0, 1, &sets))[0];
    assert_eq!((row.source_mac, row.mpls_labels, row.bgp_next_hop), Default::default());
}
