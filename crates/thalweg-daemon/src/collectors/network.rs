//! The network, and announcements of new versions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use thalweg_network::versions::VersionError;
use thalweg_network::{NetworkState, Node, Versions};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::{CollectorHandle, CollectorList, CollectorReply};
use crate::emulation::Emulation;
use thalweg_linux::clock::realtime;

/// Timeout of a collector for confirming a new network version.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The network that collectors measure. Clones share it.
#[derive(Clone, Debug)]
pub struct Network(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    transition_time: Nanos,
    versions: RwLock<Option<Arc<Versions>>>,
    /// Held during an announcement, so that versions are announced one after the other.
    announcing: Mutex<()>,
    /// The receivers of announcements.
    collectors: CollectorList,
    emulation: OnceLock<Emulation>,
    is_controlled: AtomicBool,
}

/// The result of announcing a network version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkChange {
    /// Number of the version.
    pub version: u64,
    /// The packet time from which the version applies.
    pub from: Timestamp,
    /// Collectors that have not confirmed the version, and why. Busy ones apply it later.
    pub unconfirmed: Vec<(String, String)>,
}

/// Why a network version is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// It does not fit the previous version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// It lacks a monitored switch.
    #[error("switch {switch:?} of collector {collector} is not in this topology")]
    NoSwitch {
        /// The collector.
        collector: String,
        /// The switch.
        switch: String,
    },
}

impl Network {
    /// Creates the network of these collectors. `transition_time` is that of a network that is set later.
    pub fn new(versions: Option<Versions>, transition_time: Nanos, collectors: CollectorList) -> Network {
        Network(Arc::new(Shared {
            transition_time,
            versions: RwLock::new(versions.map(Arc::new)),
            announcing: Mutex::default(),
            collectors,
            emulation: OnceLock::new(),
            is_controlled: AtomicBool::new(false),
        }))
    }

    /// Returns the versions of the network; `None` before a topology is configured or set.
    pub fn versions(&self) -> Option<Arc<Versions>> {
        self.0.versions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the emulation, if the network is emulated.
    pub fn emulation(&self) -> Option<&Emulation> {
        self.0.emulation.get()
    }

    /// Sets the emulation, whose time then is the network's. Has no effect if there is one already.
    pub fn set_emulation(&self, emulation: Emulation) {
        let _ = self.0.emulation.set(emulation);
    }

    /// Marks the network as controlled. Without local collectors, remote daemons then define its time.
    pub fn set_controlled(&self) {
        self.0.is_controlled.store(true, Ordering::Relaxed);
    }

    /// Announces a new version, which applies after `ahead`, to all collectors before it is installed (Planck, section 4.1). Waits
    /// up to `REPLY_TIMEOUT` for each. Concurrent calls wait for each other.
    ///
    /// The current time is the clock of this machine if a collector is live, else the latest packet time of all collectors.
    ///
    /// # Errors
    /// If the version does not fit the previous one, or lacks a monitored switch. Nothing changes then.
    pub fn announce(
        &self,
        state: impl Into<Arc<NetworkState>>,
        ahead: Nanos,
    ) -> Result<NetworkChange, NetworkError> {
        let state = state.into();
        let _guard = self.0.announcing.lock().unwrap_or_else(PoisonError::into_inner);
        let collectors = self.0.collectors.all();
        check_switches(&state, &collectors)?;
        let now = self.now() + ahead;
        let versions = {
            let mut network = self.0.versions.write().unwrap_or_else(PoisonError::into_inner);
            let versions = match &*network {
                Some(before) => {
                    let mut versions = Versions::clone(before);
                    // Files replay independently, so the time may be before that of the newest version.
                    let from = now.max(versions.newest().from);
                    versions.push(state, from)?;
                    versions
                }
                None => Versions::new(state).with_transition_time(self.0.transition_time),
            };
            Arc::clone(network.insert(Arc::new(versions)))
        };
        let (version, from) = (versions.newest().number, versions.newest().from);
        let mut unconfirmed = Vec::new();
        for collector in collectors {
            let reason = match collector.set_network(Arc::clone(&versions), REPLY_TIMEOUT) {
                Ok(CollectorReply { value: Ok(()), .. }) => continue,
                Ok(CollectorReply { value: Err(error), .. }) => error.to_string(),
                Err(error) => error.to_string(),
            };
            unconfirmed.push((collector.name().to_owned(), reason));
        }
        Ok(NetworkChange { version, from, unconfirmed })
    }

    /// Checks whether [`announce`](Self::announce) would accept a state, apart from the names of switches.
    ///
    /// # Errors
    /// If the state does not fit the previous version.
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
            return realtime();
        }
        if let Some(emulation) = self.emulation() {
            return emulation.now();
        }
        // Without local collectors, the controller uses remote events, whose times are those of other machines' clocks.
        if collectors.is_empty() && self.0.is_controlled.load(Ordering::Relaxed) {
            return realtime();
        }
        let clocks = collectors.iter().filter_map(|collector| collector.counters(REPLY_TIMEOUT).ok());
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
