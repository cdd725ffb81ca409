//! The parts of the daemon that the API and metrics use.

use std::sync::Arc;

use thalweg_records::handoff::HandoffStatus;
use thalweg_wire::Timestamp;

use crate::alerts::Alert;
use crate::collectors::CollectorList;
use crate::collectors::network::Network;
use crate::control::Control;
use crate::event_log::EventLog;
use crate::experiments::Experiments;
use crate::hub::Hub;
use crate::isolation::Isolation;
use crate::lifecycle::Lifecycle;
use crate::live::Live;
use crate::polls::Polls;
use crate::record_store::RecordStore;
use crate::samples::Dumps;
use crate::threshold::Threshold;
use crate::transfers::Transfers;

/// The parts of the daemon that the API and metrics use.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Start time of the daemon, by the clock of this machine.
    pub started: Timestamp,
    /// The event hub.
    pub hub: Arc<Hub>,
    /// The collectors.
    pub collectors: CollectorList,
    /// The network.
    pub network: Network,
    /// The dumps of samples.
    pub dumps: Arc<Dumps>,
    /// The event log, if any.
    pub event_log: Option<Arc<EventLog>>,
    /// Alerts.
    pub alerts: Arc<[Alert]>,
    /// The live stream and the history.
    pub live: Live,
    /// Readiness and stop.
    pub lifecycle: Lifecycle,
    /// The controller, if any.
    pub control: Option<Control>,
    /// Isolation of cheetah flows, if any.
    pub isolation: Option<Isolation>,
    /// Polls of interface counters.
    pub polls: Polls,
    /// Adaptation of the rate threshold, if any.
    pub threshold: Option<Threshold>,
    /// Reports of transfer hosts; `None` if they are not received.
    pub transfers: Option<Transfers>,
    /// Stored flow records; `None` without a folder for them.
    pub record_store: Option<Arc<RecordStore>>,
    /// Results of emulated experiments; `None` without a folder for them.
    pub experiments: Option<Arc<Experiments>>,
    /// Statistics of exported flow records; `None` without an export.
    pub export_ledger: Option<Arc<HandoffStatus>>,
}

impl Parts {
    /// Returns the version of the program.
    pub const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use thalweg_network::versions::DEFAULT_TRANSITION_TIME;

    use super::*;
    use crate::config::SampleOptions;

    /// Returns the parts of a daemon without collectors and without a network.
    pub(crate) fn parts() -> Parts {
        let collectors = CollectorList::default();
        let network = Network::new(None, DEFAULT_TRANSITION_TIME, collectors.clone());
        Parts {
            started: Timestamp::default(),
            hub: Arc::default(),
            dumps: Arc::new(Dumps::new(SampleOptions::default(), collectors.clone(), network.clone())),
            lifecycle: Lifecycle::new(collectors.clone()),
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
            network,
            collectors,
        }
    }
}
