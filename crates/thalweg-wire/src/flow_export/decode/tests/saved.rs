//! A collector that restarts between a template and its data.

use proptest::prelude::*;

use super::*;
use crate::flow_export::decode::{SavedNames, SavedSession};

/// Encodes and decodes the sessions of a decoder.
fn saved(run: &Run) -> Vec<SavedSession> {
    let mut bytes = Vec::new();
    run.decoder.saved().iter().for_each(|session| session.encode(&mut bytes));
    let decoded = SavedSession::decode_all(&bytes, SavedNames::Present).unwrap();
    assert_eq!(decoded, run.decoder.saved());
    decoded
}

/// Returns a decoder after a restart of the collector.
fn restarted(run: &Run, now: Timestamp) -> Run {
    let mut next = Run::new();
    saved(run).into_iter().for_each(|session| next.decoder.restore(session, now));
    next
}

fn later(seconds: u64) -> Timestamp {
    NOW + Nanos::from_secs(seconds)
}

#[test]
fn templates_and_sampling_outlive_the_collector() {
    for format in BOTH {
        let mut run = Run::new();
        let interval = [
            options_set(format, 400, &[(if format == Format::NetFlow9 { 1 } else { 149 }, 4)], &[(34, 4)]),
            set(400, &[0, 0, 0, 0, 0, 0, 3, 232]),
        ];
        let version = run.decoder.saved_version();
        run.take(&message(format, 5, 1, &[octets_template(format, 256), interval.concat()]));
        assert!(run.decoder.saved_version() > version);
        let version = run.decoder.saved_version();
        run.take(&message(format, 6, 1, &[octets_template(format, 256), interval[1].clone()]));
        assert_eq!(run.decoder.saved_version(), version, "a refresh");
        let mut next = restarted(&run, NOW);
        let rows = next.take(&message(format, 7, 1, &[octets_data(256, &[10, 20])]));
        assert_eq!((octets(&rows), rows[0].sampling_interval), (vec![10, 20], 1000), "{format:?}");
        let counts = next.counts();
        assert_eq!((counts.templates_restored, counts.held_sets, counts.lost), (2, 0, 0));
        // A new definition replaces the restored one.
        let rows = next.take(&message(format, 8, 1, &[template_set(format, 256, &[(2, 4)])]));
        assert_eq!((rows, next.counts().templates_replaced), (vec![], 1));
    }
}

#[test]
fn templates_are_discarded_if_the_exporter_has_restarted_too() {
    let data = octets_data(256, &[10]);
    let template = octets_template(Format::NetFlow9, 256);
    // Uptime and sequence number ten minutes later, and whether the exporter has run on.
    for (uptime_ms, sequence, runs_on) in [
        (90_600_000, 100, true),
        (90_610_000, 100, true),
        (90_500_000, 100, false),
        (600_000, 100, false),
        (90_600_000, 6, true),
        (90_600_000, 3, false),
    ] {
        let mut run = Run::new();
        run.take(&netflow9_at(NOW_SECONDS, 90_000_000, 5, 1, std::slice::from_ref(&template)));
        let mut next = restarted(&run, later(600));
        let sets = std::slice::from_ref(&data);
        let rows = next.take_at(later(600), &netflow9_at(NOW_SECONDS + 600, uptime_ms, sequence, 1, sets));
        assert_eq!(octets(&rows), if runs_on { vec![10] } else { vec![] }, "{uptime_ms} {sequence}");
        let counts = next.counts();
        assert_eq!(
            (counts.templates_discarded, counts.held_sets),
            match runs_on {
                true => (0, 0),
                false => (1, 1),
            }
        );
    }
    // IPFIX has no uptime. Its sequence number wraps.
    let template = octets_template(Format::Ipfix, 256);
    for (before, sequence, runs_on) in [(5, 1000, true), (1000, 5, false), (u32::MAX, 5, true)] {
        let mut run = Run::new();
        run.take(&ipfix(before, 1, std::slice::from_ref(&template)));
        let rows = restarted(&run, NOW).take(&ipfix(sequence, 1, std::slice::from_ref(&data)));
        assert_eq!(rows.len(), usize::from(runs_on), "{before} {sequence}");
    }
}

#[test]
fn a_domain_that_is_silent_between_two_restarts_is_still_checked() {
    let mut run = Run::new();
    let both = |run: &mut Run, sequence| {
        for domain in [1, 2] {
            run.take(&ipfix(sequence, domain, &[octets_template(Format::Ipfix, 256)]));
        }
    };
    both(&mut run, 100);
    let mut second = restarted(&run, NOW);
    second.take(&ipfix(101, 1, &[octets_data(256, &[1])]));
    let mut third = restarted(&second, NOW);
    assert_eq!(third.take(&ipfix(0, 2, &[octets_data(256, &[1])])), []);
    assert_eq!(octets(&third.take(&ipfix(102, 1, &[octets_data(256, &[7])]))), [7]);
}

#[test]
fn expired_templates_and_sessions_of_connections_are_not_restored() {
    let mut run = Run::new();
    run.take(&ipfix(0, 1, &[octets_template(Format::Ipfix, 256)]));
    let lifetime = Limits::default().template_lifetime;
    let mut next = restarted(&run, NOW + lifetime + Nanos(1));
    assert_eq!(next.take(&ipfix(1, 1, &[octets_data(256, &[10])])), []);
    assert!(saved(&run)[0].is_expired(NOW + lifetime + Nanos(1), &Limits::default()));
    let mut run = Run::new();
    run.take_stream(&ipfix(0, 1, &[octets_template(Format::Ipfix, 256)]));
    assert_eq!((run.decoder.saved(), run.decoder.saved_version()), (vec![], 0));
}

#[test]
fn restored_templates_keep_to_the_limits() {
    let mut run = Run::new();
    for id in 256..266 {
        run.take(&ipfix(0, 1, &[octets_template(Format::Ipfix, id)]));
    }
    let mut next = Run::with(Limits { templates: 4, domains: 1, ..Limits::default() });
    saved(&run).into_iter().for_each(|session| next.decoder.restore(session, NOW));
    assert_eq!((next.source().templates, next.counts().templates_restored), (4, 4));
    next.take(&ipfix(0, 1, &[octets_template(Format::Ipfix, 300)]));
    assert_eq!((next.source().templates, next.counts().templates_evicted), (4, 1));
}

#[test]
fn held_data_count_as_dropped_at_the_end() {
    let mut run = Run::new();
    run.take(&netflow9(0, 1, &[octets_data(256, &[1]), octets_data(257, &[2])]));
    assert_eq!((run.counts().held_sets, run.counts().dropped_template_late), (2, 0));
    run.decoder.finish();
    assert_eq!((run.counts().dropped_template_late, run.decoder.totals().held_bytes), (2, 0));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_sessions_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        damage in 0usize..100, value in any::<u8>(),
    ) {
        let _ = SavedSession::decode_all(&bytes, SavedNames::Present);
        let mut run = Run::new();
        run.take(&ipfix(0, 1, &[template_set(Format::Ipfix, 256, &[(1, 4), (8, 4)])]));
        let mut bytes = Vec::new();
        run.decoder.saved()[0].encode(&mut bytes);
        let at = damage % bytes.len();
        bytes[at] = value;
        let mut next = Run::new();
        for session in SavedSession::decode_all(&bytes, SavedNames::Present).unwrap_or_default() {
            next.decoder.restore(session, NOW);
        }
        next.take(&ipfix(1, 1, &[octets_data(256, &[1, 2])]));
    }
}
