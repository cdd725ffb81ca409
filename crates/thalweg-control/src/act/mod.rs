//! Carrying decisions out: one trait, several means.
//!
//! | module | how a pair is sent another way |
//! |---|---|
//! | [`arp`] | its source learns another MAC address for the destination's IP address; no switch is touched |
//! | [`openflow`] | its first switch writes another destination address over the one it has |
//! | [`log`] | not at all: what would be done is kept to be read |
//!
//! An action has a number, a deadline and an outcome. That it was sent says little: it has been effective when a collector sees
//! a packet with the new address, and [`controller`](crate::controller) waits for that.

pub mod arp;
pub mod log;
pub mod openflow;

use thalweg_wire::Timestamp;
use thiserror::Error;

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

/// Why an action could not even be begun.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ActError {
    /// The pair's source, or its switch, cannot be reached.
    #[error("{source_name} cannot be reached: {cause}")]
    Unreachable {
        /// Name of the endpoint.
        source_name: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The address leads nowhere from the pair's source.
    #[error("address {address} leads nowhere from {source_name}")]
    NoWay {
        /// Name of the endpoint.
        source_name: String,
        /// The address.
        address: u8,
    },
    /// The actuator is not connected, or has too much to do.
    #[error("{0}")]
    Busy(String),
}

/// Somebody who carries actions out.
pub trait Actuator: Send {
    /// As configurations call it.
    fn name(&self) -> &'static str;

    /// Begins with an action, and does not wait for it.
    ///
    /// # Errors
    /// If that cannot be done. Nothing has changed then.
    fn act(&mut self, action: &Action) -> Result<(), ActError>;

    /// A pair sends to this address, and others may have sent it there: who has to hold pairs where they are holds it, unless
    /// it has ever sent the pair anywhere itself.
    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        let _ = (pair, address, now);
    }

    /// An action had no effect in time: its pair is taken to be at `from`, where it was, and is to be left there.
    fn failed(&mut self, action: &Action, from: u8) {
        let _ = (action, from);
    }
}
