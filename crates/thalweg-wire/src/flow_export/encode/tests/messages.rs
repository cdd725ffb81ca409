//! Tests of messages: times, templates, sampling, statistics.

use super::*;

#[test]
fn every_microsecond_round_trips() {
    for us in (0..1_000_000).step_by(7).chain([999_999]) {
        let rows = [Record { flow_start_us: us, flow_end_us: us, ..Record::default() }];
        let mut messages = Messages::new();
        ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&batch(&rows), NOW, &mut messages);
        let mut collector = Collector::default();
        collector.message(messages.bytes());
        let nearest = |time| from_ntp(time + (1 << 32) / 2_000_000);
        assert_eq!(collector.rows(from_ntp)[0].flow_start_us, us);
        assert_eq!(collector.rows(nearest)[0].flow_start_us, us);
    }
}

#[test]
fn the_shortest_message_fits_all_templates_and_a_record() {
    let address = Address(1);
    let forward = Record {
        source_address: address,
        destination_address: address,
        biflow_direction: 1,
        sampling_interval: 10,
        ..Record::default()
    };
    let routed = Record { biflow_direction: 0, source_as: 1, ..forward };
    for rows in [vec![forward, mirrored(&forward)], vec![routed]] {
        let options = ipfix::Options { message_length: MIN_MESSAGE_LENGTH, ..Default::default() };
        let mut messages = Messages::new();
        ipfix::Encoder::new(options).unwrap().encode(&batch(&rows), NOW, &mut messages);
        assert_eq!(messages.len(), 1, "{} bytes", messages.bytes().len());
    }
    let options = ipfix::Options { message_length: MIN_MESSAGE_LENGTH - 1, ..Default::default() };
    assert_eq!(ipfix::Encoder::new(options).unwrap_err(), OptionsError::MessageLength { length: 1_023 });
}

#[test]
fn templates_and_interval_are_refreshed() {
    let refresh = Refresh { interval: Nanos::from_secs(60), messages: 3 };
    let options = ipfix::Options { refresh: Some(refresh), ..Default::default() };
    let rows = batch(&[Record { sampling_interval: 100, ..Record::default() }]);
    let sent_at = |options, seconds: &[u64]| -> Vec<bool> {
        let mut encoder = ipfix::Encoder::new(options).unwrap();
        let message = |seconds: &u64| {
            let mut messages = Messages::new();
            encoder.encode(&rows, NOW + Nanos::from_secs(*seconds), &mut messages);
            let mut collector = Collector { templates: templates(), ..Default::default() };
            collector.message(messages.bytes());
            let (_, data, all, _) = collector.headers[0];
            assert_eq!(collector.options(306).len() as u32, data - 1, "the interval comes with templates");
            all > data
        };
        seconds.iter().map(message).collect()
    };
    assert_eq!(
        sent_at(options, &[0, 1, 2, 3, 4, 62, 63, 130]),
        [true, false, false, true, false, false, true, true]
    );
    assert_eq!(sent_at(options.over_stream(), &[0, 1, 2, 3, 100_000]), [true, false, false, false, false]);
}

/// Returns the IPFIX templates of a new session.
fn templates() -> BTreeMap<u16, Vec<(i32, usize)>> {
    let mut messages = Messages::new();
    ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(
        &batch(&[Record::default()]),
        NOW,
        &mut messages,
    );
    let mut collector = Collector::default();
    collector.message(messages.bytes());
    collector.templates
}

#[test]
fn a_sampling_interval_is_sent_before_its_rows() {
    let row = |sampling_interval| Record {
        sampling_interval,
        octets: u64::from(sampling_interval),
        ..Record::default()
    };
    let rows = batch(&[row(0), row(100), row(100), row(1_000), row(0), row(1)]);
    let mut messages = Messages::new();
    ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&rows, NOW, &mut messages);
    let mut collector = Collector::default();
    messages.iter().for_each(|message| collector.message(message));
    let told = collector.found.iter().map(|(_, values)| match values.get(&306) {
        Some(space) => format!("told {}", space + 1),
        None => format!("row {}", values[&1]),
    });
    let expected =
        ["row 0", "told 100", "row 100", "row 100", "told 1000", "row 1000", "row 0", "told 1", "row 1"];
    assert_eq!(told.collect::<Vec<_>>(), expected);

    messages.clear();
    netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap().encode(&rows, NOW, &mut messages);
    let mut collector = Collector::default();
    messages.iter().for_each(|message| collector.message(message));
    assert_eq!(collector.options(34), [100, 1_000, 1]);

    messages.clear();
    let mut encoder = netflow5::Encoder::new(netflow5::Options::new(BOOT)).unwrap();
    let v4 = |record| {
        let ends = [1, 2].map(Address::v4);
        let flow_end_us = (NOW.0 / 1_000) as i64;
        Record {
            source_address: ends[0],
            destination_address: ends[1],
            flow_start_us: flow_end_us,
            flow_end_us,
            ..record
        }
    };
    encoder.encode(&batch(&[row(0), row(100), row(100), row(20_000)].map(v4)), NOW, &mut messages);
    let headers: Vec<_> =
        messages.iter().map(|header| number(&header[16..20]) << 16 | number(&header[22..24])).collect();
    assert_eq!(headers, [0, 1 << 16 | 0x4000 | 100, 3 << 16 | 0x7fff]);
    assert_eq!(encoder.misfits().values, 1);
}

#[test]
fn only_mirrored_rows_become_a_biflow() {
    let forward = Record {
        source_address: Address::v4(1),
        destination_address: Address::v4(2),
        biflow_direction: 1,
        ..Record::default()
    };
    let reverse = mirrored(&forward);
    let records = |rows: &[Record]| {
        let mut encoder = ipfix::Encoder::new(ipfix::Options::default()).unwrap();
        encoder.encode(&batch(rows), NOW, &mut Messages::new());
        encoder.encoded().flow_records
    };
    assert_eq!(records(&[forward, reverse]), 1);
    assert_eq!(records(&[reverse, forward]), 2);
    assert_eq!(records(&[forward, Record { vlan_id: 1, ..reverse }]), 2);
    assert_eq!(records(&[forward, Record { source_as: 1, ..reverse }]), 2);
    assert_eq!(records(&[Record { source_as: 1, ..forward }, Record { source_as: 1, ..reverse }]), 2);
    assert_eq!(records(&[forward, forward, reverse]), 2);
}

#[test]
fn statistics_use_the_templates_of_section_4() {
    let until = Timestamp::new(1_795_352_400, 0);
    let statistics = ipfix::Statistics {
        metering: ipfix::Metering { ignored_packets: 3, ignored_octets: 180, from: BOOT, until },
        exporting: ipfix::Exporting {
            messages: 10,
            flow_records: 200,
            octets: 13_000,
            not_sent_flow_records: 7,
            not_sent_packets: 70,
            not_sent_octets: 7_000,
            from: BOOT,
            until,
        },
    };
    let mut messages = Messages::new();
    let mut encoder =
        ipfix::Encoder::new(ipfix::Options { observation_domain_id: 5, ..Default::default() }).unwrap();
    encoder.encode_statistics(&statistics, NOW, &mut messages);
    let mut collector = Collector::default();
    collector.message(messages.bytes());
    let values = [41, 42, 40, 164, 165, 166, 167, 168].map(|element| collector.options(element)[0]);
    assert_eq!(values, [10, 200, 13_000, 3, 180, 7, 70, 7_000]);
    assert_eq!((collector.options(149), collector.options(144)), (vec![5, 5], vec![1]));
    assert_eq!(from_ntp(collector.options(155)[0]), 1_795_352_400_000_000);
    assert_eq!(collector.headers[0].1, 3, "options records are data records");
    assert_eq!(encoder.encoded().flow_records, 0);
}

#[test]
fn a_time_beyond_32_bits_of_uptime_is_counted() {
    let record = |flow_end_us| Record { flow_start_us: flow_end_us, flow_end_us, ..Record::default() };
    let now_us = (NOW.0 / 1_000) as i64;
    let days = 86_400_000_000;
    for (time, misfits) in
        [(now_us - 24 * days, 0), (now_us - 25 * days, 2), (0, 2), (i64::MIN, 2), (i64::MAX, 2)]
    {
        let mut encoder = netflow9::Encoder::new(netflow9::Options::new(BOOT)).unwrap();
        encoder.encode(&batch(&[record(time)]), NOW, &mut Messages::new());
        assert_eq!(encoder.misfits().values, misfits, "at {time}");
    }
}
