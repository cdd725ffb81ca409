//! Tests of names from options records.

use super::*;
use crate::flow_export::Name;

/// Encodes an options template of interfaces (number, name, description) and the records.
fn interfaces(format: Format, names: &[(u32, &str, &str)]) -> Vec<Vec<u8>> {
    let template = options_set(format, 400, &[(1, 4)], &[(10, 4), (82, 16), (83, 16)]);
    let records = names.iter().flat_map(|&(number, name, description)| {
        let text = |text: &str| text.bytes().chain([0; 16]).take(16).collect::<Vec<u8>>();
        [&[0; 4], &number.to_be_bytes()[..], &text(name), &text(description)].concat()
    });
    vec![template, set(400, &records.collect::<Vec<u8>>())]
}

/// Encodes a template and a flow from interface 3 to interface 4, in VRF 7.
fn flow(format: Format) -> Vec<Vec<u8>> {
    let template = template_set(format, 256, &[(1, 4), (10, 4), (14, 4), (234, 4)]);
    let numbers: [u32; 4] = [100, 3, 4, 7];
    vec![template, set(256, &numbers.map(u32::to_be_bytes).concat())]
}

fn texts(row: &Record) -> [&'static str; 5] {
    let names = [row.exporter_name, row.ingress_interface_name, row.egress_interface_name];
    let [exporter, ingress, egress] = names.map(Name::text);
    [exporter, ingress, egress, row.ingress_vrf_name.text(), row.egress_vrf_name.text()]
}

#[test]
fn rows_have_the_names_that_are_known_when_they_arrive() {
    for format in BOTH {
        let mut run = Run::new();
        let before = run.take(&message(format, 0, 1, &flow(format)));
        assert_eq!(texts(&before[0]), [""; 5]);
        assert_eq!(run.decoded.flows.ingress_interface_name.values(), None, "no cost without names");
        let named = interfaces(format, &[(3, "xe-0/0/3", "to core"), (4, "", "uplink"), (5, "", "")]);
        assert_eq!(run.take(&message(format, 1, 1, &named)), []);
        let after = run.take(&message(format, 2, 1, &flow(format)));
        assert_eq!(texts(&after[0]), ["", "xe-0/0/3", "uplink", "", ""]);
        // A name that changes applies to later rows.
        let version = run.decoder.saved_version();
        run.take(&message(format, 3, 1, &interfaces(format, &[(3, "xe-0/0/3", "")])));
        assert_eq!(run.decoder.saved_version(), version, "nothing new");
        run.take(&message(format, 4, 1, &interfaces(format, &[(3, "ae1", "")])));
        assert_ne!(run.decoder.saved_version(), version);
        assert_eq!(texts(&run.take(&message(format, 5, 1, &flow(format)))[0])[1], "ae1");
        assert_eq!(run.counts().names_refused, 0);
    }
}

#[test]
fn vrfs_and_exporters_have_names_and_domain_0_names_the_whole_exporter() {
    let mut run = Run::new();
    let vrfs = options_set(Format::Ipfix, 401, &[(234, 4)], &[(236, 0xFFFF)]);
    let of_vrf = [&[0, 0, 0, 7, 3][..], b"red", &[0, 0, 0, 0, 7], b"default"].concat();
    let own = options_set(Format::Ipfix, 402, &[(149, 4)], &[(300, 8)]);
    let whole = [vec![vrfs, set(401, &of_vrf), own, set(402, b"\0\0\0\0edge-1\0\0")]];
    run.take(&ipfix(0, 0, &whole.concat()));
    let mut names = interfaces(Format::Ipfix, &[(3, "ge-3", "")]);
    names.extend(flow(Format::Ipfix));
    assert_eq!(
        texts(&run.take(&ipfix(0, 9, &names))[0]),
        ["edge-1", "ge-3", "", "red", ""],
        "0 may be a VRF that was not reported"
    );
    // Another exporter has none of them.
    let from = "192.0.2.9:2055".parse().unwrap();
    assert_eq!(texts(&run.take_from(from, NOW, &ipfix(0, 9, &flow(Format::Ipfix)))[0]), [""; 5]);
}

#[test]
fn held_rows_have_the_names_known_when_they_are_released() {
    let mut run = Run::new();
    let [template, data] = flow(Format::Ipfix).try_into().unwrap();
    run.take(&ipfix(0, 1, &[data]));
    run.take(&ipfix(1, 1, &interfaces(Format::Ipfix, &[(4, "xe-4", "")])));
    assert_eq!(texts(&run.take(&ipfix(2, 1, &[template]))[0])[2], "xe-4");
}

#[test]
fn names_survive_a_restart_of_the_collector_but_not_one_of_the_exporter() {
    let mut before = Run::new();
    let mut names = interfaces(Format::NetFlow9, &[(3, "xe-3", ""), (4, "xe-4", "")]);
    names.extend(flow(Format::NetFlow9));
    before.take(&netflow9(7, 1, &names));
    let mut bytes = Vec::new();
    before.decoder.saved().iter().for_each(|session| session.encode(&mut bytes));
    let restored = || {
        let mut run = Run::new();
        let saved =
            super::super::SavedSession::decode_all(&bytes, super::super::SavedNames::Present).unwrap();
        saved.into_iter().for_each(|session| run.decoder.restore(session, NOW));
        run
    };
    let data = flow(Format::NetFlow9);
    let row = restored().take(&netflow9(8, 1, &data))[0];
    assert_eq!(texts(&row)[1..3], ["xe-3", "xe-4"]);
    let restarted = netflow9_at(NOW_SECONDS, 1_000, 0, 1, &data);
    assert_eq!(texts(&restored().take(&restarted)[0]), [""; 5]);
}

#[test]
fn the_number_of_names_is_bounded_and_freed_with_its_session() {
    let mut run = Run::with(Limits { names: 3, sessions: 1, ..Limits::default() });
    let many: Vec<_> = (1..=5).map(|number| (number, "same", "")).collect();
    run.take(&ipfix(0, 1, &interfaces(Format::Ipfix, &many)));
    assert_eq!(run.counts().names_refused, 2);
    // Known ones can change.
    run.take(&ipfix(5, 1, &interfaces(Format::Ipfix, &[(2, "other", "")])));
    assert_eq!(run.counts().names_refused, 2);
    // Another exporter evicts the session.
    let from = "192.0.2.9:2055".parse().unwrap();
    run.take_from(from, NOW, &ipfix(0, 1, &interfaces(Format::Ipfix, &many[..3])));
    assert_eq!(run.counts().names_refused, 0);
}
