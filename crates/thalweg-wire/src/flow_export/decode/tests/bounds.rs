//! Tests of limits: memory stays bounded, and dropped items are counted.

use super::*;

#[test]
fn the_number_of_templates_is_limited_and_used_templates_are_kept() {
    for format in BOTH {
        let mut run = Run::with(Limits { templates: 100, ..Limits::default() });
        run.take(&message(format, 0, 1, &[octets_template(format, 256)]));
        for flood in 0u16..2_000 {
            let sets = [octets_template(format, 300 + flood)];
            run.take(&message(format, 0, u32::from(flood % 7) + 2, &sets));
            assert_eq!(run.take(&message(format, 0, 1, &[octets_data(256, &[5])])).len(), 1);
        }
        let sources = run.decoder.sources();
        assert_eq!(sources.iter().map(|source| source.templates).sum::<u64>(), 100);
        let evicted: u64 = sources.iter().map(|source| source.counts.templates_evicted).sum();
        assert_eq!(evicted, 2_001 - 100);
    }
}

#[test]
fn the_number_of_fields_of_a_template_is_limited() {
    let mut run = Run::with(Limits { template_fields: 10, ..Limits::default() });
    run.take(&netflow9(0, 1, &[template_set(Format::NetFlow9, 256, &[(1, 1); 10])]));
    run.take(&netflow9(1, 1, &[template_set(Format::NetFlow9, 256, &[(1, 1); 11])]));
    assert_eq!(run.counts().templates_refused, 1);
    assert_eq!(run.source().templates, 0, "nobody knows any longer what its records are");
}

#[test]
fn the_number_of_sessions_is_limited_and_the_least_recent_is_dropped() {
    let mut run = Run::with(Limits { sessions: 3, ..Limits::default() });
    let sets = [octets_template(Format::NetFlow9, 256), octets_data(256, &[1])];
    let from = |host: u16| SocketAddr::new("192.0.2.1".parse().unwrap(), host);
    for host in 0..3 {
        run.take_from(from(host), NOW, &netflow9(0, 1, &sets));
    }
    run.take_from(from(0), NOW, &netflow9(1, 1, &sets));
    run.take_from(from(9), NOW, &netflow9(0, 1, &sets));
    let known: Vec<u16> = run.decoder.sources().iter().map(|source| source.from.port()).collect();
    assert_eq!(known, [0, 2, 9]);
    let totals = run.decoder.totals();
    assert_eq!((totals.sessions, totals.sessions_evicted, totals.gone.records), (3, 1, 1));
}

#[test]
fn forged_sources_displace_neither_exporters_with_data_nor_connections() {
    let mut run = Run::with(Limits { sessions: 3, ..Limits::default() });
    let sets = [octets_template(Format::Ipfix, 256), octets_data(256, &[1])];
    run.take(&ipfix(0, 1, &sets));
    run.take_stream(&ipfix(0, 1, &sets[..1]));
    for port in 0..100 {
        let forged = SocketAddr::new("198.51.100.1".parse().unwrap(), port);
        run.take_from(forged, NOW, &ipfix(0, 1, &sets[..1]));
    }
    let data = ipfix(1, 1, &[octets_data(256, &[2])]);
    assert_eq!((run.take(&data).len(), run.take_stream(&data).len()), (1, 1));
    assert_eq!(run.decoder.totals().sessions_evicted, 99);
}

#[test]
fn the_number_of_domains_of_a_session_is_limited() {
    let mut run = Run::with(Limits { domains: 2, ..Limits::default() });
    for domain in [1, 2, 1] {
        run.take(&netflow9(0, domain, &[]));
    }
    let kind = DecodeErrorKind::TooManyDomains { observation_domain_id: 3, limit: 2 };
    assert_eq!(run.take_invalid(&netflow9(0, 3, &[])), kind);
    assert_eq!(run.decoder.totals().dropped_too_many_domains, 1);
}

#[test]
fn held_data_are_limited_by_session_and_in_total_by_their_memory_use() {
    let limits = Limits { held_bytes: 10_000, total_held_bytes: 15_000, ..Limits::default() };
    let mut run = Run::with(limits);
    let from = |host: u16| SocketAddr::new("192.0.2.1".parse().unwrap(), host);
    for sequence in 0..1_000 {
        run.take_from(from(1), NOW, &netflow9(sequence, 1, &[octets_data(256, &[sequence])]));
    }
    let source = run.source();
    assert!(source.held_bytes <= 10_000, "{}", source.held_bytes);
    assert!(source.counts.dropped_held_full > 900);
    run.take_from(from(2), NOW, &netflow9(0, 1, &[octets_data(256, &[0; 2_000])]));
    run.take_from(from(2), NOW, &netflow9(1, 1, &[octets_data(256, &[0; 2_000])]));
    assert!(run.decoder.totals().held_bytes <= 15_000);
    let dropped: u64 = run.decoder.sources().iter().map(|source| source.counts.dropped_held_full).sum();
    let held: u64 = run.decoder.sources().iter().map(|source| source.counts.held_sets).sum();
    assert_eq!(held, 1_002);
    // The newest sets of the first session are still held, and every set is accounted for.
    let rows = run.take_from(from(1), NOW, &netflow9(1_000, 1, &[octets_template(Format::NetFlow9, 256)]));
    assert_eq!(octets(&rows).last(), Some(&999));
    let released: u64 = run.decoder.sources().iter().map(|source| source.counts.released_sets).sum();
    run.decoder.expire(NOW + Nanos::from_secs(3_600));
    let late: u64 = run.decoder.sources().iter().map(|source| source.counts.dropped_template_late).sum();
    assert_eq!(dropped + released + late, held);
    assert_eq!(run.decoder.totals().held_bytes, 0);
}
