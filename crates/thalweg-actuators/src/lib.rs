//! Actuators: carry out the reroutes that the control loop decides.
//!
//! | module | how a pair is rerouted |
//! |---|---|
//! | [`arp`] | its source learns another MAC address for the destination's IP address; no switch changes |
//! | [`ndp`] | the same for IPv6 addresses, as a part of `arp` |
//! | [`openflow`] | its first switch rewrites the destination address |
//! | [`log`] | not at all: records the actions for inspection |
//!
//! [`isolation`] carries out the redirections of cheetah flows to a scavenger queue.
//!
//! An action has a number, a deadline and an outcome. A started action is not yet effective: the control loop waits
//! until a collector sees a packet with the new address.

#![forbid(unsafe_code)]

pub mod arp;
pub mod isolation;
pub mod log;
pub mod ndp;
pub mod openflow;

use thalweg_network::NetworkState;
use thalweg_wire::Timestamp;
use thiserror::Error;

use openflow::SwitchesReport;
use thalweg_control::Pair;
pub use thalweg_control::action::{Action, ActionId};
use thalweg_control::control_loop::Input;

/// Why an action could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ActuatorError {
    /// The pair's source, or its switch, is unreachable.
    #[error("cannot reach {source_name}: {cause}")]
    Unreachable {
        /// Name of the endpoint.
        source_name: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The address has no path from the pair's source.
    #[error(
        "no path from {source_name} by address {address}: not one of the destination's addresses, or no route to it"
    )]
    NoPath {
        /// Name of the endpoint.
        source_name: String,
        /// The address.
        address: u8,
    },
    /// The actuator is not ready or is overloaded.
    #[error("{0}")]
    Busy(String),
}

/// Carries out actions.
pub trait Actuator: Send {
    /// Returns the name used in configuration files.
    fn name(&self) -> &'static str;

    /// Starts an action, without waiting for its effect.
    ///
    /// # Errors
    /// If the action cannot be started. Nothing has changed then.
    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError>;

    /// Keeps a pair at an address to which another controller may have moved it. Ignored for pairs that this actuator
    /// has moved itself.
    fn hold(&mut self, pair: Pair, address: u8, now: Timestamp) {
        let _ = (pair, address, now);
    }

    /// Abandons an action that timed out: the pair counts as at `from`, its old address, and must stay
    /// there.
    fn abandon(&mut self, action: &Action, from: u8) {
        let _ = (action, from);
    }

    /// Starts the actuator's threads, if any. Runs after privileges were dropped.
    ///
    /// # Errors
    /// A message, if it cannot start.
    fn start(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Installs the routes of all switches, if this actuator does so.
    ///
    /// # Errors
    /// A message, if some switches did not accept them.
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        let _ = state;
        Ok(())
    }

    /// Does periodic work: refreshes hosts and repairs switches. `now` is the loop's clock.
    ///
    /// # Errors
    /// A message; all other due work is done.
    fn maintain(&mut self, now: Timestamp) -> Result<(), String> {
        let _ = now;
        Ok(())
    }

    /// Returns what the switches have reported since the last call, for the control loop.
    fn take_inputs(&mut self) -> Vec<Input> {
        Vec::new()
    }

    /// Returns the number of refreshes sent to hosts.
    fn refresh_count(&self) -> u64 {
        0
    }

    /// Returns the state of the switches, if this actuator uses OpenFlow.
    fn switches_report(&self) -> Option<SwitchesReport> {
        None
    }
}
