//! A run of an experiment, slot by slot.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use thalweg_emulator::core::blueprint::BlueprintError;
use thalweg_emulator::hosts::{CompletedFlow, HostConfigError, Hosts, Totals};
use thalweg_emulator::network;
use thalweg_emulator::workloads::UNBOUNDED;
use thalweg_emulator::workloads::compose::Merged;
use thalweg_emulator::workloads::open_loop::PacketWorkload;
use thalweg_emulator::{Fabric, Network, Outcome, Request, Slot, SlotClock};
use thalweg_wire::Timestamp;
use thiserror::Error;

use super::files::{Output, WriteError};
use super::plan::{Event, FailureEvent, Plan};
use super::recorder::Recorder;
use super::results::{MirrorUse, SeriesUse};
use super::series::Series;
use super::watched::Watched;

/// The largest number of flows that are recorded. More are only counted.
const MAX_RECORDED_FLOWS: usize = 1 << 23;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The network cannot be built.
    #[error("the network cannot be built")]
    Network(#[from] BlueprintError),
    /// The hosts cannot be built.
    #[error("the hosts cannot be built")]
    Hosts(#[from] HostConfigError),
    /// Packets of a monitor port cannot be written.
    #[error("cannot write captures of monitor ports to {}", folder.display())]
    Mirror {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A time series cannot be written.
    #[error("cannot write a time series")]
    Series(#[from] WriteError),
    /// Packets appeared or disappeared: an error of the emulator. The results cannot be trusted.
    #[error(
        "packets are not conserved (an error of the emulator): {sent} sent, {delivered} delivered, \
         {dropped} dropped, {in_flight} in flight"
    )]
    NotConserved {
        /// Handed to network interfaces.
        sent: u64,
        /// Delivered.
        delivered: u64,
        /// Dropped anywhere.
        dropped: u64,
        /// In queues and on links.
        in_flight: u64,
    },
}

/// A run.
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) clock: SlotClock,
    pub(super) watched: Watched,
    pub(super) traffic: Traffic,
    pub(super) recorder: Recorder,
    series: Series,
    pub(super) completed: Vec<CompletedFlow>,
    /// Completed flows that were not recorded.
    pub(super) not_recorded: u64,
    /// The counters at the end of the warm-up.
    pub(super) warm: Counters,
    /// The counters at the end of the duration, where the measurement ends.
    pub(super) measured: Option<Counters>,
    events: Vec<(Slot, FailureEvent)>,
    /// The next slot with an event or a sample.
    due: Slot,
    last: Slot,
}

/// The traffic of endpoints.
pub(super) struct Traffic {
    pub(super) hosts: Option<Hosts>,
    flows: Merged,
    packets: Vec<Box<dyn PacketWorkload>>,
    requests: Vec<Request>,
    outcomes: Vec<Outcome>,
}

/// Counters of hosts at some slot.
#[derive(Default)]
pub(super) struct Counters {
    /// The slot.
    pub(super) slot: Option<Slot>,
    pub(super) totals: Totals,
    /// Bytes delivered by unbounded flows.
    pub(super) unbounded: BTreeMap<u32, u64>,
}

/// How a run ended.
pub(super) struct Ended {
    pub(super) in_flight: u64,
    pub(super) interrupted: bool,
    pub(super) wall_seconds: f64,
    pub(super) keep_rows: bool,
    /// Packets sent by monitor ports within the duration.
    pub(super) mirrors: Vec<MirrorUse>,
    /// Time series that were written.
    pub(super) series: Vec<SeriesUse>,
}

impl Run {
    pub(super) fn new(mut plan: Plan) -> Result<Run, RunError> {
        // The flows are taken below.
        plan.threads = if plan.can_use_threads() { plan.threads } else { 1 };
        let network = network::build_on(plan.threads, &plan.scheme, &plan.blueprint())?;
        let clock = network.clock();
        let (flows, packets) = (std::mem::take(&mut plan.flows), std::mem::take(&mut plan.packets));
        let is_shared = !flows.is_empty() && !packets.is_empty();
        let endpoints = plan.topology.endpoints().len();
        let hosts = (!flows.is_empty()).then(|| Hosts::new(plan.hosts, endpoints, clock)).transpose()?;
        let warm_up = Timestamp(plan.warm_up.0);
        let mut events: Vec<(Slot, FailureEvent)> =
            plan.events.iter().map(|&Event { at, kind }| (clock.slot_at(at), kind)).collect();
        // Events are taken from the end.
        events.reverse();
        let mut run = Run {
            clock,
            watched: Watched::new(network, is_shared),
            traffic: Traffic {
                hosts,
                flows: Merged::new(flows),
                packets,
                requests: Vec::new(),
                outcomes: Vec::new(),
            },
            recorder: Recorder::new(&plan.topology, clock, &plan.measure, warm_up),
            series: Series::default(),
            completed: Vec::new(),
            not_recorded: 0,
            warm: Counters::default(),
            measured: None,
            events,
            due: Slot(0),
            last: clock.slot_at(Timestamp(plan.duration.0)),
            plan,
        };
        run.handle_due();
        Ok(run)
    }

    /// Writes the time series that the plan asks for. Call it before the first slot.
    pub(super) fn write_series(&mut self, output: Output<'_>) -> Result<(), RunError> {
        let Run { plan, watched, traffic, .. } = self;
        self.series = Series::create(plan, &mut *watched.network, traffic.hosts.as_mut(), output)?;
        self.due = self.due.min(self.series.due());
        Ok(())
    }

    /// Whether a time series cannot be written.
    pub(super) fn has_failed(&self) -> bool {
        self.series.has_failed()
    }

    /// Completes the time series.
    pub(super) fn finish_series(&mut self) -> Result<Vec<SeriesUse>, RunError> {
        let Run { watched, traffic, series, .. } = self;
        Ok(std::mem::take(series).finish(&mut *watched.network, traffic.hosts.as_mut())?)
    }

    /// Runs one slot. `mirrored` takes the packets that monitor ports sent in it.
    #[inline]
    pub(super) fn slot<E>(
        &mut self,
        mirrored: impl FnOnce(&mut dyn Network, Option<&Hosts>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.traffic.slot(&mut self.watched);
        if self.series.has_flows() {
            self.sample_flows();
        }
        self.keep_completed();
        if !self.plan.monitors.is_empty() {
            mirrored(&mut *self.watched.network, self.traffic.hosts.as_ref())?;
        }
        if self.watched.now() >= self.due {
            self.handle_due();
        }
        Ok(())
    }

    /// Runs slots up to `until`, the next event or sample, or the end, if no packet depends on outcomes. Returns whether it did.
    pub(super) fn open_loop_slots(&mut self, until: Slot) -> bool {
        if self.plan.threads < 2 {
            return false;
        }
        let until = until.min(self.due).min(self.last).max(self.watched.now() + 1);
        self.traffic.open_loop_slots(until, &mut self.watched);
        if self.watched.now() >= self.due {
            self.handle_due();
        }
        true
    }

    /// Whether all slots of the duration have run.
    pub(super) fn is_over(&self) -> bool {
        self.watched.now() >= self.last
    }

    /// Ends the measurement. From here on the network only drains.
    pub(super) fn end_measurement(&mut self) {
        self.recorder.finish(&*self.watched.network);
        self.measured = Some(Counters { slot: Some(self.watched.now()), ..self.traffic.counters() });
        self.traffic.packets.clear();
    }

    /// Whether all bounded flows have completed, or the drain time is over.
    pub(super) fn is_drained(&self) -> bool {
        let until = self.clock.slot_at(Timestamp(self.plan.duration.0.saturating_add(self.plan.drain.0)));
        self.unfinished() == 0 || self.watched.now() >= until
    }

    /// The number of active bounded flows.
    pub(super) fn unfinished(&self) -> u64 {
        let unbounded = self.measured.as_ref().map_or(0, |measured| measured.unbounded.len());
        self.traffic.hosts.as_ref().map_or(0, |hosts| (hosts.active_flows() - unbounded) as u64)
    }

    fn sample_flows(&mut self) {
        let Run { watched, traffic, series, .. } = self;
        if let Some(hosts) = &mut traffic.hosts {
            series.flows(watched.now(), hosts, &traffic.flows);
        }
    }

    fn keep_completed(&mut self) {
        let Some(hosts) = &mut self.traffic.hosts else { return };
        let room = MAX_RECORDED_FLOWS - self.completed.len();
        let mut done = hosts.drain_completed();
        self.completed.extend(done.by_ref().take(room));
        self.not_recorded += done.count() as u64;
    }

    /// Handles failures, samples, and the end of the warm-up.
    fn handle_due(&mut self) {
        let now = self.watched.now();
        while let Some(&(slot, kind)) = self.events.last()
            && slot <= now
        {
            self.events.pop();
            match kind {
                FailureEvent::LinkDown(link) => self.watched.network.fail(link),
                FailureEvent::LinkUp(link) => self.watched.network.repair(link),
                FailureEvent::Reroute => {
                    self.watched.network.rewire();
                    self.series.rewired(self.watched.network.links(), self.traffic.hosts.as_mut());
                }
            }
        }
        let warm = self.clock.slot_at(Timestamp(self.plan.warm_up.0));
        if self.warm.slot.is_none() && now >= warm {
            self.warm = Counters { slot: Some(now), ..self.traffic.counters() };
        }
        let next_event = self.events.last().map_or(Slot(u64::MAX), |&(slot, _)| slot);
        self.series.queues(&mut *self.watched.network);
        self.due = next_event.min(self.series.due());
        if self.measured.is_none() {
            self.recorder.record(&*self.watched.network);
            self.due = self.due.min(self.recorder.due());
        }
    }

    /// Checks that sent = delivered + dropped + in flight. Runs one more slot, because packets sent since the
    /// last one appear only in the next.
    pub(super) fn check_conservation(&mut self) -> Result<u64, RunError> {
        self.traffic.outcomes.clear();
        self.watched.advance(&mut self.traffic.outcomes);
        let (sent, delivered, dropped) =
            (self.watched.sent(), self.watched.delivered(), self.watched.dropped());
        let in_flight = self.watched.network.in_flight();
        match sent == delivered + dropped + in_flight {
            true => Ok(in_flight),
            false => Err(RunError::NotConserved { sent, delivered, dropped, in_flight }),
        }
    }
}

impl Traffic {
    fn open_loop_slots(&mut self, until: Slot, watched: &mut Watched) {
        let Traffic { packets, outcomes, .. } = self;
        outcomes.clear();
        let mut next = |slot, requests: &mut Vec<Request>| {
            packets.iter_mut().for_each(|senders| senders.slot(slot, requests));
        };
        watched.advance_open_loop(until, &mut next, outcomes);
    }

    /// Runs one slot.
    #[inline]
    fn slot(&mut self, watched: &mut Watched) {
        let Traffic { hosts, flows, packets, requests, outcomes } = self;
        if !packets.is_empty() {
            requests.clear();
            let now = watched.now();
            packets.iter_mut().for_each(|senders| senders.slot(now, requests));
            watched.inject_without_transport(requests);
        }
        match hosts {
            Some(hosts) => hosts.slot(watched, flows),
            None => {
                outcomes.clear();
                watched.advance(outcomes);
            }
        }
    }

    fn counters(&self) -> Counters {
        let Some(hosts) = &self.hosts else { return Counters::default() };
        let unbounded =
            hosts.flows().filter(|flow| flow.bytes == UNBOUNDED).map(|flow| (flow.flow, flow.delivered));
        Counters { slot: None, totals: hosts.totals(), unbounded: unbounded.collect() }
    }
}
