//! How fast flows would be if only the links of their hosts held them up (Al-Fares et al., "Hedera", NSDI 2010, section
//! 4.2).
//!
//! Sources share their links evenly among flows that are not held up by their destinations; destinations that would get
//! more than their link carries share it evenly among those that want more than that share. Both in turn, until nothing
//! changes: max-min fairness between hosts. What a flow's rate is now, while it shares links with others, tells less.

use std::collections::BTreeMap;

use thalweg_network::EndpointId;

use crate::pair::Pair;

/// Rounds after which it stops at the latest; it settles in as many as there are flows of a host, as a rule.
const ROUNDS: usize = 100;

/// Demands of pairs as shares of a host's link, between 0 and 1, in their order.
pub fn demands(pairs: &[Pair]) -> Vec<f64> {
    let mut flows: Vec<Flow> = vec![Flow { demand: 0.0, is_held_up: false }; pairs.len()];
    let (mut sources, mut destinations) = (BTreeMap::new(), BTreeMap::new());
    for (index, pair) in pairs.iter().enumerate() {
        sources.entry(pair.source).or_insert_with(Vec::new).push(index);
        destinations.entry(pair.destination).or_insert_with(Vec::new).push(index);
    }
    for _ in 0..ROUNDS {
        let before: Vec<f64> = flows.iter().map(|flow| flow.demand).collect();
        share_out(&mut flows, &sources);
        hold_up(&mut flows, &destinations);
        if flows.iter().zip(before).all(|(flow, before)| (flow.demand - before).abs() < 1e-9) {
            break;
        }
    }
    flows.iter().map(|flow| flow.demand).collect()
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    demand: f64,
    /// Its destination cannot take more.
    is_held_up: bool,
}

/// Sources give what is left to the flows that can take it.
fn share_out(flows: &mut [Flow], sources: &BTreeMap<EndpointId, Vec<usize>>) {
    for of_source in sources.values() {
        let (held, free): (Vec<usize>, Vec<usize>) =
            of_source.iter().partition(|&&index| flows[index].is_held_up);
        let taken: f64 = held.iter().map(|&index| flows[index].demand).sum();
        for &index in &free {
            flows[index].demand = (1.0 - taken).max(0.0) / free.len() as f64;
        }
    }
}

/// Destinations that get too much hold those up that want more than an even share.
fn hold_up(flows: &mut [Flow], destinations: &BTreeMap<EndpointId, Vec<usize>>) {
    for to_destination in destinations.values() {
        let total: f64 = to_destination.iter().map(|&index| flows[index].demand).sum();
        if total <= 1.0 {
            continue;
        }
        let mut greedy = to_destination.clone();
        let (mut left, mut share) = (1.0, 1.0 / greedy.len() as f64);
        loop {
            let (modest, others): (Vec<usize>, Vec<usize>) =
                greedy.iter().partition(|&&index| flows[index].demand < share - 1e-12);
            if modest.is_empty() || others.is_empty() {
                break;
            }
            left -= modest.iter().map(|&index| flows[index].demand).sum::<f64>();
            share = left / others.len() as f64;
            greedy = others;
        }
        for index in greedy {
            flows[index] = Flow { demand: share, is_held_up: true };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(source: u16, destination: u16) -> Pair {
        Pair { source: EndpointId(source), destination: EndpointId(destination) }
    }

    #[test]
    fn three_senders_share_a_receiver_and_the_rest_goes_elsewhere() {
        // Hedera's example in spirit: 0 and 1 and 2 send to 3, and 0 to 4 too.
        let demands = demands(&[pair(0, 3), pair(1, 3), pair(2, 3), pair(0, 4)]);
        for (found, expected) in demands.iter().zip([1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]) {
            assert!((found - expected).abs() < 1e-6, "{demands:?}");
        }
    }

    proptest! {
        #[test]
        fn no_host_sends_or_gets_more_than_its_link(ends in prop::collection::btree_set((0u16..6, 0u16..6), 1..20)) {
            let pairs: Vec<Pair> = ends.into_iter().filter(|(a, b)| a != b).map(|(a, b)| pair(a, b)).collect();
            let demands = demands(&pairs);
            for host in 0..6 {
                let sum = |is_of: &dyn Fn(&Pair) -> bool| -> f64 {
                    pairs.iter().zip(&demands).filter(|(pair, _)| is_of(pair)).map(|(_, demand)| demand).sum()
                };
                prop_assert!(sum(&|pair| pair.source == EndpointId(host)) <= 1.0 + 1e-6);
                prop_assert!(sum(&|pair| pair.destination == EndpointId(host)) <= 1.0 + 1e-6);
            }
            prop_assert!(demands.iter().all(|&demand| demand > 0.0));
        }
    }
}
