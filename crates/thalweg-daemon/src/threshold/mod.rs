//! Adaptation of the rate threshold (`[threshold]`): R of cheetah flows follows the traffic of the day.
//!
//! ```text
//!   collector ──► tap ──► recorder ──► adaptation (thalweg-control::threshold) ──► R ──► collectors
//!                            │               ▲   │
//!                            ▼               │   ▼
//!                          files ──► simulation of the lowest priority
//!
//!   poll ──► regulator (thalweg-control::threshold::regulator) ──► R is lowered
//! ```
//!
//! The collector that is recorded receives all packets of the link. Its packet thread only copies time and length of each
//! (`collectors::background`).
//!
//! | file | contents |
//! |---|---|
//! | `recorder` | files of packets, and the tag of each period |
//! | `simulation` | loss curves of recorded periods |
//! | `state_file` | what survives a restart |
//! | `regulated` | lowers R if the router counts too many losses |
//! | `driver` | the thread that connects them and applies R |
//! | `report` | the state, for API and metrics |

mod driver;
mod recorder;
mod regulated;
mod report;
mod simulation;
mod state_file;

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

pub use regulated::RegulatorReport;
pub use report::{RecordingReport, SimulationReport, ThresholdReport};

use crate::collectors::CollectorList;
use crate::collectors::background::{Block, TapSender};
use crate::config::ThresholdConfig;
use crate::lifecycle::Lifecycle;
use crate::polls::Polls;
use driver::Driver;
use regulated::Regulated;
use report::State;

/// Adaptation of the rate threshold. Clones share it.
#[derive(Clone, Debug)]
pub struct Threshold(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: ThresholdConfig,
    state: State,
}

/// Adaptation that has not started.
pub(crate) struct PreparedThreshold {
    threshold: Threshold,
    blocks: Receiver<Block>,
    collectors: CollectorList,
    lifecycle: Lifecycle,
    polls: Polls,
}

impl Threshold {
    /// Prepares the adaptation. Also returns what creates the tap of the collector.
    pub(crate) fn prepare(
        config: &ThresholdConfig,
        collectors: CollectorList,
        lifecycle: Lifecycle,
        polls: Polls,
    ) -> (PreparedThreshold, TapSender) {
        let (sender, blocks) = TapSender::new(&config.collector);
        let threshold = Threshold(Arc::new(Shared { config: config.clone(), state: State::default() }));
        (PreparedThreshold { threshold, blocks, collectors, lifecycle, polls }, sender)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &ThresholdConfig {
        &self.0.config
    }

    /// Returns a report; `None` before the thread has started.
    pub fn report(&self) -> Option<ThresholdReport> {
        self.0.state.report()
    }
}

impl PreparedThreshold {
    /// Returns the adaptation.
    pub(crate) fn threshold(&self) -> &Threshold {
        &self.threshold
    }

    /// Starts the thread. It ends when the daemon stops.
    ///
    /// # Errors
    /// If the directory cannot be created, or a thread cannot be started.
    pub(crate) fn start(self) -> std::io::Result<JoinHandle<()>> {
        let PreparedThreshold { threshold, blocks, collectors, lifecycle, polls } = self;
        let regulated = Regulated::new(threshold.config(), &polls);
        let driver = Driver::begin(threshold, blocks, collectors, lifecycle, regulated)?;
        std::thread::Builder::new().name("threshold".to_owned()).spawn(move || driver.run())
    }
}
