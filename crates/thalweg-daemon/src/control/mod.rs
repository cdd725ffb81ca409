//! The controller within the daemon (`[control]`): collectors tell it of congestion, it decides which flow goes another
//! way, sees to it, and waits until a collector sees that it did.
//!
//! ```text
//!   collectors ──► events ──► driver ──► control loop (thalweg-control) ──► driver ──► actuator ──► hosts, switches
//!       ▲                                        │                                                        │
//!       └────────────────────────────────────────┼────────────── packets with the new address ◄───────────┘
//!                                                └► state ◄── api, metrics
//! ```
//!
//! It hears of what happens within the process over a bounded queue: what does not fit is counted, and a collector never
//! waits. The same events are told to subscribers as ever. What happens elsewhere comes by the API of other daemons.
//!
//! | file | what it has |
//! |---|---|
//! | `remotes` | from collectors of other daemons |
//! | `driver` | what drives the loop, and carries its commands out |
//! | `queries` | what collectors are asked and told, and has to be waited for |
//! | `actuators`, `openflow` | how decisions are carried out |
//! | `injected` | switches and faults that a lab brings |
//! | `state` | what it knows and has done, for whoever asks; pins, and freezing it |

mod actuators;
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
pub use state::{ControlError, ControlReport, ControlState, PathsReport, PathInfo};
pub use thalweg_actuators::openflow::SwitchesReport;
pub use thalweg_control::control_loop::{ActionOutcome, ActionReport, ActionTimes};

use super::collectors::network::Network;
use super::collectors::control_events::ControlEventSender;
use super::collectors::{CollectorList, Latency, LatencyHistogram};
use super::config::ControlConfig;
use super::hub::Hub;
use super::lifecycle::Lifecycle;
use driver::Effects;

/// The controller. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: ControlConfig,
    state: ControlState,
    /// From a decision to the first packet with the new address.
    effect: LatencyHistogram,
    events: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

/// What the controller hears of, and tells.
#[derive(Clone, Debug)]
pub(crate) struct ControlParts {
    /// The network that is steered.
    pub(crate) network: Network,
    /// The collectors here.
    pub(crate) collectors: CollectorList,
    /// Where events are told.
    pub(crate) hub: Arc<Hub>,
    /// Whether the daemon is on its way out.
    pub(crate) lifecycle: Lifecycle,
}

/// Why nothing can be steered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no network.
    #[error("[control] needs a topology")]
    NoNetwork,
    /// Routes cannot be made.
    #[error("routes cannot be made: {0}")]
    Routes(#[from] thalweg_network::state::StateError),
    /// Another daemon cannot be listened to.
    #[error(transparent)]
    Remote(#[from] thalweg_api::client::ClientError),
    /// What carries decisions out cannot be had.
    #[error("actuator {name}: {cause}")]
    Actuator {
        /// Which.
        name: &'static str,
        /// Why not.
        cause: String,
    },
}

/// A controller that has not begun.
pub(crate) struct Prepared {
    control: Control,
    driver: Driver,
    remotes: remotes::Remotes,
    parts: ControlParts,
    /// At which other daemons tell, if there are any.
    remote_sender: Option<ControlEventSender>,
}

impl Control {
    /// Prepares the controller; opens what needs privileges. Also gives the ear at which collectors tell.
    ///
    /// # Errors
    /// If there is no network to steer, or no means.
    pub(crate) fn prepare(
        config: &ControlConfig,
        parts: &ControlParts,
        injected: Injected,
    ) -> Result<(Prepared, ControlEventSender), StartError> {
        let (event_sender, events) = ControlEventSender::new();
        let network = parts.network.versions().ok_or(StartError::NoNetwork)?;
        let state = Arc::clone(&network.newest().state);
        let actuator = actuators::make(config, &state, parts.network.emulation())?;
        let remotes = remotes::Remotes::new(&config.remotes)?;
        let clock = clock::Clock::of(parts, remotes.are_configured());
        let interval = injected.tables.as_ref().map(|tables| tables.interval());
        let (state, wakeups) = ControlState::new(config, interval, &state, clock)?;
        let control = Control(Arc::new(Shared {
            config: config.clone(),
            state,
            effect: LatencyHistogram::default(),
            events: event_sender.sent(),
            lost: event_sender.lost(),
        }));
        let effects = Effects { actuator, injected };
        let driver = Driver::new(control.clone(), parts.clone(), effects, remotes.clone(), events, wakeups);
        let remote_sender = remotes.are_configured().then(|| event_sender.clone());
        Ok((Prepared { control, driver, remotes, parts: parts.clone(), remote_sender }, event_sender))
    }

    /// What it was told to do.
    pub fn config(&self) -> &ControlConfig {
        &self.0.config
    }

    /// What it knows and has done.
    pub fn state(&self) -> &ControlState {
        &self.0.state
    }

    /// How long actions took from their decision to the first packet with the new address.
    pub fn effect_latency(&self) -> Latency {
        self.0.effect.read()
    }

    /// Notices that collectors gave it.
    pub fn events(&self) -> u64 {
        self.0.events.load(Ordering::Relaxed)
    }

    /// Notices that found no room.
    pub fn events_lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Prepared {
    /// The controller, for whoever asks it.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Begins. It ends when all collectors have.
    ///
    /// # Errors
    /// If the system has no more threads, or no port to listen at.
    pub(crate) fn start(self) -> std::io::Result<JoinHandle<()>> {
        let driver = self.begin()?;
        std::thread::Builder::new().name("control".to_owned()).spawn(move || driver.run())
    }

    /// The same, for somebody who drives it on a thread of their own.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub(crate) fn begin(mut self) -> std::io::Result<Driver> {
        self.driver.begin()?;
        self.parts.network.set_controlled();
        if let Some(event_sender) = &self.remote_sender {
            self.remotes.subscribe(&self.parts.lifecycle, event_sender)?;
        }
        Ok(self.driver)
    }
}
