//! The parts of the daemon, made together: each takes the others that it needs as arguments, and none takes the daemon.
//!
//! Collectors are given [`FleetParts`], the controller its own, and what answers over HTTP [`super::parts::Parts`].

use std::sync::Arc;

use thalweg_network::versions::DEFAULT_SETTLE;
use thalweg_network::{NetworkState, Versions};
use thalweg_wire::{Nanos, Timestamp};

use super::clock::wall_clock;
use super::collectors::network::Network;
pub use super::collectors::network::{NetworkChange, NetworkError};
use super::collectors::{CollectorHandle, CollectorList, FleetParts};
use super::config::SampleOptions;
use super::control::ControlParts;
use super::emulation::Emulation;
use super::hub::Hub;
use super::lifecycle::Lifecycle;
pub use super::lifecycle::Readiness;
use super::parts::Parts;
use super::samples::Dumps;

/// The daemon. Cheap to clone: all clones are the same.
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
    /// A daemon without collectors. Without a network flows have rates, but no ports, and links are not known.
    pub fn new(network: Option<Versions>, hub: Hub) -> Daemon {
        let settle = network.as_ref().map_or(DEFAULT_SETTLE, Versions::settle);
        Daemon::with_settle(network, settle, hub)
    }

    /// The same. If there is no network yet, the one that comes settles in `settle` after each change.
    pub fn with_settle(network: Option<Versions>, settle: Nanos, hub: Hub) -> Daemon {
        let collectors = CollectorList::default();
        let network = Network::new(network, settle, collectors.clone());
        Daemon {
            started: wall_clock(),
            hub: Arc::new(hub),
            dumps: Arc::new(Dumps::new(SampleOptions::default(), collectors.clone(), network.clone())),
            lifecycle: Lifecycle::new(collectors.clone()),
            network,
            collectors,
        }
    }

    /// What collectors are given of it.
    pub fn fleet_parts(&self) -> FleetParts {
        FleetParts {
            collectors: self.collectors.clone(),
            network: self.network.clone(),
            hub: Arc::clone(&self.hub),
        }
    }

    /// What the controller is given of it.
    pub(super) fn control_parts(&self) -> ControlParts {
        ControlParts {
            network: self.network.clone(),
            collectors: self.collectors.clone(),
            hub: Arc::clone(&self.hub),
            lifecycle: self.lifecycle.clone(),
        }
    }

    /// What answers over HTTP is given of it, without a controller.
    pub fn api_parts(&self) -> Parts {
        Parts {
            started: self.started,
            hub: Arc::clone(&self.hub),
            collectors: self.collectors.clone(),
            network: self.network.clone(),
            dumps: Arc::clone(&self.dumps),
            lifecycle: self.lifecycle.clone(),
            control: None,
            export_ledger: None,
        }
    }

    /// The version of the program.
    pub const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// When it was started, by the clock of this machine.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Where events are told.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// How samples are written to files, and what came of it so far.
    pub fn dumps(&self) -> &Arc<Dumps> {
        &self.dumps
    }

    /// The list of collectors.
    pub fn collector_list(&self) -> &CollectorList {
        &self.collectors
    }

    /// The network, and how new versions of it are taken up.
    pub fn network_versions(&self) -> &Network {
        &self.network
    }

    /// Whether it does what it is for, or is on its way out.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// All collectors, in the order of the configuration.
    pub fn collectors(&self) -> Vec<CollectorHandle> {
        self.collectors.all()
    }

    /// The collector of this name.
    pub fn collector(&self, name: &str) -> Option<CollectorHandle> {
        self.collectors.named(name)
    }

    /// Replaces all collectors, as after a reload.
    pub fn set_collectors(&self, collectors: Vec<CollectorHandle>) {
        self.collectors.set(collectors);
    }

    /// The emulation that collectors read from, if there is one.
    pub fn emulation(&self) -> Option<&Emulation> {
        self.network.emulation()
    }

    /// Has collectors read from an emulation, and the controller steer it. One that there is already stays.
    pub fn set_emulation(&self, emulation: Emulation) {
        self.network.set_emulation(emulation);
    }

    /// What is known of the network; `None` if no topology was configured, nor given since.
    pub fn network(&self) -> Option<Arc<Versions>> {
        self.network.versions()
    }

    /// Takes up a new version of the network, which holds from now on, and tells all collectors.
    ///
    /// # Errors
    /// As [`Network::announce`].
    pub fn set_network(&self, state: impl Into<Arc<NetworkState>>) -> Result<NetworkChange, NetworkError> {
        self.network.announce(state, Nanos::ZERO)
    }

    /// Whether it does what it is for.
    pub fn readiness(&self) -> Readiness {
        self.lifecycle.readiness()
    }

    /// How its collectors do: `3 collectors: 2 running, 1 failed`.
    pub fn status(&self) -> String {
        self.collectors.status()
    }

    /// From now on it is on its way out.
    pub fn stop(&self) {
        self.lifecycle.stop();
    }
}
