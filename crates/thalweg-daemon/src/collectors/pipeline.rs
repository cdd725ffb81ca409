//! The measurement pipeline of a collector's thread: packets pass the intake, the collector, the sample ring and the tasks
//! once. Events are published immediately.
//!
//! A [`Replacement`] exchanges the collector in one step. The requester creates it, which takes tens of milliseconds for a large
//! flow table, and exports the flows of the old collector.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_measure::collector::{Collector, CollectorError, Output};
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::detect::sliding_window::SlidingWindow;
use thalweg_measure::meter::flow_table::FlowTableCounters;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::meter::record::EndReason;
use thalweg_measure::samples::SampleWriter;
use thalweg_network::Versions;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, BitRate, HashSeed, Nanos, Packet, SourceCounters, Timestamp};

use super::background::BackgroundTap;
use super::drop_alarm::{DropAlarm, DropChange};
use super::event_publisher::EventPublisher;
use super::handle::{CollectorCounters, CollectorReply, CollectorRequest, FlowChunk, Mailbox, reply_to};
use super::network::Network;
use super::replacement::{ReconfigureError, Replacement};
use super::stats::Totals;
use super::windows::TaskMonitor;
use crate::config::CollectorConfig;
use crate::config::collector::OptionsError;
use crate::emulation::Emulation;
use crate::event::CollectorState;
use crate::event::EventKind;

/// Packets between two publications of events: about 2 us at ten million packets per second.
pub(super) const CHUNK: usize = 16;

/// The measurement pipeline of one collector.
pub(super) struct Pipeline {
    config: Arc<CollectorConfig>,
    /// The source of new network versions.
    daemon_network: Network,
    pub(super) mailbox: Mailbox,
    publisher: EventPublisher,
    network: Option<Arc<Versions>>,
    collector: Collector,
    output: Output,
    intake: Intake,
    packets: Vec<Packet>,
    next_reply: Instant,
    samples: Option<SampleWriter>,
    tasks: Option<TaskMonitor>,
    /// Where background packets go, if this collector is recorded.
    tap: Option<BackgroundTap>,
    /// Counters of the open source, updated at intervals.
    source: SourceCounters,
    drop_alarm: DropAlarm,
}

impl Pipeline {
    /// Creates a pipeline around `replacement`'s collector.
    pub(super) fn new(
        replacement: Replacement,
        daemon_network: Network,
        mailbox: Mailbox,
        publisher: EventPublisher,
        samples: Option<SampleWriter>,
        tap: Option<BackgroundTap>,
    ) -> Pipeline {
        let Replacement { config, network, collector } = replacement;
        let tasks = start_tasks(&config, &mailbox, &publisher);
        publisher.stats().set_threshold(config.threshold);
        Pipeline {
            intake: intake(&config),
            config,
            daemon_network,
            mailbox,
            publisher,
            network,
            collector,
            output: Output::default(),
            packets: Vec::new(),
            next_reply: Instant::now(),
            samples,
            tasks,
            tap,
            source: SourceCounters::default(),
            drop_alarm: DropAlarm::default(),
        }
    }

    /// Returns the emulation of `[emulate]`, if any.
    pub(super) fn emulation(&self) -> Option<&Emulation> {
        self.daemon_network.emulation()
    }

    /// Returns the configuration of the collector.
    pub(super) fn config(&self) -> &CollectorConfig {
        &self.config
    }

    /// Measures at most [`CHUNK`] frames, which have been in memory since `start`.
    #[inline]
    pub(super) fn measure(&mut self, frames: &Batch<'_>, start: Instant) {
        self.packets.clear();
        self.intake.take(frames, &mut self.packets);
        self.collector.update(&self.packets, &mut self.output);
        if let Some(tap) = &mut self.tap {
            tap.packets(&self.packets, &self.output.flows.findings);
        }
        self.publisher.publish_output(&mut self.output, Some(start));
        self.check_clock();
        if let Some(samples) = &mut self.samples {
            samples.write_batch(frames);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.packets(&self.packets);
        }
    }

    /// Advances time without packets.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.collector.advance(now, &mut self.output);
        if let Some(tap) = &mut self.tap {
            tap.packets(&[], &self.output.flows.findings);
            tap.advance(now);
        }
        self.publisher.publish_output(&mut self.output, None);
        self.check_clock();
        if let Some(tasks) = &mut self.tasks {
            tasks.advance(now);
        }
    }

    /// If the clock of a live source was set back, the flow table has begun anew. So do the tasks.
    #[inline]
    fn check_clock(&mut self) {
        if let Some(by) = self.output.flows.set_back.take() {
            self.begin_tasks_anew(by);
        }
    }

    #[cold]
    fn begin_tasks_anew(&mut self, by: Nanos) {
        tracing::warn!(collector = &*self.config.name, %by, "the clock was set back: all flows end, and begin anew");
        if let Some(tasks) = self.tasks.take() {
            tasks.finish();
            self.tasks = start_tasks(&self.config, &self.mailbox, &self.publisher);
        }
    }

    /// Exports all flows, and completes the current window.
    pub(super) fn finish(&mut self) {
        self.publisher.finish(&mut self.collector, &mut self.output);
        if let Some(tasks) = self.tasks.take() {
            tasks.finish();
        }
    }

    /// Adds the counters of a closed source to the totals.
    pub(super) fn end_source(&mut self) {
        let source = std::mem::take(&mut self.source);
        self.drop_alarm = DropAlarm::default();
        if let Some(tap) = &mut self.tap {
            tap.reopen();
        }
        self.publisher.stats().end(Totals { source, ..Totals::default() });
    }

    /// Replaces the collector after a panic. Its counters are kept, its unfinished work is discarded.
    ///
    /// # Errors
    /// If memory does not suffice.
    pub(super) fn reset_after_panic(&mut self) -> Result<(), ReconfigureError> {
        let fresh = Replacement::new(Arc::clone(&self.config), self.network.clone())?;
        self.publisher.stats().end(self.totals());
        self.source = SourceCounters::default();
        let old = std::mem::replace(&mut self.collector, fresh.collector);
        self.collector.observe_as(&old);
        self.output = Output::default();
        self.intake = intake(&self.config);
        if let Some(tap) = &mut self.tap {
            tap.reopen();
            tap.forget_cheetahs();
        }
        Ok(())
    }

    /// Updates the counters of the open source. While it drops frames, the state says so.
    pub(super) fn count_source(&mut self, counters: SourceCounters) {
        self.source = counters;
        if let Some(tap) = &mut self.tap {
            tap.count_drops(counters.kernel_drops);
        }
        let Some(change) = self.drop_alarm.update(counters.kernel_drops, Instant::now()) else { return };
        let collector = &*self.mailbox.description().name;
        match change {
            DropChange::Began(frames) | DropChange::Continued(frames) => {
                tracing::warn!(
                    collector,
                    frames,
                    total = counters.kernel_drops,
                    "frames dropped by the kernel"
                );
            }
            DropChange::Ended => tracing::info!(collector, "no more frames dropped"),
        }
        match change {
            DropChange::Began(_) => self.set_state(CollectorState::Dropping),
            DropChange::Ended => self.set_state(CollectorState::Running),
            DropChange::Continued(_) => {}
        }
    }

    /// Sets the state of the collector, and publishes it.
    pub(super) fn set_state(&self, state: CollectorState) {
        self.mailbox.set_state(state.clone());
        self.publisher.publish(self.collector.clock(), EventKind::State(state));
    }

    /// Serves a waiting request, unless requests already take a fifth of the time. Returns whether it did.
    #[inline]
    pub(super) fn serve_request(&mut self) -> bool {
        if self.mailbox.is_empty() {
            return false;
        }
        let start = Instant::now();
        if start < self.next_reply {
            return false;
        }
        if let Some(request) = self.mailbox.next() {
            self.handle_request(request);
        }
        self.next_reply = start + 5 * start.elapsed();
        true
    }

    /// Serves requests for `time`, or until `is_over` returns true.
    pub(super) fn serve_requests_for(&mut self, time: Duration, is_over: impl Fn() -> bool) {
        /// Maximum time before a stop is noticed.
        const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        while !is_over() {
            self.mailbox.beat();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if let Some(request) = self.mailbox.wait(left.min(STOP_CHECK_INTERVAL)) {
                self.handle_request(request);
            }
        }
    }

    /// Serves the next request that arrives within `timeout`. Returns whether there was one.
    pub(super) fn serve_next_request(&mut self, timeout: Duration) -> bool {
        let request = self.mailbox.wait(timeout);
        request.map(|request| self.handle_request(request)).is_some()
    }

    #[cold]
    fn handle_request(&mut self, request: CollectorRequest) {
        let time = self.collector.clock();
        match request {
            CollectorRequest::Links(reply) => reply_to(&reply, time, self.collector.links()),
            CollectorRequest::Flow(key, reply) => reply_to(&reply, time, self.collector.flow(&key)),
            CollectorRequest::Flows(slots, reply) => {
                let end = slots.end.min(slots.start.saturating_add(super::handle::FLOW_SLOTS));
                let flows = self.collector.flows(slots.start..end).collect();
                reply_to(&reply, time, FlowChunk { flows, slots: self.collector.slots() });
            }
            CollectorRequest::Counters(reply) => reply_to(&reply, time, self.counters()),
            CollectorRequest::Network(versions, reply) => {
                let result = self.set_network(versions);
                reply_to(&reply, time, result);
            }
            CollectorRequest::Replace(replace, reply) => {
                let old = self.replace(*replace);
                if let Err(unwanted) = reply.try_send(CollectorReply { time, value: old }) {
                    self.publisher.finish_replaced(unwanted.into_inner().value);
                }
                // The network may have changed since the replacement was created.
                self.update_network();
            }
            CollectorRequest::RateThreshold(rate) => self.set_rate_threshold(rate),
            CollectorRequest::Observe(observation) => {
                // If the collector cannot observe the pair, its reroute is not confirmed here.
                self.collector.observe(observation);
            }
        }
    }

    fn counters(&self) -> CollectorCounters {
        let now = self.totals();
        let mut totals = self.publisher.stats().ended();
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

    /// Returns the counters of the current source, intake and flow table.
    fn totals(&self) -> Totals {
        let (intake, collector) = (self.intake.counters(), self.collector.counters());
        Totals { source: self.source, intake, collector }
    }

    /// Applies new network versions. Replaces the collector if they change its options.
    fn set_network(&mut self, versions: Arc<Versions>) -> Result<(), OptionsError> {
        let options = self.config.options(Some(&versions.newest().state))?;
        let before = self.network.replace(Arc::clone(&versions));
        if *self.collector.options() == options {
            self.collector.set_network(Some(versions));
            return Ok(());
        }
        match Replacement::new(Arc::clone(&self.config), Some(versions)) {
            Ok(replace) => {
                let old = self.replace(replace);
                self.publisher.finish_replaced(old);
                Ok(())
            }
            Err(error) => {
                self.network = before;
                tracing::error!(collector = &*self.config.name, %error, "topology not applied");
                Err(OptionsError::Refused { reason: error.to_string() })
            }
        }
    }

    /// Changes the rate threshold of cheetah flows. The flow table stays.
    fn set_rate_threshold(&mut self, rate_threshold: BitRate) {
        let Some(before) = self.config.threshold else { return };
        let threshold = CheetahThreshold { rate_threshold, ..before };
        let replaced = SlidingWindow::new(threshold, self.config.tracks)
            .map_err(CollectorError::from)
            .and_then(|detector| Ok(self.collector.replace_detector(detector)?));
        match replaced {
            Ok(_) => {
                self.config =
                    Arc::new(CollectorConfig { threshold: Some(threshold), ..(*self.config).clone() });
                self.publisher.stats().set_threshold(Some(threshold));
            }
            Err(error) => {
                let collector = &*self.config.name;
                tracing::error!(collector, %error, rate = %rate_threshold, "rate threshold not applied");
            }
        }
    }

    /// Applies the network of the daemon if it is newer. An earlier announcement may have found the mailbox full.
    pub(super) fn update_network(&mut self) {
        let number = |network: &Arc<Versions>| network.newest().number;
        let newest = self.daemon_network.versions();
        if newest.as_ref().map(number) > self.network.as_ref().map(number)
            && let Some(versions) = newest
            && let Err(error) = self.set_network(versions)
        {
            tracing::debug!(collector = &*self.config.name, %error, "topology not applied");
        }
    }

    /// Replaces the collector. Returns the old one with its flows.
    fn replace(&mut self, replacement: Replacement) -> Collector {
        let Replacement { config, network, collector } = replacement;
        let old = std::mem::replace(&mut self.collector, collector);
        self.collector.observe_as(&old);
        self.publisher.stats().end(Totals { collector: old.counters(), ..Totals::default() });
        self.publisher.stats().set_threshold(config.threshold);
        if let Some(tap) = &mut self.tap {
            tap.forget_cheetahs();
        }
        (self.config, self.network) = (config, network);
        self.collector.advance(old.clock(), &mut self.output);
        self.publisher.publish_output(&mut self.output, None);
        old
    }
}

/// Keeps the counters when the thread ends, for whatever reason.
impl Drop for Pipeline {
    fn drop(&mut self) {
        self.publisher.stats().end(self.totals());
        self.mailbox.keep_sample_count();
    }
}

fn start_tasks(
    config: &CollectorConfig,
    mailbox: &Mailbox,
    publisher: &EventPublisher,
) -> Option<TaskMonitor> {
    let is_live = config.source.is_live();
    let start = |options| {
        TaskMonitor::start(options, mailbox.task_report_writer(), is_live, publisher.event_sender())
    };
    config.tasks.as_ref().map(start)
}

fn intake(config: &CollectorConfig) -> Intake {
    Intake::new(Parser { decapsulate: config.decapsulate }, HashSeed::new(0))
}

/// Returns the number of flows in the table: flows started, minus final records exported.
fn live_flows(counters: &FlowTableCounters) -> u64 {
    let exported: u64 = counters.records.iter().sum();
    counters.flows + counters.ended(EndReason::Active) - exported
}
