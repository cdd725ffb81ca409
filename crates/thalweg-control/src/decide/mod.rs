//! Rerouting algorithms: pure functions from measured traffic to decisions. No clock, no randomness, no side effects.
//!
//! | module | contents |
//! |---|---|
//! | [`greedy`] | on congestion, moves each flow to the path with the largest expected bottleneck rate (Planck, algorithm 1) |
//! | [`first_fit`] | periodically assigns each flow the first path with room for its demand (Hedera) |
//! | [`static_routing`] | never reroutes |
//! | [`loads`] | recent traffic by pair and link, and expected rates of paths |
//! | [`moves`] | moves of pairs and flows, and when a pair may move again |
//! | [`demand`] | rates that flows would have if only host links limited them |

pub mod demand;
pub mod first_fit;
pub mod greedy;
pub mod loads;
pub mod moves;
pub mod static_routing;

use std::collections::BTreeMap;

pub use moves::FlowMoves;
use thalweg_wire::{BitRate, FlowKey, Nanos, Timestamp};

use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// The measured rate of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowShare {
    /// The flow. A reroute changes MAC addresses only, so it keeps this key.
    pub flow: FlowKey,
    /// Its measured rate.
    pub rate: BitRate,
}

/// The measured rate of a pair, all its flows together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairRate {
    /// The pair.
    pub pair: Pair,
    /// Index of the destination address that its packets have.
    pub address: u8,
    /// The measured rate.
    pub rate: BitRate,
    /// Packet time at which the measurement of its fastest flow ended. On a path that a flow has left, a collector
    /// reports the last rate until the flow's idle timeout.
    pub measured: Timestamp,
    /// Its reported flows that send, the fastest first: at least one if an event reports the pair, none if a poll does.
    pub flows: Vec<FlowShare>,
}

/// A link whose utilisation is above a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The link.
    pub link: LinkNumber,
    /// Packet time of the event.
    pub time: Timestamp,
    /// The pairs on the link, the fastest first.
    pub flows: Vec<PairRate>,
}

/// One of the paths that a pair could take, and the rate to expect on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Index of the destination address that selects the path.
    pub address: u8,
    /// Expected rate of the pair: the minimum over the links of the path.
    pub expected: BitRate,
    /// The link with that minimum.
    pub tightest: LinkNumber,
}

/// Why a pair was considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The pair is on this congested link.
    Congestion(LinkNumber),
    /// A periodic poll.
    Poll,
}

/// Whether a pair is rerouted, and if not, why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pair is rerouted.
    Reroute,
    /// No other path is better by the required gain.
    Keep,
    /// The pair moved recently, and the effect is not known yet.
    HoldDown,
    /// Another path is better, but a flow of the pair has moved [three times](moves::MAX_MOVES).
    MoveLimit,
    /// A user pinned the pair to its address.
    Pinned,
    /// The pair would be rerouted, but the controller is frozen, in a dry run or at its limit.
    Withheld,
}

/// A decision about one pair, with the alternatives compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The pair.
    pub pair: Pair,
    /// Time of the decision.
    pub time: Timestamp,
    /// Why the pair was considered.
    pub cause: Cause,
    /// The measured rate of the pair.
    pub rate: BitRate,
    /// Index of the present address.
    pub from: u8,
    /// Index of the chosen address; equal to `from` if the pair is not rerouted.
    pub to: u8,
    /// Whether the pair is rerouted, and if not, why not.
    pub verdict: Verdict,
    /// Number of moves of that flow of the pair that has moved most, including this one; 0 if the decider does not count
    /// moves.
    pub flow_moves: u32,
    /// All alternatives in the order of addresses, the present path included.
    pub alternatives: Vec<Alternative>,
}

/// Pairs that a user pinned, and the address of each.
pub type Pins = BTreeMap<Pair, u8>;

/// A rerouting algorithm.
pub trait Decider: Send {
    /// Returns the name used in configuration files.
    fn name(&self) -> &'static str;

    /// Handles a congestion event. Must not move pinned pairs.
    fn on_congestion(
        &mut self,
        congestion: &Congestion,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let _ = (congestion, pins, paths, decisions);
    }

    /// Returns the interval at which it needs all traffic, or `None` if never.
    fn poll_interval(&self) -> Option<Nanos> {
        None
    }

    /// Handles a poll: all traffic as of `now`. Must not move pinned pairs.
    fn on_poll(
        &mut self,
        flows: &[PairRate],
        now: Timestamp,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let _ = (flows, now, pins, paths, decisions);
    }

    /// Handles a placement that it did not decide: a user pinned the pair, it was moved back to a working path, or a decided
    /// move had no effect in time.
    fn on_placed(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        let _ = (pair, address, now, paths);
    }

    /// Handles the refusal of its last move of the pair: nothing has changed, the pair is still at `address`.
    fn on_refused(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.on_placed(pair, address, now, paths);
    }

    /// Handles the end of a freeze: moves are carried out again.
    fn on_unfrozen(&mut self) {}

    /// Returns the known flows of a pair and the moves of each; none if the decider does not count moves.
    fn flow_moves(&self, pair: Pair) -> Vec<FlowMoves> {
        let _ = pair;
        Vec::new()
    }

    /// Handles new paths: everything known about links is void.
    fn on_new_paths(&mut self) {}
}

/// Returns the TCP flow of a pair with this source port, for tests.
#[cfg(test)]
pub(crate) fn tcp_flow(pair: Pair, port: u16) -> FlowKey {
    let (source, destination) = (pair.source.0, pair.destination.0);
    format!("tcp 10.0.0.{source}:{port} > 10.0.0.{destination}:5201").parse().expect("a valid key")
}
