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
use thalweg_measure::collector::Output;
use thalweg_network::{NetworkState, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos, Packet, SourceCounters};

use super::error::ScenarioError;
use super::monitors::{Listener, Monitors, frame_time};
use super::steering::Steering;
use super::trace::{Moved, Trace};
use crate::serve::daemon::wall_clock;

/// How long it sleeps when nothing comes: orders wait as long.
const PATIENCE: Nanos = Nanos::from_millis(5);

/// How often time is let pass for collectors and controller.
const TICK: Duration = Duration::from_millis(5);

/// What has not been seen to have taken effect after so long has failed. A host's queue and a monitor port's may hold
/// a few milliseconds.
const ACTION_PATIENCE: Nanos = Nanos::from_millis(50);

/// What the loop is asked to do.
enum Order {
    /// Hand over the trace, and begin another.
    Trace(Sender<Trace>),
    /// Send pairs to the base address of their destination.
    Home(Vec<Pair>),
    /// Send a pair to this address, and leave it there.
    Pin(Pair, u8),
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
        let monitors = Monitors::open(lab, state, rate)?;
        let patience = ACTION_PATIENCE.max(Nanos(100 * frame_time(rate).0));
        let steering = Steering::new(lab, state, decider, patience)?;
        let (orders, waiting) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let hub = Hub { topology: Arc::clone(state.topology()), steering, trace: Trace::default() };
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

    /// Ends it.
    ///
    /// # Errors
    /// If it has ended early.
    pub(super) fn finish(mut self) -> Result<Tally, ScenarioError> {
        self.join()
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
            let time = wall_clock();
            monitors.advance(time, &mut hub);
            hub.steering.advance(time);
            if hub.steering.controller().next_poll().is_some_and(|poll| poll <= time) {
                let traffic = monitors.traffic(&hub.topology);
                hub.steering.controller().polled(&traffic, time);
                hub.trace.told.extend(hub.steering.take_told());
            }
        }
        orders.try_iter().for_each(|order| hub.obey(order));
        monitors.rest(found, PATIENCE).map_err(|error| ScenarioError::Watching(error.to_string()))?;
    }
    Ok(Tally {
        controller: hub.steering.controller().counters(),
        sources: monitors.counters(),
        refreshed: hub.steering.refreshed(),
    })
}

/// Where everything comes together.
struct Hub {
    topology: Arc<Topology>,
    steering: Steering,
    trace: Trace,
}

impl Hub {
    fn obey(&mut self, order: Order) {
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
        }
    }
}

impl Listener for Hub {
    fn packets(&mut self, router: RouterId, packets: &[Packet]) {
        self.trace.take(&self.topology, router, packets);
    }

    fn found(&mut self, router: RouterId, output: &mut Output) {
        for event in output.events.drain(..) {
            self.trace.events += 1;
            let told = self.steering.hear(router, &event);
            self.trace.told.extend(told);
        }
        for change in output.address_changes.drain(..) {
            if let Some((pair, address)) = self.steering.see(&change) {
                self.trace.moved(Moved { pair, address, time: change.time, seen: wall_clock() });
            }
        }
        output.flows = Default::default();
    }
}
