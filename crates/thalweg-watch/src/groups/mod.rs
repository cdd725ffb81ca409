//! Hosts and pairs of hosts: the traffic of flows, added up.
//!
//! | file | contents |
//! |---|---|
//! | `table` | adds up the flows of a snapshot |
//! | `totals` | adds up the flow records of a run, in bounded memory |
//!
//! Flows are added when a snapshot is made or a record is exported, never per packet. Each flow counts for both of its hosts,
//! so the hosts together have twice the traffic.

mod table;
mod totals;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use thalweg_measure::filter::{Field, FlowFields};
use thalweg_wire::FlowKey;

pub(crate) use table::GroupTable;
pub use totals::GroupTotals;

use crate::traffic::Traffic;

/// What a row of a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// A flow.
    #[default]
    Flow,
    /// A host.
    Host,
    /// A pair of hosts.
    Pair,
}

impl Grouping {
    /// All kinds, in the order in which the `b` key cycles through them.
    pub const ALL: [Grouping; 3] = [Grouping::Flow, Grouping::Host, Grouping::Pair];

    /// Returns the next kind; the first after the last.
    #[must_use]
    pub fn next(self) -> Grouping {
        Grouping::ALL[(self as usize + 1) % Grouping::ALL.len()]
    }

    /// Returns the name of many rows: `flows`, `hosts`, `pairs`.
    pub fn plural(self) -> &'static str {
        match self {
            Grouping::Flow => "flows",
            Grouping::Host => "hosts",
            Grouping::Pair => "pairs",
        }
    }
}

/// A host or a pair of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A host.
    Host(IpAddr),
    /// Two hosts, the lower address first, so that a pair keeps its order while its flows come and go.
    Pair(IpAddr, IpAddr),
}

impl Group {
    /// Returns its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (first, second) = match *self {
            Group::Host(host) => (host, None),
            Group::Pair(low, high) => (low, Some(high)),
        };
        std::iter::once(first).chain(second)
    }

    /// Whether a flow, in either direction, belongs to the host or pair.
    pub fn contains(&self, key: &FlowKey) -> bool {
        let (src, dst) = (key.src(), key.dst());
        match *self {
            Group::Host(host) => host == src || host == dst,
            Group::Pair(low, high) => (low, high) == (src.min(dst), src.max(dst)),
        }
    }
}

/// Displays `10.0.0.1` or `10.0.0.1 - 10.0.0.2`.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Host(host) => write!(f, "{host}"),
            Group::Pair(low, high) => write!(f, "{low} - {high}"),
        }
    }
}

/// A host or pair with its traffic: index 0 sent by the host, or by the first host of the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// The host or pair.
    pub group: Group,
    /// Its traffic.
    pub traffic: Traffic,
    /// Whether a flow in each direction is currently a cheetah flow.
    pub cheetah: [bool; 2],
}

/// Values of the amounts. All other fields are unknown: they selected the flows.
impl FlowFields for GroupRow {
    fn number(&self, field: Field) -> Option<u64> {
        if field.is_amount() { self.traffic.number(field) } else { None }
    }

    fn address(&self, _: Field) -> Option<IpAddr> {
        None
    }
}

/// The first hosts or pairs in the order of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupList {
    /// The rows.
    pub rows: Vec<GroupRow>,
    /// Number of hosts or pairs that match the query.
    pub matching: u64,
}
