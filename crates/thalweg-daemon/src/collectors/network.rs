//! What is known of the network, and new versions of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use thalweg_network::versions::VersionError;
use thalweg_network::{NetworkState, Node, Versions};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::{Asked, CollectorHandle, CollectorList};
use crate::clock::wall_clock;
use crate::emulation::Emulation;

/// How long a collector may take to hear of a new version of the network.
const PATIENCE: Duration = Duration::from_secs(2);

/// The network that collectors measure. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Network(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settle: Nanos,
    versions: RwLock<Option<Arc<Versions>>>,
    /// Held while a new version is made and told of: one after the other.
    turn: Mutex<()>,
    /// Who is told.
    collectors: CollectorList,
    emulation: OnceLock<Emulation>,
    is_steered: AtomicBool,
}

/// What became of a new version of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkChange {
    /// Its number.
    pub version: u64,
    /// The packet time from which on it holds.
    pub from: Timestamp,
    /// Collectors that have not confirmed it, and why. Those that were busy take it up as soon as they can.
    pub unconfirmed: Vec<(String, String)>,
}

/// Why a new version of the network is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// It does not follow the one before.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// A switch that is watched is not in it.
    #[error("collector {collector} watches switch {switch:?}, which is not in this topology")]
    NoSwitch {
        /// The collector.
        collector: String,
        /// The switch.
        switch: String,
    },
}

impl Network {
    /// A network that these collectors are told of. If it is not known yet, the one that comes settles in `settle` after
    /// each change.
    pub fn new(versions: Option<Versions>, settle: Nanos, collectors: CollectorList) -> Network {
        Network(Arc::new(Shared {
            settle,
            versions: RwLock::new(versions.map(Arc::new)),
            turn: Mutex::default(),
            collectors,
            emulation: OnceLock::new(),
            is_steered: AtomicBool::new(false),
        }))
    }

    /// What is known of it; `None` if no topology was configured, nor given since.
    pub fn versions(&self) -> Option<Arc<Versions>> {
        self.0.versions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The emulation of it, if it is one.
    pub fn emulation(&self) -> Option<&Emulation> {
        self.0.emulation.get()
    }

    /// Has it be emulated, and its time be the emulation's. One that there is already stays.
    pub fn set_emulation(&self, emulation: Emulation) {
        let _ = self.0.emulation.set(emulation);
    }

    /// From now on it is steered, by what daemons elsewhere tell if there are no collectors here.
    pub fn set_steered(&self) {
        self.0.is_steered.store(true, Ordering::Relaxed);
    }

    /// Takes up a new version, which holds from `ahead` from now on, and tells all collectors: whoever changes the network
    /// tells collectors of it before (Planck, section 4.1). Waits for them, a little; calls at the same time take their turns.
    ///
    /// Now is the clock of this machine if a collector is live, else the latest packet time of all collectors.
    ///
    /// # Errors
    /// If it does not follow the version before, or a switch that is watched is not in it. Then nothing has changed.
    pub fn announce(
        &self,
        state: impl Into<Arc<NetworkState>>,
        ahead: Nanos,
    ) -> Result<NetworkChange, NetworkError> {
        let state = state.into();
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let collectors = self.0.collectors.all();
        check_switches(&state, &collectors)?;
        let now = self.now() + ahead;
        let versions = {
            let mut network = self.0.versions.write().unwrap_or_else(PoisonError::into_inner);
            let versions = match &*network {
                Some(before) => {
                    let mut versions = Versions::clone(before);
                    // Of two files one may be far behind the other, and its change not be told backwards.
                    let from = now.max(versions.newest().from);
                    versions.push(state, from)?;
                    versions
                }
                None => Versions::new(state).with_settle(self.0.settle),
            };
            Arc::clone(network.insert(Arc::new(versions)))
        };
        let (version, from) = (versions.newest().number, versions.newest().from);
        let mut unconfirmed = Vec::new();
        for collector in collectors {
            let reason = match collector.set_network(Arc::clone(&versions), PATIENCE) {
                Ok(Asked { value: Ok(()), .. }) => continue,
                Ok(Asked { value: Err(error), .. }) => error.to_string(),
                Err(error) => error.to_string(),
            };
            unconfirmed.push((collector.name().to_owned(), reason));
        }
        Ok(NetworkChange { version, from, unconfirmed })
    }

    /// Whether [`announce`](Self::announce) would take it, the names of switches left aside.
    ///
    /// # Errors
    /// If it does not follow the version before.
    pub fn check(&self, state: &Arc<NetworkState>) -> Result<(), NetworkError> {
        if let Some(before) = self.versions() {
            let from = before.newest().from;
            Versions::clone(&before).push(Arc::clone(state), from)?;
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        let collectors = self.0.collectors.all();
        if collectors.iter().any(|collector| collector.description().is_live) {
            return wall_clock();
        }
        if let Some(emulation) = self.emulation() {
            return emulation.now();
        }
        // Whoever measures nothing steers by what others tell, and those go by their machines' clocks.
        if collectors.is_empty() && self.0.is_steered.load(Ordering::Relaxed) {
            return wall_clock();
        }
        let clocks = collectors.iter().filter_map(|collector| collector.counters(PATIENCE).ok());
        clocks.map(|asked| asked.time).max().unwrap_or_default()
    }
}

fn check_switches(state: &NetworkState, collectors: &[CollectorHandle]) -> Result<(), NetworkError> {
    for collector in collectors {
        let switch = &*collector.description().switch;
        if !matches!(state.topology().node_named(switch), Some(Node::Router(_))) {
            let collector = collector.name().to_owned();
            return Err(NetworkError::NoSwitch { collector, switch: switch.to_owned() });
        }
    }
    Ok(())
}
