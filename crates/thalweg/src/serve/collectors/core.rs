//! What a collector's thread does with packets: they go once past the intake, the ring of samples, the collector and
//! the tasks; what these find is told at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_measure::collector::{Collector, CollectorError, Output};
use thalweg_measure::detect::Finding;
use thalweg_measure::meter::flow_table::FlowTableCounters;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::meter::record::EndReason;
use thalweg_measure::samples::SampleWriter;
use thalweg_network::Versions;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, HashSeed, Packet, SourceCounters, Timestamp};
use thiserror::Error;

use super::handle::{CollectorCounters, FlowChunk, Mailbox, Question, answer};
use super::outlets::Outlets;
use super::state::CollectorState;
use super::windows::TaskMonitor;
use crate::serve::config::CollectorConfig;
use crate::serve::config::collector::OptionsError;
use crate::serve::daemon::{Daemon, wall_clock};
use crate::serve::event::{Event, EventKind};
use crate::serve::samples::Trigger;

/// Packets between two looks at what they gave rise to: events are told after at most so many, about 6 us at ten million
/// packets a second.
pub(super) const CHUNK: usize = 64;

/// Why a collector cannot do something else from now on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// It does not fit into the network.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// It cannot be made.
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

/// All that a collector's thread measures with.
pub(super) struct Core {
    config: Arc<CollectorConfig>,
    daemon: Daemon,
    pub(super) mailbox: Mailbox,
    outlets: Outlets,
    network: Option<Arc<Versions>>,
    collector: Collector,
    output: Output,
    intake: Intake,
    packets: Vec<Packet>,
    next_answer: Instant,
    samples: Option<SampleWriter>,
    tasks: Option<TaskMonitor>,
    /// Of the source that is open, as of a while ago, and of all before.
    pub(super) source: SourceCounters,
    pub(super) sources_before: SourceCounters,
}

impl Core {
    /// # Errors
    /// If the collector does not fit into the network, or into memory.
    pub(super) fn new(
        config: Arc<CollectorConfig>,
        daemon: Daemon,
        mailbox: Mailbox,
        outlets: Outlets,
        samples: Option<SampleWriter>,
    ) -> Result<Core, ReconfigureError> {
        let network = daemon.network();
        let collector = collector(&config, network.as_ref())?;
        let tasks = config
            .tasks
            .as_ref()
            .map(|options| TaskMonitor::start(options, mailbox.tasks_board(), config.source.is_live()));
        Ok(Core {
            intake: Intake::new(Parser { peel_tunnels: config.peel_tunnels }, HashSeed::new(0)),
            config,
            daemon,
            mailbox,
            outlets,
            network,
            collector,
            output: Output::default(),
            packets: Vec::new(),
            next_answer: Instant::now(),
            samples,
            tasks,
            source: SourceCounters::default(),
            sources_before: SourceCounters::default(),
        })
    }

    /// What is to be done.
    pub(super) fn config(&self) -> &CollectorConfig {
        &self.config
    }

    /// Measures some frames, at most [`CHUNK`], which have been in memory since `begun`.
    #[inline]
    pub(super) fn take(&mut self, frames: &Batch<'_>, begun: Instant) {
        self.packets.clear();
        self.intake.take(frames, &mut self.packets);
        self.collector.update(&self.packets, &mut self.output);
        self.tell(Some(begun));
        if let Some(samples) = &mut self.samples {
            samples.write_batch(frames);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.packets(&self.packets);
        }
    }

    /// Lets time pass without packets.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.collector.advance(now, &mut self.output);
        self.tell(None);
        if let Some(tasks) = &mut self.tasks {
            tasks.advance(now);
        }
    }

    /// Hands on all flows, and the window under way.
    pub(super) fn finish(&mut self) {
        self.collector.finish(&mut self.output);
        self.tell(None);
        if let Some(tasks) = self.tasks.take() {
            tasks.finish();
        }
    }

    /// After a panic: whatever was half done is thrown away.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn renew(&mut self) -> Result<(), ReconfigureError> {
        self.collector = collector(&self.config, self.network.as_ref())?;
        self.output = Output::default();
        let counters = self.intake.counters();
        self.intake = Intake::new(Parser { peel_tunnels: self.config.peel_tunnels }, HashSeed::new(0));
        tracing::debug!(collector = &*self.config.name, frames = counters.frames.packets, "begins anew");
        Ok(())
    }

    /// Says what the collector is doing, to who asks and to who listens.
    pub(super) fn set_state(&self, state: CollectorState) {
        self.mailbox.set_state(state.clone());
        let time = self.collector.clock();
        let emitted = if self.config.source.is_live() { wall_clock() } else { time };
        self.publish(time, emitted, EventKind::State(state));
    }

    /// Tells what was found, in the order of its packets' times; what packets that came in `begun` gave rise to, or what
    /// time alone did.
    #[inline]
    fn tell(&mut self, begun: Option<Instant>) {
        if !self.output.events.is_empty() || !self.output.flows.findings.is_empty() {
            self.tell_events(begun);
        }
        if !self.output.flows.records.is_empty() {
            let records = &mut self.output.flows.records;
            self.outlets.records(&self.config.name, records, self.config.source.is_live());
        }
    }

    #[cold]
    fn tell_events(&mut self, begun: Option<Instant>) {
        let Output { events, flows } = &mut self.output;
        let events = std::mem::take(events).into_iter().map(|event| (event.time, EventKind::Link(event)));
        let findings = std::mem::take(&mut flows.findings).into_iter().map(|finding| {
            let time = match &finding {
                Finding::Began(cheetah) => cheetah.detected,
                Finding::Ended(end) => end.last,
            };
            (time, EventKind::Cheetah(finding))
        });
        let mut told: Vec<(Timestamp, EventKind)> = events.chain(findings).collect();
        told.sort_by_key(|(time, _)| *time);
        for (time, kind) in told {
            if let Some(trigger) = Trigger::of(&kind) {
                self.outlets.trigger(&self.config.name, trigger);
            }
            let emitted = if self.config.source.is_live() { wall_clock() } else { time };
            self.publish(time, emitted, kind);
            if let Some(begun) = begun {
                self.mailbox.note_decision(begun.elapsed());
                if self.config.source.is_live() {
                    self.mailbox.note_arrival((wall_clock() - time).into());
                }
            }
        }
    }

    fn publish(&self, time: Timestamp, emitted: Timestamp, kind: EventKind) {
        let (collector, switch) = (Arc::clone(&self.config.name), Arc::clone(&self.config.switch));
        self.daemon.hub().publish(Event { collector, switch, time, emitted, kind });
    }

    /// Answers a question, if one waits and answering does not take more than a fifth of the time. Says whether it did.
    #[inline]
    pub(super) fn answer(&mut self) -> bool {
        if self.mailbox.is_empty() {
            return false;
        }
        let begun = Instant::now();
        if begun < self.next_answer {
            return false;
        }
        if let Some(question) = self.mailbox.next() {
            self.answer_one(question);
        }
        self.next_answer = begun + 5 * begun.elapsed();
        true
    }

    /// Answers questions for some time, but not longer than until `is_over` says so.
    pub(super) fn answer_for(&mut self, time: Duration, is_over: impl Fn() -> bool) {
        /// How long a stop may go unnoticed.
        const NAP: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        while !is_over() {
            self.mailbox.beat();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if let Some(question) = self.mailbox.wait(left.min(NAP)) {
                self.answer_one(question);
            }
        }
    }

    /// Answers the next question, if there is one within `patience`. Says whether there was.
    pub(super) fn answer_next(&mut self, patience: Duration) -> bool {
        let question = self.mailbox.wait(patience);
        question.map(|question| self.answer_one(question)).is_some()
    }

    #[cold]
    fn answer_one(&mut self, question: Question) {
        let time = self.collector.clock();
        match question {
            Question::Links(reply) => answer(&reply, time, self.collector.links()),
            Question::Flow(key, reply) => answer(&reply, time, self.collector.flow(&key)),
            Question::Flows(slots, reply) => {
                let end = slots.end.min(slots.start.saturating_add(super::handle::FLOW_SLOTS));
                let flows = self.collector.flows(slots.start..end).collect();
                answer(&reply, time, FlowChunk { flows, slots: self.collector.slots() });
            }
            Question::Counters(reply) => answer(&reply, time, self.counters()),
            Question::Network(versions, reply) => {
                let result = self.set_network(versions);
                answer(&reply, time, result);
            }
            Question::Configure(config, reply) => {
                let result = self.configure(config);
                answer(&reply, time, result);
            }
        }
    }

    fn counters(&self) -> CollectorCounters {
        let mut source = self.sources_before;
        source += self.source;
        let collector = self.collector.counters();
        CollectorCounters {
            source,
            intake: self.intake.counters(),
            flows: live_flows(&collector.flow_table),
            flow_capacity: u64::from(self.config.flow_table.capacity),
            memory: self.collector.bytes(),
            sampling_ratio: self.collector.sampling_ratio(),
            windows_lost: self.tasks.as_ref().map_or(0, TaskMonitor::lost),
            records_lost: self.outlets.records_lost(),
            collector,
        }
    }

    /// Takes up another network: as another version if the collector's own part in it stays the same, else anew.
    fn set_network(&mut self, versions: Arc<Versions>) -> Result<(), OptionsError> {
        let options = self.config.options(Some(&versions.newest().state))?;
        let before = self.network.replace(Arc::clone(&versions));
        if *self.collector.options() == options {
            self.collector.set_network(Some(versions));
            return Ok(());
        }
        self.rebuild(Arc::clone(&self.config)).map_err(|error| {
            self.network = before;
            tracing::error!(collector = &*self.config.name, "cannot take up the new network: {error}");
            OptionsError::Refused { reason: error.to_string() }
        })
    }

    /// Takes up the network of the daemon, if it has a newer one: whoever told of it may not have got through.
    pub(super) fn catch_up(&mut self) {
        let number = |network: &Arc<Versions>| network.newest().number;
        let newest = self.daemon.network();
        if newest.as_ref().map(number) > self.network.as_ref().map(number)
            && let Some(versions) = newest
            && let Err(error) = self.set_network(versions)
        {
            tracing::debug!(collector = &*self.config.name, "stays on the network before: {error}");
        }
    }

    fn configure(&mut self, config: Arc<CollectorConfig>) -> Result<(), ReconfigureError> {
        let before = std::mem::replace(&mut self.network, self.daemon.network());
        let rebuilt = self.rebuild(Arc::clone(&config));
        if rebuilt.is_err() {
            self.network = before;
            return rebuilt;
        }
        self.config = config;
        Ok(())
    }

    /// A new collector in the place of the old one, which hands on all its flows.
    fn rebuild(&mut self, config: Arc<CollectorConfig>) -> Result<(), ReconfigureError> {
        let clock = self.collector.clock();
        let collector = collector(&config, self.network.as_ref())?;
        self.collector.finish(&mut self.output);
        self.tell(None);
        self.collector = collector;
        self.collector.advance(clock, &mut self.output);
        self.tell(None);
        Ok(())
    }
}

fn collector(
    config: &CollectorConfig,
    network: Option<&Arc<Versions>>,
) -> Result<Collector, ReconfigureError> {
    let options = config.options(network.map(|versions| &*versions.newest().state))?;
    Ok(Collector::new(options, network.cloned())?)
}

/// Flows in the table: those that were begun, and have not been handed on for good.
fn live_flows(counters: &FlowTableCounters) -> u64 {
    let handed_on: u64 = counters.records.iter().sum();
    counters.flows + counters.ended(EndReason::Active) - handed_on
}
