use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use thalweg_wire::{Fragment, Nanos, PacketNotes, TcpFlags};

fn packet(time: u64, flow: u32, ip_length: u32) -> Packet {
    Packet {
        time: Timestamp(time),
        key: FlowKey::v4(flow, 1, 2, 3, if flow == 9 { Protocol::ICMP } else { Protocol::UDP }),
        ip_length,
        payload_length: 0,
        identification: 0,
        tcp_sequence: 0,
        ethernet: Default::default(),
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

fn parameters() -> CfinfParameters {
    let threshold = CheetahThreshold { flight_duration: Nanos(100), rate_threshold: BitRate(80_000_000_000) };
    CfinfParameters { threshold, flow_cache_entries: 3, ..CfinfParameters::default() }
}

fn run(parameters: CfinfParameters, packets: &[Packet]) -> (Vec<Finding>, CfinfCounters) {
    let (mut cfinf, mut findings) = (Cfinf::new(parameters, 1).unwrap(), Vec::new());
    for packet in packets {
        cfinf.handle(packet, &mut findings);
    }
    cfinf.finish(&mut findings);
    (findings, cfinf.counters())
}

/// The four algorithms line by line over a list of entries, the most recently used first.
fn line_by_line(parameters: &CfinfParameters, packets: &[Packet]) -> Vec<Finding> {
    let mut cache: VecDeque<(Cheetah, CheetahEnd, bool)> = VecDeque::new();
    let mut findings = Vec::new();
    for packet in packets {
        let (t, l) = (packet.time, Bytes(u64::from(packet.ip_length)));
        let Some(place) = cache.iter().position(|(began, ..)| began.key == packet.key) else {
            if parameters.dropped_protocols.contains(&packet.key.protocol)
                || packet.ip_length < parameters.packet_length_threshold
            {
                continue;
            }
            if cache.len() == parameters.flow_cache_entries as usize {
                let (_, end, cheetah) = cache.pop_back().unwrap();
                findings.extend(cheetah.then_some(Finding::Ended(end)));
            }
            let began = Cheetah { key: packet.key, first: t, detected: t, rate: BitRate(0), bytes: l };
            cache.push_front((
                began,
                CheetahEnd { key: packet.key, first: t, last: t, packets: 1, bytes: l },
                false,
            ));
            continue;
        };
        let (mut began, mut end, mut cheetah) = cache.remove(place).unwrap();
        end.last = t;
        end.packets += 1;
        end.bytes += l;
        let d = t - end.first;
        if !cheetah && d >= parameters.threshold.flight_duration {
            began.rate = BitRate::of(end.bytes, d);
            if began.rate <= parameters.threshold.rate_threshold {
                continue;
            }
            (began.detected, began.bytes, cheetah) = (t, end.bytes, true);
            findings.push(Finding::Began(began));
        }
        cache.push_front((began, end, cheetah));
    }
    while let Some((_, end, cheetah)) = cache.pop_back() {
        findings.extend(cheetah.then_some(Finding::Ended(end)));
    }
    findings
}

proptest! {
    #[test]
    fn cfinf_matches_the_published_algorithms(
        steps in prop::collection::vec((0u64..60, 0u32..12, 20u32..3000), 0..400), l in prop_oneof![Just(0u32), Just(600)],
    ) {
        let mut now = 0;
        let packets: Vec<Packet> =
            steps.into_iter().map(|(gap, flow, length)| { now += gap; packet(now, flow, length) }).collect();
        let parameters = CfinfParameters { packet_length_threshold: l, ..parameters() };
        prop_assert_eq!(run(parameters.clone(), &packets).0, line_by_line(&parameters, &packets));
    }
}

#[test]
fn a_flight_ends_with_the_first_packet_after_its_duration() {
    let (findings, counters) =
        run(parameters(), &[packet(0, 1, 500), packet(99, 1, 500), packet(100, 1, 501)]);
    assert!(matches!(
        findings[0],
        Finding::Began(Cheetah { detected: Timestamp(100), bytes: Bytes(1501), .. })
    ));
    assert!(matches!(findings[1], Finding::Ended(CheetahEnd { packets: 3, .. })));
    assert_eq!((counters.created, counters.deleted, counters.cheetahs), (1, 0, 1));
}

#[test]
fn a_flight_at_the_threshold_is_deleted() {
    let (findings, counters) =
        run(parameters(), &[packet(0, 1, 500), packet(100, 1, 500), packet(101, 1, 500)]);
    assert_eq!(findings, []);
    assert_eq!((counters.created, counters.deleted), (2, 1));
}

#[test]
fn about_the_sampled_share_of_flows_enters_the_cache() {
    let packets: Vec<Packet> = (0..10_000).map(|n| packet(n, 10 + n as u32, 100)).collect();
    let parameters =
        CfinfParameters { sampling_probability: 0.25, flow_cache_entries: 20_000, ..parameters() };
    let created = run(parameters, &packets).1.created;
    // Binomial: 2500 +- 43; six standard deviations are a false alarm once in 5e8 seeds, and the seed is fixed.
    assert!((2240..2760).contains(&created), "{created}");
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for probability in [0.0, -1.0, 1.5, f64::NAN] {
        let wrong = CfinfParameters { sampling_probability: probability, ..parameters() };
        assert!(matches!(Cfinf::new(wrong, 1), Err(CfinfError::SamplingProbability(_))));
    }
    let wrong = CfinfParameters { flow_cache_entries: 0, ..parameters() };
    assert!(matches!(Cfinf::new(wrong, 1), Err(CfinfError::FlowCacheEntries(0))));
}
