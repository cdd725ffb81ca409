//! Records of NAT and firewall events.

use super::*;

#[test]
fn events_without_counters_are_counted_and_others_are_flows() {
    // Cisco ASA: firewallEvent; RFC 8158: natEvent; older Cisco ASA: NF_F_FW_EVENT.
    for (format, event) in [(Format::NetFlow9, 233), (Format::Ipfix, 230), (Format::NetFlow9, 40005)] {
        let fields = [(8, 4), (12, 4), (225, 4), (event, 1), (231, 4), (232, 4)];
        let record = |event: u8, sent: u32, received: u32| {
            [
                &[10, 0, 0, 1, 10, 0, 0, 2, 192, 0, 2, 1, event][..],
                &sent.to_be_bytes(),
                &received.to_be_bytes(),
            ]
            .concat()
        };
        // Created; deleted after traffic in both directions, in one; denied.
        let data = [record(1, 0, 0), record(2, 70, 80), record(2, 0, 90), record(3, 0, 0)].concat();
        let mut run = Run::new();
        let rows = run.take(&message(format, 0, 1, &[template_set(format, 256, &fields), set(256, &data)]));
        assert_eq!(octets(&rows), [70, 80, 0, 90], "{event}");
        let counts = run.counts();
        assert_eq!((counts.records, counts.dropped_nat_event, counts.dropped_no_flow), (4, 2, 0));
        if format == Format::Ipfix {
            run.take(&ipfix(4, 1, &[set(256, &record(1, 0, 0))]));
            assert_eq!(run.counts().lost, 0, "events have sequence numbers");
        }
    }
}

#[test]
fn nat_events_of_rfc_8158_are_counted() {
    let mut run = Run::new();
    // observationTimeMilliseconds, natEvent, addresses and ports before and after; a quota event without addresses.
    let session = template_set(
        Format::Ipfix,
        256,
        &[(323, 8), (230, 1), (8, 4), (225, 4), (7, 2), (227, 2), (12, 4), (11, 2), (4, 1)],
    );
    let quota = template_set(Format::Ipfix, 257, &[(323, 8), (230, 1), (466, 4), (471, 4)]);
    let sets = [session, quota, set(256, &[1; 28 * 3]), set(257, &[1; 17])];
    assert_eq!(run.take(&ipfix(0, 1, &sets)), []);
    let counts = run.counts();
    assert_eq!((counts.records, counts.dropped_nat_event, counts.dropped_no_flow), (0, 3, 1));
}
