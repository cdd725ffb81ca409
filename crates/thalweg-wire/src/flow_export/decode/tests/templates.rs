//! Tests of templates: definition, repetition, change, withdrawal, late arrival, variable lengths.

use super::*;

#[test]
fn data_before_their_template_are_held_and_decoded_with_their_own_header() {
    for format in BOTH {
        let mut run = Run::new();
        assert_eq!(run.take(&message(format, 0, 1, &[octets_data(256, &[1, 2])])), []);
        assert_eq!(run.take(&message(format, 2, 1, &[octets_data(257, &[8])])), []);
        assert!(run.source().held_bytes > 0);
        let later = NOW + Nanos::from_secs(5);
        let sets = [octets_template(format, 256), octets_data(256, &[3])];
        let rows = run.take_at(later, &message(format, 3, 1, &sets));
        assert_eq!(octets(&rows), [1, 2, 3]);
        let times: Vec<i64> = rows.iter().map(|row| row.received_us - 1_700_000_000_000_000).collect();
        assert_eq!(times, [0, 0, 5_000_000]);
        let counts = run.counts();
        assert_eq!((counts.held_sets, counts.released_sets, counts.records), (2, 1, 3));
        // The other is finally dropped.
        run.decoder.expire(NOW + Nanos::from_secs(601));
        assert_eq!((run.counts().dropped_template_late, run.source().held_bytes), (1, 0));
    }
}

#[test]
fn a_repeated_template_has_no_effect_and_a_different_one_replaces_it() {
    for format in BOTH {
        let mut run = Run::new();
        let sets = [octets_template(format, 256), octets_data(256, &[1])];
        run.take(&message(format, 0, 1, &sets));
        assert_eq!(octets(&run.take(&message(format, 1, 1, &sets))), [1]);
        assert_eq!((run.counts().templates_defined, run.counts().templates_replaced), (1, 0));
        // The same number with other fields: 2 bytes of packets, 2 of octets.
        let changed = template_set(format, 256, &[(2, 2), (1, 2)]);
        let rows = run.take(&message(format, 2, 1, &[changed, octets_data(256, &[0x0001_0203])]));
        assert_eq!((rows[0].packets, rows[0].octets), (1, 0x0203));
        assert_eq!((run.counts().templates_replaced, run.source().templates), (1, 1));
    }
}

#[test]
fn templates_are_separate_by_domain_and_sender() {
    for format in BOTH {
        let mut run = Run::new();
        run.take(&message(format, 0, 1, &[octets_template(format, 256)]));
        run.take(&message(format, 0, 2, &[template_set(format, 256, &[(2, 4)])]));
        let data = [octets_data(256, &[5])];
        assert_eq!(run.take(&message(format, 0, 1, &data))[0].octets, 5);
        assert_eq!(run.take(&message(format, 0, 2, &data))[0].packets, 5);
        // Another port and another address: their data are held, and their templates are not used for others.
        for spoofed in ["192.0.2.1:9", "192.0.2.9:2055"] {
            let from = spoofed.parse().unwrap();
            assert_eq!(run.take_from(from, NOW, &message(format, 0, 1, &data)), []);
            let liar = template_set(format, 256, &[(2, 1), (1, 1)]);
            assert_eq!(run.take_from(from, NOW, &message(format, 0, 1, &[liar])).len(), 2);
        }
        assert_eq!(octets(&run.take(&message(format, 0, 1, &data))), [5]);
    }
}

#[test]
fn templates_expire_over_udp_but_not_over_a_connection() {
    let lifetime = Limits::default().template_lifetime;
    let data = ipfix(0, 1, &[octets_data(256, &[5])]);
    let mut run = Run::new();
    let template = ipfix(0, 1, &[octets_template(Format::Ipfix, 256)]);
    run.take(&template);
    assert_eq!(run.take_at(NOW + lifetime, &data).len(), 1);
    run.take_at(NOW + lifetime, &template);
    assert_eq!(run.take_at(NOW + lifetime + lifetime, &data).len(), 1, "repeated in time");
    let late = NOW + lifetime + lifetime + Nanos(1);
    assert_eq!(run.take_at(late, &data).len(), 0);
    assert_eq!((run.counts().templates_expired, run.counts().held_sets), (1, 1));
    let mut run = Run::new();
    run.take_stream(&template);
    run.decoded.clear();
    run.decoder.message(exporter(), late, &data, &mut run.decoded).unwrap();
    assert_eq!(run.rows().len(), 1);
}

#[test]
fn templates_are_withdrawn_over_a_connection_but_not_over_udp() {
    let definitions = || {
        ipfix(
            0,
            1,
            &[
                octets_template(Format::Ipfix, 256),
                octets_template(Format::Ipfix, 257),
                options_set(Format::Ipfix, 258, &[(149, 4)], &[(34, 4)]),
            ],
        )
    };
    let withdraw = |set_id: u16, id: u16| ipfix(0, 1, &[set(set_id, &words(&[id, 0]))]);
    for (message, left) in
        [(withdraw(2, 256), 2), (withdraw(2, 2), 1), (withdraw(3, 3), 2), (withdraw(3, 258), 2)]
    {
        let mut run = Run::new();
        run.take_stream(&definitions());
        run.take_stream(&message);
        assert_eq!(run.source().templates, left);
        assert_eq!(run.counts().templates_withdrawn, 3 - left);
        let mut run = Run::new();
        run.take(&definitions());
        run.take(&message);
        assert_eq!((run.source().templates, run.counts().withdrawals_ignored), (3, 1));
    }
    // A withdrawn number can be redefined differently.
    let mut run = Run::new();
    run.take_stream(&definitions());
    run.take_stream(&withdraw(2, 256));
    assert_eq!(run.take_stream(&ipfix(0, 1, &[octets_data(256, &[1])])), []);
    let anew = ipfix(1, 1, &[template_set(Format::Ipfix, 256, &[(2, 4)])]);
    assert_eq!(run.take_stream(&anew)[0].packets, 1, "and what waited is decoded");
}

#[test]
fn the_end_of_a_connection_removes_its_templates() {
    let mut run = Run::new();
    run.take_stream(&ipfix(0, 1, &[octets_template(Format::Ipfix, 256), octets_data(256, &[1])]));
    run.decoder.end_session(exporter());
    assert_eq!(run.decoder.sources(), []);
    assert_eq!(run.decoder.totals().gone.records, 1);
    assert_eq!(run.take_stream(&ipfix(0, 1, &[octets_data(256, &[1])])), []);
}

#[test]
fn fixed_fields_are_decoded_in_records_of_variable_length() {
    for format in BOTH {
        let mut run = Run::new();
        // interfaceName, octets, another name, packets.
        let template = template_set(format, 256, &[(82, 0xFFFF), (1, 4), (83, 0xFFFF), (2, 2)]);
        let record = |name: &[u8], octets: u32, packets: u16| {
            let mut bytes = vec![name.len() as u8];
            bytes.extend(name);
            bytes.extend(octets.to_be_bytes());
            // The three-byte form of a length (RFC 7011 section 7), also for a short value.
            bytes.extend([255, 0, 3, 1, 2, 3]);
            bytes.extend(packets.to_be_bytes());
            bytes
        };
        let data = [record(b"eth0", 100, 1), record(b"", 200, 2), record(b"tunnel17", 300, 3)].concat();
        for padding in 0..4 {
            let padded = [&data[..], &vec![0; padding]].concat();
            let rows = run.take(&message(format, 0, 1, &[template.clone(), set(256, &padded)]));
            assert_eq!(octets(&rows), [100, 200, 300]);
            assert_eq!(rows.iter().map(|row| row.packets).collect::<Vec<_>>(), [1, 2, 3]);
        }
        // A record that exceeds its set: the whole message is dropped.
        let cut = [octets_template(format, 300), octets_data(300, &[9]), set(256, &data[..data.len() - 1])];
        let kind = run.take_invalid(&message(format, 0, 1, &cut));
        assert!(matches!(kind, DecodeErrorKind::Truncated { structure: "data record", .. }), "{kind:?}");
        assert_eq!(run.counts().dropped_malformed, 1);
    }
}

#[test]
fn each_direction_of_a_biflow_with_packets_is_a_row() {
    let mut run = Run::new();
    let mut template = words(&[256, 11]);
    template.extend(words(&[8, 4, 12, 4, 7, 2, 11, 2, 10, 2, 14, 2, 152, 8, 153, 8, 1, 4]));
    // The reverse octets and start (RFC 5103 section 6.1): enterprise 29305.
    template.extend(words(&[0x8001, 4, 0, 29305, 0x8000 | 152, 8, 0, 29305]));
    let record = |reverse_octets: u32| {
        let mut bytes = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 3, 0, 4];
        bytes.extend(1_699_999_990_000u64.to_be_bytes());
        bytes.extend(1_699_999_999_000u64.to_be_bytes());
        bytes.extend(100u32.to_be_bytes());
        bytes.extend(reverse_octets.to_be_bytes());
        bytes.extend(1_699_999_990_020u64.to_be_bytes());
        bytes
    };
    let data = [record(900), record(0)].concat();
    let rows = run.take(&ipfix(0, 1, &[set(2, &template), set(256, &data)]));
    assert_eq!(octets(&rows), [100, 900, 100]);
    assert_eq!(rows.iter().map(|row| row.biflow_direction).collect::<Vec<_>>(), [1, 2, 1]);
    let reverse = Record {
        source_address: Address::v4(0x0A00_0002),
        destination_address: Address::v4(0x0A00_0001),
        source_port: 2,
        destination_port: 1,
        ingress_interface: 4,
        egress_interface: 3,
        flow_start_us: 1_699_999_990_020_000,
        octets: 900,
        biflow_direction: 2,
        ..rows[0]
    };
    assert_eq!(rows[1], reverse);
    assert_eq!(run.counts().records, 3);
    // They count as two data records in the sequence numbers.
    run.take(&ipfix(2, 1, &[]));
    assert_eq!(run.counts().lost, 0);
}

#[test]
fn inconsistent_templates_are_rejected_or_decoded_as_far_as_possible() {
    let mut run = Run::new();
    // Records of length 0: a set would never end.
    let empty = template_set(Format::NetFlow9, 256, &[(1, 0), (2, 0)]);
    run.take(&netflow9(0, 1, &[empty]));
    assert_eq!((run.counts().templates_refused, run.source().templates), (1, 0));
    // Fields of length 0 have no value.
    let sparse = template_set(Format::NetFlow9, 256, &[(1, 0), (2, 1), (8, 0)]);
    let rows = run.take(&netflow9(1, 1, &[sparse, set(256, &[7, 8])]));
    assert_eq!(rows.iter().map(|row| (row.packets, row.octets)).collect::<Vec<_>>(), [(7, 0), (8, 0)]);
    // Elements with an invalid length have no value: an address of 5 bytes, octets of 17.
    let odd = template_set(Format::NetFlow9, 257, &[(8, 5), (1, 17), (2, 1)]);
    let rows = run.take(&netflow9(2, 1, &[odd, set(257, &[1; 23])]));
    assert_eq!((rows[0].source_address, rows[0].octets, rows[0].packets), (Address::NONE, 0, 1));
    // Records longer than a message.
    let long = template_set(Format::NetFlow9, 258, &[(1, 8), (999, 0xFFFE)]);
    run.take(&netflow9(3, 1, &[long]));
    assert_eq!(run.counts().templates_refused, 2);
    // A set too short for one record.
    run.take(&netflow9(4, 1, &[set(257, &[0; 14])]));
    assert_eq!(run.counts().dropped_short_set, 1);
    // A value too large for its column becomes the maximum.
    let large = template_set(Format::NetFlow9, 259, &[(7, 4), (1, 1)]);
    assert_eq!(run.take(&netflow9(5, 1, &[large, set(259, &[1, 0, 0, 0, 9])]))[0].source_port, u16::MAX);
    assert_eq!(run.counts().lost, 0);
}

#[test]
fn invalid_sets_and_templates_are_rejected() {
    let sound = |format| [octets_template(format, 256), octets_data(256, &[1])].concat();
    for format in BOTH {
        let template = if format == Format::NetFlow9 { 0 } else { 2 };
        let header = if format == Format::NetFlow9 { 20 } else { 16 };
        let offset = header + sound(format).len();
        let cases: [(Vec<u8>, DecodeErrorKind); 5] = [
            (
                words(&[300, 3, 1]),
                DecodeErrorKind::Length { structure: "set", offset, claimed: 3, expected: "4 bytes or more" },
            ),
            (
                words(&[300, 9, 1]),
                DecodeErrorKind::Truncated { structure: "set", offset: offset + 4, needed: 5, found: 2 },
            ),
            (
                words(&[300]),
                DecodeErrorKind::Truncated { structure: "set", offset: offset + 2, needed: 2, found: 0 },
            ),
            (
                set(template, &words(&[255, 1, 1, 4])),
                DecodeErrorKind::Number {
                    structure: "template record",
                    offset: offset + 4,
                    found: 255,
                    expected: "256 or more",
                },
            ),
            (
                set(template, &words(&[256, 3, 1, 4])),
                DecodeErrorKind::Truncated {
                    structure: "template record",
                    offset: offset + 12,
                    needed: 2,
                    found: 0,
                },
            ),
        ];
        for (broken, expected) in cases {
            let mut run = Run::new();
            assert_eq!(run.take_invalid(&message(format, 0, 1, &[sound(format), broken])), expected);
            let counts = run.counts();
            assert_eq!((counts.dropped_malformed, counts.records, counts.templates_defined), (1, 0, 0));
        }
    }
    // An options template must have a scope (RFC 7011 section 3.4.2.2), and no more scopes than fields.
    for scopes in [0, 2] {
        let broken = ipfix(0, 1, &[set(3, &words(&[256, 1, scopes, 34, 4]))]);
        assert!(matches!(
            Run::new().take_invalid(&broken),
            DecodeErrorKind::Length { structure: "options template record", .. }
        ));
    }
    // A NetFlow v9 message may end in zeros, an IPFIX message has a length; both may pad a set.
    let mut run = Run::new();
    let padded = [netflow9(0, 1, &[sound(Format::NetFlow9)]), vec![0; 99]].concat();
    assert_eq!(run.take(&padded).len(), 1);
    let mut short = ipfix(0, 2, &[sound(Format::Ipfix)]);
    short.push(0);
    assert_eq!(run.take(&short).len(), 1);
    short.push(1);
    assert!(matches!(run.take_invalid(&short), DecodeErrorKind::Length { structure: "IPFIX message", .. }));
}

#[test]
fn records_without_flow_and_unknown_sets_are_counted() {
    let mut run = Run::new();
    let names = template_set(Format::Ipfix, 256, &[(10, 4), (82, 0xFFFF)]);
    let data = set(256, &[0, 0, 0, 1, 2, b'l', b'o', 0, 0, 0, 2, 0]);
    assert_eq!(run.take(&ipfix(0, 1, &[names, data, set(5, &[1, 2, 3])])), []);
    assert_eq!((run.counts().dropped_no_flow, run.counts().dropped_unknown_set), (2, 1));
    // They are data records nonetheless.
    run.take(&ipfix(2, 1, &[]));
    assert_eq!(run.counts().lost, 0);
}
