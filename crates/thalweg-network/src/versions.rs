//! The history of a network's states, and the state that was active when a packet was forwarded.
//!
//! Each [`NetworkState`] has a version number, from 1, and the packet time at which it becomes active. It stays active
//! until the next version. The last versions are kept, 8 by default.
//!
//! # Attribution
//! A mirrored packet arrives at the collector after it was forwarded, delayed by propagation and by the buffer of the
//! monitor port. So a packet received at time `t` was forwarded no earlier than `t - transition_time`, under a version that was
//! active in that interval: a *candidate*. `transition_time` must cover the longest delay; the default is 10 ms. With 0 a packet
//! belongs to the version that is active when it is received.
//!
//! | candidates | attributed to | [`Certainty`] |
//! |---|---|---|
//! | one | that one | `Certain` |
//! | several that agree | the newest | `Agreed` |
//! | several that disagree, but those whose path includes the router agree | the newest of these | `OnlyFit` |
//! | several that disagree | the newest whose path includes the router, else the newest | `Ambiguous` |
//! | at least one that is no longer kept | as above among the kept ones, else the oldest | `Forgotten` |
//!
//! The newest wins because a change moves traffic: most packets after it follow the new paths. During a change one
//! switch may forward a packet under the old version and the next switch under the new one. Within the transition time
//! its ports may belong to neither path.
//!
//! Example: the table of a switch changes at 1 s.
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
//! let table_to = |port| {
//!     let mut table = ForwardingTable::new(4, 0, 3);
//!     table.set(to, 0, port).map(|_| Forwarding::tables(vec![table]))
//! };
//! let links = LinkState::new(&topology);
//! let first = NetworkState::new(topology, links, table_to(PortIndex(1))?)?;
//! let second = first.with_forwarding(table_to(PortIndex(2))?)?;
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
//! [`phase`](Versions::phase) usually takes two comparisons. [`infer`](Versions::infer) takes one inference, or one per
//! candidate within the transition time. No allocation.

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

/// The default number of kept versions.
pub const DEFAULT_CAPACITY: usize = 8;

/// The default transition time.
pub const DEFAULT_TRANSITION_TIME: Nanos = Nanos::from_millis(10);

/// A state of the network with its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The version number, from 1.
    pub number: u64,
    /// The packet time at which it becomes active.
    pub from: Timestamp,
    /// The state.
    pub state: Arc<NetworkState>,
}

/// The last versions of a network, oldest first; at least one.
#[derive(Clone, Debug)]
pub struct Versions {
    kept: VecDeque<Version>,
    capacity: usize,
    transition_time: Nanos,
    forgotten: u64,
}

/// The candidates for packets of some time. The inference from the same headers is the same within one phase, so it may
/// be cached per phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// The newest candidate, which is the active version.
    pub newest: u64,
    /// The oldest candidate that is kept.
    pub oldest: u64,
    /// Whether older candidates are no longer kept.
    pub is_forgotten: bool,
}

/// The reason why a version is rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionError {
    /// It starts before the newest version.
    #[error("a version that starts at {from} cannot follow one that starts at {newest}")]
    Backwards {
        /// The start of the rejected version.
        from: Timestamp,
        /// The start of the newest version.
        newest: Timestamp,
    },
    /// A router has the number of another.
    #[error(
        "router {router} is {before:?} and would become {after:?}: keep the order of routers and append new ones"
    )]
    Renumbered {
        /// The number.
        router: RouterId,
        /// The name of the router in the newest version.
        before: String,
        /// The name of the router in the rejected version.
        after: String,
    },
}

impl Versions {
    /// Creates a history that begins with `state`, version 1, active from time 0.
    pub fn new(state: impl Into<Arc<NetworkState>>) -> Versions {
        let first = Version { number: 1, from: Timestamp(0), state: state.into() };
        Versions {
            kept: VecDeque::from([first]),
            capacity: DEFAULT_CAPACITY,
            transition_time: DEFAULT_TRANSITION_TIME,
            forgotten: 0,
        }
    }

    /// Sets the number of kept versions; 0 means 1.
    #[must_use]
    pub fn with_capacity(mut self, versions: usize) -> Versions {
        self.capacity = versions.max(1);
        self.trim();
        self
    }

    /// Sets the transition time.
    #[must_use]
    pub fn with_transition_time(self, transition_time: Nanos) -> Versions {
        Versions { transition_time, ..self }
    }

    /// Adds a state that is active from packet time `from`, and returns its version number. Drops the oldest version if
    /// too many are kept. A version with the same start as the newest replaces it.
    ///
    /// # Errors
    /// If it starts before the newest version, or renumbers a router.
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

    /// Returns the newest version.
    #[inline]
    pub fn newest(&self) -> &Version {
        self.kept.back().expect("one version is always kept")
    }

    /// Returns the version of this number, if it is kept.
    pub fn get(&self, number: u64) -> Option<&Version> {
        let index = self.kept.binary_search_by_key(&number, |version| version.number).ok()?;
        self.kept.get(index)
    }

    /// Returns the kept versions, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Version> + ExactSizeIterator {
        self.kept.iter()
    }

    /// The number of versions that are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The transition time.
    pub fn transition_time(&self) -> Nanos {
        self.transition_time
    }

    /// Returns the candidates for a packet received at `time`.
    #[inline]
    pub fn phase(&self, time: Timestamp) -> Phase {
        let (oldest, newest, is_forgotten) = self.candidates(time);
        Phase { newest: self.kept[newest].number, oldest: self.kept[oldest].number, is_forgotten }
    }

    /// Infers the ports of `router` that a packet with these headers, received at `time`, used.
    pub fn infer(
        &self,
        router: RouterId,
        ethernet: &EthernetAddresses,
        key: &FlowKey,
        time: Timestamp,
    ) -> Inference {
        let answer = |state: &NetworkState| state.ports(router, ethernet, key);
        let ((ports, case), version, certainty) =
            self.attribute(time, answer, |&(_, case)| case.is_on_path());
        Inference { ports, case, version, certainty }
    }

    /// Infers the ports and the whole path. The path is `None` if it does not include the router, does not arrive, or
    /// does not follow from the headers. The certainty covers the path: two versions may agree on the ports of one
    /// router but not on the rest.
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
            self.attribute(time, answer, |(_, case, _)| case.is_on_path());
        (Inference { ports, case, version, certainty }, path)
    }

    /// Computes `answer` for all candidates of a packet received at `time` and selects one. Returns the answer, its
    /// version and its certainty. `is_on_path` is whether the packet can be at the router by an answer.
    #[inline]
    fn attribute<A: PartialEq>(
        &self,
        time: Timestamp,
        answer: impl Fn(&NetworkState) -> A,
        is_on_path: impl Fn(&A) -> bool,
    ) -> (A, u64, Certainty) {
        let (oldest, newest, is_forgotten) = self.candidates(time);
        let answer_of = |index: usize| (answer(&self.kept[index].state), self.kept[index].number);
        let (mut chosen, mut number) = answer_of(newest);
        let mut certainty = Certainty::Certain;
        for (other, other_number) in (oldest..newest).rev().map(answer_of) {
            certainty = match (is_on_path(&chosen), is_on_path(&other)) {
                _ if chosen == other => certainty.max(Certainty::Agreed),
                (true, false) => certainty.max(Certainty::OnlyFit),
                // By the newer versions the packet cannot be here.
                (false, true) => {
                    (chosen, number) = (other, other_number);
                    Certainty::OnlyFit
                }
                (true, true) | (false, false) => Certainty::Ambiguous,
            };
        }
        (chosen, number, if is_forgotten { Certainty::Forgotten } else { certainty })
    }

    /// Returns the indices of the oldest and the newest candidate for a packet received at `time`, and whether further
    /// candidates are no longer kept.
    #[inline]
    fn candidates(&self, time: Timestamp) -> (usize, usize, bool) {
        // A version remains a candidate for the transition time after the next one has started.
        let lingers = |next: &Version| time.0 < next.from.0.saturating_add(self.transition_time.0);
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
