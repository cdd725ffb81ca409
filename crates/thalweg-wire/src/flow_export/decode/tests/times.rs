//! Tests of times: relative times become absolute.

use super::*;

const NOW_US: i64 = NOW_SECONDS as i64 * 1_000_000;

/// Seconds from 1900 to 1970, for NTP timestamps.
const NTP: u64 = 2_208_988_800;

fn span(run: &mut Run, bytes: &[u8]) -> Vec<(i64, i64)> {
    run.take(bytes).iter().map(|row| (row.flow_start_us - NOW_US, row.flow_end_us - NOW_US)).collect()
}

/// Returns the times of an IPFIX record with these elements, relative to its message, in microseconds.
fn ipfix_span(fields: &[(u16, &[u8])]) -> (i64, i64) {
    let mut run = Run::new();
    let template: Vec<(u16, u16)> =
        fields.iter().map(|&(id, bytes)| (id, bytes.len() as u16)).chain([(1, 1)]).collect();
    let mut data: Vec<u8> = fields.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    data.push(9);
    let message = ipfix(0, 1, &[template_set(Format::Ipfix, 256, &template), set(256, &data)]);
    let spans = span(&mut run, &message);
    assert_eq!(spans.len(), 1);
    spans[0]
}

#[test]
fn ipfix_times_of_every_unit_are_absolute() {
    let seconds = |offset: i64| ((NOW_US / 1_000_000 + offset) as u32).to_be_bytes();
    let milliseconds = |offset: i64| (NOW_US / 1000 + offset).to_be_bytes();
    let ntp = |seconds: u64, fraction: u64| {
        ((NTP + u64::from(NOW_SECONDS) - seconds) << 32 | fraction).to_be_bytes()
    };
    assert_eq!(ipfix_span(&[(150, &seconds(-9)), (151, &seconds(-2))]), (-9_000_000, -2_000_000));
    assert_eq!(ipfix_span(&[(152, &milliseconds(-9)), (153, &milliseconds(1))]), (-9_000, 1_000));
    let half = 1 << 31;
    assert_eq!(ipfix_span(&[(154, &ntp(9, half)), (155, &ntp(1, 0))]), (-8_500_000, -1_000_000));
    assert_eq!(ipfix_span(&[(156, &ntp(9, half)), (157, &ntp(1, 0))]), (-8_500_000, -1_000_000));
    let delta = |us: u32| us.to_be_bytes();
    assert_eq!(ipfix_span(&[(158, &delta(700)), (159, &delta(0))]), (-700, 0));
    // The finest unit is taken at any position; an event has one time.
    assert_eq!(
        ipfix_span(&[(150, &seconds(-9)), (152, &milliseconds(-8_765)), (151, &seconds(-2))]),
        (-8_765_000, -2_000_000)
    );
    assert_eq!(ipfix_span(&[(323, &milliseconds(-7))]), (-7_000, -7_000));
    // A duration gives a missing end.
    let duration = 5_000u32.to_be_bytes();
    assert_eq!(ipfix_span(&[(152, &milliseconds(-9_000)), (161, &duration)]), (-9_000_000, -4_000_000));
    assert_eq!(ipfix_span(&[(153, &milliseconds(-1_000)), (161, &duration)]), (-6_000_000, -1_000_000));
    assert_eq!(ipfix_span(&[(162, &duration), (153, &milliseconds(-1))]), (-6_000, -1_000));
}

#[test]
fn ipfix_uptimes_use_the_start_time_from_record_or_options() {
    let (start, end) = (1_000u32.to_be_bytes(), 4_000u32.to_be_bytes());
    let booted = (NOW_US / 1000 - 10_000).to_be_bytes();
    assert_eq!(ipfix_span(&[(22, &start), (21, &end), (160, &booted)]), (-9_000_000, -6_000_000));
    // An uptime that exceeds the counter.
    let booted = (NOW_US / 1000 - (1 << 32) - 10_000).to_be_bytes();
    assert_eq!(ipfix_span(&[(22, &start), (21, &end), (160, &booted)]), (-9_000_000, -6_000_000));
    // The start time in options, before or after.
    let mut run = Run::new();
    let template = template_set(Format::Ipfix, 256, &[(22, 4), (21, 4), (1, 1)]);
    let data = set(256, &[&start[..], &end, &[9]].concat());
    let unknown = span(&mut run, &ipfix(0, 1, &[template, data.clone()]));
    assert_eq!(unknown, [(-3_000_000, 0)], "as long as it was, up to now");
    assert_eq!(run.counts().untimed_records, 1);
    let options = options_set(Format::Ipfix, 400, &[(149, 4)], &[(160, 8)]);
    let said = set(400, &[&[0, 0, 0, 1], &(NOW_US / 1000 - 10_000).to_be_bytes()[..]].concat());
    let known = span(&mut run, &ipfix(1, 1, &[options, said, data]));
    assert_eq!(known, [(-9_000_000, -6_000_000)]);
    assert_eq!(run.counts().untimed_records, 1);
}

#[test]
fn netflow_9_times_are_relative_to_the_header_across_a_wrap() {
    let template = || template_set(Format::NetFlow9, 256, &[(22, 4), (21, 4), (1, 1)]);
    let record = |start: u32, end: u32| [&start.to_be_bytes()[..], &end.to_be_bytes(), &[9]].concat();
    let mut run = Run::new();
    let data = [record(u32::MAX - 999, u32::MAX - 499), record(u32::MAX, 499), record(400, 600)].concat();
    let message = netflow9_at(NOW_SECONDS, 500, 0, 1, &[template(), set(256, &data)]);
    let expected = [(-1_500_000, -1_000_000), (-501_000, -1_000), (-100_000, 100_000)];
    assert_eq!(span(&mut run, &message), expected);
}

#[test]
fn records_without_time_get_that_of_their_message_and_are_counted() {
    assert_eq!(ipfix_span(&[(10, &[1])]), (0, 0));
    assert_eq!(ipfix_span(&[(150, &[0; 4]), (151, &[0; 4])]), (0, 0), "zero is not 1970");
    let mut run = Run::new();
    run.take(&ipfix(0, 1, &[octets_template(Format::Ipfix, 256), octets_data(256, &[1, 2])]));
    assert_eq!(run.counts().untimed_records, 2);
}

#[test]
fn a_time_out_of_range_is_the_maximum() {
    let (start, end) = ipfix_span(&[(152, &[0xFF; 8]), (153, &[0x7F; 8])]);
    assert!(start > 1 << 62 && end > 1 << 62);
}

#[test]
fn clock_jumps_and_restarts_of_exporters_are_counted() {
    let template = [octets_template(Format::NetFlow9, 256)];
    let mut run = Run::new();
    let second = |n: u64| NOW + Nanos::from_secs(n);
    run.take_at(second(0), &netflow9_at(NOW_SECONDS, 1_000_000, 0, 1, &template));
    run.take_at(second(10), &netflow9_at(NOW_SECONDS + 10, 1_010_000, 1, 1, &template));
    assert_eq!((run.counts().clock_jumps, run.counts().restarts), (0, 0));
    run.take_at(second(20), &netflow9_at(NOW_SECONDS + 3_620, 1_020_000, 2, 1, &template));
    assert_eq!((run.counts().clock_jumps, run.counts().restarts), (1, 0));
    // The exporter restarts and counts its messages from 0.
    run.take_at(second(120), &netflow9_at(NOW_SECONDS + 3_720, 30_000, 0, 1, &template));
    assert_eq!((run.counts().clock_jumps, run.counts().restarts), (1, 1));
    assert_eq!((run.counts().lost, run.counts().out_of_sequence), (0, 0));
}
