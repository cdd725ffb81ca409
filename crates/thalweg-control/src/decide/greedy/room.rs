//! Makes room for a pair that has no better path, by displacing one other pair.
//!
//! Algorithm 1 moves one flow at a time, and only if that flow gains. So two flows that share a link stay if every
//! other path carries a flow, even if that flow could move and lose nothing. With one flow from and to each host a
//! free path exists for all, but moves of single flows do not find it.
//!
//! Here a pair may take a path whose tightest link another pair leaves at the same time. It displaces one pair, never
//! a chain: it scans the known pairs for each path and searches no further.

use super::{Greedy, Round, best};
use crate::decide::{Alternative, Decision, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

impl Greedy {
    /// Returns an address by which `pair` can expect more than `required` once another pair moves, and the decision
    /// for that other pair.
    pub(super) fn make_room(
        &mut self,
        pair: Pair,
        alternatives: &[Alternative],
        required: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<(u8, Decision)> {
        let present = self.loads.get(pair).filter(|_| self.options.makes_room)?.address;
        for path in alternatives {
            let is_large_enough = paths.capacity(path.tightest).0 as f64 > required;
            if path.address == present || !is_large_enough || paths.is_broken(pair, path.address) {
                continue;
            }
            self.loads.place(pair, path.address, paths);
            let contenders = self.loads.contenders(path.tightest, paths);
            let mut others = contenders.into_iter().filter(|&contender| contender != pair);
            let displaced =
                others.find_map(|contender| self.displaced(contender, pair, required, round, paths));
            self.loads.place(pair, present, paths);
            if let Some(displaced) = displaced {
                return Some((path.address, displaced));
            }
        }
        None
    }

    /// Returns the move of `contender` that lets `pair` expect more than `required`. Returns `None` if no move helps,
    /// or if `contender` would lose more than a move is worth.
    fn displaced(
        &mut self,
        contender: Pair,
        pair: Pair,
        required: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<Decision> {
        let Round { cause, now, pins } = round;
        if pins.contains_key(&contender) || self.loads.is_held_down(contender, now) {
            return None;
        }
        let (from, rate) = self.loads.get(contender).map(|known| (known.address, known.rate))?;
        let alternatives = self.loads.alternatives(contender, paths);
        let is_other =
            |path: &&Alternative| path.address != from && !paths.is_broken(contender, path.address);
        let Alternative { address: to, expected, .. } = *best(alternatives.iter().filter(is_other))?;
        if expected.0 as f64 * (1.0 + self.options.gain) < rate.0 as f64 {
            return None;
        }
        let address = self.loads.get(pair)?.address;
        self.loads.place(contender, to, paths);
        let after = self.loads.alternatives(pair, paths);
        self.loads.place(contender, from, paths);
        let expected = after.iter().find(|path| path.address == address)?.expected;
        let verdict = Verdict::Reroute;
        let decision = Decision { pair: contender, time: now, cause, rate, from, to, verdict, alternatives };
        (expected.0 as f64 > required).then_some(decision)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg_network::routing::{TreeOptions, spanning_trees};
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, RouterId};
    use thalweg_wire::{BitRate, Timestamp};

    use super::*;
    use crate::decide::greedy::GreedyOptions;
    use crate::decide::{Congestion, Decider, PairRate, Pins};

    const GBPS: u64 = 1_000_000_000;

    fn pair(source: u16, destination: u16) -> Pair {
        Pair { source: EndpointId(source), destination: EndpointId(destination) }
    }

    /// Three leaves with two hosts each, and two spines.
    fn paths() -> Paths {
        let topology = leaf_spine(3, 2, 2, Tiers::default()).unwrap();
        let links = LinkState::new(&topology);
        let tables = spanning_trees(&topology, &links, TreeOptions { addresses: 2, seed: 1 });
        Paths::new(Arc::new(NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap()))
    }

    /// Returns the address that routes a pair over this spine, counted from 0.
    fn over(spine: u16, pair: Pair, paths: &mut Paths) -> u8 {
        let is_over = |address: &u8| {
            let links = paths.of(pair, *address).unwrap().to_vec();
            paths.port(links[1]).0 == RouterId(3 + spine)
        };
        (0..2).find(is_over).unwrap()
    }

    /// Returns the decisions for two pairs that share the uplink to spine 0, while each would meet another pair on
    /// its path over spine 1.
    fn crowded(options: GreedyOptions, pins: &[Pair]) -> Vec<(Pair, u8, Verdict)> {
        let mut paths = paths();
        let mut greedy = Greedy::new(options);
        let mut report = |flows: &[(Pair, u16, u64)], hop: usize| {
            let observed: Vec<PairRate> = flows
                .iter()
                .map(|&(pair, spine, rate)| {
                    let address = over(spine, pair, &mut paths);
                    PairRate { pair, address, rate: BitRate(rate * GBPS) }
                })
                .collect();
            let link = paths.of(observed[0].pair, observed[0].address).unwrap()[hop];
            let pins: Pins = pins.iter().map(|&pair| (pair, 0)).collect();
            let mut decisions = Vec::new();
            let congestion = Congestion { link, time: Timestamp(1), flows: observed };
            greedy.on_congestion(&congestion, &pins, &mut paths, &mut decisions);
            decisions
        };
        assert!(report(&[(pair(5, 3), 1, 9)], 1).iter().all(|decision| decision.verdict != Verdict::Reroute));
        assert!(report(&[(pair(3, 5), 1, 9)], 1).iter().all(|decision| decision.verdict != Verdict::Reroute));
        let decisions = report(&[(pair(0, 2), 0, 5), (pair(1, 4), 0, 5)], 0);
        let spine = |decision: &Decision| (0..2).find(|&s| over(s, decision.pair, &mut paths) == decision.to);
        let spines: Vec<u16> = decisions.iter().map(spine).map(Option::unwrap).collect();
        decisions.iter().zip(spines).map(|(of, spine)| (of.pair, spine as u8, of.verdict)).collect()
    }

    #[test]
    fn a_pair_takes_a_path_that_another_leaves_for_a_free_one() {
        let (reroute, keep) = (Verdict::Reroute, Verdict::Keep);
        let decided = crowded(GreedyOptions::default(), &[]);
        assert_eq!(decided, [(pair(5, 3), 0, reroute), (pair(0, 2), 1, reroute), (pair(1, 4), 0, keep)]);
        let as_published = GreedyOptions { makes_room: false, ..GreedyOptions::default() };
        assert_eq!(crowded(as_published, &[]), [(pair(0, 2), 0, keep), (pair(1, 4), 0, keep)]);
    }

    #[test]
    fn a_pinned_pair_is_not_displaced() {
        let decided = crowded(GreedyOptions::default(), &[pair(5, 3)]);
        assert_eq!(decided[1], (pair(3, 5), 0, Verdict::Reroute), "the other pair's contender moves");
        let decided = crowded(GreedyOptions::default(), &[pair(5, 3), pair(3, 5)]);
        assert!(decided.iter().all(|(_, _, verdict)| *verdict == Verdict::Keep), "{decided:?}");
    }
}
