//! Which pair goes which way: pure functions from what was seen to what should be. No clock, no chance, no effect.
//!
//! | module | what it decides by |
//! |---|---|
//! | [`greedy`] | congestion as it is told: each flow to the path with the largest expected bottleneck (Planck, algorithm 1) |
//! | [`first_fit`] | all flows, looked at from time to time: each to the first path with room for its demand (Hedera) |
//! | [`stay`] | nothing: every pair keeps the path that it has |
//! | [`loads`] | what is known of flows and links, and what a flow may expect of a path |
//! | [`demand`] | how fast flows would be if only their hosts held them up |

pub mod demand;
pub mod first_fit;
pub mod greedy;
pub mod loads;
pub mod stay;

use std::collections::BTreeMap;

use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// A pair's traffic as it was seen: all of its flows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whose.
    pub pair: Pair,
    /// Which of the destination's addresses its packets have.
    pub address: u8,
    /// How fast.
    pub rate: BitRate,
}

/// A link on which utilisation is above a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// Which.
    pub link: LinkNumber,
    /// Packet time of the event.
    pub time: Timestamp,
    /// The traffic on it, the fastest first.
    pub flows: Vec<Observed>,
}

/// What could be done with a pair, and what it could expect of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// To send to this address of the destination.
    pub address: u8,
    /// What the pair can expect: the least over the links of the path.
    pub expected: BitRate,
    /// The link that it is the least of.
    pub tightest: LinkNumber,
}

/// Why a pair was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is on a congested link.
    Congestion(LinkNumber),
    /// It was its turn.
    Poll,
}

/// Why it goes, or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes another way.
    Goes,
    /// No other way is better by as much as is asked for.
    Stays,
    /// It has been moved a moment ago, and what that did is not known yet.
    Settles,
    /// Somebody wants it to be where it is.
    Pinned,
}

/// What was decided of a pair, with what it was decided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Of whom.
    pub pair: Pair,
    /// When.
    pub time: Timestamp,
    /// Why it was looked at.
    pub cause: Cause,
    /// How fast it was.
    pub rate: BitRate,
    /// The address that it has.
    pub from: u8,
    /// The address that it is to have; the same if it stays.
    pub to: u8,
    /// Why.
    pub verdict: Verdict,
    /// All ways that there were, that which it has included, in the order of addresses.
    pub alternatives: Vec<Alternative>,
}

/// Pairs that somebody has sent to an address by hand, and wants to stay there.
pub type Pins = BTreeMap<Pair, u8>;

/// Who decides.
pub trait Decider: Send {
    /// As configurations call it.
    fn name(&self) -> &'static str;

    /// A link is congested. Pairs that are pinned stay.
    fn congested(
        &mut self,
        congestion: &Congestion,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let _ = (congestion, pins, paths, decisions);
    }

    /// How often it wants to see all traffic; `None` for never.
    fn polls(&self) -> Option<Nanos> {
        None
    }

    /// All traffic there is, as of `now`. Pairs that are pinned stay.
    fn polled(
        &mut self,
        flows: &[Observed],
        now: Timestamp,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let _ = (flows, now, pins, paths, decisions);
    }

    /// A pair has another address than this decider gave it: it was pinned, or what was decided could not be done.
    fn placed(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        let _ = (pair, address, now, paths);
    }

    /// Addresses lead other ways from now on: what was known of links is void.
    fn rerouted(&mut self) {}
}
