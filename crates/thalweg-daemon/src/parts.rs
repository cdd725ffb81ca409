//! What the API answers from and changes, and metrics count: parts of the daemon.

use std::sync::Arc;

use thalweg_records::handoff::HandoffStatus;
use thalweg_wire::Timestamp;

use crate::collectors::CollectorList;
use crate::collectors::network::Network;
use crate::control::Control;
use crate::hub::Hub;
use crate::lifecycle::Lifecycle;
use crate::samples::Dumps;

/// Parts of the daemon.
#[derive(Clone, Debug)]
pub struct Parts {
    /// When the daemon was started, by the clock of its machine.
    pub started: Timestamp,
    /// Where events are told.
    pub hub: Arc<Hub>,
    /// The collectors.
    pub collectors: CollectorList,
    /// The network, and how new versions of it are taken up.
    pub network: Network,
    /// How samples are written to files, and what came of it.
    pub dumps: Arc<Dumps>,
    /// Whether the daemon does what it is for.
    pub lifecycle: Lifecycle,
    /// The controller, if there is one.
    pub control: Option<Control>,
    /// What became of flows that are sent or kept; `None` if none are.
    pub handed_on: Option<Arc<HandoffStatus>>,
}

impl Parts {
    /// The version of the program.
    pub const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use thalweg_network::versions::DEFAULT_SETTLE;

    use super::*;
    use crate::config::SampleOptions;

    /// Those of a daemon without collectors and without a network.
    pub(crate) fn parts() -> Parts {
        let collectors = CollectorList::default();
        let network = Network::new(None, DEFAULT_SETTLE, collectors.clone());
        Parts {
            started: Timestamp::default(),
            hub: Arc::default(),
            dumps: Arc::new(Dumps::new(SampleOptions::default(), collectors.clone(), network.clone())),
            lifecycle: Lifecycle::new(collectors.clone()),
            control: None,
            handed_on: None,
            network,
            collectors,
        }
    }
}
