//! Room for a pair that no way suits: another pair, moved out of its way.
//!
//! Algorithm 1 moves one flow at a time, and each only to where it gains by itself. So two that share a link stay there when
//! every other way has a flow of its own, though that one might have gone elsewhere and lost nothing by it: with one flow from
//! and to each host there is a free way for all, and one flow at a time does not find it. Here a pair may take a
//! way whose tightest link another one leaves at the same time. One other, and no chains of them: known pairs are looked at
//! for each way, and nothing is searched.

use super::{Greedy, Round, best};
use crate::decide::{Alternative, Decision, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

impl Greedy {
    /// An address by which a pair can expect more than `wanted` if another pair goes elsewhere, and that one's decision.
    pub(super) fn room(
        &mut self,
        pair: Pair,
        ways: &[Alternative],
        wanted: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<(u8, Decision)> {
        let present = self.loads.get(pair).filter(|_| self.options.makes_room)?.address;
        for way in ways {
            let could_do = paths.capacity(way.tightest).0 as f64 > wanted;
            if way.address == present || !could_do || paths.is_barred(pair, way.address) {
                continue;
            }
            self.loads.suppose(pair, way.address, paths);
            let rivals = self.loads.rivals(way.tightest, paths);
            let mut others = rivals.into_iter().filter(|&rival| rival != pair);
            let displaced = others.find_map(|rival| self.displaced(rival, pair, wanted, round, paths));
            self.loads.suppose(pair, present, paths);
            if let Some(displaced) = displaced {
                return Some((way.address, displaced));
            }
        }
        None
    }

    /// Where `rival` goes so that `pair` can expect more than `wanted` where it is; `None` if that does not help, or
    /// `rival` would lose by it more than a move is worth.
    fn displaced(
        &mut self,
        rival: Pair,
        pair: Pair,
        wanted: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<Decision> {
        let Round { cause, now, pins } = round;
        if pins.contains_key(&rival) || self.loads.settles(rival, now) {
            return None;
        }
        let (from, rate) = self.loads.get(rival).map(|known| (known.address, known.rate))?;
        let alternatives = self.loads.alternatives(rival, paths);
        let is_other = |way: &&Alternative| way.address != from && !paths.is_barred(rival, way.address);
        let Alternative { address: to, expected, .. } = *best(alternatives.iter().filter(is_other))?;
        if expected.0 as f64 * (1.0 + self.options.gain) < rate.0 as f64 {
            return None;
        }
        let address = self.loads.get(pair)?.address;
        self.loads.suppose(rival, to, paths);
        let ways = self.loads.alternatives(pair, paths);
        self.loads.suppose(rival, from, paths);
        let gets = ways.iter().find(|way| way.address == address)?.expected;
        let verdict = Verdict::Goes;
        let decision = Decision { pair: rival, time: now, cause, rate, from, to, verdict, alternatives };
        (gets.0 as f64 > wanted).then_some(decision)
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
    use crate::decide::{Congestion, Decider, Observed, Pins};

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

    /// The address by which a pair's packets go over a spine, counted from 0.
    fn over(spine: u16, pair: Pair, paths: &mut Paths) -> u8 {
        let is_over = |address: &u8| {
            let links = paths.of(pair, *address).unwrap().to_vec();
            paths.port(links[1]).0 == RouterId(3 + spine)
        };
        (0..2).find(is_over).unwrap()
    }

    /// Two pairs share the way up to spine 0, and each would find another one on its way over spine 1. What is decided.
    fn crowded(options: GreedyOptions, pins: &[Pair]) -> Vec<(Pair, u8, Verdict)> {
        let mut paths = paths();
        let mut greedy = Greedy::new(options);
        let mut told = |flows: &[(Pair, u16, u64)], hop: usize| {
            let observed: Vec<Observed> = flows
                .iter()
                .map(|&(pair, spine, rate)| {
                    let address = over(spine, pair, &mut paths);
                    Observed { pair, address, rate: BitRate(rate * GBPS) }
                })
                .collect();
            let link = paths.of(observed[0].pair, observed[0].address).unwrap()[hop];
            let pins: Pins = pins.iter().map(|&pair| (pair, 0)).collect();
            let mut decisions = Vec::new();
            let congestion = Congestion { link, time: Timestamp(1), flows: observed };
            greedy.congested(&congestion, &pins, &mut paths, &mut decisions);
            decisions
        };
        assert!(told(&[(pair(5, 3), 1, 9)], 1).iter().all(|decision| decision.verdict != Verdict::Goes));
        assert!(told(&[(pair(3, 5), 1, 9)], 1).iter().all(|decision| decision.verdict != Verdict::Goes));
        let decisions = told(&[(pair(0, 2), 0, 5), (pair(1, 4), 0, 5)], 0);
        let spine = |decision: &Decision| (0..2).find(|&s| over(s, decision.pair, &mut paths) == decision.to);
        let spines: Vec<u16> = decisions.iter().map(spine).map(Option::unwrap).collect();
        decisions.iter().zip(spines).map(|(of, spine)| (of.pair, spine as u8, of.verdict)).collect()
    }

    #[test]
    fn who_finds_all_ways_taken_takes_one_that_another_leaves_for_a_free_one() {
        let (goes, stays) = (Verdict::Goes, Verdict::Stays);
        let decided = crowded(GreedyOptions::default(), &[]);
        assert_eq!(decided, [(pair(5, 3), 0, goes), (pair(0, 2), 1, goes), (pair(1, 4), 0, stays)]);
        let as_published = GreedyOptions { makes_room: false, ..GreedyOptions::default() };
        assert_eq!(crowded(as_published, &[]), [(pair(0, 2), 0, stays), (pair(1, 4), 0, stays)]);
    }

    #[test]
    fn whoever_is_pinned_makes_no_room() {
        let decided = crowded(GreedyOptions::default(), &[pair(5, 3)]);
        assert_eq!(decided[1], (pair(3, 5), 0, Verdict::Goes), "the other one's rival does");
        let decided = crowded(GreedyOptions::default(), &[pair(5, 3), pair(3, 5)]);
        assert!(decided.iter().all(|(_, _, verdict)| *verdict == Verdict::Stays), "{decided:?}");
    }
}
