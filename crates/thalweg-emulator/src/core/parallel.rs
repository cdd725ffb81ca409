//! Several cores (Flexplane, section 3.4): each runs its shard, slot after slot, and hands what crosses to another
//! core over a ring that has one producer and one consumer, all of a slot at once.
//!
//! In virtual time a core begins slot t when each neighbour has finished slot t - 1 - d, with d the lookahead that the
//! delay of the link between them allows ([`Delay::lookahead`]): nothing that it sends later can arrive by then. So the result is that of one core, and cores
//! wait for each other the less the longer links are. In real time nobody waits but for the clock, which comes in as
//! an argument; what begins late, and what arrives late, is counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rtrb::{Consumer, Producer, RingBuffer};
use thalweg_network::routing::NextHops;
use thalweg_network::topology::Topology;
use thalweg_network::{LinkId, LinkState};
use thalweg_wire::Nanos;

use super::blueprint::Crossing;
use super::shard::Shard;
use crate::outcome::{Dropped, Place, Reason};
use crate::packet::Packet;
use crate::ports::tally::Verdicts;
use crate::router::Router;
use crate::slot::{Slot, SlotClock};

/// What stands at the seam of one shard: it injects, and takes what has arrived.
pub trait Driver<R: Router>: Send {
    /// Called before each slot of the shard.
    fn slot(&mut self, shard: &mut Shard<R>);
}

/// Something that happens to the network at the beginning of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link goes down.
    Fail(LinkId),
    /// A link comes up again.
    Repair(LinkId),
    /// Routers learn the shortest paths over the links that are up.
    Rewire,
}

/// How slots follow each other.
#[derive(Clone, Copy)]
pub enum Pace<'a> {
    /// As fast as the cores allow.
    Virtual,
    /// By a clock that says how long ago slot 0 began.
    Real(&'a (dyn Fn() -> Nanos + Sync)),
}

/// How a shard has kept time; all zero in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Slots that began when they should have been over.
    pub late_slots: u64,
    /// The longest delay of a slot's beginning.
    pub worst: Nanos,
    /// Packets from other cores that came after the slot they were to arrive in.
    pub late_packets: u64,
}

/// A run of several shards.
pub struct Run<'a> {
    /// The network that the shards are of.
    pub topology: &'a Topology,
    /// The length of a slot.
    pub clock: SlotClock,
    /// Links between shards, as they came with these.
    pub crossings: &'a [Crossing],
    /// What happens on the way, in order of slots.
    pub events: &'a [(Slot, Event)],
    /// The slot to stop before.
    pub until: Slot,
    /// How slots follow each other.
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
    ring: Producer<Message<C>>,
}

/// The receiving end.
struct Inbound<'a, C> {
    crossing: &'a Crossing,
    ring: Consumer<Message<C>>,
    /// What has come and is not due yet, in order of arrival.
    held: VecDeque<Message<C>>,
    /// When its link last went down.
    failed: Slot,
    lost: u64,
}

/// Messages that a ring has room for. A full ring makes its producer wait, no more.
const RING: usize = 4_096;

impl Run<'_> {
    /// Runs each shard with its driver in a thread of its own, `begin` being called on each first, with the number of
    /// the shard: to pin it to a core, for example. Says how each kept time.
    ///
    /// # Panics
    /// If there are not as many drivers as shards, or shards are not at the same slot.
    pub fn run<R: Router, D: Driver<R>>(
        &self,
        shards: &mut [Shard<R>],
        drivers: &mut [D],
        begin: impl Fn(usize) + Sync,
    ) -> Vec<Punctuality> {
        assert_eq!(shards.len(), drivers.len(), "a driver for each shard");
        let first = shards.first().map_or(Slot(0), Shard::now);
        assert!(shards.iter().all(|shard| shard.now() == first), "shards start together");
        let finished: Vec<Padded> = shards.iter().map(|_| Padded(AtomicU64::new(first.0))).collect();
        let (mut outbound, mut inbound) = self.rings(shards.len());

        let (begin, finished) = (&begin, &finished);
        let workers: Vec<(Punctuality, Vec<(Crossing, u64)>)> = thread::scope(|scope| {
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
                        punctuality: Punctuality::default(),
                    };
                    scope.spawn(move || {
                        begin(number);
                        worker.work(shard, driver);
                        let lost = worker.inbound.iter().map(|inbound| (*inbound.crossing, inbound.lost));
                        (worker.punctuality, lost.collect())
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        for (crossing, lost) in workers.iter().flat_map(|(_, lost)| lost) {
            let (router, port) = crossing.sender;
            let verdicts: &mut Verdicts = &mut shards[crossing.from].site_mut(router).verdicts[port.index()];
            verdicts.dropped[Reason::LinkDown as usize] += lost;
        }
        workers.into_iter().map(|(punctuality, _)| punctuality).collect()
    }

    /// A ring for each crossing, its ends sorted by shard.
    #[expect(clippy::type_complexity, reason = "two lists of lists, taken apart at once")]
    fn rings<C: Copy>(&self, shards: usize) -> (Vec<Vec<Outbound<'_, C>>>, Vec<Vec<Inbound<'_, C>>>) {
        let mut outbound: Vec<Vec<Outbound<'_, C>>> = (0..shards).map(|_| Vec::new()).collect();
        let mut inbound: Vec<Vec<Inbound<'_, C>>> = (0..shards).map(|_| Vec::new()).collect();
        for crossing in self.crossings {
            let (producer, consumer) = RingBuffer::new(RING);
            outbound[crossing.from].push(Outbound { crossing, ring: producer });
            let held = VecDeque::new();
            inbound[crossing.to].push(Inbound { crossing, ring: consumer, held, failed: Slot(0), lost: 0 });
        }
        (outbound, inbound)
    }
}

/// Slots that a shard has finished, alone on its cache line: others look at it all the time.
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
    punctuality: Punctuality,
}

impl<C: Copy + Default + Send + Sync + 'static> Worker<'_, C> {
    fn work<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>, driver: &mut impl Driver<R>) {
        let _release = Release(&self.finished[self.number].0);
        let mut events = self.run.events.iter().peekable();
        while shard.now() < self.run.until {
            match self.run.pace {
                Pace::Virtual => self.wait_for_neighbours(shard.now()),
                Pace::Real(clock) => self.wait_for_clock(shard.now(), clock),
            }
            self.receive();
            while let Some((_, event)) = events.next_if(|(slot, _)| *slot <= shard.now()) {
                self.apply(*event, shard);
            }
            self.deliver(shard, shard.now());
            driver.slot(shard);
            shard.step();
            self.send(shard);
            self.finished[self.number].0.store(shard.now().0, Ordering::Release);
        }
        self.take_the_rest(shard);
    }

    /// Waits until nobody will send any more, and puts what is still on its way into the shard's lanes.
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
        let mut patience = Patience::default();
        while self.finished[neighbour].0.load(Ordering::Acquire) < slot {
            // Whoever is waited for may be waiting for room.
            self.receive();
            patience.lose();
        }
    }

    /// Waits until all that arrives by the beginning of slot `now` has been sent.
    fn wait_for_neighbours(&mut self, now: Slot) {
        for index in 0..self.inbound.len() {
            let &Crossing { from, delay, .. } = self.inbound[index].crossing;
            self.wait_for(from, now.0.saturating_sub(delay.lookahead()));
        }
    }

    fn wait_for_clock(&mut self, now: Slot, clock: &dyn Fn() -> Nanos) {
        let due = self.run.clock.start_of(now).0;
        let over = self.run.clock.start_of(now + 1).0;
        let mut time = clock().0;
        while time < due {
            std::hint::spin_loop();
            time = clock().0;
        }
        self.punctuality.late_slots += u64::from(time >= over);
        self.punctuality.worst = self.punctuality.worst.max(Nanos(time - due));
    }

    /// Takes what other cores have sent. In real time a core that is far behind leaves it to them to wait.
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

    /// Puts what arrives by the beginning of slot `due` into the shard's lanes.
    fn deliver<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>, due: Slot) {
        self.lose_held(shard);
        let now = shard.now();
        for Inbound { crossing, held, .. } in &mut self.inbound {
            while let Some(&Message { arrival, packet, .. }) = held.front()
                && arrival <= due
            {
                held.pop_front();
                self.punctuality.late_packets += u64::from(arrival < now);
                shard.lanes[crossing.into as usize].send(arrival.max(now), packet);
            }
        }
    }

    /// Drops what was on a link when it went down.
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

    /// Hands on what the shard has sent to others in the slot that is over.
    fn send<R: Router<Custom = C>>(&mut self, shard: &mut Shard<R>) {
        let sent = Slot(shard.now().0 - 1);
        for index in 0..self.outbound.len() {
            let &Crossing { out: lane, transmission, delay, .. } = self.outbound[index].crossing;
            for offset in 1..=transmission {
                let leaving = std::mem::take(shard.lanes[lane as usize].arriving_mut(sent + offset));
                for &packet in &leaving {
                    let (arrival, lag) = delay.arrival_after(sent + offset, packet.lag(), sent + 1);
                    let mut message = Message { sent, arrival, packet: packet.with_lag(lag) };
                    let mut patience = Patience::default();
                    while let Err(rtrb::PushError::Full(back)) = self.outbound[index].ring.push(message) {
                        if self.outbound[index].ring.is_abandoned() {
                            break; // The other core has panicked, and so will whoever waits for this one.
                        }
                        message = back;
                        self.receive();
                        patience.lose();
                    }
                }
                let bucket = shard.lanes[lane as usize].arriving_mut(sent + offset);
                *bucket = leaving;
                bucket.clear();
            }
        }
    }

    fn apply<R: Router<Custom = C>>(&mut self, event: Event, shard: &mut Shard<R>) {
        match event {
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
            // Down already, or up already.
            Event::Fail(_) | Event::Repair(_) => {}
        }
    }

    /// Loses what is on a link that leads here from another core: what a run before this one has left in the lane, and
    /// from now on whatever turns out to have been sent before.
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

fn lost_on<C>(crossing: &Crossing, packet: Packet<C>) -> Dropped {
    let place = Place::Port(crossing.sender.0, crossing.sender.1);
    Dropped { packet: packet.with_custom(()), place, reason: Reason::LinkDown }
}

/// Lets go whoever waits for a thread that panics.
struct Release<'a>(&'a AtomicU64);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(u64::MAX, Ordering::Release);
        }
    }
}

/// How to wait for another core: in a loop for a while, since it is mostly about to come; then by giving the core away,
/// since it may be the one that the other needs.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    fn lose(&mut self) {
        self.0 += 1;
        if self.0 < 1_000 {
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}
