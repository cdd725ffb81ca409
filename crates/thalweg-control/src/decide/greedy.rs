//! Planck's greedy traffic engineering (Rasley et al., SIGCOMM 2014, algorithm 1).
//!
//! On each congestion event, every pair on the link moves to the path with the largest expected rate
//! ([`loads`](super::loads)), with all other pairs left in place. A later pair sees the moves of the earlier ones. (The
//! paper says flows; all flows of a pair follow one path.)
//!
//! **Additions to the algorithm.** A pair moves only if the expected gain is large enough ([`GreedyOptions::gain`]),
//! and not before its last move has taken effect ([`GreedyOptions::hold_down`]). Otherwise two pairs that both see the
//! same free path would swap forever. [Light](super::loads::LIGHT_SHARE) pairs, mostly acknowledgements, do not count
//! as contenders. If no path is better, the decider may [make room](GreedyOptions::makes_room) on one. Except for
//! light pairs, it is the published algorithm if gain and hold-down time are zero and it makes no room.

use thalweg_wire::{Nanos, Timestamp};

use super::loads::Loads;
use super::{Alternative, Cause, Congestion, Decider, Decision, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

mod room;

/// Options of the greedy traffic-engineering algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreedyOptions {
    /// Pairs not seen for this long are not counted on links. Default 3 ms, about the time that a reroute takes
    /// (section 7.1).
    pub report_timeout: Nanos,
    /// Minimum gain of another path, as a share of the present path's expected rate. Default 0.1: rates are measured
    /// to within 3 %.
    pub gain: f64,
    /// Time after a move in which a pair is not moved again. Default 5 ms: a move takes 2.5 to 3.5 ms to take effect
    /// (figure 16), and as long again before measured rates show it. If moves of a pair follow each other closely, the
    /// hold-down time doubles with each from the third on.
    pub hold_down: Nanos,
    /// Whether a pair without a better path may displace another pair that loses nothing by moving. Default yes.
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
    cause: Cause,
    now: Timestamp,
    pins: &'a Pins,
}

/// The greedy decider.
#[derive(Clone, Debug)]
pub struct Greedy {
    options: GreedyOptions,
    loads: Loads,
}

impl Greedy {
    /// Creates a decider with no known traffic.
    pub fn new(options: GreedyOptions) -> Greedy {
        Greedy { options, loads: Loads::new(options.report_timeout, options.hold_down) }
    }

    /// Returns the known traffic.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Chooses a path for one pair (algorithm 1, lines 9 to 17).
    fn route(&mut self, pair: Pair, round: Round<'_>, paths: &mut Paths, decisions: &mut Vec<Decision>) {
        let Some(known) = self.loads.get(pair) else { return };
        let Round { cause, now, pins } = round;
        let is_pinned = pins.contains_key(&pair);
        let alternatives = self.loads.alternatives(pair, paths);
        let present = alternatives.iter().find(|path| path.address == known.address);
        let required = present.map_or(0.0, |path| path.expected.0 as f64 * (1.0 + self.options.gain));
        let is_better =
            |path: &&Alternative| path.expected.0 as f64 > required && !paths.is_broken(pair, path.address);
        let (to, verdict) = match best(alternatives.iter().filter(is_better)) {
            _ if is_pinned => (known.address, Verdict::Pinned),
            _ if self.loads.is_held_down(pair, now) => (known.address, Verdict::HoldDown),
            Some(best) => (best.address, Verdict::Reroute),
            None => match self.make_room(pair, &alternatives, required, round, paths) {
                Some((to, displaced)) => {
                    self.loads.record_move(displaced.pair, displaced.to, now, paths);
                    decisions.push(displaced);
                    (to, Verdict::Reroute)
                }
                None => (known.address, Verdict::Keep),
            },
        };
        if verdict == Verdict::Reroute {
            self.loads.record_move(pair, to, now, paths);
        }
        let (from, rate) = (known.address, known.rate);
        decisions.push(Decision { pair, time: now, cause, rate, from, to, verdict, alternatives });
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
        for flow in &congestion.flows {
            self.loads.observe(flow, now, paths);
        }
        self.loads.expire(now, paths);
        let round = Round { cause: Cause::Congestion(congestion.link), now, pins };
        for flow in &congestion.flows {
            self.route(flow.pair, round, paths, decisions);
        }
    }

    fn on_placed(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.loads.record_move(pair, address, now, paths);
    }

    fn on_new_paths(&mut self) {
        self.loads.clear();
    }
}

/// Returns the path with the largest expected rate; the first of equals, as in the algorithm.
fn best<'a>(alternatives: impl Iterator<Item = &'a Alternative>) -> Option<&'a Alternative> {
    alternatives.reduce(|best, other| if other.expected > best.expected { other } else { best })
}
