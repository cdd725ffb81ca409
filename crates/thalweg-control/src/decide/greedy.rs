//! Planck's greedy traffic engineering (Rasley et al., SIGCOMM 2014, algorithm 1).
//!
//! On each congestion event, every pair on the link moves to the path with the largest expected rate
//! ([`loads`](super::loads)), with all other pairs left in place. A later pair sees the moves of the earlier ones. (The
//! paper says flows; all flows of a pair follow one path.)
//!
//! **Additions to the algorithm.** A pair moves only if the expected gain is large enough ([`GreedyOptions::gain`]),
//! and not before its last move has taken effect ([`GreedyOptions::hold_down`]). Each flow [moves](super::moves) at most
//! [`MAX_MOVES`] times. Otherwise two pairs that both see the same free path would swap forever. [Light](super::loads::LIGHT_SHARE) pairs do
//! not count as contenders, and the acknowledgements of a known pair stay where they are. A pair on an uncongested link
//! is remembered ([`MEMORY`]). No path offers more than the source's own link. Rates that were measured before the
//! report timeout are ignored. If no path is better, the decider may [make room](GreedyOptions::makes_room) on one.
//!
//! [`MAX_MOVES`]: super::moves::MAX_MOVES
//! [`MEMORY`]: super::loads::MEMORY

use std::collections::BTreeMap;

use thalweg_wire::{Nanos, Timestamp};

use super::loads::{Loads, is_light};
use super::moves::Hold;
use super::{Alternative, Cause, Congestion, Decider, Decision, FlowMoves, PairRate, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

mod room;

/// Options of the greedy traffic-engineering algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreedyOptions {
    /// Rates measured longer ago are ignored. Default 3 ms, about the time that a reroute takes (section 7.1). Pairs
    /// count on their links for this time, and at least for [five hold-down times](super::loads::MEMORY).
    pub report_timeout: Nanos,
    /// Minimum gain of another path, as a share of the present path's expected rate. Default 0.1: rates are measured
    /// to within 3 %.
    pub gain: f64,
    /// Time after a move in which a pair is not moved again. Default 5 ms: a move takes 2.5 to 3.5 ms to take effect
    /// (figure 16), and as long again before measured rates show it. After the second move of a flow the time is four
    /// times as long. After the third, the pair stays while the flow sends: the [limit](super::moves) ends when no event
    /// has reported the flow for 2,048 hold-down times. Zero turns hold-down and limit off.
    pub hold_down: Nanos,
    /// Whether a pair without a better path may displace up to three others that lose nothing by moving. Default yes.
    pub makes_room: bool,
}

impl GreedyOptions {
    /// The default options.
    pub const DEFAULT: GreedyOptions = GreedyOptions {
        report_timeout: Nanos::from_millis(3),
        gain: 0.1,
        hold_down: Nanos::from_millis(5),
        makes_room: true,
    };
}

impl Default for GreedyOptions {
    fn default() -> Self {
        GreedyOptions::DEFAULT
    }
}

/// The inputs common to all pairs of one congestion event.
#[derive(Clone, Copy, Debug)]
struct Round<'a> {
    link: LinkNumber,
    now: Timestamp,
    pins: &'a Pins,
}

impl Round<'_> {
    fn cause(&self) -> Cause {
        Cause::Congestion(self.link)
    }
}

/// The greedy decider.
#[derive(Clone, Debug)]
pub struct Greedy {
    options: GreedyOptions,
    loads: Loads,
    /// When room was last searched for a pair, during the last [`search_interval`](Greedy::search_interval).
    searches: BTreeMap<Pair, Timestamp>,
}

impl Greedy {
    /// Creates a decider with no known traffic.
    pub fn new(options: GreedyOptions) -> Greedy {
        let loads = Loads::new(options.report_timeout, options.hold_down);
        Greedy { options, loads, searches: BTreeMap::new() }
    }

    /// Returns the known traffic.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Returns the interval at which room is searched for a pair: a fifth of the hold-down time. Every link of a path
    /// reports, and a search looks at some hundred paths.
    fn search_interval(&self) -> Nanos {
        Nanos(self.options.hold_down.0 / 5)
    }

    fn search_room(
        &mut self,
        pair: Pair,
        required: f64,
        round: Round<'_>,
        paths: &mut Paths,
    ) -> Option<(u8, Vec<Decision>)> {
        self.searches.insert(pair, round.now);
        self.make_room(pair, required, round, paths)
    }

    /// Chooses a path for one pair (algorithm 1, lines 9 to 17).
    fn route(&mut self, pair: Pair, round: Round<'_>, paths: &mut Paths, decisions: &mut Vec<Decision>) {
        let Some(known) = self.loads.get(pair) else { return };
        let Round { link, now, pins } = round;
        let is_pinned = pins.contains_key(&pair);
        let alternatives = self.loads.alternatives(pair, paths);
        let present = alternatives.iter().find(|path| path.address == known.address);
        let required = present.map_or(0.0, |path| path.expected.0 as f64 * (1.0 + self.options.gain));
        let is_better =
            |path: &&Alternative| path.expected.0 as f64 > required && !paths.is_broken(pair, path.address);
        let hold = self.loads.moves().hold(pair, now);
        let (to, verdict) = match best(alternatives.iter().filter(is_better)) {
            _ if is_pinned => (known.address, Verdict::Pinned),
            _ if hold == Some(Hold::Time) => (known.address, Verdict::HoldDown),
            Some(_) if hold.is_some() => (known.address, Verdict::MoveLimit),
            Some(best) => (best.address, Verdict::Reroute),
            // It has the rate that it needs, or has just started. Nobody moves for it.
            None if is_light(known.rate, paths.capacity(link)) => (known.address, Verdict::Keep),
            None if hold.is_some() || self.searches.contains_key(&pair) => (known.address, Verdict::Keep),
            None => match self.search_room(pair, required, round, paths) {
                Some((to, displaced)) => {
                    for displaced in displaced {
                        self.loads.record_move(displaced.pair, displaced.to, now, paths);
                        decisions.push(displaced);
                    }
                    (to, Verdict::Reroute)
                }
                None => (known.address, Verdict::Keep),
            },
        };
        if verdict == Verdict::Reroute {
            self.loads.record_move(pair, to, now, paths);
        }
        let (from, rate, cause) = (known.address, known.rate, round.cause());
        let flow_moves = self.loads.moves().most_moves(pair, now);
        decisions.push(Decision {
            pair,
            time: now,
            cause,
            rate,
            from,
            to,
            verdict,
            flow_moves,
            alternatives,
        });
    }
}

impl Decider for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn on_congestion(
        &mut self,
        congestion: &Congestion,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let now = congestion.time;
        // On a path that a flow has left, a collector reports its last rate until the idle timeout.
        let is_fresh = |flow: &&PairRate| now.since(flow.measured) <= self.options.report_timeout;
        let flows: Vec<&PairRate> = congestion.flows.iter().filter(is_fresh).collect();
        for &flow in &flows {
            self.loads.observe(flow, now, paths);
        }
        self.loads.expire(now, paths);
        let interval = self.search_interval();
        self.searches.retain(|_, searched| now.since(*searched) < interval);
        let round = Round { link: congestion.link, now, pins };
        for flow in &flows {
            // A pair that is leaving the link needs no second decision. Switches of a path report one collision within
            // microseconds of each other.
            if self.loads.uses(flow.pair, congestion.link, paths) && !self.loads.only_acknowledges(flow.pair)
            {
                self.route(flow.pair, round, paths, decisions);
            }
        }
    }

    fn on_placed(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.loads.record_placement(pair, address, now, paths);
    }

    fn on_refused(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.loads.record_refusal(pair, address, now, paths);
    }

    fn on_unfrozen(&mut self) {
        self.loads.forget_refusals();
    }

    fn flow_moves(&self, pair: Pair) -> Vec<FlowMoves> {
        self.loads.moves().flows(pair).to_vec()
    }

    fn on_new_paths(&mut self) {
        self.loads.clear();
        self.searches.clear();
    }
}

/// Returns the path with the largest expected rate; the first of equals, as in the algorithm.
fn best<'a>(alternatives: impl Iterator<Item = &'a Alternative>) -> Option<&'a Alternative> {
    alternatives.reduce(|best, other| if other.expected > best.expected { other } else { best })
}
