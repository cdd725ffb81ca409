//! All collectors of the daemon: started, changed while they run, stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;
use thalweg_measure::samples::{SampleRing, SampleRingError};
use thiserror::Error;

use super::core::Core;
use super::event_publisher::EventPublisher;
use super::exchange::{Exchange, ReconfigureError};
use super::handle::{AskError, CollectorHandle, Description};
use super::list::CollectorList;
use super::network::Network;
use super::shared_thread::{SharedThread, SharesThread};
use super::sinks::Sinks;
use super::source::{Opened, SourceError};
use super::tallies::Tallies;
use super::worker::Worker;
use crate::config::CollectorConfig;
use crate::hub::Hub;

/// How long a collector may take to do something else.
const PATIENCE: Duration = Duration::from_secs(2);

/// What collectors are shown in, and what they use.
#[derive(Clone, Debug)]
pub struct FleetParts {
    /// Where all who run are to be found.
    pub collectors: CollectorList,
    /// What is known of the network.
    pub network: Network,
    /// Where events are told.
    pub hub: Arc<Hub>,
}

/// All collectors.
#[derive(Debug)]
pub struct Fleet {
    parts: FleetParts,
    sinks: Sinks,
    /// Where all collectors run; else each has a thread of its own.
    shared: Option<SharedThread>,
    running: Vec<Running>,
    /// By name: those that run, and those that ran until a reload that is under way.
    tallies: BTreeMap<Arc<str>, Arc<Tallies>>,
}

/// One that runs.
#[derive(Debug)]
struct Running {
    config: Arc<CollectorConfig>,
    handle: CollectorHandle,
    /// Tells what flow tables have left behind that another has replaced.
    event_publisher: EventPublisher,
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

/// Where a collector runs.
#[derive(Debug)]
enum Thread {
    /// On a thread of its own.
    Own(JoinHandle<()>),
    /// On that of all collectors; disconnected when it has ended.
    Shared(Receiver<()>),
}

/// A collector whose source somebody has tried to open.
pub struct Ready {
    config: Arc<CollectorConfig>,
    opened: Option<Result<Opened, SourceError>>,
}

/// Why a collector cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// It cannot be made.
    #[error("collector {collector}: {source}")]
    Collector {
        /// Its name.
        collector: String,
        /// What is wrong.
        source: ReconfigureError,
    },
    /// Its ring of samples cannot be made.
    #[error("collector {collector}: {source}")]
    Samples {
        /// Its name.
        collector: String,
        /// What is wrong.
        source: SampleRingError,
    },
    /// The system has no more threads.
    #[error("collector {collector}: cannot start its thread: {source}")]
    Thread {
        /// Its name.
        collector: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Ready {
    /// Opens the source if it is an interface, which may take privileges that are given up later. One that cannot be
    /// opened now is tried again when the collector runs.
    pub fn open(config: Arc<CollectorConfig>) -> Ready {
        let opened = config.source.is_live().then(|| Opened::open(&config, None));
        Ready { config, opened }
    }

    /// Why the source could not be opened, if it could not.
    pub fn failure(&self) -> Option<&SourceError> {
        self.opened.as_ref().and_then(|opened| opened.as_ref().err())
    }
}

impl Fleet {
    /// No collectors.
    pub(crate) fn new(parts: FleetParts, sinks: Sinks) -> Fleet {
        Fleet { parts, sinks, shared: None, running: Vec::new(), tallies: BTreeMap::new() }
    }

    /// The same, with all collectors on one thread.
    pub(crate) fn sharing(parts: FleetParts, sinks: Sinks, thread: SharedThread) -> Fleet {
        let mut fleet = Fleet::new(parts, sinks);
        fleet.shared = Some(thread);
        fleet
    }

    /// Has the control loop take turns on the thread of all collectors. Nothing if there is no such thread.
    pub(crate) fn steer(&self, control: Box<dyn SharesThread>) {
        if let Some(shared) = &self.shared {
            shared.steer(control);
        }
    }

    /// Starts collectors, beside those there are.
    ///
    /// # Errors
    /// With the first that cannot be started; those before it run.
    pub fn start(&mut self, collectors: Vec<Ready>) -> Result<(), StartError> {
        for ready in collectors {
            let running = self.start_one(ready)?;
            self.running.push(running);
        }
        self.show();
        Ok(())
    }

    /// Makes the collectors what `configs` says: those that are not in it are stopped, new ones are started, those whose
    /// rules or thresholds have changed are told, and those of which something else has changed begin anew. What stays
    /// the same is left alone.
    pub fn reload(&mut self, configs: &[Arc<CollectorConfig>]) {
        let mut before = std::mem::take(&mut self.running);
        for config in configs {
            let place = before.iter().position(|running| running.config.name == config.name);
            let kept = place.map(|place| before.remove(place));
            let kept = kept.and_then(|running| running.change(config, &self.parts.network));
            let started = kept.map_or_else(|| self.start_one(Ready::open(Arc::clone(config))), Ok);
            match started {
                Ok(running) => self.running.push(running),
                Err(error) => tracing::error!(%error, "collector not started"),
            }
        }
        self.running.append(&mut before);
        self.retain(configs);
        self.tallies.retain(|name, _| configs.iter().any(|config| config.name == *name));
    }

    /// Stops those that `configs` does not have any more, or has at another switch.
    pub fn retain(&mut self, configs: &[Arc<CollectorConfig>]) {
        let stays = |running: &mut Running| {
            let Running { config, .. } = running;
            let stays =
                configs.iter().any(|other| other.name == config.name && other.switch == config.switch);
            if !stays {
                tracing::info!(collector = running.handle.name(), "removed from the configuration, stopping");
                running.stop();
            }
            stays
        };
        self.running.retain_mut(stays);
        self.show();
    }

    /// Stops all collectors: each hands on its flows and the window under way. Who writes these knows then that there is
    /// no more to come.
    pub fn stop(&mut self) {
        for running in &self.running {
            running.stop.store(true, Ordering::Relaxed);
        }
        self.running.drain(..).for_each(|mut running| running.stop());
        self.sinks = Sinks::default();
        self.shared = None;
    }

    fn show(&self) {
        self.parts.collectors.set(self.running.iter().map(|running| running.handle.clone()).collect());
    }

    fn start_one(&mut self, ready: Ready) -> Result<Running, StartError> {
        let Ready { config, opened } = ready;
        let collector = || config.name.to_string();
        let ring = config.samples.map(SampleRing::new).transpose();
        let ring = ring.map_err(|source| StartError::Samples { collector: collector(), source })?;
        let (writer, samples) = ring.unzip();
        let description = Description {
            name: Arc::clone(&config.name),
            switch: Arc::clone(&config.switch),
            source: config.source.in_words(),
            is_live: config.source.is_live(),
        };
        let exchange = Exchange::new(Arc::clone(&config), self.parts.network.versions())
            .map_err(|source| StartError::Collector { collector: collector(), source })?;
        let tallies = Arc::clone(self.tallies.entry(Arc::clone(&config.name)).or_default());
        let stop = Arc::new(AtomicBool::new(false));
        let sinks = self.sinks.clone();
        let event_publisher =
            EventPublisher::new(&description, &self.parts, sinks, Arc::clone(&tallies), Arc::clone(&stop));
        let (handle, mailbox) = CollectorHandle::with_tallies(description, samples, tallies);
        let core = Core::new(exchange, self.parts.network.clone(), mailbox, event_publisher.clone(), writer);
        let worker = Worker { core, stop: Arc::clone(&stop) };
        let thread = match &self.shared {
            Some(shared) => Thread::Shared(shared.join(worker, opened)),
            None => {
                // The kernel keeps 15 bytes.
                let thread = std::thread::Builder::new().name(format!("c {}", config.name));
                let thread = thread.spawn(move || worker.run(opened));
                let failed = |source| StartError::Thread { collector: collector(), source };
                Thread::Own(thread.map_err(failed)?)
            }
        };
        Ok(Running { config, handle, event_publisher, stop, thread: Some(thread) })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    /// Does what `config` says from now on; `None` if it has to begin anew for that, and has been stopped.
    fn change(mut self, config: &Arc<CollectorConfig>, network: &Network) -> Option<Running> {
        if self.config == *config {
            return Some(self);
        }
        let name = &*config.name;
        if self.config.has_same_source(config) {
            let exchange = match Exchange::new(Arc::clone(config), network.versions()) {
                Ok(exchange) => exchange,
                Err(error) => {
                    tracing::error!(collector = name, %error, "configuration not applied");
                    return Some(self);
                }
            };
            if self.exchange(exchange) {
                tracing::info!(collector = name, "configuration applied");
                self.config = Arc::clone(config);
                return Some(self);
            }
        }
        tracing::info!(collector = name, "configuration changed, restarting");
        self.stop();
        None
    }

    /// Measures with something else from now on, and hands on the flows of what it measured with before. If it does not
    /// do so in time, it has been stopped.
    fn exchange(&mut self, exchange: Exchange) -> bool {
        let answer = match self.handle.exchange(exchange) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(collector = self.handle.name(), %error, "configuration not applied");
                return false;
            }
        };
        let in_time = answer.recv_timeout(PATIENCE);
        let is_done = in_time.is_ok();
        let old = in_time.ok().or_else(|| {
            tracing::warn!(collector = self.handle.name(), error = %AskError::Late, "configuration not applied in time, restarting");
            self.event_publisher.tallies().late.fetch_add(1, Ordering::Relaxed);
            self.stop();
            // It may have done so as its last deed.
            answer.try_recv().ok()
        });
        if let Some(old) = old {
            self.event_publisher.clone().retire(old.value);
        }
        is_done
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take() {
            Some(Thread::Own(thread)) => {
                let ended = thread.join();
                if ended.is_err() {
                    tracing::error!(collector = self.handle.name(), "thread panicked");
                }
            }
            // Nothing is ever sent: it ends by being disconnected.
            Some(Thread::Shared(ended)) => drop(ended.recv()),
            None => {}
        }
    }
}
