//! Natural demands: the max-min fair rates of flows if only host links limited them (Al-Fares et al., "Hedera", NSDI
//! 2010, section 4.2).
//!
//! Each source divides its link evenly among the flows that their destinations do not limit. Each oversubscribed
//! destination divides its link evenly among the flows that demand more than that share. The two steps alternate
//! until nothing changes. A flow's current rate says less, because it shares links with other flows.

use std::collections::BTreeMap;

use thalweg_network::EndpointId;

use crate::pair::Pair;

/// Maximum number of rounds. It usually converges in as many rounds as a host has flows.
const ROUNDS: usize = 100;

/// Returns the demand of each pair as a share of a host's link, from 0 to 1, in the order of `pairs`.
pub fn demands(pairs: &[Pair]) -> Vec<f64> {
    let mut flows: Vec<Flow> = vec![Flow { demand: 0.0, is_limited: false }; pairs.len()];
    let (mut sources, mut destinations) = (BTreeMap::new(), BTreeMap::new());
    for (index, pair) in pairs.iter().enumerate() {
        sources.entry(pair.source).or_insert_with(Vec::new).push(index);
        destinations.entry(pair.destination).or_insert_with(Vec::new).push(index);
    }
    for _ in 0..ROUNDS {
        let before: Vec<f64> = flows.iter().map(|flow| flow.demand).collect();
        divide_sources(&mut flows, &sources);
        limit_at_destinations(&mut flows, &destinations);
        if flows.iter().zip(before).all(|(flow, before)| (flow.demand - before).abs() < 1e-9) {
            break;
        }
    }
    flows.iter().map(|flow| flow.demand).collect()
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    demand: f64,
    /// The destination limits this flow.
    is_limited: bool,
}

/// Divides what is left of each source's link among the flows that no destination limits.
fn divide_sources(flows: &mut [Flow], sources: &BTreeMap<EndpointId, Vec<usize>>) {
    for of_source in sources.values() {
        let (limited, free): (Vec<usize>, Vec<usize>) =
            of_source.iter().partition(|&&index| flows[index].is_limited);
        let taken: f64 = limited.iter().map(|&index| flows[index].demand).sum();
        for &index in &free {
            flows[index].demand = (1.0 - taken).max(0.0) / free.len() as f64;
        }
    }
}

/// Limits flows to oversubscribed destinations that demand more than an even share.
fn limit_at_destinations(flows: &mut [Flow], destinations: &BTreeMap<EndpointId, Vec<usize>>) {
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
            flows[index] = Flow { demand: share, is_limited: true };
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
    fn capacity_unused_at_a_shared_receiver_goes_to_another() {
        // Similar to Hedera's example: 0, 1 and 2 send to 3, and 0 also sends to 4.
        let demands = demands(&[pair(0, 3), pair(1, 3), pair(2, 3), pair(0, 4)]);
        for (found, expected) in demands.iter().zip([1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]) {
            assert!((found - expected).abs() < 1e-6, "{demands:?}");
        }
    }

    proptest! {
        #[test]
        fn no_host_exceeds_its_link(ends in prop::collection::btree_set((0u16..6, 0u16..6), 1..20)) {
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
