//! The loop at work: monitor ports, collectors, controller and ARP on one thread, beside the scenario that it is watched by.
//!
//! One thread, so that nothing waits for another to wake up between a packet and what follows from it. It takes orders
//! between turns, and keeps a [`Trace`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use thalweg_actuators::Actuator;
use thalweg_control::Pair;
use thalweg_control::control_loop::{
    Command, ControlLoop, ControlOptions, Input, Installation, RouteCounters, RouteOptions,
};
use thalweg_control::controller::{ControllerCounters, ControllerOptions};
use thalweg_control::decide::Decider;
use thalweg_control::decide::loads::LIGHT;
use thalweg_lab::Lab;
use thalweg_measure::collector::Output;
use thalweg_network::routing::TreeOptions;
use thalweg_network::{NetworkState, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos, Packet, SourceCounters};

use super::delivery::{Courier, Delivery};
use super::error::ScenarioError;
use super::means::{By, Means};
use super::monitors::{Listener, Monitors, frame_time};
use super::switches::Switches;
use super::trace::{Moved, Told, Trace};
use thalweg_daemon::daemon::wall_clock;

/// How long it sleeps when nothing comes: orders wait as long.
const PATIENCE: Nanos = Nanos::from_millis(5);

/// How often time is let pass for collectors and controller.
const TICK: Duration = Duration::from_millis(5);

/// What has not been seen to have taken effect after so long has failed. A host's queue and a monitor port's may hold
/// a few milliseconds.
const ACTION_PATIENCE: Nanos = Nanos::from_millis(50);

/// After so long collectors have seen whoever sends, and a loop that has just begun looks where pairs are.
const LEARNING: Nanos = Nanos::from_millis(500);

/// How often it is looked which links are up and what switches have installed, where that is put right.
const READ_BACK: Nanos = Nanos::from_millis(20);

/// How long after collectors were told new routes are installed (Planck, section 4.1).
const SETTLE: Nanos = Nanos::from_millis(2);

/// What the loop is asked to do.
enum Order {
    /// Hand over the trace, and begin another.
    Trace(Sender<Trace>),
    /// Send pairs to the base address of their destination.
    Home(Vec<Pair>),
    /// Send a pair to this address, and leave it there.
    Pin(Pair, u8),
    /// What collectors find is delivered otherwise from now on, by chance with this seed.
    Deliver(Delivery, u64),
    /// Say what has been done so far.
    Tally(Sender<Tally>),
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
    /// Of the routes.
    pub(super) routes: RouteCounters,
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
        ClosedLoop::run(lab, state, rate, decider, by, None)
    }

    /// As [`start`](Self::start); and keeps forwarding whole: routes around links that are down by trees made like these, and puts
    /// right what switches have forgotten, or somebody else has left in them.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub(super) fn start_reconciling(
        lab: &Lab,
        state: &Arc<NetworkState>,
        rate: BitRate,
        decider: Box<dyn Decider>,
        trees: TreeOptions,
    ) -> Result<ClosedLoop, ScenarioError> {
        ClosedLoop::run(lab, state, rate, decider, By::default_in(lab), Some(trees))
    }

    fn run(
        lab: &Lab,
        state: &Arc<NetworkState>,
        rate: BitRate,
        decider: Box<dyn Decider>,
        by: By,
        trees: Option<TreeOptions>,
    ) -> Result<ClosedLoop, ScenarioError> {
        let monitors = Monitors::open(lab, state, rate)?;
        let patience = ACTION_PATIENCE.max(Nanos(100 * frame_time(rate).0));
        let means = Means::open(lab, state, by)?;
        let switches = trees.map(|_| Switches::of(&lab.plan().prefix)).transpose()?;
        let installation = match trees {
            Some(_) => Installation::Repair { interval: Some(READ_BACK) },
            None => Installation::Never,
        };
        let options = ControlOptions {
            controller: ControllerOptions { patience, ..ControllerOptions::default() },
            least_share: LIGHT,
            learn_after: Some(LEARNING),
            routes: RouteOptions { trees, settle: SETTLE, installation, ..RouteOptions::default() },
            ..ControlOptions::default()
        };
        let control = ControlLoop::new(options, state, decider, wall_clock())?;
        let (orders, waiting) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let topology = Arc::clone(state.topology());
        let (trace, courier, later) = (Trace::default(), Courier::default(), Vec::new());
        let hub = Hub { topology, control, means, switches, trace, courier, later };
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
    pub(super) fn end(&mut self) -> Result<Tally, ScenarioError> {
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
        hub.carry_out_later(&mut monitors);
        let now = Instant::now();
        if now >= next_tick {
            next_tick = now + TICK;
            hub.tick(&mut monitors)?;
        }
        orders.try_iter().for_each(|order| hub.obey(order, &mut monitors));
        monitors.rest(found, PATIENCE).map_err(|error| ScenarioError::Watching(error.to_string()))?;
    }
    Ok(hub.tally(&mut monitors))
}

/// The driver of the control loop: where everything comes together.
struct Hub {
    topology: Arc<Topology>,
    control: ControlLoop,
    means: Means,
    /// If they are read back and put right.
    switches: Option<Switches>,
    trace: Trace,
    courier: Courier<Input>,
    /// Commands that concern the collectors, which are at work while they report.
    later: Vec<Command>,
}

impl Hub {
    /// Lets time pass.
    fn tick(&mut self, monitors: &mut Monitors) -> Result<(), ScenarioError> {
        let time = wall_clock();
        monitors.advance(time, self);
        let late = self.courier.flush();
        self.hear(late);
        let answers = self.switches.as_ref().map(Switches::answers).transpose()?;
        self.hear(answers.unwrap_or_default());
        self.tell(Input::Tick);
        // A host that cannot be reached now is told again the next time.
        let _ = self.means.tend(time);
        self.carry_out_later(monitors);
        self.trace.astray.extend(self.control.take_records().astray);
        Ok(())
    }

    /// What arrives at the loop.
    fn hear(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            self.tell(input);
        }
    }

    /// Tells the loop something, and does at once what follows for hosts: a reroute does not wait for anything.
    fn tell(&mut self, input: Input) {
        self.control.handle(wall_clock(), input);
        while let Some(command) = self.control.next_command() {
            match command {
                Command::Reroute(action) => {
                    let decided = wall_clock();
                    let outcome = self.means.act(&action);
                    let sent = wall_clock();
                    let answer = match outcome {
                        Ok(()) => {
                            let (pair, address, event) = (action.pair, action.address, action.issued);
                            self.trace.told.push(Told { pair, address, event, decided, sent });
                            Input::Started(action.id)
                        }
                        Err(error) => Input::Refused(action.id, error.to_string()),
                    };
                    self.control.handle(sent, answer);
                }
                Command::Hold { pair, address, time } => self.means.found(pair, address, time),
                Command::Abandon { action, from } => self.means.failed(&action, from),
                other => self.later.push(other),
            }
        }
    }

    /// Carries out what concerns collectors and switches.
    fn carry_out_later(&mut self, monitors: &mut Monitors) {
        while !self.later.is_empty() {
            for command in std::mem::take(&mut self.later) {
                self.carry_out_one(command, monitors);
            }
        }
    }

    fn carry_out_one(&mut self, command: Command, monitors: &mut Monitors) {
        match command {
            Command::Observe { routers, observation } => monitors.observe(routers, observation),
            Command::PollFlows => {
                let traffic = monitors.traffic(&self.topology);
                self.tell(Input::Flows(traffic));
            }
            Command::Announce { state, ahead } => {
                monitors.set_network(&state);
                self.topology = Arc::clone(state.topology());
                self.tell(Input::Announced(wall_clock() + ahead));
            }
            Command::Install(state) => {
                let answer = match self.means.install(&state) {
                    Ok(()) => Input::Installed,
                    Err(error) => Input::InstallFailed(error),
                };
                self.tell(answer);
            }
            Command::ReadBack { .. } => match &self.switches {
                Some(switches) => switches.read_back(),
                None => self.tell(Input::ReadBackFailed("nothing is read back".to_owned())),
            },
            Command::Repair(changes) => match &self.switches {
                Some(switches) => switches.repair(changes),
                None => self.tell(Input::RepairFailed("nothing is put right".to_owned())),
            },
            Command::Reroute(_) | Command::Hold { .. } | Command::Abandon { .. } => {
                unreachable!("done at once")
            }
        }
    }

    fn tally(&mut self, monitors: &mut Monitors) -> Tally {
        Tally {
            controller: self.control.controller().counters(),
            routes: self.control.route_counters(),
            sources: monitors.counters(),
            refreshed: self.means.refreshed(),
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
                let told = self.trace.told.len();
                for pair in pairs {
                    self.tell(Input::Pin { pair, address: 0 });
                    self.tell(Input::Unpin(pair));
                }
                // By hand, and no deed of the loop.
                self.trace.told.truncate(told);
            }
            Order::Pin(pair, address) => self.tell(Input::Pin { pair, address }),
            Order::Deliver(delivery, seed) => {
                let held = self.courier.set(delivery, seed);
                self.hear(held);
            }
            Order::Tally(reply) => {
                let _ = reply.send(self.tally(monitors));
            }
        }
        self.carry_out_later(monitors);
    }
}

impl Listener for Hub {
    fn packets(&mut self, router: RouterId, packets: &[Packet]) {
        self.trace.take(&self.topology, router, packets);
    }

    fn found(&mut self, router: RouterId, output: &mut Output) {
        for event in output.events.drain(..) {
            self.trace.events += 1;
            let arrived = self.courier.send(Input::Link { router, event });
            self.hear(arrived);
        }
        for change in output.address_changes.drain(..) {
            if let Some((pair, address)) = Pair::of(&self.topology, &change.to) {
                self.trace.moved(Moved { pair, address, time: change.time, seen: wall_clock() });
            }
            let arrived = self.courier.send(Input::AddressChange { router: Some(router), change });
            self.hear(arrived);
        }
        for report in output.arrivals.drain(..) {
            let arrived = self.courier.send(Input::Arrival(report));
            self.hear(arrived);
        }
        output.flows = Default::default();
    }
}
