//! Planck's traffic engineering (Rasley et al., SIGCOMM 2014, algorithm 1).
//!
//! For every notice of congestion, each flow in it goes to the path on which it can expect the most
//! ([`loads`](super::loads)), the others as they are; a flow considered later sees where those before it went.
//!
//! **Beyond the algorithm.** A flow moves only if it gains by a share that is worth it ([`GreedyOptions::gain`]), and not
//! again before the last move has taken effect ([`GreedyOptions::settle`]): two flows that see the same free path
//! through different eyes would swap for ever otherwise. What is [light](super::loads::LIGHT), acknowledgements above all,
//! counts as nobody's rival. Where no way is better, [room](GreedyOptions::makes_room) is made on one. With a gain of 0, no
//! settling time, nothing light and no room made it is the algorithm as published.

use thalweg_wire::{Nanos, Timestamp};

use super::loads::Loads;
use super::{Alternative, Cause, Congestion, Decider, Decision, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

mod room;

/// How greedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreedyOptions {
    /// What has not been seen for so long is not counted on. Default 3 ms, about what rerouting a flow takes (section
    /// 7.1).
    pub timeout: Nanos,
    /// What another path must promise above the present one, as a share of that. Default 0.1: rates are measured to
    /// within 3 %.
    pub gain: f64,
    /// How long a pair is left alone after a move. Default 5 ms: the move takes 2.5 to 3.5 ms to take effect (figure 16),
    /// and as much again passes before rates tell. From the third of several moves in a row it doubles with each.
    pub settle: Nanos,
    /// Whether a pair that no way suits may take one that another pair leaves at the same time, if that one loses nothing by
    /// it. Default yes.
    pub makes_room: bool,
}

impl GreedyOptions {
    /// The defaults.
    pub const DEFAULT: GreedyOptions = GreedyOptions {
        timeout: Nanos::from_millis(3),
        gain: 0.1,
        settle: Nanos::from_millis(5),
        makes_room: true,
    };
}

impl Default for GreedyOptions {
    fn default() -> Self {
        GreedyOptions::DEFAULT
    }
}

/// What all pairs of a notice have in common.
#[derive(Clone, Copy, Debug)]
struct Round<'a> {
    cause: Cause,
    now: Timestamp,
    pins: &'a Pins,
}

/// Algorithm 1 at work.
#[derive(Clone, Debug)]
pub struct Greedy {
    options: GreedyOptions,
    loads: Loads,
}

impl Greedy {
    /// Nothing has been heard yet.
    pub fn new(options: GreedyOptions) -> Greedy {
        Greedy { options, loads: Loads::new(options.timeout, options.settle) }
    }

    /// What it knows.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Lines 9 to 17: where one pair should go.
    fn route(&mut self, pair: Pair, round: Round<'_>, paths: &mut Paths, decisions: &mut Vec<Decision>) {
        let Some(known) = self.loads.get(pair) else { return };
        let Round { cause, now, pins } = round;
        let is_pinned = pins.contains_key(&pair);
        let alternatives = self.loads.alternatives(pair, paths);
        let present = alternatives.iter().find(|way| way.address == known.address);
        let wanted = present.map_or(0.0, |way| way.expected.0 as f64 * (1.0 + self.options.gain));
        let is_better =
            |way: &&Alternative| way.expected.0 as f64 > wanted && !paths.is_barred(pair, way.address);
        let (to, verdict) = match best(alternatives.iter().filter(is_better)) {
            _ if is_pinned => (known.address, Verdict::Pinned),
            _ if self.loads.settles(pair, now) => (known.address, Verdict::Settles),
            Some(best) => (best.address, Verdict::Goes),
            None => match self.room(pair, &alternatives, wanted, round, paths) {
                Some((to, displaced)) => {
                    self.loads.send(displaced.pair, displaced.to, now, paths);
                    decisions.push(displaced);
                    (to, Verdict::Goes)
                }
                None => (known.address, Verdict::Stays),
            },
        };
        if verdict == Verdict::Goes {
            self.loads.send(pair, to, now, paths);
        }
        let (from, rate) = (known.address, known.rate);
        decisions.push(Decision { pair, time: now, cause, rate, from, to, verdict, alternatives });
    }
}

impl Decider for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn congested(
        &mut self,
        congestion: &Congestion,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let now = congestion.time;
        for flow in &congestion.flows {
            self.loads.see(flow, now, paths);
        }
        self.loads.forget(now, paths);
        let round = Round { cause: Cause::Congestion(congestion.link), now, pins };
        for flow in &congestion.flows {
            self.route(flow.pair, round, paths, decisions);
        }
    }

    fn placed(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.loads.send(pair, address, now, paths);
    }

    fn rerouted(&mut self) {
        self.loads.clear();
    }
}

/// The way that promises most. Of several that promise the same, the first, as in the algorithm.
fn best<'a>(ways: impl Iterator<Item = &'a Alternative>) -> Option<&'a Alternative> {
    ways.reduce(|best, way| if way.expected > best.expected { way } else { best })
}
