//! The states that a network has been in, and which of them a packet was forwarded under.
//!
//! Each [`NetworkState`] has a version number, counted from 1, and the packet time from which it holds: until the
//! next one does. The last few are kept, 8 unless said otherwise.
//!
//! # Attribution
//! A mirrored packet is seen later than it was forwarded: it was under way, and has waited in the monitor port's
//! buffer. So a packet seen at time `t` was forwarded at `t - settle` at the earliest, and any version that held at some
//! time from then to `t` may have been the one. `settle` is to cover the longest of these delays; it is 10 ms by default,
//! and with 0 a packet belongs to the version that holds when it is seen.
//!
//! | the versions that may have been | attributed to | [`Certainty`] |
//! |---|---|---|
//! | are one | that | `Certain` |
//! | all give the same answer | the newest | `Agreed` |
//! | give different ones, but those under which the packet could be here at all give the same | the newest of these | `OnlyFit` |
//! | give different answers | the newest under which the packet could be here, else the newest | `Ambiguous` |
//! | include one that is no longer kept | as above among those kept, else the oldest | `Forgotten` |
//!
//! The newest is taken because a change is meant to move traffic: most of what is seen after it has moved.
//! A packet on its way during a change may be forwarded by one switch under the old version and by the next under
//! the new one; within the settling time its ports may be those of neither path.
//!
//! For example, of a switch whose table changes at 1 s:
//!
//! ```
//! use thalweg_network::routing::ForwardingTable;
//! use thalweg_network::topology::shapes::{Tiers, dumbbell};
//! use thalweg_network::{
//!     Certainty, EndpointId, Forwarding, LinkState, NetworkState, PortIndex, RouterId, Versions,
//! };
//! use thalweg_wire::{EthernetAddresses, Timestamp};
//!
//! let topology = dumbbell(2, Tiers::default())?;
//! let (from, to, switch) = (EndpointId(0), EndpointId(1), RouterId(0));
//! let ethernet =
//!     EthernetAddresses { source: topology.mac(from, 0), destination: topology.mac(to, 0) };
//! let key = "tcp 10.0.0.1:40000 > 10.0.0.2:80".parse()?;
//!
//! let leading_to = |port| {
//!     let mut table = ForwardingTable::new(4, 0, 3);
//!     table.set(to, 0, port).map(|_| Forwarding::tables(vec![table]))
//! };
//! let links = LinkState::new(&topology);
//! let first = NetworkState::new(topology, links, leading_to(PortIndex(1))?)?;
//! let second = first.with_forwarding(leading_to(PortIndex(2))?)?;
//! let mut versions = Versions::new(first);
//! versions.push(second, Timestamp(1_000_000_000))?;
//!
//! let at = |time| versions.infer(switch, &ethernet, &key, Timestamp(time));
//! assert_eq!(at(999_999_999).ports.output, Some(PortIndex(1)));
//! assert_eq!(at(1_005_000_000).ports.output, Some(PortIndex(2)));
//! assert_eq!(at(1_005_000_000).certainty, Certainty::Ambiguous, "it may have been queued before");
//! assert_eq!(at(1_010_000_000).certainty, Certainty::Certain);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//! [`phase`](Versions::phase) is two comparisons in the ordinary case. [`infer`](Versions::infer) is the inference
//! under one version, within the settling time under two or more. Nothing is allocated.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_wire::{EthernetAddresses, FlowKey, Nanos, Timestamp};
use thiserror::Error;

use crate::identity::RouterId;
use crate::inference::{Case, Certainty, Inference};
use crate::routing::Path;
use crate::state::NetworkState;

/// Versions that are kept unless said otherwise.
pub const DEFAULT_KEPT: usize = 8;

/// Settling time unless said otherwise.
pub const DEFAULT_SETTLE: Nanos = Nanos::from_millis(10);

/// A state of the network, and when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number, from 1.
    pub number: u64,
    /// The packet time from which it holds.
    pub from: Timestamp,
    /// The state.
    pub state: Arc<NetworkState>,
}

/// The last states of a network, the oldest first; at least one.
#[derive(Clone, Debug)]
pub struct Versions {
    kept: VecDeque<Version>,
    capacity: usize,
    settle: Nanos,
    forgotten: u64,
}

/// Which versions a packet of some time may have been forwarded under. As long as it is the same, so is whatever is
/// inferred from the same headers: what was inferred may be kept with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// The newest of them: the one that holds.
    pub newest: u64,
    /// The oldest of them that is kept.
    pub oldest: u64,
    /// Whether there are older ones that are no longer kept.
    pub is_forgotten: bool,
}

/// Why a version is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionError {
    /// It would begin before the one that it follows.
    #[error("a version from {from} on cannot follow one from {newest} on")]
    Backwards {
        /// Where it would begin.
        from: Timestamp,
        /// Where the newest one began.
        newest: Timestamp,
    },
    /// A router would have another's number.
    #[error(
        "router {router} is {before:?} and would be {after:?}: routers keep their order, new ones come last"
    )]
    Renumbered {
        /// The number.
        router: RouterId,
        /// Whose it is.
        before: String,
        /// Whose it would be.
        after: String,
    },
}

impl Versions {
    /// A history that begins with `state`, version 1, which holds from time 0 on.
    pub fn new(state: impl Into<Arc<NetworkState>>) -> Versions {
        let first = Version { number: 1, from: Timestamp(0), state: state.into() };
        Versions {
            kept: VecDeque::from([first]),
            capacity: DEFAULT_KEPT,
            settle: DEFAULT_SETTLE,
            forgotten: 0,
        }
    }

    /// Keeps so many versions; 0 is taken for 1.
    #[must_use]
    pub fn with_capacity(mut self, versions: usize) -> Versions {
        self.capacity = versions.max(1);
        self.trim();
        self
    }

    /// With this settling time.
    #[must_use]
    pub fn with_settle(self, settle: Nanos) -> Versions {
        Versions { settle, ..self }
    }

    /// Adds the state that holds from packet time `from` on, and gives its number. The oldest version is forgotten if too
    /// many are kept. One that begins with the newest replaces it, as that has held at no time.
    ///
    /// # Errors
    /// If it begins earlier than the newest, or gives a router another's number.
    pub fn push(
        &mut self,
        state: impl Into<Arc<NetworkState>>,
        from: Timestamp,
    ) -> Result<u64, VersionError> {
        let state = state.into();
        let newest = self.newest();
        if from < newest.from {
            return Err(VersionError::Backwards { from, newest: newest.from });
        }
        check_numbers(&newest.state, &state)?;
        let number = newest.number + 1;
        if from == newest.from {
            self.kept.pop_back();
        }
        self.kept.push_back(Version { number, from, state });
        self.trim();
        Ok(number)
    }

    /// The newest version.
    #[inline]
    pub fn newest(&self) -> &Version {
        self.kept.back().expect("one version is always kept")
    }

    /// The version of this number, if it is kept.
    pub fn get(&self, number: u64) -> Option<&Version> {
        let index = self.kept.binary_search_by_key(&number, |version| version.number).ok()?;
        self.kept.get(index)
    }

    /// The versions that are kept, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Version> + ExactSizeIterator {
        self.kept.iter()
    }

    /// How many versions have been forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The settling time.
    pub fn settle(&self) -> Nanos {
        self.settle
    }

    /// The versions that a packet seen at `time` may have been forwarded under.
    #[inline]
    pub fn phase(&self, time: Timestamp) -> Phase {
        let (oldest, newest, is_forgotten) = self.candidates(time);
        Phase { newest: self.kept[newest].number, oldest: self.kept[oldest].number, is_forgotten }
    }

    /// The ports of `router` that a packet with these headers, seen at `time`, went through.
    pub fn infer(
        &self,
        router: RouterId,
        ethernet: &EthernetAddresses,
        key: &FlowKey,
        time: Timestamp,
    ) -> Inference {
        let answer = |state: &NetworkState| state.ports(router, ethernet, key);
        let ((ports, case), version, certainty) = self.attribute(time, answer, |&(_, case)| case.fits());
        Inference { ports, case, version, certainty }
    }

    /// The same, and the whole path. There is none if it does not lead through the router or does not arrive, or if
    /// the headers do not tell it. Certainty is that of the path here: two versions may agree on the ports of one
    /// router, and not on what lies beyond.
    pub fn infer_path(
        &self,
        router: RouterId,
        ethernet: &EthernetAddresses,
        key: &FlowKey,
        time: Timestamp,
    ) -> (Inference, Option<Path>) {
        let answer = |state: &NetworkState| {
            let (ports, case) = state.ports(router, ethernet, key);
            let path = if case == Case::Known { state.path(ethernet, key).ok() } else { None };
            (ports, case, path)
        };
        let ((ports, case, path), version, certainty) =
            self.attribute(time, answer, |(_, case, _)| case.fits());
        (Inference { ports, case, version, certainty }, path)
    }

    /// Asks all versions that a packet seen at `time` may have been forwarded under, and decides among them: the
    /// answer, its version, and how sure that is. `fits` says of an answer whether the packet could be here.
    #[inline]
    fn attribute<A: PartialEq>(
        &self,
        time: Timestamp,
        answer: impl Fn(&NetworkState) -> A,
        fits: impl Fn(&A) -> bool,
    ) -> (A, u64, Certainty) {
        let (oldest, newest, is_forgotten) = self.candidates(time);
        let ask = |index: usize| (answer(&self.kept[index].state), self.kept[index].number);
        let (mut chosen, mut number) = ask(newest);
        let mut certainty = Certainty::Certain;
        for (other, other_number) in (oldest..newest).rev().map(ask) {
            certainty = match (fits(&chosen), fits(&other)) {
                _ if chosen == other => certainty.max(Certainty::Agreed),
                (true, false) => certainty.max(Certainty::OnlyFit),
                // Whatever newer versions say, under none of them could the packet be here.
                (false, true) => {
                    (chosen, number) = (other, other_number);
                    Certainty::OnlyFit
                }
                (true, true) | (false, false) => Certainty::Ambiguous,
            };
        }
        (chosen, number, if is_forgotten { Certainty::Forgotten } else { certainty })
    }

    /// Indices of the oldest and the newest version that a packet seen at `time` may have been forwarded under, and
    /// whether there are others that are forgotten.
    #[inline]
    fn candidates(&self, time: Timestamp) -> (usize, usize, bool) {
        // A version may have been the one after the next has begun, for as long as the settling time.
        let lingers = |next: &Version| time.0 < next.from.0.saturating_add(self.settle.0);
        let newest = self.kept.iter().rposition(|version| version.from <= time).unwrap_or(0);
        let mut oldest = newest;
        while oldest > 0 && lingers(&self.kept[oldest]) {
            oldest -= 1;
        }
        let first = &self.kept[0];
        let is_forgotten = self.forgotten > 0 && (time < first.from || lingers(first));
        (oldest, newest, is_forgotten)
    }

    fn trim(&mut self) {
        while self.kept.len() > self.capacity {
            self.kept.pop_front();
            self.forgotten += 1;
        }
    }
}

fn check_numbers(before: &NetworkState, after: &NetworkState) -> Result<(), VersionError> {
    let routers = [before, after].map(|state| state.topology().routers());
    if let [before, after] = routers
        && let Some(index) = before.iter().zip(after).position(|(before, after)| before.name != after.name)
    {
        let [before, after] = [before, after].map(|routers| routers[index].name.clone());
        return Err(VersionError::Renumbered { router: RouterId(index as u16), before, after });
    }
    Ok(())
}
