//! Tests of losses, detected by sequence numbers.

use super::*;

fn netflow5(sequence: u32, flows: u16) -> Vec<u8> {
    let mut bytes = words(&[5, flows]);
    bytes.extend([90_000_000, NOW_SECONDS, 0, sequence].iter().flat_map(|word| word.to_be_bytes()));
    bytes.extend([0; 4]);
    bytes.resize(24 + 48 * usize::from(flows), 0);
    bytes
}

#[test]
fn sequence_numbers_count_flows_messages_or_data_records_by_format() {
    let mut run = Run::new();
    for (sequence, flows) in [(100, 30), (130, 5), (165, 1)] {
        run.take(&netflow5(sequence, flows));
    }
    assert_eq!(run.counts().lost, 30);

    let mut run = Run::new();
    let sets = [octets_template(Format::NetFlow9, 256), octets_data(256, &[1, 2, 3])];
    for sequence in [7, 8, 11] {
        run.take(&netflow9(sequence, 1, &sets));
    }
    assert_eq!(run.counts().lost, 2);

    let mut run = Run::new();
    // Options records are data records, templates are not (RFC 7011 section 3.1).
    let options = [options_set(Format::Ipfix, 400, &[(149, 4)], &[(34, 4)]), set(400, &[0; 16])];
    let sets = [octets_template(Format::Ipfix, 256), octets_data(256, &[1, 2, 3]), options.concat()];
    for sequence in [7, 12, 22] {
        run.take(&ipfix(sequence, 1, &sets));
    }
    assert_eq!(run.counts().lost, 5);
}

#[test]
fn every_domain_has_its_own_sequence_numbers() {
    let mut run = Run::new();
    let sets = [octets_template(Format::Ipfix, 256), octets_data(256, &[1])];
    for sequence in 0..3 {
        run.take(&ipfix(sequence, 1, &sets));
        run.take(&ipfix(sequence + 1000, 2, &sets));
        run.take(&netflow9(sequence + 5000, 1, &[octets_template(Format::NetFlow9, 256)]));
    }
    let sources = run.decoder.sources();
    assert_eq!(sources.len(), 3);
    assert!(sources.iter().all(|source| source.counts.lost == 0 && source.counts.messages == 3));
}

#[test]
fn reordering_restarts_and_duplicates_are_not_losses() {
    let mut run = Run::new();
    let send = |run: &mut Run, sequences: &[u32]| {
        for &sequence in sequences {
            run.take(&netflow5(sequence, 10));
        }
    };
    send(&mut run, &[1000, 1010, 1030, 1020, 1040]);
    assert_eq!((run.counts().lost, run.counts().late_messages), (0, 1));
    send(&mut run, &[1040, 1050]);
    assert_eq!((run.counts().lost, run.counts().out_of_sequence, run.counts().restarts), (0, 1, 0));
    send(&mut run, &[0, 10, 20]);
    assert_eq!((run.counts().lost, run.counts().restarts), (0, 1));
}

#[test]
fn ipfix_records_without_template_are_not_losses() {
    let mut run = Run::new();
    run.take(&ipfix(0, 1, &[octets_data(256, &[1, 2, 3])]));
    run.take(&ipfix(3, 1, &[octets_template(Format::Ipfix, 256), octets_data(256, &[4])]));
    run.take(&ipfix(6, 1, &[]));
    assert_eq!(run.counts().lost, 2);
}
