//! One run of an experiment: slot after slot until the time is over.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use thalweg_emulator::build::network;
use thalweg_emulator::core::blueprint::BlueprintError;
use thalweg_emulator::hosts::{CompletedFlow, HostConfigError, Hosts, Totals};
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_emulator::workloads::FOR_EVER;
use thalweg_emulator::workloads::compose::Merged;
use thalweg_emulator::workloads::open_loop::PacketWorkload;
use thalweg_emulator::{Fabric, Network, Outcome, Request, Slot, SlotClock};
use thalweg_network::Topology;
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::mirror::captures::CaptureFiles;
use super::plan::{Event, Happening, Plan};
use super::recorder::Recorder;
use super::results::Results;
use super::summary;
use super::watched::Watched;

/// Slots between two looks at whether somebody wants to know or to stop.
const SLOTS_A_LOOK: u64 = 1 << 10;

/// Most flows that are kept until the end; more are only counted.
const MOST_FLOWS: usize = 1 << 23;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Time emulated.
    pub emulated: Nanos,
    /// Time to emulate.
    pub duration: Nanos,
    /// Packets that have arrived.
    pub packets: u64,
}

/// Why a run has no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The network could not be built.
    #[error("the network cannot be built")]
    Network(#[from] BlueprintError),
    /// The hosts could not be built.
    #[error("the hosts cannot be built")]
    Hosts(#[from] HostConfigError),
    /// What a monitor port sent could not be written.
    #[error("cannot write the captures of monitor ports into {}", folder.display())]
    Mirror {
        /// The folder.
        folder: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Packets were lost without a trace, or came from nowhere: a mistake of the emulator. Nothing that it measured
    /// can be trusted.
    #[error(
        "packets are not conserved, a mistake of the emulator: {injected} were injected, {delivered} arrived, \
         {dropped} were dropped and {in_flight} are in flight"
    )]
    NotConserved {
        /// Handed to network interfaces.
        injected: u64,
        /// Arrived.
        delivered: u64,
        /// Dropped anywhere.
        dropped: u64,
        /// In queues and on links.
        in_flight: u64,
    },
}

/// Runs an experiment. `hear` is told from time to time how far it has come; `stop` ends it, with what was measured so
/// far. Only if there is a folder, rows of queues and links are kept, and what monitor ports send is written into it.
///
/// # Errors
/// If the network cannot be built, captures cannot be written, or packets are not conserved.
pub fn run(
    plan: Plan,
    folder: Option<&Path>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(Progress),
) -> Result<Results, RunError> {
    let started = Instant::now();
    let mut run = Run::new(plan)?;
    let not_written =
        |source| RunError::Mirror { folder: folder.unwrap_or(Path::new("")).to_owned(), source };
    let topology = run.plan.topology.clone();
    let mut mirrors = Mirrors::new(&run, &topology, folder).map_err(not_written)?;
    let interrupted = run.go(&mut mirrors, stop, hear).map_err(not_written)?;
    mirrors.captures.map_or(Ok(()), CaptureFiles::finish).map_err(not_written)?;
    run.recorder.finish(&*run.watched.network);
    let in_flight = run.check_conservation()?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let ended = Ended { in_flight, interrupted, wall_seconds, keep_rows: folder.is_some() };
    Ok(summary::results(&run, &ended))
}

/// What monitor ports of a run send, and the files that it is written into.
struct Mirrors<'a> {
    feed: MirrorFeed<'a>,
    captures: Option<CaptureFiles>,
}

impl<'a> Mirrors<'a> {
    /// Without a folder the packets of monitor ports are counted, but not kept.
    fn new(run: &Run, topology: &'a Topology, folder: Option<&Path>) -> io::Result<Mirrors<'a>> {
        let monitors = folder.iter().flat_map(|_| run.plan.monitors.iter().map(|monitor| monitor.router));
        let mut feed = MirrorFeed::new(topology, run.clock, monitors);
        let captures = folder.map(|folder| CaptureFiles::create(&mut feed, topology, folder)).transpose()?;
        Ok(Mirrors { feed, captures })
    }

    fn slot(&mut self, network: &mut dyn Network, hosts: Option<&Hosts>) -> io::Result<()> {
        let Mirrors { feed, captures } = self;
        feed.collect(network, |copy| hosts.and_then(|hosts| hosts.segment(copy.packet.id())));
        match captures {
            Some(captures) => feed.try_deliver(|router, batch| captures.write(router, &batch)),
            None => Ok(()),
        }
    }
}

/// A run under way.
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) clock: SlotClock,
    pub(super) watched: Watched,
    pub(super) traffic: Traffic,
    pub(super) recorder: Recorder,
    pub(super) completed: Vec<CompletedFlow>,
    /// Flows that were completed and not kept.
    pub(super) beyond: u64,
    /// As it was at the end of the warm-up.
    pub(super) warm: Warm,
    events: Vec<(Slot, Happening)>,
    /// When something else is due than to go on.
    due: Slot,
    last: Slot,
}

/// What endpoints send.
pub(super) struct Traffic {
    pub(super) hosts: Option<Hosts>,
    flows: Merged,
    packets: Vec<Box<dyn PacketWorkload>>,
    requests: Vec<Request>,
    outcomes: Vec<Outcome>,
}

/// What hosts had got at the end of the warm-up.
#[derive(Default)]
pub(super) struct Warm {
    /// When that was.
    pub(super) slot: Option<Slot>,
    pub(super) totals: Totals,
    /// Bytes that flows without end had delivered.
    pub(super) endless: BTreeMap<u32, u64>,
}

/// How it ended.
pub(super) struct Ended {
    pub(super) in_flight: u64,
    pub(super) interrupted: bool,
    pub(super) wall_seconds: f64,
    pub(super) keep_rows: bool,
}

impl Run {
    pub(super) fn new(mut plan: Plan) -> Result<Run, RunError> {
        let network = network(&plan.scheme, &plan.blueprint())?;
        let clock = network.clock();
        let (flows, packets) = (std::mem::take(&mut plan.flows), std::mem::take(&mut plan.packets));
        let is_shared = !flows.is_empty() && !packets.is_empty();
        let endpoints = plan.topology.endpoints().len();
        let hosts = (!flows.is_empty()).then(|| Hosts::new(plan.hosts, endpoints, clock)).transpose()?;
        let warm_up = Timestamp(plan.warm_up.0);
        let mut events: Vec<(Slot, Happening)> =
            plan.events.iter().map(|&Event { at, happening }| (clock.slot_at(at), happening)).collect();
        // The next is taken from the end.
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
            completed: Vec::new(),
            beyond: 0,
            warm: Warm::default(),
            events,
            due: Slot(0),
            last: clock.slot_at(Timestamp(plan.duration.0)),
            plan,
        };
        run.attend();
        Ok(run)
    }

    /// Runs all slots. Says whether it was stopped before the last.
    fn go(
        &mut self,
        mirrors: &mut Mirrors<'_>,
        stop: &AtomicBool,
        hear: &mut dyn FnMut(Progress),
    ) -> io::Result<bool> {
        let mut next_look = Slot(0);
        while !self.is_over() {
            if self.watched.now() >= next_look {
                next_look = self.watched.now() + SLOTS_A_LOOK;
                hear(self.progress());
                if stop.load(Ordering::Relaxed) {
                    return Ok(true);
                }
            }
            self.slot(|network, hosts| mirrors.slot(network, hosts))?;
        }
        hear(self.progress());
        Ok(false)
    }

    /// Runs one slot; `mirrored` takes what monitor ports have sent in it, if there are any.
    #[inline]
    pub(super) fn slot<E>(
        &mut self,
        mirrored: impl FnOnce(&mut dyn Network, Option<&Hosts>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.traffic.slot(&mut self.watched);
        self.keep_completed();
        if !self.plan.monitors.is_empty() {
            mirrored(&mut *self.watched.network, self.traffic.hosts.as_ref())?;
        }
        if self.watched.now() >= self.due {
            self.attend();
        }
        Ok(())
    }

    /// Whether all slots have been run.
    pub(super) fn is_over(&self) -> bool {
        self.watched.now() >= self.last
    }

    fn progress(&self) -> Progress {
        Progress {
            emulated: Nanos(self.clock.start_of(self.watched.now()).0),
            duration: self.plan.duration,
            packets: self.watched.delivered(),
        }
    }

    fn keep_completed(&mut self) {
        let Some(hosts) = &mut self.traffic.hosts else { return };
        let room = MOST_FLOWS - self.completed.len();
        let mut done = hosts.drain_completed();
        self.completed.extend(done.by_ref().take(room));
        self.beyond += done.count() as u64;
    }

    /// Does what is due: failures, samples, the end of the warm-up.
    fn attend(&mut self) {
        let now = self.watched.now();
        while let Some(&(slot, happening)) = self.events.last()
            && slot <= now
        {
            self.events.pop();
            match happening {
                Happening::Fails(link) => self.watched.network.fail(link),
                Happening::IsRepaired(link) => self.watched.network.repair(link),
                Happening::IsKnown => self.watched.network.rewire(),
            }
        }
        let warm = self.clock.slot_at(Timestamp(self.plan.warm_up.0));
        if self.warm.slot.is_none() && now >= warm {
            self.warm = Warm { slot: Some(now), ..self.traffic.now() };
        }
        self.recorder.look(&*self.watched.network);
        let next_event = self.events.last().map_or(Slot(u64::MAX), |&(slot, _)| slot);
        self.due = self.recorder.due().min(next_event);
    }

    /// Injected = delivered + dropped + in flight. What has been injected since the last slot shows only in the next,
    /// so that one more is run.
    fn check_conservation(&mut self) -> Result<u64, RunError> {
        self.traffic.outcomes.clear();
        self.watched.advance(&mut self.traffic.outcomes);
        let (injected, delivered, dropped) =
            (self.watched.injected(), self.watched.delivered(), self.watched.dropped());
        let in_flight = self.watched.network.in_flight();
        match injected == delivered + dropped + in_flight {
            true => Ok(in_flight),
            false => Err(RunError::NotConserved { injected, delivered, dropped, in_flight }),
        }
    }
}

impl Traffic {
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

    fn now(&self) -> Warm {
        let Some(hosts) = &self.hosts else { return Warm::default() };
        let endless =
            hosts.flows().filter(|flow| flow.bytes == FOR_EVER).map(|flow| (flow.flow, flow.delivered));
        Warm { slot: None, totals: hosts.totals(), endless: endless.collect() }
    }
}
