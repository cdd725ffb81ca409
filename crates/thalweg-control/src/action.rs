//! Actions: a pair is to go another way.

use thalweg_wire::Timestamp;

use crate::pair::Pair;

/// The number of an action, counted from 1 for each controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// A pair is to go another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its number.
    pub id: ActionId,
    /// Which pair.
    pub pair: Pair,
    /// To which of the destination's addresses it is to send.
    pub address: u8,
    /// When it was decided.
    pub issued: Timestamp,
    /// When it has failed, if no packet with the new address has been seen.
    pub deadline: Timestamp,
}
