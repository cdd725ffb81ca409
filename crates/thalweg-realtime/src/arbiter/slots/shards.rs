//! Slots in threads of their own (Flexplane, section 3.4): the arbiter's thread is the communication core, which exchanges
//! requests and outcomes with each shard over two rings.
//!
//! Shards make no system calls, and never wait for each other or for the arbiter. Each needs a processor of its own, busy or not. What
//! finds a full ring is dropped and counted (`overload`), because its shard is behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use thalweg_emulator::core::blueprint::{Blueprint, BlueprintError};
use thalweg_emulator::core::events::{Event, EventQueue};
use thalweg_emulator::core::pacer::{Progress, Punctuality};
use thalweg_emulator::core::parallel::{Pace, RealTime};
use thalweg_emulator::endpoints::remote::{RemoteShard, remote};
use thalweg_emulator::endpoints::{EndpointRun, NetworkReport, assignment};
use thalweg_emulator::schemes::Scheme;
use thalweg_emulator::{Fate, Outcome, Place, Reason, Request, Slot, SlotClock};
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::{Leave, Slots};
use crate::arbiter::{Options, Report};

/// A network that runs in several threads.
pub struct Shards {
    clock: SlotClock,
    /// By endpoint, its shard.
    homes: Vec<usize>,
    shards: Vec<RemoteShard>,
    progress: Arc<[Progress]>,
    events: Arc<EventQueue>,
    /// The slots of planned events.
    planned: Vec<Slot>,
    /// Planned events that have happened, once the run has ended.
    happened: u64,
    start: Instant,
    stop: Arc<AtomicBool>,
    /// The thread that waits for those of the shards.
    thread: Option<JoinHandle<Result<NetworkReport, BlueprintError>>>,
    ended: NetworkReport,
}

impl Shards {
    /// Starts a network on up to `threads` threads; each has one router or more. Slot 0 starts at `start`. Each thread first calls `begin` with its
    /// number. `planned` are events in order of slots.
    ///
    /// # Errors
    /// If the network cannot be built.
    pub fn start(
        threads: usize,
        blueprint: &Blueprint<'_>,
        scheme: &Scheme,
        planned: Vec<(Slot, Event)>,
        options: &Options,
        (start, begin): (Instant, impl Fn(usize) + Send + Sync + 'static),
    ) -> Result<Shards, BlueprintError> {
        thalweg_emulator::network::check(scheme, blueprint)?;
        if let Scheme::Own(own) = scheme {
            return Err(BlueprintError::OwnScheme { scheme: own.name() });
        }
        let topology = blueprint.topology.clone();
        let assignment = assignment(topology.router_ids().len(), threads);
        let count = assignment.last().map_or(1, |last| last + 1);
        let home = |endpoint| assignment[topology.router_of(endpoint).index()];
        let homes = topology.endpoint_ids().map(home).collect();
        let (mut endpoints, shards): (Vec<_>, Vec<_>) = (0..count).map(|_| remote()).unzip();
        let progress: Arc<[Progress]> = (0..count).map(|_| Progress::default()).collect();
        let (events, stop) = (Arc::new(EventQueue::new(count)), Arc::new(AtomicBool::new(false)));
        let Blueprint { clock, longest, balance, interface_buffer, seed, .. } = *blueprint;
        let (scheme, pace, sample_every) = (scheme.clone(), options.pace, options.sample_every);
        let (of_thread, events_of_thread, stop_of_thread) =
            (Arc::clone(&progress), Arc::clone(&events), Arc::clone(&stop));
        let slots = planned.iter().map(|(slot, _)| *slot).collect();
        let thread = thread::spawn(move || {
            let now = || Nanos(start.elapsed().as_nanos() as u64);
            let real = RealTime {
                clock: &now,
                options: pace,
                events: Some(&events_of_thread),
                stop: Some(&stop_of_thread),
                progress: Some(&of_thread),
            };
            let blueprint = Blueprint {
                topology: &topology,
                clock,
                longest,
                balance,
                interface_buffer,
                monitors: &[],
                counts_classes: false,
                seed,
            };
            let run = EndpointRun {
                blueprint: &blueprint,
                scheme: &scheme,
                assignment: &assignment,
                events: &planned,
                until: Slot(u64::MAX),
                pace: Pace::Real(&real),
                sample_every,
            };
            run.run(&mut endpoints, begin)
        });
        Ok(Shards {
            clock,
            homes,
            shards,
            progress,
            events,
            planned: slots,
            happened: 0,
            start,
            stop,
            thread: Some(thread),
            ended: NetworkReport::default(),
        })
    }

    /// The number of endpoints.
    pub(in crate::arbiter) fn endpoints(&self) -> usize {
        self.homes.len()
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        self.end();
    }
}

impl Slots for Shards {
    fn turn(
        &mut self,
        clock: &mut dyn FnMut() -> Timestamp,
        requests: &mut Vec<Request>,
        leave: &mut Leave<'_>,
    ) -> bool {
        let now = clock();
        for request in requests.drain(..) {
            let source = request.packet.source();
            if let Err(Request { packet, .. }) = self.shards[self.homes[source.index()]].request(request) {
                let fate = Fate::Dropped(Place::Endpoint(source), Reason::Overload);
                leave(now, &Outcome { packet, fate }, Nanos::ZERO);
            }
        }
        for shard in &mut self.shards {
            while let Some((outcome, slots)) = shard.outcome() {
                leave(now, &outcome, Nanos(self.clock.start_of(Slot(slots)).0));
            }
        }
        // Slots run elsewhere.
        true
    }

    fn next_turn(&self, now: Timestamp) -> Timestamp {
        now
    }

    fn punctuality(&self) -> Punctuality {
        self.progress.iter().map(Progress::load).fold(Punctuality::default(), Punctuality::with)
    }

    fn events(&self) -> Arc<EventQueue> {
        Arc::clone(&self.events)
    }

    /// Queue lengths stay in the shards until the end.
    fn record_queues(&mut self, _ports: Vec<(RouterId, PortIndex)>) -> bool {
        false
    }

    fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        let now = self.clock.slot_at(Timestamp(self.start.elapsed().as_nanos() as u64));
        self.happened = self.planned.iter().filter(|slot| **slot <= now).count() as u64;
        // A thread that panicked has no report; `has_failed` has said so.
        if let Ok(Ok(report)) = thread.join() {
            self.ended = report;
        }
    }

    fn report(&self, report: &mut Report) {
        let NetworkReport { punctuality, ports, occupancy, .. } = &self.ended;
        report.punctuality = match punctuality.is_empty() {
            true => Slots::punctuality(self),
            false => punctuality.iter().copied().fold(Punctuality::default(), Punctuality::with),
        };
        report.queues.clone_from(occupancy);
        report.ports.clone_from(ports);
        report.events = self.happened;
    }
}
