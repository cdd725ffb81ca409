//! Moves of pairs and of their flows: which pair may move again, and when.
//!
//! All flows of a pair follow one path, so a move of the pair moves each of them, and counts for each. A reroute changes
//! the destination's MAC address only, so a flow keeps its [key](FlowKey) when it moves.
//!
//! **Guarantee.** A flow is known once a report shows it with at least a tenth of its pair's rate. Each move counts for
//! all known flows of the pair that were reported within the [memory](super::loads::MEMORY) of the loads. A pair does not
//! move while one of these flows has moved [`MAX_MOVES`] times. A flow is forgotten when it has not been reported for
//! [`FORGET_AFTER`] hold-down times (10 s), or for the memory of the loads if it has not moved yet. Thus no known flow moves
//! more often than [`MAX_MOVES`], however often it pauses for less, and whichever flow of the pair is the largest. A new flow
//! of the pair has moves of its own once the earlier ones have ended. Smaller flows, such as control connections, follow the
//! pair; their moves are not limited.
//!
//! New routes of the network start all counts anew.
//!
//! Pins and moves back to a working path do not count, nor do moves that were refused or withheld. Moves without a
//! visible effect do count: a flow that was silent meanwhile takes the new path.
//!
//! **Memory**: at most [`MAX_FLOWS`] flows of each pair. If there are more, those that are not reported any more are
//! forgotten first, and of these the ones with the fewest moves.
//!
//! With a hold-down time of zero nothing is held down or limited.

use std::collections::BTreeMap;

use thalweg_wire::{FlowKey, Nanos, Timestamp};

use super::PairRate;
use crate::pair::Pair;

/// Maximum number of moves of a flow.
pub const MAX_MOVES: u32 = 3;

/// Share of its pair's rate from which on a flow is known. As for a [link](super::loads::LIGHT_SHARE), smaller flows do not
/// count: a control connection would limit the pair that it serves.
pub const MIN_SHARE: f64 = 0.1;

/// Maximum number of flows that are known of a pair.
pub const MAX_FLOWS: usize = 16;

/// Hold-down times after which a flow that is not reported is forgotten: 10 s with the default of 5 ms.
pub const FORGET_AFTER: u64 = 2_048;

/// Minimum time after a move in which the address in a report is ignored, and its rate counts on the new path. Queues on
/// the old path still hold packets with the old address when packets with the new one have long arrived. Three full
/// buffers of 3.5 ms (Planck, section 5.1), plus the time that the move takes.
pub const DRAIN_TIME: Nanos = Nanos::from_millis(15);

/// Hold-down times between the second move of a flow and the third. By then rates show whether the flows of the new
/// path have recovered.
const SECOND_HOLD_DOWN: u64 = 4;

/// The moves of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMoves {
    /// The flow.
    pub flow: FlowKey,
    /// Number of its moves, at most [`MAX_MOVES`].
    pub moves: u32,
    /// Time of its latest report.
    seen: Timestamp,
    /// Whether the last move of its pair counts for it.
    has_last: bool,
}

/// Why a pair may not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Its last move may not have taken effect yet.
    Time,
    /// One of its flows has moved [`MAX_MOVES`] times.
    Limit,
}

/// The last change of a pair's path.
#[derive(Clone, Copy, Debug)]
struct Placement {
    address: u8,
    at: Timestamp,
    /// Number of moves in a row that were refused.
    refusals: u32,
    /// Whether the latest move was refused.
    is_refused: bool,
}

/// What is known of a pair.
#[derive(Clone, Debug, Default)]
struct PairMoves {
    flows: Vec<FlowMoves>,
    last: Option<Placement>,
}

/// The moves of all pairs and flows.
#[derive(Clone, Debug)]
pub struct Moves {
    pairs: BTreeMap<Pair, PairMoves>,
    hold_down: Nanos,
    /// Flows reported within this time are live.
    memory: Nanos,
}

impl Moves {
    /// Creates an empty state. A pair is held down for `hold_down` after a move, and for longer after its second. A move
    /// counts for the flows reported within `memory`.
    pub fn new(hold_down: Nanos, memory: Nanos) -> Moves {
        Moves { pairs: BTreeMap::new(), hold_down, memory }
    }

    /// Records the reported flows of a pair.
    pub fn observe(&mut self, observed: &PairRate, now: Timestamp) {
        let forget_after = self.times(FORGET_AFTER);
        let known = self.pairs.entry(observed.pair).or_default();
        known.flows.retain(|flow| now.since(flow.seen) < forget_after);
        for share in &observed.flows {
            match known.flows.iter_mut().find(|known| known.flow == share.flow) {
                Some(flow) => flow.seen = now,
                None if (share.rate.0 as f64) < MIN_SHARE * observed.rate.0 as f64 => {}
                None => known.add(share.flow, now, self.memory),
            }
        }
    }

    /// Returns why a pair may not move now, or `None` if it may.
    pub fn hold(&self, pair: Pair, now: Timestamp) -> Option<Hold> {
        let known = self.pairs.get(&pair)?;
        let moves = known.most_moves(now, self.memory);
        let is_early = |last: &Placement| now.since(last.at) < self.hold_down_time(moves, last.refusals);
        match () {
            () if known.last.as_ref().is_some_and(is_early) => Some(Hold::Time),
            () if moves >= MAX_MOVES => Some(Hold::Limit),
            () => None,
        }
    }

    /// Records a move of a pair.
    pub fn record_move(&mut self, pair: Pair, address: u8, now: Timestamp) {
        let forget_after = self.times(FORGET_AFTER);
        let known = self.pairs.entry(pair).or_default();
        for flow in &mut known.flows {
            flow.has_last = flow.is_live(now, self.memory);
            flow.moves += u32::from(flow.has_last);
        }
        let refused = known.last.filter(|last| last.is_refused && now.since(last.at) < forget_after);
        let refusals = refused.map_or(0, |last| last.refusals);
        known.last = Some(Placement { address, at: now, refusals, is_refused: false });
    }

    /// Records that the last move of a pair was refused or withheld, so the pair is still at `address`. The move no longer
    /// counts, but the pair is held down as if it did, and for [`FORGET_AFTER`] hold-down times after the third in a row.
    pub fn record_refusal(&mut self, pair: Pair, address: u8, now: Timestamp) {
        let known = self.pairs.entry(pair).or_default();
        for flow in known.flows.iter_mut().filter(|flow| flow.has_last) {
            flow.moves = flow.moves.saturating_sub(1);
            flow.has_last = false;
        }
        let refusals = known.last.map_or(0, |last| last.refusals).saturating_add(1);
        known.last = Some(Placement { address, at: now, refusals, is_refused: true });
    }

    /// Forgets how many moves were refused in a row, so that no pair waits longer than the hold-down time because of them.
    pub fn forget_refusals(&mut self) {
        for last in self.pairs.values_mut().filter_map(|known| known.last.as_mut()) {
            (last.refusals, last.is_refused) = (0, false);
        }
    }

    /// Records that a pair is where it was not moved by a decision: a user pinned it, it was moved back to a working path,
    /// or a move had no effect. It is held down as after a move, but this one does not count.
    pub fn record_placement(&mut self, pair: Pair, address: u8, now: Timestamp) {
        let known = self.pairs.entry(pair).or_default();
        known.flows.iter_mut().for_each(|flow| flow.has_last = false);
        known.last = Some(Placement { address, at: now, refusals: 0, is_refused: false });
    }

    /// Returns the address of a pair's last move if reports may still show the pair as before.
    pub fn expected_address(&self, pair: Pair, now: Timestamp) -> Option<u8> {
        let last = self.pairs.get(&pair)?.last?;
        (now.since(last.at) < self.hold_down.max(DRAIN_TIME)).then_some(last.address)
    }

    /// Returns whether a pair was moved within the base hold-down time.
    pub fn moved_recently(&self, pair: Pair, now: Timestamp) -> bool {
        let last = self.pairs.get(&pair).and_then(|known| known.last);
        last.is_some_and(|last| now.since(last.at) < self.hold_down)
    }

    /// Returns the number of moves of the pair's live flow that has moved most.
    pub fn most_moves(&self, pair: Pair, now: Timestamp) -> u32 {
        self.pairs.get(&pair).map_or(0, |known| known.most_moves(now, self.memory))
    }

    /// Returns the known flows of a pair with their moves, at most [`MAX_FLOWS`].
    pub fn flows(&self, pair: Pair) -> &[FlowMoves] {
        self.pairs.get(&pair).map_or(&[], |known| &known.flows)
    }

    /// Forgets flows that have not been reported for long, and pairs without flows.
    pub fn expire(&mut self, now: Timestamp) {
        let (memory, forget_after) = (self.memory, self.times(FORGET_AFTER));
        let longest = self.times(SECOND_HOLD_DOWN).max(DRAIN_TIME);
        self.pairs.retain(|_, known| {
            let is_remembered = |flow: &FlowMoves| match flow.moves {
                0 => flow.is_live(now, memory),
                _ => now.since(flow.seen) < forget_after,
            };
            known.flows.retain(is_remembered);
            let matters = |last: &Placement| {
                now.since(last.at) < if last.is_refused { forget_after.max(longest) } else { longest }
            };
            known.last = known.last.filter(matters);
            !known.flows.is_empty() || known.last.is_some()
        });
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Returns the hold-down time, which grows with the number of moves, as in route flap damping (RFC 2439). A pair that
    /// finds every other path better than its own would otherwise cycle forever.
    fn hold_down_time(&self, moves: u32, refusals: u32) -> Nanos {
        match (moves, refusals) {
            (_, MAX_MOVES..) => self.times(FORGET_AFTER),
            (2, _) | (_, 2) => self.times(SECOND_HOLD_DOWN),
            _ => self.hold_down,
        }
    }

    /// Returns `factor` hold-down times.
    fn times(&self, factor: u64) -> Nanos {
        Nanos(self.hold_down.0.saturating_mul(factor))
    }
}

impl FlowMoves {
    fn is_live(&self, now: Timestamp, memory: Nanos) -> bool {
        now.since(self.seen) <= memory
    }
}

impl PairMoves {
    fn add(&mut self, flow: FlowKey, now: Timestamp, memory: Nanos) {
        if self.flows.len() >= MAX_FLOWS {
            let rank = |flow: &FlowMoves| (flow.is_live(now, memory), flow.moves, flow.seen);
            let least = (0..self.flows.len()).min_by_key(|&index| rank(&self.flows[index]));
            self.flows.remove(least.expect("the list is full"));
        }
        self.flows.push(FlowMoves { flow, moves: 0, seen: now, has_last: false });
    }

    fn most_moves(&self, now: Timestamp, memory: Nanos) -> u32 {
        let live = self.flows.iter().filter(|flow| flow.is_live(now, memory));
        live.map(|flow| flow.moves).max().unwrap_or(0)
    }
}
