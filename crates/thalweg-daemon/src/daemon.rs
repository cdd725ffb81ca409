//! Creates the parts of the daemon. Each part takes those it needs as arguments, none takes the whole daemon.
//!
//! Collectors take [`FleetParts`], the controller `ControlParts`, and the API [`super::parts::Parts`].

use std::sync::Arc;

use thalweg_network::versions::DEFAULT_TRANSITION_TIME;
use thalweg_network::{NetworkState, Versions};
use thalweg_wire::{Nanos, Timestamp};

use super::collectors::network::Network;
pub use super::collectors::network::{NetworkChange, NetworkError};
use super::collectors::{CollectorHandle, CollectorList, FleetParts};
use super::config::SampleOptions;
use super::control::ControlParts;
use super::emulation::Emulation;
use super::hub::Hub;
use super::lifecycle::Lifecycle;
pub use super::lifecycle::Readiness;
use super::live::Live;
use super::parts::Parts;
use super::polls::Polls;
use super::samples::Dumps;
use thalweg_linux::clock::realtime;

/// The daemon. Clones share it.
#[derive(Clone, Debug)]
pub struct Daemon {
    started: Timestamp,
    hub: Arc<Hub>,
    network: Network,
    collectors: CollectorList,
    dumps: Arc<Dumps>,
    lifecycle: Lifecycle,
}

impl Daemon {
    /// Creates a daemon without collectors. Without a network, flows have rates, but their links are unknown.
    pub fn new(network: Option<Versions>, hub: Hub) -> Daemon {
        let transition_time = network.as_ref().map_or(DEFAULT_TRANSITION_TIME, Versions::transition_time);
        Daemon::with_transition_time(network, transition_time, hub)
    }

    /// Creates a daemon without collectors. `transition_time` is that of a network that is set later.
    pub fn with_transition_time(network: Option<Versions>, transition_time: Nanos, hub: Hub) -> Daemon {
        let collectors = CollectorList::default();
        let network = Network::new(network, transition_time, collectors.clone());
        Daemon {
            started: realtime(),
            hub: Arc::new(hub),
            dumps: Arc::new(Dumps::new(SampleOptions::default(), collectors.clone(), network.clone())),
            lifecycle: Lifecycle::new(collectors.clone()),
            network,
            collectors,
        }
    }

    /// Returns the parts that collectors use.
    pub fn fleet_parts(&self) -> FleetParts {
        FleetParts {
            collectors: self.collectors.clone(),
            network: self.network.clone(),
            hub: Arc::clone(&self.hub),
        }
    }

    /// Returns the parts that the controller uses.
    pub(super) fn control_parts(&self) -> ControlParts {
        ControlParts {
            network: self.network.clone(),
            collectors: self.collectors.clone(),
            hub: Arc::clone(&self.hub),
            lifecycle: self.lifecycle.clone(),
        }
    }

    /// Returns the parts that the API uses, without a controller.
    pub fn api_parts(&self) -> Parts {
        Parts {
            started: self.started,
            hub: Arc::clone(&self.hub),
            collectors: self.collectors.clone(),
            network: self.network.clone(),
            dumps: Arc::clone(&self.dumps),
            lifecycle: self.lifecycle.clone(),
            event_log: None,
            live: Live::default(),
            alerts: Arc::default(),
            control: None,
            isolation: None,
            polls: Polls::default(),
            threshold: None,
            transfers: None,
            record_store: None,
            experiments: None,
            export_ledger: None,
        }
    }

    /// Returns the version of the program.
    pub const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Returns the start time, by the clock of this machine.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Returns the event hub.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Returns the dumps of samples.
    pub fn dumps(&self) -> &Arc<Dumps> {
        &self.dumps
    }

    /// Returns the list of collectors.
    pub fn collector_list(&self) -> &CollectorList {
        &self.collectors
    }

    /// Returns the network.
    pub fn network_versions(&self) -> &Network {
        &self.network
    }

    /// Returns the lifecycle.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Returns all collectors, in the order of the configuration.
    pub fn collectors(&self) -> Vec<CollectorHandle> {
        self.collectors.all()
    }

    /// Returns the collector of this name.
    pub fn collector(&self, name: &str) -> Option<CollectorHandle> {
        self.collectors.named(name)
    }

    /// Replaces all collectors, as after a reload.
    pub fn set_collectors(&self, collectors: Vec<CollectorHandle>) {
        self.collectors.set(collectors);
    }

    /// Returns the emulation, if any.
    pub fn emulation(&self) -> Option<&Emulation> {
        self.network.emulation()
    }

    /// Sets the emulation. Has no effect if there is one already.
    pub fn set_emulation(&self, emulation: Emulation) {
        self.network.set_emulation(emulation);
    }

    /// Returns the versions of the network; `None` before a topology is configured or set.
    pub fn network(&self) -> Option<Arc<Versions>> {
        self.network.versions()
    }

    /// Announces a new version of the network, which applies from now, to all collectors.
    ///
    /// # Errors
    /// As for [`Network::announce`].
    pub fn set_network(&self, state: impl Into<Arc<NetworkState>>) -> Result<NetworkChange, NetworkError> {
        self.network.announce(state, Nanos::ZERO)
    }

    /// Returns the readiness.
    pub fn readiness(&self) -> Readiness {
        self.lifecycle.readiness()
    }

    /// Returns a summary of states: `3 collectors: 2 running, 1 failed`.
    pub fn status(&self) -> String {
        self.collectors.status()
    }

    /// Marks the daemon as stopping.
    pub fn stop(&self) {
        self.lifecycle.stop();
    }
}
