//! Actions: reroutes of a pair.

use thalweg_wire::Timestamp;

use crate::pair::Pair;

/// The number of an action, unique within a controller, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// One reroute of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The action's number.
    pub id: ActionId,
    /// The pair to reroute.
    pub pair: Pair,
    /// Index of the destination address that the pair is to use.
    pub address: u8,
    /// Time of the decision.
    pub issued: Timestamp,
    /// The action times out at this time unless a packet with the new address was seen.
    pub deadline: Timestamp,
}
