//! Makes room for a pair that has no better path, by displacing other pairs.
//!
//! Algorithm 1 moves one flow at a time, and only if that flow gains. So two flows that share a link stay if every
//! other path carries a flow, even if that flow could move and lose nothing. With one flow from and to each host a
//! free path exists for all, but moves of single flows do not find it.
//!
//! Here a pair may take a path whose tightest link another pair leaves at the same time. That pair takes a free path, or
//! one that a third pair leaves: at most [`MAX_DISPLACED`] pairs move for one, and as few as possible.

use super::{Greedy, Round};
use crate::decide::{Decision, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

/// Pairs that are displaced for one other, at most.
const MAX_DISPLACED: usize = 3;

/// A pair that is displaced, and its old address.
type Displaced = (Pair, u8);

impl Greedy {
    /// Returns an address by which `pair` can expect more than `required` once other pairs move, and the decisions
    /// for these. Prefers few moves.
    pub(super) fn make_room(
        &mut self,
        pair: Pair,
        required: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<(u8, Vec<Decision>)> {
        let present = self.loads.get(pair).filter(|_| self.options.makes_room)?.address;
        for depth in 1..=MAX_DISPLACED {
            let mut moved = Vec::new();
            let found = self.place_with_room(pair, required, depth, &mut moved, round, paths);
            // Nothing moves before all are decided.
            let to = self.loads.get(pair)?.address;
            self.loads.place(pair, present, paths);
            let decisions =
                moved.iter().rev().map(|&(pair, from)| self.displacement(pair, from, round, paths));
            let decisions: Vec<Decision> = decisions.collect();
            if found {
                return Some((to, decisions));
            }
        }
        None
    }

    /// Places a pair on a path by which it can expect more than `required`, once up to `depth` others have moved.
    /// Those have been placed, and appended to `moved` with their old addresses, when it returns `true`. Otherwise
    /// nothing has changed.
    fn place_with_room(
        &mut self,
        pair: Pair,
        required: f64,
        depth: usize,
        moved: &mut Vec<Displaced>,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> bool {
        let Some(from) = self.loads.get(pair).map(|known| known.address) else { return false };
        let alternatives = self.loads.alternatives(pair, paths);
        for path in &alternatives {
            let is_large_enough = paths.capacity(path.tightest).0 as f64 > required;
            if path.address == from || !is_large_enough || paths.is_broken(pair, path.address) {
                continue;
            }
            self.loads.place(pair, path.address, paths);
            if path.expected.0 as f64 > required {
                return true;
            }
            let contenders = match depth {
                0 => Vec::new(),
                _ => self.loads.contenders(path.tightest, paths),
            };
            for contender in contenders.into_iter().filter(|&contender| contender != pair) {
                let before = moved.len();
                if self.displace(contender, depth - 1, moved, round, paths)
                    && self.expects(pair, paths) > required
                {
                    return true;
                }
                for (other, address) in moved.drain(before..).rev() {
                    self.loads.place(other, address, paths);
                }
            }
            self.loads.place(pair, from, paths);
        }
        false
    }

    /// Places `contender` on a path by which it keeps its rate, once up to `depth` others have moved. Returns `false` if
    /// it may not or need not move; `moved` then may contain pairs to put back.
    fn displace(
        &mut self,
        contender: Pair,
        depth: usize,
        moved: &mut Vec<Displaced>,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> bool {
        let may_move = !round.pins.contains_key(&contender)
            && !moved.iter().any(|&(other, _)| other == contender)
            && self.loads.moves().hold(contender, round.now).is_none();
        let Some(known) = self.loads.get(contender).filter(|_| may_move) else { return false };
        moved.push((contender, known.address));
        // All that it has, except for a part that is not worth a move.
        let least = known.rate.0 as f64 / (1.0 + self.options.gain);
        self.place_with_room(contender, least, depth, moved, round, paths)
    }

    /// Returns the rate that a pair can expect where it is.
    fn expects(&mut self, pair: Pair, paths: &mut Paths) -> f64 {
        let address = self.loads.get(pair).map(|known| known.address);
        let alternatives = self.loads.alternatives(pair, paths);
        let present = alternatives.iter().find(|path| Some(path.address) == address);
        present.map_or(0.0, |path| path.expected.0 as f64)
    }

    /// Returns the decision for a pair that has been placed.
    fn displacement(&mut self, pair: Pair, from: u8, round: Round<'_>, paths: &mut Paths) -> Decision {
        let known = self.loads.get(pair).expect("a displaced pair is known");
        let alternatives = self.loads.alternatives(pair, paths);
        let (now, cause) = (round.now, round.cause());
        let (rate, to, verdict) = (known.rate, known.address, Verdict::Reroute);
        // The caller records the move.
        let flow_moves = self.loads.moves().most_moves(pair, now) + 1;
        Decision { pair, time: now, cause, rate, from, to, verdict, flow_moves, alternatives }
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
    use crate::decide::{Congestion, Decider, FlowShare, PairRate, Pins, tcp_flow};

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
                    let rate = BitRate(rate * GBPS);
                    let flows = vec![FlowShare { flow: tcp_flow(pair, 1), rate }];
                    PairRate { pair, address, rate, measured: Timestamp(1), flows }
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
