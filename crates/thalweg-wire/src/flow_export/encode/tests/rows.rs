//! Round trips of rows.

use super::*;

proptest! {
    #[test]
    fn ipfix_round_trips_every_row(rows in some_rows(), length in MIN_MESSAGE_LENGTH..4_000) {
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
    fn netflow9_round_trips_every_row_in_milliseconds(rows in some_rows(), ms in 0u64..2_000) {
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
    fn netflow5_round_trips_within_its_limits(rows in some_rows()) {
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

#[test]
fn packets_in_tunnels_are_not_sent_and_counted() {
    let inner = Address::v4(0x7f00_0001);
    let row = Record { source_address: inner, destination_address: inner, ..Record::default() };
    let rows = [row, Record { inner_source_address: inner, ..row }];
    let mut encoder = ipfix::Encoder::new(ipfix::Options::default()).unwrap();
    encoder.encode(&batch(&rows), NOW, &mut Messages::new());
    assert_eq!(encoder.misfits(), Misfits { rows: 0, values: 1 });
}

/// Numbers of the flow templates in each message.
fn flow_templates(messages: &Messages) -> Vec<Vec<u16>> {
    let mut before = Vec::new();
    let mut collector = Collector::default();
    let new = |message| {
        collector.message(message);
        let of_flows =
            collector.templates.iter().filter(|(_, fields)| fields.iter().any(|field| field.0 == 7));
        let now: Vec<u16> = of_flows.map(|(id, _)| *id).collect();
        let new = now.iter().copied().filter(|id| !before.contains(id)).collect();
        before = now;
        new
    };
    messages.iter().map(new).collect()
}

#[test]
fn templates_of_sparse_columns_are_sent_with_the_first_row_that_needs_them() {
    let v4 = Address::v4(0x0a00_0001);
    let plain = Record { source_address: v4, destination_address: v4, ..Record::default() };
    let tagged = Record { post_vlan_id: 7, ..plain };
    let refresh = Some(Refresh { messages: 2, interval: Nanos::from_secs(600) });
    let mut encoder = ipfix::Encoder::new(ipfix::Options { refresh, ..Default::default() }).unwrap();
    let mut messages = Messages::new();
    encoder.encode(&batch(&[plain]), NOW, &mut messages);
    assert_eq!(flow_templates(&messages), [vec![256, 257, 258, 259, 260, 261]]);
    encoder.encode(&batch(&[plain, tagged, tagged]), NOW, &mut messages);
    assert_eq!(flow_templates(&messages)[1..], [vec![], vec![300, 301]]);
    // From then on they are refreshed with the others, in a message of their own.
    messages.clear();
    encoder.encode(&batch(&[plain]), NOW, &mut messages);
    assert_eq!(flow_templates(&messages), [vec![256, 257, 258, 259, 260, 261], vec![300, 301]]);
    assert_eq!(encoder.misfits(), Misfits::default());
}

/// Returns the rows of our decoder without the columns that it adds.
fn decoded(messages: &Messages) -> Vec<Record> {
    let (mut decoder, mut found) = (Decoder::new(Limits::default()), Decoded::default());
    for message in messages.iter() {
        decoder.datagram("192.0.2.1:9995".parse().unwrap(), NOW, message, &mut found).unwrap();
    }
    assert!(decoder.sources().iter().all(|source| source.counts.lost == 0), "{:?}", decoder.sources());
    let sent_columns = |row| Record {
        received_us: 0,
        exporter: Address::NONE,
        observation_domain_id: 0,
        format: Format::Metered,
        ..found.flows.record(row)
    };
    sorted((0..found.flows.len()).map(sent_columns))
}

/// Sorts rows: a decoder may return the reverse rows after all forward rows.
fn sorted(rows: impl Iterator<Item = Record>) -> Vec<Record> {
    let mut rows: Vec<Record> = rows.collect();
    rows.sort_by_cached_key(|row| format!("{row:?}"));
    rows
}

proptest! {
    #[test]
    fn our_decoder_restores_every_row(rows in some_rows(), intervals in any::<[u16; 2]>()) {
        // Two sampling intervals, one for each half of the rows.
        let half = rows.len() / 2;
        let interval = |number: usize| u32::from(intervals[usize::from(number < half)]) + 1;
        let sampled = rows.iter().enumerate();
        let rows: Vec<_> = sampled.map(|(number, row)| Record { sampling_interval: interval(number), ..*row }).collect();
        let as_decoded = |row: &Record, time: fn(i64) -> i64| {
            let row = expected(row, time);
            // A next hop of 0.0.0.0 means none.
            let or_none = |hop| if hop == Address::v4(0) || hop == Address(0) { Address::NONE } else { hop };
            Record { next_hop: or_none(row.next_hop), bgp_next_hop: or_none(row.bgp_next_hop), ..row }
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
