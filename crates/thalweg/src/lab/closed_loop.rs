//! The loop at work: monitor ports, collectors, controller and ARP on one thread, beside the scenario that it is watched by.
//!
//! One thread, so that nothing waits for another to wake up between a packet and what follows from it. It takes orders
//! between turns, and keeps a [`Trace`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use thalweg_control::Pair;
use thalweg_control::controller::ControllerCounters;
use thalweg_control::decide::Decider;
use thalweg_lab::Lab;
use thalweg_measure::collector::{AddressChange, LinkEvent, Output};
use thalweg_network::{NetworkState, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos, Packet, SourceCounters, Timestamp};

use super::delivery::{Courier, Delivery};
use super::error::ScenarioError;
use super::means::By;
use super::monitors::{Listener, Monitors, frame_time};
use super::steering::Steering;
use super::trace::{Moved, Trace};
use super::ways::{Fate, Ways};
use crate::serve::daemon::wall_clock;

/// How long it sleeps when nothing comes: orders wait as long.
const PATIENCE: Nanos = Nanos::from_millis(5);

/// How often time is let pass for collectors and controller.
const TICK: Duration = Duration::from_millis(5);

/// What has not been seen to have taken effect after so long has failed. A host's queue and a monitor port's may hold
/// a few milliseconds.
const ACTION_PATIENCE: Nanos = Nanos::from_millis(50);

/// After so long collectors have seen whoever sends, and a loop that has just begun looks where pairs are.
const LEARNING: Nanos = Nanos::from_millis(500);

/// What the loop is asked to do.
enum Order {
    /// Hand over the trace, and begin another.
    Trace(Sender<Trace>),
    /// Send pairs to the base address of their destination.
    Home(Vec<Pair>),
    /// Send a pair to this address, and leave it there.
    Pin(Pair, u8),
    /// Routes are others from now on; say when everybody knows.
    Routes(Arc<NetworkState>, Sender<()>),
    /// What collectors find is delivered otherwise from now on, by chance with this seed.
    Deliver(Delivery, u64),
    /// Say what has been done so far.
    Tally(Sender<Tally>),
}

/// Tells a loop of other routes.
#[derive(Clone)]
pub(super) struct Announcer(Sender<Order>);

impl Announcer {
    /// Tells of them, and waits until all collectors and the controller know. A loop that has ended knows nothing.
    pub(super) fn announce(&self, state: &Arc<NetworkState>) {
        let (reply, known) = bounded(1);
        let _ = self.0.send(Order::Routes(Arc::clone(state), reply));
        let _ = known.recv();
    }
}

/// A loop at work; it ends when this is dropped.
pub(super) struct ClosedLoop {
    orders: Sender<Order>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Tally, ScenarioError>>>,
}

/// What a loop has done, all in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Of the controller.
    pub(super) controller: ControllerCounters,
    /// Of the monitor ports.
    pub(super) sources: SourceCounters,
    /// How often hosts were told again of what they would forget.
    pub(super) refreshed: u64,
    /// Packets that were seen at switches which no route leads them by.
    pub(super) elsewhere: u64,
    /// What collectors have found, how much of that was lost on the way to the controller, and how much arrived in
    /// another order.
    pub(super) delivered: [u64; 3],
}

impl ClosedLoop {
    /// Watches and steers a lab whose links have the rate `rate` and whose switches forward as `state` says.
    ///
    /// # Errors
    /// If its ports cannot be opened.
    pub(super) fn start(
        lab: &Lab,
        state: &Arc<NetworkState>,
        rate: BitRate,
        decider: Box<dyn Decider>,
    ) -> Result<ClosedLoop, ScenarioError> {
        ClosedLoop::start_by(lab, state, rate, decider, By::default_in(lab))
    }

    /// The same, steering by these means.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub(super) fn start_by(
        lab: &Lab,
        state: &Arc<NetworkState>,
        rate: BitRate,
        decider: Box<dyn Decider>,
        by: By,
    ) -> Result<ClosedLoop, ScenarioError> {
        let monitors = Monitors::open(lab, state, rate)?;
        let patience = ACTION_PATIENCE.max(Nanos(100 * frame_time(rate).0));
        let steering = Steering::new(lab, state, decider, by, patience)?;
        let (orders, waiting) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let topology = Arc::clone(state.topology());
        let learns_at = Some(wall_clock() + LEARNING);
        let (trace, courier) = (Trace::default(), Courier::default());
        let ways = Ways::new(patience);
        let hub = Hub { topology, steering, trace, ways, courier, learns_at };
        let is_stopped = Arc::clone(&stop);
        let work = move || work(monitors, hub, &waiting, &is_stopped);
        let thread = thread::Builder::new().name("closed-loop".to_owned()).spawn(work);
        let thread = thread.map_err(|error| ScenarioError::Watching(error.to_string()))?;
        Ok(ClosedLoop { orders, stop, thread: Some(thread) })
    }

    /// What has happened since this was last asked.
    ///
    /// # Errors
    /// If the loop has ended.
    pub(super) fn take_trace(&mut self) -> Result<Trace, ScenarioError> {
        let (reply, answer) = bounded(1);
        let _ = self.orders.send(Order::Trace(reply));
        answer.recv().map_err(|_| self.why_it_ended())
    }

    /// Sends pairs home, to the base addresses of their destinations.
    pub(super) fn send_home(&self, pairs: Vec<Pair>) {
        let _ = self.orders.send(Order::Home(pairs));
    }

    /// Sends a pair to an address of its destination, and leaves it there.
    pub(super) fn pin(&self, pair: Pair, address: u8) {
        let _ = self.orders.send(Order::Pin(pair, address));
    }

    /// Who tells it of other routes.
    pub(super) fn announcer(&self) -> Announcer {
        Announcer(self.orders.clone())
    }

    /// Has what collectors find delivered otherwise, by chance with this seed.
    pub(super) fn deliver(&self, delivery: Delivery, seed: u64) {
        let _ = self.orders.send(Order::Deliver(delivery, seed));
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// If the loop has ended.
    pub(super) fn tally(&mut self) -> Result<Tally, ScenarioError> {
        let (reply, answer) = bounded(1);
        let _ = self.orders.send(Order::Tally(reply));
        answer.recv().map_err(|_| self.why_it_ended())
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it has ended early.
    pub(super) fn finish(mut self) -> Result<Tally, ScenarioError> {
        self.join()
    }

    /// Ends it, and leaves everything as it is. It can do nothing more.
    ///
    /// # Errors
    /// If it had ended early.
    pub(super) fn end(&mut self) -> Result<(), ScenarioError> {
        self.join().map(drop)
    }

    fn why_it_ended(&mut self) -> ScenarioError {
        match self.join() {
            Ok(_) => ScenarioError::Watching("it was told to".to_owned()),
            Err(error) => error,
        }
    }

    fn join(&mut self) -> Result<Tally, ScenarioError> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let panicked = || ScenarioError::Watching("a mistake of the program".to_owned());
        ended.and_then(Result::ok).ok_or_else(panicked)?
    }
}

impl Drop for ClosedLoop {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has asked.
        let _ = self.thread.is_some().then(|| self.join());
    }
}

fn work(
    mut monitors: Monitors,
    mut hub: Hub,
    orders: &Receiver<Order>,
    stop: &AtomicBool,
) -> Result<Tally, ScenarioError> {
    let mut next_tick = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let found = monitors.turn(&mut hub)?;
        let now = Instant::now();
        if now >= next_tick {
            next_tick = now + TICK;
            hub.tick(&mut monitors);
        }
        orders.try_iter().for_each(|order| hub.obey(order, &mut monitors));
        monitors.rest(found, PATIENCE).map_err(|error| ScenarioError::Watching(error.to_string()))?;
    }
    Ok(hub.tally(&mut monitors))
}

/// What a collector has found.
enum Finding {
    Link(RouterId, LinkEvent),
    Address(AddressChange),
}

/// Where everything comes together.
struct Hub {
    topology: Arc<Topology>,
    steering: Steering,
    trace: Trace,
    ways: Ways,
    courier: Courier<Finding>,
    /// When it looks where pairs are that others may have steered.
    learns_at: Option<Timestamp>,
}

impl Hub {
    /// Lets time pass.
    fn tick(&mut self, monitors: &mut Monitors) {
        let time = wall_clock();
        monitors.advance(time, self);
        let late = self.courier.flush();
        self.hear(late);
        self.steering.advance(time);
        for arrival in self.steering.controller().take_arrivals(time) {
            let (pair, address) = (arrival.action.pair, arrival.action.address);
            match self.ways.fate(pair, address, time) {
                Fate::Arrived | Fate::Elsewhere => {}
                Fate::Open => self.steering.controller().left_open(arrival, time),
                Fate::Astray => {
                    self.steering.controller().went_astray(&arrival, time);
                    self.trace.astray.push((pair, address));
                }
            }
        }
        if self.learns_at.is_some_and(|at| at <= time) {
            self.learns_at = None;
            let traffic = monitors.traffic(&self.topology);
            self.steering.controller().find(&traffic, time);
        }
        if self.steering.controller().next_poll().is_some_and(|poll| poll <= time) {
            let traffic = monitors.traffic(&self.topology);
            self.steering.controller().polled(&traffic, time);
        }
        self.trace.told.extend(self.steering.take_told());
    }

    /// What arrives at the controller.
    fn hear(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            match finding {
                Finding::Link(router, event) => {
                    let told = self.steering.hear(router, &event);
                    self.trace.told.extend(told);
                }
                Finding::Address(change) => self.steering.see(&change),
            }
        }
    }

    fn tally(&mut self, monitors: &mut Monitors) -> Tally {
        Tally {
            controller: self.steering.controller().counters(),
            sources: monitors.counters(),
            refreshed: self.steering.refreshed(),
            elsewhere: monitors.elsewhere(),
            delivered: self.courier.counts(),
        }
    }

    fn obey(&mut self, order: Order, monitors: &mut Monitors) {
        match order {
            Order::Trace(reply) => {
                // Who does not wait for it any more does not want it.
                let _ = reply.send(std::mem::take(&mut self.trace));
            }
            Order::Home(pairs) => {
                for pair in pairs {
                    let controller = self.steering.controller();
                    controller.pin(pair, 0, wall_clock());
                    controller.unpin(pair);
                }
                // By hand, and no deed of the loop.
                self.steering.take_told();
            }
            Order::Pin(pair, address) => {
                self.steering.controller().pin(pair, address, wall_clock());
                self.trace.told.extend(self.steering.take_told());
            }
            Order::Routes(state, reply) => {
                monitors.set_network(&state);
                self.topology = Arc::clone(state.topology());
                self.steering.set_routes(&state);
                let _ = reply.send(());
            }
            Order::Deliver(delivery, seed) => {
                let held = self.courier.set(delivery, seed);
                self.hear(held);
            }
            Order::Tally(reply) => {
                let _ = reply.send(self.tally(monitors));
            }
        }
    }
}

impl Listener for Hub {
    fn packets(&mut self, router: RouterId, packets: &[Packet]) {
        self.trace.take(&self.topology, router, packets);
        for packet in packets {
            self.ways.take(&self.topology, router, &packet.ethernet, packet.time);
        }
    }

    fn found(&mut self, router: RouterId, output: &mut Output) {
        for event in output.events.drain(..) {
            self.trace.events += 1;
            let arrived = self.courier.send(Finding::Link(router, event));
            self.hear(arrived);
        }
        for change in output.address_changes.drain(..) {
            if let Some((pair, address)) = Pair::of(&self.topology, &change.to) {
                self.trace.moved(Moved { pair, address, time: change.time, seen: wall_clock() });
            }
            let arrived = self.courier.send(Finding::Address(change));
            self.hear(arrived);
        }
        output.flows = Default::default();
    }
}
