//! Isolation (`[isolation]`): cheetah flows that collectors find are redirected to a scavenger queue while they last.
//!
//! ```text
//!   collectors ──► findings ──► driver ──► decisions (thalweg-control::isolate) ──► driver ──► isolator ──► queues
//!                                  ▲                                                              │
//!                                  └──────────────── counters of flows and queues ◄───────────────┘
//! ```
//!
//! It decides by the monotonic clock of this machine, so steps of the wall clock change nothing. Reports have the wall clock, or with an
//! emulation its clock, which packets and the events of collectors have as well.
//!
//! | file | contents |
//! |---|---|
//! | `clock` | the clock of reports |
//! | `driver` | the thread that passes findings to the decisions and carries out their commands |
//! | `emulated` | isolation in the emulated network |
//! | `isolators` | creates the configured isolator |
//! | `state` | the state, and requests of users |

mod clock;
mod driver;
mod emulated;
mod isolators;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;

pub use state::{IsolationReport, PinError};

use crate::collectors::findings::{CollectorFinding, FindingSender};
use crate::config::IsolationConfig;
use crate::emulation::Emulation;
use crate::hub::Hub;
use crate::lifecycle::Lifecycle;
use driver::Driver;
pub(crate) use isolators::{read_password, read_token};
use state::State;

/// Isolation. Clones share it.
#[derive(Clone, Debug)]
pub struct Isolation(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: IsolationConfig,
    state: State,
    lost: Arc<AtomicU64>,
}

/// Isolation that has not started. What needs privileges is open.
pub(crate) struct PreparedIsolation {
    isolation: Isolation,
    driver: Driver,
}

impl Isolation {
    /// Opens what needs privileges. Changes nothing outside the process. `emulation` is that of the daemon, if any. Also returns the sender for findings of collectors.
    ///
    /// # Errors
    /// A message, if the actuator cannot be opened, or another daemon uses the interface.
    pub(crate) fn prepare(
        config: &IsolationConfig,
        emulation: Option<&Emulation>,
        hub: Arc<Hub>,
        lifecycle: Lifecycle,
    ) -> Result<(PreparedIsolation, FindingSender), String> {
        let isolator = isolators::open(&config.isolator, emulation, config.options.dry_run)
            .map_err(|error| format!("isolation by {}: {error}", config.isolator.name()))?;
        let (sender, findings): (_, Receiver<CollectorFinding>) =
            FindingSender::new(config.collectors.clone());
        let (state, wakeups) = State::new(config.options.clone(), emulation.cloned());
        let isolation = Isolation(Arc::new(Shared { config: config.clone(), state, lost: sender.lost() }));
        let driver = Driver::new(isolation.clone(), isolator, findings, wakeups, hub, lifecycle);
        Ok((PreparedIsolation { isolation, driver }, sender))
    }

    /// Returns the configuration.
    pub fn config(&self) -> &IsolationConfig {
        &self.0.config
    }

    /// Returns its state and requests of users.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Returns the maximum duration of its stop: the time to release flows, and that of the actuator.
    pub(crate) fn stop_limit(&self) -> Duration {
        driver::STOP_LIMIT + self.config().isolator.stop_time()
    }

    /// Returns the number of findings that found the queue full.
    pub fn findings_lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl PreparedIsolation {
    /// Returns isolation.
    pub(crate) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Starts the thread, and waits until the isolator has started. The thread ends when the daemon stops, after the flows were
    /// released. Its result is an error if flows may still be redirected.
    ///
    /// # Errors
    /// If the thread or the isolator cannot be started. The isolator has then restored what it changed.
    pub(crate) fn start(self) -> std::io::Result<JoinHandle<Result<(), String>>> {
        let mut driver = self.driver;
        // The isolator starts in the thread, so that nothing can fail after it.
        let (sender, begun) = crossbeam_channel::bounded(1);
        let run = move || {
            let result = driver.begin();
            let has_begun = result.is_ok();
            // The other end waits.
            let _ = sender.send(result);
            match has_begun {
                true => driver.run(),
                false => Ok(()),
            }
        };
        let thread = std::thread::Builder::new().name("isolation".to_owned()).spawn(run)?;
        let panicked = || Err("its thread has panicked".to_owned());
        begun.recv().unwrap_or_else(|_| panicked()).map_err(std::io::Error::other)?;
        Ok(thread)
    }
}
