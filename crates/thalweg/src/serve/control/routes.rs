//! The ways that there are: spanning trees to every address of every host, and setting them in the network.
//!
//! Collectors are told of new routes before they are used (Planck, section 4.1): the version that they are told of begins
//! `settle_routes` later, and that is when switches are told.

use std::sync::Arc;

use thalweg_network::routing::spanning_trees;
use thalweg_network::state::StateError;
use thalweg_network::{Forwarding, NetworkState};
use thalweg_wire::Timestamp;

use crate::serve::config::{ActuatorConfig, ControlConfig};
use crate::serve::daemon::Daemon;

/// The routes of a network.
#[derive(Debug)]
pub(super) struct Routes {
    state: Arc<NetworkState>,
    /// The version of the network that they are, or were made of.
    version: u64,
    /// Whether they are to be set; else they are there.
    is_to_be_set: bool,
}

impl Routes {
    /// Routes for a network: those that it has, if the controller is not the one who sets them.
    pub(super) fn new(config: &ControlConfig, state: &Arc<NetworkState>) -> Result<Routes, StateError> {
        let sets = config.actuator.sets_routes();
        if !sets && state.forwarding().addresses() > 1 {
            return Ok(Routes { state: Arc::clone(state), version: 0, is_to_be_set: false });
        }
        let tables = spanning_trees(state.topology(), state.links(), config.trees);
        // In the emulator packets keep their address to the end.
        let writes_back = config.actuator != ActuatorConfig::Emulated;
        let forwarding = Forwarding::tables(tables).with_write_back(writes_back);
        let state = Arc::new(state.with_forwarding(forwarding)?);
        Ok(Routes { state, version: 0, is_to_be_set: sets })
    }

    pub(super) fn state(&self) -> &Arc<NetworkState> {
        &self.state
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Tells collectors of them; says from when on they hold, if they are to be set then.
    pub(super) fn announce(&mut self, config: &ControlConfig, daemon: &Daemon) -> Option<Timestamp> {
        if !self.is_to_be_set {
            self.version = daemon.network().map_or(0, |versions| versions.newest().number);
            return None;
        }
        match daemon.announce_network(Arc::clone(&self.state), config.settle_routes) {
            Ok(change) => {
                self.version = change.version;
                for (collector, reason) in change.unconfirmed {
                    tracing::warn!(collector, "has not taken up the routes yet: {reason}");
                }
                Some(change.from)
            }
            Err(error) => {
                tracing::error!("routes stay as they are: {error}");
                None
            }
        }
    }
}
