//! Carrying decisions out: one trait, several means.
//!
//! | module | how a pair is sent another way |
//! |---|---|
//! | [`arp`] | its source learns another MAC address for the destination's IP address; no switch is touched |
//! | [`openflow`] | its first switch writes another destination address over the one it has |
//! | [`log`] | not at all: what would be done is kept to be read |
//!
//! An action has a number, a deadline and an outcome. That it was sent says little: it has been effective when a collector sees
//! a packet with the new address, and the control loop waits for that.

#![forbid(unsafe_code)]

pub mod arp;
pub mod log;
pub mod openflow;

use thalweg_network::NetworkState;
use thalweg_wire::Timestamp;
use thiserror::Error;

use openflow::SwitchesReport;
use thalweg_control::Pair;
pub use thalweg_control::action::{Action, ActionId};

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

    /// Begins, with threads of its own if it has any: privileges have been given up.
    ///
    /// # Errors
    /// In words.
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sets the routes of all switches, if it is one that does.
    ///
    /// # Errors
    /// In words, if not all could be told.
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        let _ = state;
        Ok(())
    }

    /// Does what is due: hosts are told again what they would forget, switches what they lack. `now` is the loop's clock.
    ///
    /// # Errors
    /// In words; what else was due has been done.
    fn tend(&mut self, now: Timestamp) -> Result<(), String> {
        let _ = now;
        Ok(())
    }

    /// How often hosts were told again.
    fn refreshed(&self) -> u64 {
        0
    }

    /// How switches do, if they are told by OpenFlow.
    fn switches_report(&self) -> Option<SwitchesReport> {
        None
    }
}
