//! Polls of interface counters (`[[poll]]`): losses of the primary queue as a router counts them.
//!
//! ```text
//!   source (thalweg-poll) ──► poller, one thread each ──► differences ──► PollState ──► API, metrics, latest()
//!                                                              └──► counter store (Parquet)
//! ```
//!
//! A target that does not answer delays nobody else. Its poller tries again, less and less often.
//!
//! | file | contents |
//! |---|---|
//! | `poller` | the thread of a poll |
//! | `sources` | creates the configured sources |
//! | `state` | what a poll knows |
//! | `store` | stores counters as Parquet |

mod poller;
mod sources;
mod state;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use thalweg_control::threshold::regulator::Measurement;
use thalweg_poll::CounterSource;
use thalweg_records::store::{Statistics, StoreOptions};

pub use state::{PollCounts, PollReport, PollState};

use crate::config::PollConfig;
use crate::hub::Hub;
use crate::lifecycle::Lifecycle;
use poller::Poller;
use sources::AllConnections;
pub(crate) use sources::credentials;
use store::CounterStore;

/// All polls. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Polls(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    polls: Vec<Poll>,
    /// Statistics of the counter store; `None` without one.
    stored: Arc<Mutex<Option<Statistics>>>,
}

/// A poll. Clones share it.
#[derive(Clone, Debug)]
pub struct Poll {
    name: Arc<str>,
    description: Arc<str>,
    interface: Arc<str>,
    state: Arc<Mutex<PollState>>,
}

/// Polls that have not started. What needs privileges is open.
pub(crate) struct PreparedPolls {
    polls: Polls,
    pollers: Vec<(PollConfig, Box<dyn CounterSource>)>,
    connections: AllConnections,
}

impl Polls {
    /// Returns all polls, in the order of the configuration.
    pub fn all(&self) -> &[Poll] {
        &self.0.polls
    }

    /// Returns the poll of this name.
    pub fn named(&self, name: &str) -> Option<&Poll> {
        self.0.polls.iter().find(|poll| *poll.name == *name)
    }

    /// Returns the statistics of the counter store, if there is one.
    pub fn stored(&self) -> Option<Statistics> {
        self.0.stored.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Poll {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is read: `SNMP v3 authPriv of 192.0.2.1:161, ifName wan0`.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the configured name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the latest interval and the average. [`PollReport::number`] increases with each poll.
    pub fn latest(&self) -> PollReport {
        self.lock().report()
    }

    /// Returns what the polls after this number say about the primary queue, the latest last, and the number of the latest.
    /// At most 64 are kept.
    pub(crate) fn after(&self, number: u64) -> (u64, Vec<Measurement>) {
        self.lock().after(number)
    }

    fn lock(&self) -> MutexGuard<'_, PollState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreparedPolls {
    /// Opens sources and reads credentials, with the privileges of the start. Starts no thread and sends nothing.
    ///
    /// # Errors
    /// A message, if credentials or certificates cannot be read, or a network namespace not be entered.
    pub(crate) fn open(configs: &[PollConfig]) -> Result<PreparedPolls, String> {
        let (mut polls, mut pollers, mut connections) = (Vec::new(), Vec::new(), Vec::new());
        for config in configs {
            let source = sources::open(&config.source, &mut connections)
                .map_err(|error| format!("poll {}: {error}", config.name))?;
            polls.push(Poll {
                name: config.name.as_str().into(),
                description: source.description().into(),
                interface: sources::interface(&config.source).into(),
                state: Arc::new(Mutex::new(PollState::new(config.average))),
            });
            pollers.push((config.clone(), source));
        }
        let polls = Polls(Arc::new(Shared { polls, stored: Arc::default() }));
        Ok(PreparedPolls { polls, pollers, connections })
    }

    /// Returns the polls.
    pub(crate) fn polls(&self) -> &Polls {
        &self.polls
    }

    /// Starts connections to switches and the threads. Returns the threads that must end before the daemon does; a poller that
    /// waits for an answer need not.
    ///
    /// # Errors
    /// If the store cannot be opened, an address not be bound, or a thread not be started.
    pub(crate) fn start(
        self,
        store: Option<StoreOptions>,
        hub: Arc<Hub>,
        lifecycle: Lifecycle,
    ) -> anyhow::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        if self.pollers.is_empty() {
            return Ok(threads);
        }
        let mut rows = None;
        if let Some(options) = store {
            let failed = || format!("cannot store interface counters in {}", options.directory.display());
            let (store, sender) =
                CounterStore::open(&options, Arc::clone(&self.polls.0.stored)).with_context(failed)?;
            rows = Some(sender);
            let lifecycle = lifecycle.clone();
            threads.push(spawn("counters", move || store.run(&lifecycle))?);
        }
        for (_, connections) in &self.connections {
            connections.start().map_err(anyhow::Error::msg).context("cannot poll switches")?;
        }
        for (poll, (config, source)) in self.polls.all().iter().zip(self.pollers) {
            let (poll, hub, lifecycle) = (poll.clone(), Arc::clone(&hub), lifecycle.clone());
            let poller = Poller { poll, config, source, hub, lifecycle, rows: rows.clone() };
            spawn("poll", move || poller.run())?;
        }
        Ok(threads)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.with_context(|| format!("cannot start thread {name}"))
}
