//! Switches of a real network, told by OpenFlow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_control::Pair;
use thalweg_control::act::openflow::{Config, Fabric, FabricCounters, News, OpenFlowError, Tls, TlsError};
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_network::{NetworkState, Topology};
use thalweg_wire::Timestamp;

use super::actuators::Upkeep;
use crate::serve::config::OpenFlowConfig;
use crate::serve::daemon::wall_clock;

/// How switches that are told by OpenFlow do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchesReport {
    /// Those that have what they are to have.
    pub settled: usize,
    /// Those that have not, or are not known to: not connected, or still at it.
    pub unsettled: usize,
    /// What they were told.
    pub counters: FabricCounters,
}

/// All switches of the network. Clones are the same.
#[derive(Clone)]
pub(super) struct Switches {
    fabric: Arc<Mutex<Fabric>>,
    config: OpenFlowConfig,
    tls: Option<Tls>,
    topology: Arc<Topology>,
}

impl Switches {
    /// Reads certificates; nobody is spoken to yet.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn new(config: &OpenFlowConfig, topology: &Arc<Topology>) -> Result<Switches, TlsError> {
        let tls = config.tls.as_ref();
        let tls =
            tls.map(|files| Tls::from_files(&files.certificate, &files.key, &files.authority)).transpose()?;
        let fabric = Fabric::new(Arc::clone(topology), &config.members, Config::default());
        let fabric = Arc::new(Mutex::new(fabric));
        Ok(Switches { fabric, config: config.clone(), tls, topology: Arc::clone(topology) })
    }

    fn lock(&self) -> MutexGuard<'_, Fabric> {
        self.fabric.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meet(&self) -> Result<(), OpenFlowError> {
        let fabric = self.lock();
        if let Some(address) = self.config.listen {
            fabric.switches().listen(address, self.tls.clone())?;
        }
        for (address, name) in &self.config.connect {
            let tls = self.tls.clone().map(|tls| (tls, name.as_str()));
            fabric.switches().connect(*address, tls)?;
        }
        Ok(())
    }
}

impl Actuator for Switches {
    fn name(&self) -> &'static str {
        "openflow"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.lock().act(action)
    }

    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.lock().found(pair, address, now);
    }

    fn failed(&mut self, action: &Action, from: u8) {
        self.lock().failed(action, from);
    }
}

impl Upkeep for Switches {
    fn begin(&mut self) -> Result<(), String> {
        self.meet().map_err(|error| error.to_string())
    }

    /// Switches that are not connected are told when they are.
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        self.lock().install(state);
        Ok(())
    }

    fn switches(&self) -> Option<SwitchesReport> {
        let fabric = self.lock();
        let unsettled = fabric.unsettled().count();
        Some(SwitchesReport { settled: fabric.len() - unsettled, unsettled, counters: fabric.counters() })
    }

    fn tend(&mut self, _now: Timestamp) {
        // Switches go by the clock of this machine, whatever packets go by.
        let mut fabric = self.lock();
        fabric.tend(wall_clock());
        let told = fabric.take_news();
        drop(fabric);
        for news in told {
            let what = news.describe(&self.topology);
            match news {
                News::Up { .. } => tracing::info!("{what}"),
                News::Steered { .. } => tracing::debug!("{what}"),
                _ => tracing::warn!("{what}"),
            }
        }
    }
}
