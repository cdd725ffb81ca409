//! What a collector's thread does with packets: they go once past the intake, the ring of samples, the collector and
//! the tasks; what these find is told at once.
//!
//! Another collector is put in the place of the one at work in one step ([`Exchange`]): whoever asks for that makes it,
//! which takes tens of milliseconds for a large table, and hands on the flows of the old one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_measure::collector::{Collector, Output};
use thalweg_measure::meter::flow_table::FlowTableCounters;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::meter::record::EndReason;
use thalweg_measure::samples::SampleWriter;
use thalweg_network::Versions;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, HashSeed, Packet, SourceCounters, Timestamp};

use super::event_publisher::EventPublisher;
use super::exchange::{Exchange, ReconfigureError};
use super::handle::{Asked, CollectorCounters, FlowChunk, Mailbox, Question, answer};
use super::network::Network;
use super::tallies::Totals;
use super::windows::TaskMonitor;
use crate::config::CollectorConfig;
use crate::config::collector::OptionsError;
use crate::emulation::Emulation;
use crate::event::CollectorState;
use crate::event::EventKind;

/// Packets between two looks at what they gave rise to: events are told after at most so many, about 2 us at ten million
/// packets a second.
pub(super) const CHUNK: usize = 16;

/// All that a collector's thread measures with.
pub(super) struct Core {
    config: Arc<CollectorConfig>,
    /// Where new versions of the network are found.
    known_network: Network,
    pub(super) mailbox: Mailbox,
    event_publisher: EventPublisher,
    network: Option<Arc<Versions>>,
    collector: Collector,
    output: Output,
    intake: Intake,
    packets: Vec<Packet>,
    next_answer: Instant,
    samples: Option<SampleWriter>,
    tasks: Option<TaskMonitor>,
    /// Of the source that is open, as of a while ago.
    pub(super) source: SourceCounters,
}

impl Core {
    /// What measures as `exchange` says; tells by `event_publisher`, and keeps samples by `samples`.
    pub(super) fn new(
        exchange: Exchange,
        known_network: Network,
        mailbox: Mailbox,
        event_publisher: EventPublisher,
        samples: Option<SampleWriter>,
    ) -> Core {
        let Exchange { config, network, collector } = exchange;
        let tasks = config
            .tasks
            .as_ref()
            .map(|options| TaskMonitor::start(options, mailbox.tasks_board(), config.source.is_live()));
        Core {
            intake: intake(&config),
            config,
            known_network,
            mailbox,
            event_publisher,
            network,
            collector,
            output: Output::default(),
            packets: Vec::new(),
            next_answer: Instant::now(),
            samples,
            tasks,
            source: SourceCounters::default(),
        }
    }

    /// The emulation that monitor ports of `[emulate]` belong to.
    pub(super) fn emulation(&self) -> Option<&Emulation> {
        self.known_network.emulation()
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
        self.event_publisher.tell(&mut self.output, Some(begun));
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
        self.event_publisher.tell(&mut self.output, None);
        if let Some(tasks) = &mut self.tasks {
            tasks.advance(now);
        }
    }

    /// Hands on all flows, and the window under way.
    pub(super) fn finish(&mut self) {
        self.event_publisher.finish(&mut self.collector, &mut self.output);
        if let Some(tasks) = self.tasks.take() {
            tasks.finish();
        }
    }

    /// The source is no more.
    pub(super) fn close_source(&mut self) {
        let source = std::mem::take(&mut self.source);
        self.event_publisher.tallies().end(Totals { source, ..Totals::default() });
    }

    /// After a panic: whatever was half done is thrown away, and stays counted.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn renew(&mut self) -> Result<(), ReconfigureError> {
        let fresh = Exchange::new(Arc::clone(&self.config), self.network.clone())?;
        self.event_publisher.tallies().end(self.totals());
        self.source = SourceCounters::default();
        let old = std::mem::replace(&mut self.collector, fresh.collector);
        self.collector.observe_as(&old);
        self.output = Output::default();
        self.intake = intake(&self.config);
        Ok(())
    }

    /// Says what the collector is doing, to who asks and to who listens.
    pub(super) fn set_state(&self, state: CollectorState) {
        self.mailbox.set_state(state.clone());
        self.event_publisher.publish(self.collector.clock(), EventKind::State(state));
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
            Question::Exchange(exchange, reply) => {
                let old = self.exchange(*exchange);
                if let Err(unwanted) = reply.try_send(Asked { time, value: old }) {
                    self.event_publisher.retire(unwanted.into_inner().value);
                }
                // The network may have changed since that was made.
                self.catch_up();
            }
            Question::Observe(observation) => {
                // What it cannot watch it tells nothing of.
                self.collector.observe(observation);
            }
        }
    }

    fn counters(&self) -> CollectorCounters {
        let now = self.totals();
        let mut totals = self.event_publisher.tallies().ended();
        totals += now;
        CollectorCounters {
            source: totals.source,
            intake: totals.intake,
            collector: totals.collector,
            flows: live_flows(&now.collector.flow_table),
            flow_capacity: u64::from(self.config.flow_table.capacity),
            memory: self.collector.bytes(),
            sampling_ratio: self.collector.sampling_ratio(),
        }
    }

    /// Of the source, intake and flow table at work.
    fn totals(&self) -> Totals {
        let (intake, collector) = (self.intake.counters(), self.collector.counters());
        Totals { source: self.source, intake, collector }
    }

    /// Takes up another network: as another version if the collector's own part in it stays the same, else anew.
    fn set_network(&mut self, versions: Arc<Versions>) -> Result<(), OptionsError> {
        let options = self.config.options(Some(&versions.newest().state))?;
        let before = self.network.replace(Arc::clone(&versions));
        if *self.collector.options() == options {
            self.collector.set_network(Some(versions));
            return Ok(());
        }
        match Exchange::new(Arc::clone(&self.config), Some(versions)) {
            Ok(exchange) => {
                let old = self.exchange(exchange);
                self.event_publisher.retire(old);
                Ok(())
            }
            Err(error) => {
                self.network = before;
                tracing::error!(collector = &*self.config.name, %error, "topology not applied");
                Err(OptionsError::Refused { reason: error.to_string() })
            }
        }
    }

    /// Takes up the network of the daemon, if it has a newer one: whoever told of it may not have got through.
    pub(super) fn catch_up(&mut self) {
        let number = |network: &Arc<Versions>| network.newest().number;
        let newest = self.known_network.versions();
        if newest.as_ref().map(number) > self.network.as_ref().map(number)
            && let Some(versions) = newest
            && let Err(error) = self.set_network(versions)
        {
            tracing::debug!(collector = &*self.config.name, %error, "topology not applied");
        }
    }

    /// A new collector in the place of the old one, which still has its flows.
    fn exchange(&mut self, exchange: Exchange) -> Collector {
        let Exchange { config, network, collector } = exchange;
        let old = std::mem::replace(&mut self.collector, collector);
        self.collector.observe_as(&old);
        self.event_publisher.tallies().end(Totals { collector: old.counters(), ..Totals::default() });
        (self.config, self.network) = (config, network);
        self.collector.advance(old.clock(), &mut self.output);
        self.event_publisher.tell(&mut self.output, None);
        old
    }
}

/// However its thread ends, what it has counted stays.
impl Drop for Core {
    fn drop(&mut self) {
        self.event_publisher.tallies().end(self.totals());
        self.mailbox.end_samples();
    }
}

fn intake(config: &CollectorConfig) -> Intake {
    Intake::new(Parser { peel_tunnels: config.peel_tunnels }, HashSeed::new(0))
}

/// Flows in the table: those that were begun, and have not been handed on for good.
fn live_flows(counters: &FlowTableCounters) -> u64 {
    let handed_on: u64 = counters.records.iter().sum();
    counters.flows + counters.ended(EndReason::Active) - handed_on
}
