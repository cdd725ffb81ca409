//! What all parts of the daemon share: its collectors, what is known of the network, and the hub of events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_network::versions::{DEFAULT_SETTLE, VersionError};
use thalweg_network::{NetworkState, Node, Versions};
use thalweg_records::handoff::Ledger;
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::collectors::{Asked, CollectorHandle, CollectorState};
use super::control::Control;
use super::emulation::Emulation;
use super::hub::Hub;
use super::samples::{Dumps, SampleOptions};

/// How long a collector may take to hear of a new version of the network.
const NETWORK_PATIENCE: Duration = Duration::from_secs(2);

/// The daemon. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Daemon(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Timestamp,
    hub: Hub,
    settle: Nanos,
    network: RwLock<Option<Arc<Versions>>>,
    /// Held while a new version is made and told of: one after the other.
    turn: Mutex<()>,
    collectors: RwLock<Vec<CollectorHandle>>,
    dumps: Dumps,
    emulation: OnceLock<Emulation>,
    control: OnceLock<Control>,
    handed_on: OnceLock<Arc<Ledger>>,
    is_stopping: AtomicBool,
}

/// Whether the daemon does what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Some collector has not tried to open its source yet.
    Starting,
    /// Every collector runs, has ended, or has failed and says so.
    Ready,
    /// It is on its way out.
    Stopping,
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

impl Daemon {
    /// A daemon without collectors. Without a network flows have rates, but no ports, and links are not known.
    pub fn new(network: Option<Versions>, hub: Hub) -> Daemon {
        let settle = network.as_ref().map_or(DEFAULT_SETTLE, Versions::settle);
        Daemon::with_settle(network, settle, hub)
    }

    /// The same. If there is no network yet, the one that comes settles in `settle` after each change.
    pub fn with_settle(network: Option<Versions>, settle: Nanos, hub: Hub) -> Daemon {
        Daemon(Arc::new(Shared {
            settle,
            started: wall_clock(),
            hub,
            network: RwLock::new(network.map(Arc::new)),
            turn: Mutex::default(),
            collectors: RwLock::default(),
            dumps: Dumps::new(SampleOptions::default()),
            emulation: OnceLock::new(),
            control: OnceLock::new(),
            handed_on: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
        }))
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        "thalweg"
    }

    /// The version of the program.
    pub const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// When it was started, by the clock of this machine.
    pub fn started(&self) -> Timestamp {
        self.0.started
    }

    /// Where events are told.
    pub fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// How samples are written to files ([`Daemon::dump`] does it), and what came of it so far.
    pub fn dumps(&self) -> &Dumps {
        &self.0.dumps
    }

    /// All collectors, in the order of the configuration.
    pub fn collectors(&self) -> Vec<CollectorHandle> {
        read(&self.0.collectors).clone()
    }

    /// The collector of this name.
    pub fn collector(&self, name: &str) -> Option<CollectorHandle> {
        read(&self.0.collectors).iter().find(|collector| collector.name() == name).cloned()
    }

    /// Replaces all collectors, as after a reload.
    pub fn set_collectors(&self, collectors: Vec<CollectorHandle>) {
        *self.0.collectors.write().unwrap_or_else(PoisonError::into_inner) = collectors;
    }

    /// The emulation that collectors read from, if there is one.
    pub fn emulation(&self) -> Option<&Emulation> {
        self.0.emulation.get()
    }

    /// Has collectors read from an emulation, and the controller steer it. One that there is already stays.
    pub fn set_emulation(&self, emulation: Emulation) {
        let _ = self.0.emulation.set(emulation);
    }

    /// The controller, if there is one.
    pub fn control(&self) -> Option<&Control> {
        self.0.control.get()
    }

    /// Shows a controller to whoever asks. One that there is already stays.
    pub fn set_control(&self, control: Control) {
        let _ = self.0.control.set(control);
    }

    /// What became of flows that are sent or kept; `None` if none are.
    pub fn handed_on(&self) -> Option<&Ledger> {
        self.0.handed_on.get().map(|ledger| &**ledger)
    }

    /// Shows to whoever asks what becomes of flows. What there is already stays.
    pub fn set_handed_on(&self, ledger: Arc<Ledger>) {
        let _ = self.0.handed_on.set(ledger);
    }

    /// What is known of the network; `None` if no topology was configured, nor given since.
    pub fn network(&self) -> Option<Arc<Versions>> {
        read(&self.0.network).clone()
    }

    /// Takes up a new version of the network, which holds from now on, and tells all collectors. Waits for them, a
    /// little; calls at the same time take their turns.
    ///
    /// Now is the clock of this machine if a collector is live, else the latest packet time of all collectors.
    ///
    /// # Errors
    /// If it does not follow the version before, or a switch that is watched is not in it. Then nothing has changed.
    pub fn set_network(&self, state: impl Into<Arc<NetworkState>>) -> Result<NetworkChange, NetworkError> {
        self.announce_network(state, Nanos::ZERO)
    }

    /// The same, of a version that holds only from `ahead` from now on: whoever changes the network tells collectors of it
    /// before (Planck, section 4.1).
    ///
    /// # Errors
    /// As of [`set_network`](Self::set_network).
    pub fn announce_network(
        &self,
        state: impl Into<Arc<NetworkState>>,
        ahead: Nanos,
    ) -> Result<NetworkChange, NetworkError> {
        let state = state.into();
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let collectors = self.collectors();
        check_switches(&state, &collectors)?;
        let now = self.now() + ahead;
        let versions = {
            let mut network = self.0.network.write().unwrap_or_else(PoisonError::into_inner);
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
            let reason = match collector.set_network(Arc::clone(&versions), NETWORK_PATIENCE) {
                Ok(Asked { value: Ok(()), .. }) => continue,
                Ok(Asked { value: Err(error), .. }) => error.to_string(),
                Err(error) => error.to_string(),
            };
            unconfirmed.push((collector.name().to_owned(), reason));
        }
        Ok(NetworkChange { version, from, unconfirmed })
    }

    /// Whether [`set_network`](Self::set_network) would take it, the names of switches left aside.
    ///
    /// # Errors
    /// If it does not follow the version before.
    pub fn check_network(&self, state: &Arc<NetworkState>) -> Result<(), NetworkError> {
        if let Some(before) = self.network() {
            let from = before.newest().from;
            Versions::clone(&before).push(Arc::clone(state), from)?;
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        let collectors = self.collectors();
        if collectors.iter().any(|collector| collector.description().is_live) {
            return wall_clock();
        }
        if let Some(emulation) = self.emulation() {
            return emulation.now();
        }
        // Whoever measures nothing steers by what others tell, and those go by their machines' clocks.
        if collectors.is_empty() && self.control().is_some() {
            return wall_clock();
        }
        let clocks = collectors.iter().filter_map(|collector| collector.counters(NETWORK_PATIENCE).ok());
        clocks.map(|asked| asked.time).max().unwrap_or_default()
    }

    /// Whether it does what it is for.
    pub fn readiness(&self) -> Readiness {
        if self.is_stopping() {
            return Readiness::Stopping;
        }
        let is_starting = |collector: &CollectorHandle| collector.state() == CollectorState::Starting;
        match read(&self.0.collectors).iter().any(is_starting) {
            true => Readiness::Starting,
            false => Readiness::Ready,
        }
    }

    /// How its collectors do: `3 collectors: 2 running, 1 failed`.
    pub fn status(&self) -> String {
        let states: Vec<&str> =
            read(&self.0.collectors).iter().map(|collector| collector.state().name()).collect();
        let parts = CollectorState::NAMES.iter().filter_map(|name| {
            let count = states.iter().filter(|state| *state == name).count();
            (count > 0).then(|| format!("{count} {name}"))
        });
        format!("{} collectors: {}", states.len(), parts.collect::<Vec<_>>().join(", "))
    }

    /// Whether it is on its way out.
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::Relaxed)
    }

    /// From now on it is on its way out.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
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

/// What a thread leaves behind when it panics is whole: each lock is held for one assignment.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The clock of this machine.
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since_epoch.as_secs(), since_epoch.subsec_nanos())
}
