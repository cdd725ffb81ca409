//! Compares every task, over every definition of a key, with exact counts of the same packets.
//!
//! Seeds are fixed, so a bound that holds does so in every run.

use std::collections::{HashMap, HashSet};

use thalweg_sketch::Estimate;

use super::*;
use crate::tasks::hierarchy::LEVELS;
use crate::tasks::{FlowBytes, Weight};

/// Exact weights by key.
fn exact(packets: &[Packet], key: KeyDefinition, weight: Weight) -> HashMap<FlowBytes, u64> {
    let mut exact = HashMap::new();
    for packet in packets {
        *exact.entry(key.of(&packet.key)).or_default() += match weight {
            Weight::Packets => 1,
            Weight::Bytes => u64::from(packet.ip_length),
        };
    }
    exact
}

fn holds(estimate: &Estimate, truth: f64) {
    assert_eq!(estimate.contains(truth), Some(true), "{estimate} of {truth}");
}

fn second() -> Vec<Packet> {
    traffic(20_000, BEGIN * SECOND, SECOND, 1)
}

#[test]
fn heavy_hitters_match_exact_counts() {
    let packets = second();
    for key in definitions() {
        for weight in [Weight::Packets, Weight::Bytes] {
            let TaskValue::Heavy(heavy) = only(&format!("heavy:1%:{key}:{weight}"), &packets) else {
                panic!()
            };
            let exact = exact(&packets, key, weight);
            let total: u64 = exact.values().sum();
            assert_eq!(heavy.total, total);
            for found in &heavy.keys {
                let truth = exact[&found.key] as f64;
                holds(&found.estimate, truth);
                assert!((found.share - truth / total as f64).abs() < 0.001);
                assert_eq!(Some(found.name), key.name(&found.key));
            }
            assert!(heavy.keys.is_sorted_by(|a, b| a.estimate.value >= b.estimate.value));
            // An estimate may be on the other side of the threshold by its error, here far below a thousandth.
            let found: HashSet<FlowBytes> = heavy.keys.iter().map(|found| found.key).collect();
            for (key, &weight) in &exact {
                let share = weight as f64 / total as f64;
                assert!(found.contains(key) || share < 0.0101, "missed {key:?} with {share}");
                assert!(!found.contains(key) || share > 0.0099, "{key:?} has only {share}");
            }
        }
    }
}

#[test]
fn distinct_keys_are_within_the_bound() {
    let packets = second();
    for key in definitions() {
        let TaskValue::Distinct(distinct) = only(&format!("distinct:{key}"), &packets) else { panic!() };
        let truth = exact(&packets, key, Weight::Packets).len() as f64;
        holds(&distinct, truth);
        assert!((distinct.value / truth - 1.0).abs() < 0.02);
    }
}

#[test]
fn entropy_matches_the_exact_distribution() {
    let packets = second();
    for key in definitions() {
        let TaskValue::Entropy(entropy) = only(&format!("entropy:{key}"), &packets) else { panic!() };
        let exact = exact(&packets, key, Weight::Packets);
        let shares = exact.values().map(|&count| count as f64 / packets.len() as f64);
        let truth: f64 = shares.map(|share| -share * share.log2()).sum();
        let max = (exact.len() as f64).log2();
        assert!((entropy.bits.value - truth).abs() < 0.05 * truth, "{key}: {} of {truth}", entropy.bits);
        let normalised = entropy.normalised.unwrap();
        assert!((normalised - truth / max).abs() < 0.06, "{key}: {normalised} of {}", truth / max);
    }
}

#[test]
fn l1_is_exact_and_l2_within_its_bound() {
    let packets = second();
    for key in definitions() {
        for weight in [Weight::Packets, Weight::Bytes] {
            let TaskValue::Moments(moments) = only(&format!("moments:{key}:{weight}"), &packets) else {
                panic!()
            };
            let exact = exact(&packets, key, weight);
            assert_eq!(moments.l1, exact.values().sum::<u64>());
            let l2 = exact.values().map(|&count| (count as f64).powi(2)).sum::<f64>().sqrt();
            holds(&moments.l2, l2);
            assert!((moments.l2.value / l2 - 1.0).abs() < 0.02);
        }
    }
}

#[test]
fn superspreaders_are_found() {
    let mut packets = second();
    // A scanner with 600 destinations, among sources that have at most 64 peers of each version.
    for host in 0..600u32 {
        let key = FlowKey::v4(0x0A63_0001, 0xAC10_0000 + host, 1, 22, Protocol::TCP);
        packets.push(packet(key, BEGIN * SECOND + SECOND / 2, 40));
    }
    for definition in ["src", "src/24"] {
        let key: KeyDefinition = definition.parse().unwrap();
        let task = format!("spread:{definition}>300");
        let TaskValue::Spread(spread) = only(&task, &packets) else { panic!() };
        let scanner = key.of(&packets.last().unwrap().key);
        assert_eq!(spread.keys.iter().map(|found| found.key).collect::<Vec<_>>(), [scanner]);
        holds(&spread.keys[0].peers, 600.0);
        assert_eq!(Some(spread.keys[0].name), key.name(&scanner));
    }
    // No destination has as many, but all have more than ten.
    let TaskValue::Spread(spread) = only("spread:dst>300", &packets) else { panic!() };
    assert_eq!(spread.keys, []);
    let TaskValue::Spread(spread) = only("spread:dst>10", &packets) else { panic!() };
    let mut peers: HashMap<FlowBytes, HashSet<FlowBytes>> = HashMap::new();
    let [src, dst] = [Side::Source, Side::Destination].map(KeyDefinition::Address);
    packets.iter().for_each(|packet| {
        peers.entry(dst.of(&packet.key)).or_default().insert(src.of(&packet.key));
    });
    for found in &spread.keys {
        holds(&found.peers, peers[&found.key].len() as f64);
    }
    let many = peers.values().filter(|peers| peers.len() > 15).count();
    assert!(spread.keys.len() >= many, "{} of {many}", spread.keys.len());
}

/// Weights beyond listed descendants, straight from the definition.
fn exact_hierarchy(packets: &[Packet], side: Side, share: f64) -> Vec<(usize, FlowBytes, f64)> {
    let mut rest: Vec<Packet> = packets.to_vec();
    let threshold = share * packets.len() as f64;
    let mut listed = Vec::new();
    for (level, lengths) in LEVELS.into_iter().enumerate() {
        let key = KeyDefinition::Prefix(side, lengths);
        // Conditioned counts are of packets that no listed prefix has yet.
        let above: HashMap<FlowBytes, u64> = exact(&rest, key, Weight::Packets)
            .into_iter()
            .filter(|(_, count)| *count as f64 >= threshold)
            .collect();
        rest.retain(|packet| !above.contains_key(&key.of(&packet.key)));
        listed.extend(above.into_iter().map(|(key, count)| (level, key, count as f64)));
    }
    listed
}

#[test]
fn hierarchical_heavy_hitters_match_exact_counts() {
    let packets = second();
    for (side, name) in [(Side::Source, "src"), (Side::Destination, "dst")] {
        let TaskValue::Hierarchy(found) = only(&format!("hhh:2.03%:{name}"), &packets) else { panic!() };
        let expected = exact_hierarchy(&packets, side, 0.0203);
        assert_eq!(found.total, packets.len() as u64);
        assert!(
            expected.iter().any(|(level, ..)| *level == 0) && expected.iter().any(|(level, ..)| *level > 0)
        );
        assert_eq!(found.prefixes.len(), expected.len(), "{name}");
        for (level, key, beyond) in expected {
            let definition = KeyDefinition::Prefix(side, LEVELS[level]);
            let name = definition.name(&key).unwrap();
            let found =
                found.prefixes.iter().find(|prefix| prefix.name == name).expect("a prefix is missing");
            assert_eq!(found.key, key);
            assert!((found.beyond.value - beyond).abs() < 20.0, "{name}: {} of {beyond}", found.beyond);
            assert_ne!(found.beyond.contains(beyond), Some(false));
            holds(&found.estimate, exact(&packets, definition, Weight::Packets)[&key] as f64);
        }
    }
}

#[test]
fn changes_are_found_with_their_sign() {
    // The same every second, except for one flow that ends and one that begins, in the second period.
    let flow = |port| FlowKey::v4(0x0A62_0001, 0x0A62_0002, port, 80, Protocol::TCP);
    let extra = |port, begin: u64| (0..900).map(move |n| packet(flow(port), begin + n, 1000));
    let (first, second) = (BEGIN * SECOND, (BEGIN + 30) * SECOND);
    let mut packets: Vec<Packet> = traffic(9000, first, 30 * SECOND, 1);
    packets.extend(traffic(9000, second, 30 * SECOND, 1));
    packets.extend(extra(1, first).chain(extra(2, second)));
    packets.sort_by_key(|packet| packet.time);
    for key in definitions() {
        for weight in [Weight::Packets, Weight::Bytes] {
            let plan = plan(&format!("change:30s>1%:{key}:{weight}"));
            let (reports, _) = run(&plan, &packets);
            assert_eq!(reports.len(), 6);
            let results: Vec<_> = reports.iter().flat_map(|report| &report.results).collect();
            assert_eq!(results.len(), 1, "two periods, one comparison");
            assert_eq!(reports[5].results.len(), 1);
            let TaskValue::Change(changes) = &results[0].value else { panic!() };
            assert_eq!((changes.before.start, changes.now.start), (Timestamp(first), Timestamp(second)));
            assert!(!changes.before.is_partial);
            let (before, now): (Vec<Packet>, Vec<Packet>) =
                packets.iter().partition(|packet| packet.time.0 < second);
            let (before, now) = (exact(&before, key, weight), exact(&now, key, weight));
            assert_eq!(changes.before.total, before.values().sum::<u64>());
            for found in &changes.keys {
                let [from, to] =
                    [&before, &now].map(|exact| exact.get(&found.key).copied().unwrap_or(0) as f64);
                holds(&found.change, to - from);
                holds(&found.from, from);
                holds(&found.to, to);
            }
            // If both flows have the same key, it has not changed.
            let expected = if key.of(&flow(1)) == key.of(&flow(2)) { 0 } else { 2 };
            assert_eq!(changes.keys.len(), expected, "{key} {weight}");
            if expected == 2 {
                let mut found: Vec<_> =
                    changes.keys.iter().map(|found| (found.key, found.change.value > 0.0)).collect();
                found.sort_by_key(|found| found.1);
                assert_eq!(found, [(key.of(&flow(1)), false), (key.of(&flow(2)), true)]);
            }
        }
    }
}
