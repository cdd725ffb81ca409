//! The controller of the daemon (`[control]`): collectors report congestion, and the controller decides which flows to reroute,
//! reroutes them, and waits until a collector confirms the new path.
//!
//! ```text
//!   collectors ──► events ──► driver ──► control loop (thalweg-control) ──► driver ──► actuator ──► hosts, switches
//!       ▲                                        │                                                        │
//!       └────────────────────────────────────────┼────────────── packets with the new address ◄───────────┘
//!                                                └► state ◄── api, metrics
//! ```
//!
//! Local collectors send events over a bounded queue. Events that find it full are counted; a collector never waits. Subscribers
//! receive the same events. Remote collectors send theirs over the API of their daemons.
//!
//! | file | contents |
//! |---|---|
//! | `remotes` | events of other daemons |
//! | `driver` | runs the control loop and carries out its commands |
//! | `queries` | blocking requests to collectors |
//! | `actuators`, `openflow` | actuators |
//! | `injected` | switches and faults of a lab |
//! | `state` | state of the controller; pins and freezing |

mod actuators;
mod carriers;
mod clock;
mod driver;
mod injected;
mod openflow;
mod queries;
mod remotes;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use thiserror::Error;

use super::names;
pub use super::names::Names;
pub(crate) use driver::Driver;
pub use injected::{Delivery, Injected, SwitchTables};
pub(crate) use openflow::instance;
pub use state::{ControlError, ControlReport, ControlState, PathInfo, PathsReport};
pub use thalweg_actuators::openflow::SwitchesReport;
pub use thalweg_control::control_loop::{ActionOutcome, ActionReport, ActionTimes};

use super::collectors::control_events::ControlEventSender;
use super::collectors::network::Network;
use super::collectors::{CollectorList, Latency, LatencyHistogram};
use super::config::ControlConfig;
use super::hub::Hub;
use super::lifecycle::Lifecycle;
use driver::Effects;

/// The controller. Clones share it.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: ControlConfig,
    state: ControlState,
    /// Latencies from a decision to the first packet on the new path.
    decision_to_path: LatencyHistogram,
    events: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

/// The parts of the daemon that the controller uses.
#[derive(Clone, Debug)]
pub(crate) struct ControlParts {
    /// The controlled network.
    pub(crate) network: Network,
    /// The local collectors.
    pub(crate) collectors: CollectorList,
    /// The event hub.
    pub(crate) hub: Arc<Hub>,
    /// Whether the daemon is stopping.
    pub(crate) lifecycle: Lifecycle,
}

/// Why the controller cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no network.
    #[error("[control] requires a topology")]
    NoNetwork,
    /// Routes cannot be computed.
    #[error("cannot compute routes: {0}")]
    Routes(#[from] thalweg_network::state::StateError),
    /// The client of another daemon cannot be created.
    #[error(transparent)]
    Remote(#[from] thalweg_api::client::ClientError),
    /// The carriers of interfaces cannot be monitored.
    #[error("link_interfaces: cannot read interfaces: {0}")]
    Carriers(std::io::Error),
    /// The actuator cannot be created.
    #[error("actuator {name}: {cause}")]
    Actuator {
        /// Name of the actuator.
        name: &'static str,
        /// The reason.
        cause: String,
    },
}

/// A controller that has not started.
pub(crate) struct PreparedControl {
    control: Control,
    driver: Driver,
    remotes: remotes::Remotes,
    parts: ControlParts,
    /// Sender of remote events, if there are remotes.
    remote_sender: Option<ControlEventSender>,
}

impl Control {
    /// Prepares the controller, and opens what needs privileges. Also returns the sender for events of collectors.
    ///
    /// # Errors
    /// If there is no network, or the actuator or a remote client cannot be created.
    pub(crate) fn prepare(
        config: &ControlConfig,
        parts: &ControlParts,
        injected: Injected,
    ) -> Result<(PreparedControl, ControlEventSender), StartError> {
        let (event_sender, events) = ControlEventSender::new();
        let network = parts.network.versions().ok_or(StartError::NoNetwork)?;
        let state = Arc::clone(&network.newest().state);
        let actuator = actuators::new(config, &state, parts.network.emulation())?;
        let remotes = remotes::Remotes::new(&config.remotes)?;
        let clock = clock::Clock::of(parts, remotes.are_configured());
        let interval = injected.tables.as_ref().map(|tables| tables.interval());
        let (state, wakeups) = ControlState::new(config, interval, &state, clock)?;
        let control = Control(Arc::new(Shared {
            config: config.clone(),
            state,
            decision_to_path: LatencyHistogram::default(),
            events: event_sender.sent(),
            lost: event_sender.lost(),
        }));
        let carriers = match config.link_interfaces.clone() {
            interfaces if interfaces.is_empty() => None,
            interfaces => Some(
                carriers::Carriers::open(interfaces, config.namespace.as_ref())
                    .map_err(StartError::Carriers)?,
            ),
        };
        let effects = Effects { actuator, carriers, injected };
        let driver = Driver::new(control.clone(), parts.clone(), effects, remotes.clone(), events, wakeups);
        let remote_sender = remotes.are_configured().then(|| event_sender.clone());
        Ok((PreparedControl { control, driver, remotes, parts: parts.clone(), remote_sender }, event_sender))
    }

    /// Returns the configuration.
    pub fn config(&self) -> &ControlConfig {
        &self.0.config
    }

    /// Returns the state.
    pub fn state(&self) -> &ControlState {
        &self.0.state
    }

    /// Returns the latencies from a decision to the first packet on the new path.
    pub fn decision_to_path(&self) -> Latency {
        self.0.decision_to_path.read()
    }

    /// Returns the number of events that collectors sent.
    pub fn events(&self) -> u64 {
        self.0.events.load(Ordering::Relaxed)
    }

    /// Returns the number of lost events.
    pub fn events_lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl PreparedControl {
    /// Returns the controller.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Starts the controller on a thread. It ends when all collectors have.
    ///
    /// # Errors
    /// If a thread or the actuator cannot be started.
    pub(crate) fn start(self) -> std::io::Result<JoinHandle<()>> {
        let driver = self.begin()?;
        std::thread::Builder::new().name("control".to_owned()).spawn(move || driver.run())
    }

    /// Starts the controller for a caller that runs its loop.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub(crate) fn begin(mut self) -> std::io::Result<Driver> {
        self.driver.begin()?;
        self.parts.network.set_controlled();
        if let Some(event_sender) = &self.remote_sender {
            self.remotes.subscribe(&self.parts.lifecycle, event_sender)?;
        }
        Ok(self.driver)
    }
}
