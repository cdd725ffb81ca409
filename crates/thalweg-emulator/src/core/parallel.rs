//! Several cores (Flexplane, section 3.4). Each core runs its shard slot by slot. Packets to another core go over a
//! ring with one producer and one consumer, all packets of a slot at once.
//!
//! In virtual time, a core starts slot t when each neighbour has finished slot t - 1 - d, where d is the lookahead that
//! the link's delay allows ([`Delay::lookahead`](crate::ticks::Delay::lookahead)): nothing sent later can arrive by then. The result is the same as
//! with one core, and longer links mean less waiting.
//!
//! In real time, cores wait only for the clock, which is an argument ([`pacer`](super::pacer)). Late slots and late packets are
//! counted. A packet that finds a ring full is dropped, and counted at its port and its crossing: a core that waits for
//! another one would be late. Events may arrive during the run ([`EventQueue`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rtrb::{Consumer, Producer, RingBuffer};
use thalweg_network::routing::NextHops;
use thalweg_network::topology::Topology;
use thalweg_network::{LinkId, LinkState};
use thalweg_wire::Nanos;

use super::blueprint::Crossing;
use super::events::{Event, EventQueue};
use super::pacer::{PaceOptions, Pacer, Pauses, Progress, Punctuality};
use super::shard::Shard;
use crate::outcome::{Dropped, Place, Reason};
use crate::packet::Packet;
use crate::ports::tally::Verdicts;
use crate::router::Router;
use crate::slot::{Slot, SlotClock};

/// The user of one shard's interface: injects requests and takes deliveries.
pub trait Driver<R: Router>: Send {
    /// Called before each slot of the shard.
    fn slot(&mut self, shard: &mut Shard<R>);

    /// Whether it sends in reaction to outcomes of other shards. Then, in virtual time, all shards run the same slot.
    fn is_closed_loop(&self) -> bool {
        false
    }

    /// Called if the shard's thread panics, before it ends: releases other threads that wait for this driver.
    fn abort(&mut self) {}
}

/// The pace of slots.
#[derive(Clone, Copy)]
pub enum Pace<'a> {
    /// As fast as the cores allow.
    Virtual,
    /// By a clock.
    Real(&'a RealTime<'a>),
}

/// A run in real time.
pub struct RealTime<'a> {
    /// A monotonic clock that returns the time since the start of slot 0.
    pub clock: &'a (dyn Fn() -> Nanos + Sync),
    /// How slots follow the clock.
    pub options: PaceOptions,
    /// Events that arrive during the run.
    pub events: Option<&'a EventQueue>,
    /// Set to end the run before [`Run::until`].
    pub stop: Option<&'a AtomicBool>,
    /// For each shard, where it says how well it keeps time.
    pub progress: Option<&'a [Progress]>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// How well each shard kept time.
    pub punctuality: Vec<Punctuality>,
    /// By crossing, the packets dropped because its ring was full; all zero in virtual time.
    pub overloads: Vec<u64>,
}

/// A run of several shards.
pub struct Run<'a> {
    /// The topology.
    pub topology: &'a Topology,
    /// The slot clock.
    pub clock: SlotClock,
    /// Links between shards, as built with them.
    pub crossings: &'a [Crossing],
    /// Events, in order of slots.
    pub events: &'a [(Slot, Event)],
    /// The slot to stop before.
    pub until: Slot,
    /// The pace.
    pub pace: Pace<'a>,
}

/// A packet on its way to another core.
#[derive(Clone, Copy)]
struct Message<C> {
    sent: Slot,
    arrival: Slot,
    packet: Packet<C>,
}

/// The sending end of a crossing.
struct Outbound<'a, C> {
    crossing: &'a Crossing,
    /// The position of the crossing in the run.
    index: usize,
    ring: Producer<Message<C>>,
    /// Packets dropped because the ring was full.
    overloads: u64,
}

/// The receiving end.
struct Inbound<'a, C> {
    crossing: &'a Crossing,
    ring: Consumer<Message<C>>,
    /// Received packets that are not due yet, in order of arrival.
    held: VecDeque<Message<C>>,
    /// The slot in which its link last went down.
    failed: Slot,
    lost: u64,
}

/// Messages per ring. A full ring makes its producer wait in virtual time, and drop packets in real time.
const RING: usize = 4_096;

/// Slots between two [`Progress`] reports.
const PUBLISHED: u64 = 64;

/// What a worker leaves.
struct Worked {
    punctuality: Punctuality,
    /// Packets lost on links from other cores that went down.
    lost: Vec<(Crossing, u64)>,
    /// By position of the crossing.
    overloads: Vec<(usize, u64)>,
}

impl Run<'_> {
    /// Runs each shard with its driver in a thread of its own. Each thread first calls `begin` with the number of its
    /// shard, for example to pin itself to a core.
    ///
    /// # Panics
    /// If the numbers of drivers and shards differ, or shards are not at the same slot.
    pub fn run<R: Router, D: Driver<R>>(
        &self,
        shards: &mut [Shard<R>],
        drivers: &mut [D],
        begin: impl Fn(usize) + Sync,
    ) -> RunReport {
        assert_eq!(shards.len(), drivers.len(), "a driver for each shard");
        let first = shards.first().map_or(Slot(0), Shard::now);
        assert!(shards.iter().all(|shard| shard.now() == first), "shards start together");
        let finished: Vec<Padded> = shards.iter().map(|_| Padded(AtomicU64::new(first.0))).collect();
        let (mut outbound, mut inbound) = self.rings(shards.len());

        let (begin, finished, pauses) = (&begin, &finished, &Pauses::default());
        let workers: Vec<Worked> = thread::scope(|scope| {
            let workers: Vec<_> = shards
                .iter_mut()
                .zip(drivers)
                .enumerate()
                .map(|(number, (shard, driver))| {
                    let mut worker = Worker {
                        run: self,
                        number,
                        finished,
                        outbound: std::mem::take(&mut outbound[number]),
                        inbound: std::mem::take(&mut inbound[number]),
                        links: LinkState::new(self.topology),
                        pacer: self.pacer(pauses),
                    };
                    scope.spawn(move || {
                        begin(number);
                        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.work(shard, driver))) {
                            driver.abort();
                            resume_unwind(panic);
                        }
                        worker.end()
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        self.report(shards, &workers)
    }

    fn pacer(&self, pauses: &Pauses) -> Pacer {
        let options = match self.pace {
            Pace::Virtual => PaceOptions::default(),
            Pace::Real(real) => real.options,
        };
        Pacer::new(self.clock, options, pauses.clone())
    }

    /// Enters losses in the tallies of the ports that sent the packets.
    fn report<R: Router>(&self, shards: &mut [Shard<R>], workers: &[Worked]) -> RunReport {
        for (crossing, lost) in workers.iter().flat_map(|worked| &worked.lost) {
            let (router, port) = crossing.sender;
            let verdicts: &mut Verdicts =
                &mut shards[crossing.from].router_mut(router).verdicts[port.index()];
            verdicts.dropped[Reason::LinkDown as usize] += lost;
        }
        let mut overloads = vec![0; self.crossings.len()];
        for &(crossing, packets) in workers.iter().flat_map(|worked| &worked.overloads) {
            overloads[crossing] = packets;
        }
        RunReport { punctuality: workers.iter().map(|worked| worked.punctuality).collect(), overloads }
    }

    /// A ring for each crossing, with its ends sorted by shard.
    #[expect(clippy::type_complexity, reason = "two lists of lists, taken apart at once")]
    fn rings<C: Copy>(&self, shards: usize) -> (Vec<Vec<Outbound<'_, C>>>, Vec<Vec<Inbound<'_, C>>>) {
        let mut outbound: Vec<Vec<Outbound<'_, C>>> = (0..shards).map(|_| Vec::new()).collect();
        let mut inbound: Vec<Vec<Inbound<'_, C>>> = (0..shards).map(|_| Vec::new()).collect();
        for (index, crossing) in self.crossings.iter().enumerate() {
            let (producer, consumer) = RingBuffer::new(RING);
            outbound[crossing.from].push(Outbound { crossing, index, ring: producer, overloads: 0 });
            let held = VecDeque::new();
            inbound[crossing.to].push(Inbound { crossing, ring: consumer, held, failed: Slot(0), lost: 0 });
        }
        (outbound, inbound)
    }
}

/// The number of slots that a shard has finished. It has a cache line of its own, since other cores poll it.
#[repr(align(128))]
struct Padded(AtomicU64);

/// One thread.
struct Worker<'a, C> {
    run: &'a Run<'a>,
    number: usize,
    finished: &'a [Padded],
    outbound: Vec<Outbound<'a, C>>,
    inbound: Vec<Inbound<'a, C>>,
    links: LinkState,
    pacer: Pacer,
}

impl<C: Copy + Default + Send + Sync + 'static> Worker<'_, C> {
    fn work<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>, driver: &mut impl Driver<R>) {
        let _release = Release(&self.finished[self.number].0);
        let mut events = self.run.events.iter().peekable();
        while shard.now() < self.run.until {
            match self.run.pace {
                Pace::Virtual if driver.is_closed_loop() => self.wait_for_all(shard.now()),
                Pace::Virtual => self.wait_for_neighbours(shard.now()),
                Pace::Real(real) if real.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) => {
                    // Nobody waits for the slots that will not run.
                    self.finished[self.number].0.store(u64::MAX, Ordering::Release);
                    break;
                }
                Pace::Real(real) => self.wait_for_clock(shard.now(), real.clock),
            }
            self.publish(shard.now());
            self.receive();
            while let Some((_, event)) = events.next_if(|(slot, _)| *slot <= shard.now()) {
                self.apply(event, shard);
            }
            if let Pace::Real(RealTime { events: Some(queue), .. }) = self.run.pace {
                while let Some(event) = queue.take(self.number) {
                    self.apply(&event, shard);
                }
            }
            self.deliver(shard, shard.now());
            driver.slot(shard);
            shard.step();
            self.send(shard);
            self.finished[self.number].0.store(shard.now().0, Ordering::Release);
        }
        self.take_the_rest(shard);
    }

    /// Waits until all senders have stopped, and moves the remaining packets into the shard's lanes.
    fn take_the_rest<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>) {
        for index in 0..self.inbound.len() {
            let from = self.inbound[index].crossing.from;
            self.wait_for(from, self.run.until.0);
        }
        self.receive();
        self.deliver(shard, Slot(u64::MAX));
        self.lose_held(shard);
    }

    /// Waits until a neighbour has finished all slots before `slot`.
    fn wait_for(&mut self, neighbour: usize, slot: u64) {
        let mut backoff = Backoff::default();
        while self.finished[neighbour].0.load(Ordering::Acquire) < slot {
            // The neighbour may be waiting for room in a ring.
            self.receive();
            backoff.wait();
        }
    }

    /// Waits until everything that arrives by the start of slot `now` was sent.
    fn wait_for_neighbours(&mut self, now: Slot) {
        for index in 0..self.inbound.len() {
            let &Crossing { from, delay, .. } = self.inbound[index].crossing;
            self.wait_for(from, now.0.saturating_sub(delay.lookahead()));
        }
    }

    /// Waits until all shards have finished all slots before `now`.
    fn wait_for_all(&mut self, now: Slot) {
        (0..self.finished.len()).for_each(|shard| self.wait_for(shard, now.0));
    }

    /// Says how well slots keep time, every few slots.
    fn publish(&self, now: Slot) {
        if let Pace::Real(RealTime { progress: Some(progress), .. }) = self.run.pace
            && now.0.is_multiple_of(PUBLISHED)
        {
            progress[self.number].store(&self.pacer.punctuality());
        }
    }

    fn wait_for_clock(&mut self, now: Slot, clock: &dyn Fn() -> Nanos) {
        let mut time = clock();
        // Another shard may begin a pause meanwhile.
        while time < self.pacer.due(now) {
            std::hint::spin_loop();
            time = clock();
        }
        self.pacer.start(now, time);
    }

    /// Receives packets from other cores. In real time, a core that is far behind makes them wait.
    fn receive(&mut self) {
        let room = if let Pace::Real(_) = self.run.pace { RING } else { usize::MAX };
        for Inbound { ring, held, .. } in &mut self.inbound {
            while held.len() < room
                && let Ok(message) = ring.pop()
            {
                held.push_back(message);
            }
        }
    }

    /// Moves packets that arrive by the start of slot `due` into the shard's lanes.
    fn deliver<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>, due: Slot) {
        self.lose_held(shard);
        let now = shard.now();
        let mut late = 0;
        for Inbound { crossing, held, .. } in &mut self.inbound {
            while let Some(&Message { arrival, packet, .. }) = held.front()
                && arrival <= due
            {
                held.pop_front();
                late += u64::from(arrival < now);
                shard.lanes[crossing.into as usize].send(arrival.max(now), packet);
            }
        }
        self.pacer.late_packets(late);
    }

    /// Drops the packets that were on a link when it went down.
    fn lose_held<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>) {
        for Inbound { crossing, held, failed, lost, .. } in &mut self.inbound {
            if failed.0 == 0 {
                continue;
            }
            held.retain(|&Message { sent, arrival, packet }| {
                let is_lost = sent < *failed && arrival > *failed;
                if is_lost {
                    *lost += 1;
                    shard.dropped.push(lost_on(crossing, packet));
                }
                !is_lost
            });
        }
    }

    /// Hands the packets that the shard sent in the finished slot to other cores.
    fn send<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>) {
        let sent = Slot(shard.now().0 - 1);
        for index in 0..self.outbound.len() {
            let &Crossing { out: lane, transmission, delay, jitter, .. } = self.outbound[index].crossing;
            for offset in 1..=transmission {
                let leaving = std::mem::take(shard.lanes[lane as usize].arriving_mut(sent + offset));
                for &packet in &leaving {
                    let (leaves, earliest) = (sent + offset, sent + 1);
                    let (arrival, lag) = match jitter.is_none() {
                        true => delay.arrival_after(leaves, packet.lag(), earliest),
                        false => delay.varied_arrival_after(leaves, packet.lag(), earliest, |finish| {
                            jitter.extra(finish)
                        }),
                    };
                    let message = Message { sent, arrival, packet: packet.with_lag(lag) };
                    if let Err(rtrb::PushError::Full(message)) = self.outbound[index].ring.push(message) {
                        self.full(index, message, shard);
                    }
                }
                let bucket = shard.lanes[lane as usize].arriving_mut(sent + offset);
                *bucket = leaving;
                bucket.clear();
            }
        }
    }

    /// Waits for room in a ring, or drops the packet in real time.
    #[cold]
    fn full<R: Router<Custom = C>>(&mut self, index: usize, message: Message<C>, shard: &mut Shard<R>) {
        if let Pace::Real(_) = self.run.pace {
            let Outbound { crossing, overloads, .. } = &mut self.outbound[index];
            let (router, port) = crossing.sender;
            *overloads += 1;
            shard.router_mut(router).verdicts[port.index()].dropped[Reason::Overload as usize] += 1;
            let (packet, place) = (message.packet.with_custom(()), Place::Port(router, port));
            shard.dropped.push(Dropped { packet, place, reason: Reason::Overload });
            return;
        }
        let mut message = message;
        let mut backoff = Backoff::default();
        while let Err(rtrb::PushError::Full(back)) = self.outbound[index].ring.push(message) {
            if self.outbound[index].ring.is_abandoned() {
                break; // The other core has panicked, and so will those that wait for this one.
            }
            message = back;
            self.receive();
            backoff.wait();
        }
    }

    fn end(self) -> Worked {
        Worked {
            punctuality: self.pacer.punctuality(),
            lost: self.inbound.iter().map(|inbound| (*inbound.crossing, inbound.lost)).collect(),
            overloads: self.outbound.iter().map(|outbound| (outbound.index, outbound.overloads)).collect(),
        }
    }

    fn apply<R: Router<Custom = C>>(&mut self, event: &Event, shard: &mut Shard<R>) {
        match *event {
            Event::Fail(link) if self.links.fail(link) == Ok(true) => {
                shard.fail(self.run.topology.links()[link.index()].ends);
                self.lose_arrivals(link, shard);
            }
            Event::Repair(link) if self.links.repair(link) == Ok(true) => {
                shard.repair(self.run.topology.links()[link.index()].ends);
            }
            Event::Rewire => {
                let next_hops = NextHops::new(self.run.topology, &self.links);
                shard.rewire(&next_hops.expect("the network was built with as many"));
            }
            Event::SetForwarding(router, ref table) => {
                if shard.has(router) {
                    shard.router_mut(router).scheme.set_forwarding(table.clone());
                }
            }
            // Already down, or already up.
            Event::Fail(_) | Event::Repair(_) => {}
        }
    }

    /// Drops the packets on a link from another core: those that an earlier run left in the lane, and from now on those
    /// that turn out to have been sent before the failure.
    fn lose_arrivals<R: Router<Custom = C>>(&mut self, link: LinkId, shard: &mut Shard<R>) {
        let now = shard.now();
        for inbound in self.inbound.iter_mut().filter(|inbound| inbound.crossing.link == link) {
            inbound.failed = now;
            let Shard { lanes, dropped, .. } = shard;
            let Inbound { crossing, lost, .. } = inbound;
            let loss = |packet| {
                *lost += 1;
                dropped.push(lost_on(crossing, packet));
            };
            lanes[crossing.into as usize].lose(now, |_| true, loss);
        }
    }
}

/// Drops the packets of a crossing whose link goes down between two runs. The runs before have left them in the receiver's lane.
pub(crate) fn lose_arrived<R: Router>(shards: &mut [Shard<R>], crossing: &Crossing) {
    let Shard { lanes, dropped, now, .. } = &mut shards[crossing.to];
    let mut lost = 0;
    lanes[crossing.into as usize].lose(
        *now,
        |_| true,
        |packet| {
            lost += 1;
            dropped.push(lost_on(crossing, packet));
        },
    );
    let (router, port) = crossing.sender;
    let verdicts: &mut Verdicts = &mut shards[crossing.from].router_mut(router).verdicts[port.index()];
    verdicts.dropped[Reason::LinkDown as usize] += lost;
}

fn lost_on<C>(crossing: &Crossing, packet: Packet<C>) -> Dropped {
    let place = Place::Port(crossing.sender.0, crossing.sender.1);
    Dropped { packet: packet.with_custom(()), place, reason: Reason::LinkDown }
}

/// Releases waiting threads if a thread panics.
struct Release<'a>(&'a AtomicU64);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(u64::MAX, Ordering::Release);
        }
    }
}

/// How to wait for another core: spin for a while, since it usually arrives soon, then yield the core, since the other
/// may need it.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn wait(&mut self) {
        self.0 += 1;
        if self.0 < 1_000 {
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}
