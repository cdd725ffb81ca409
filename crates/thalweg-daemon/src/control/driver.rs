//! Drives the control loop: passes it events and the time, carries out its commands, and publishes decisions and outcomes.
//!
//! Nothing is sent to a host, a switch or a collector while the [`ControlState`](super::state::ControlState) is locked.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use thalweg_actuators::Actuator;
use thalweg_control::control_loop::{ActionOutcome, ActionReport, Command, Input, Records};
use thalweg_control::controller::UNRESPONSIVE_AFTER;
use thalweg_control::decide::{Decision, Verdict};
use thalweg_measure::collector::Observation;
use thalweg_network::{EndpointId, Node, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::carriers::Carriers;
use super::injected::Injected;
use super::names::Names;
use super::queries::{Answer, CollectorQueries, CollectorQuery};
use super::remotes::Remotes;
use super::state::Work;
use super::{Control, ControlParts};
use crate::collectors::EventLoop;
use crate::collectors::control_events::ControlEvent;
use crate::event::{Event, EventKind};

/// Maximum delay of deadlines, polls, network changes and requests of users.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// Maximum number of events to process before time advances.
const EVENTS_PER_TICK: usize = 64;

/// The controller's name in events, where collectors have theirs.
const NAME: &str = "control";

/// The actuator, and parts that a lab injects.
pub(super) struct Effects {
    pub(super) actuator: Box<dyn Actuator>,
    /// Interfaces whose carrier is monitored, if any.
    pub(super) carriers: Option<Carriers>,
    pub(super) injected: Injected,
}

/// The driver of the daemon's control loop.
pub(crate) struct Driver {
    control: Control,
    parts: ControlParts,
    effects: Effects,
    remotes: Remotes,
    events: Receiver<ControlEvent>,
    /// Wakes the driver for a request of a user.
    wakeups: Receiver<()>,
    /// Queries of collectors; `None` before the start.
    queries: Option<CollectorQueries>,
    /// The network version that the loop uses, or has created.
    version: u64,
    /// Whether an announcement of the loop's routes is in progress, which will change the version.
    is_announcing: bool,
    name: Arc<str>,
}

impl Driver {
    pub(super) fn new(
        control: Control,
        parts: ControlParts,
        effects: Effects,
        remotes: Remotes,
        events: Receiver<ControlEvent>,
        wakeups: Receiver<()>,
    ) -> Driver {
        Driver {
            control,
            parts,
            effects,
            remotes,
            events,
            wakeups,
            queries: None,
            version: 0,
            is_announcing: false,
            name: NAME.into(),
        }
    }

    /// Starts the actuator and the query thread.
    ///
    /// # Errors
    /// If one of them cannot be started.
    pub(super) fn begin(&mut self) -> std::io::Result<()> {
        self.effects.actuator.start().map_err(std::io::Error::other)?;
        self.queries = Some(CollectorQueries::start(self.parts.clone(), self.remotes.clone())?);
        Ok(())
    }

    /// Runs the control loop on this thread until no more events can arrive.
    pub(super) fn run(mut self) {
        self.start();
        while self.wait(TICK) {
            self.process();
            self.tick();
        }
        self.finish();
    }

    fn handle_answer(&mut self, answer: Answer) {
        if !matches!(answer.input, Input::Flows(_)) {
            self.is_announcing = false;
        }
        self.version = answer.version.unwrap_or(self.version);
        self.apply(answer.input);
    }

    fn query(&self, query: CollectorQuery) {
        if let Some(queries) = &self.queries {
            queries.send(query);
        }
    }

    /// Passes an event to the loop.
    fn handle_event(&mut self, event: ControlEvent) {
        let input = {
            let mut work = self.control.state().lock();
            let Some(input) = input(&mut work, event) else { return };
            let Some(delivery) = &mut self.effects.injected.delivery else {
                work.apply(input);
                drop(work);
                return self.execute_commands();
            };
            delivery.send(input)
        };
        for input in input {
            self.apply(input);
        }
    }

    /// Passes changes of carriers to the loop.
    fn poll_carriers(&mut self) {
        let Some(carriers) = &mut self.effects.carriers else { return };
        let state = Arc::clone(self.control.state().lock().control.state());
        match carriers.poll(state.topology(), Instant::now()) {
            Ok(inputs) => inputs.into_iter().for_each(|input| self.apply(input)),
            Err(error) => tracing::warn!("{error}"),
        }
    }

    fn apply(&mut self, input: Input) {
        self.control.state().lock().apply(input);
        self.execute_commands();
    }

    /// Carries out all commands, and passes the results to the loop.
    fn execute_commands(&mut self) {
        loop {
            let Some(command) = self.control.state().next_command() else { return };
            if let Some(answer) = self.execute(command) {
                self.control.state().lock().apply(answer);
            }
        }
    }

    fn execute(&mut self, command: Command) -> Option<Input> {
        match command {
            Command::Reroute(action) => Some(match self.effects.actuator.reroute(&action) {
                Ok(()) => Input::Started(action.id),
                Err(error) => Input::Refused(action.id, error.to_string()),
            }),
            Command::Hold { pair, address, time } => {
                self.effects.actuator.hold(pair, address, time);
                None
            }
            Command::Abandon { action, from } => {
                self.effects.actuator.abandon(&action, from);
                None
            }
            Command::Observe { routers, observation } => {
                self.observe(routers, observation);
                None
            }
            Command::PollFlows => {
                let state = Arc::clone(self.control.state().lock().control.state());
                self.query(CollectorQuery::Flows(state));
                None
            }
            Command::Announce { state, ahead } => {
                self.is_announcing = true;
                self.query(CollectorQuery::Announce(state, ahead));
                None
            }
            Command::Install(state) => Some(match self.effects.actuator.install(&state) {
                Ok(()) => Input::Installed,
                Err(error) => Input::InstallFailed(format!("cannot install routes: {error}")),
            }),
            Command::ReadBack { .. } => match &mut self.effects.injected.tables {
                Some(tables) => {
                    tables.read_back();
                    None
                }
                None => Some(Input::ReadBackFailed(format!(
                    "actuator {} cannot read rules back",
                    self.effects.actuator.name()
                ))),
            },
            Command::RepairRules(changes) => match &mut self.effects.injected.tables {
                Some(tables) => {
                    tables.repair_rules(changes);
                    None
                }
                None => Some(Input::RuleRepairFailed(format!(
                    "actuator {} cannot repair rules",
                    self.effects.actuator.name()
                ))),
            },
        }
    }

    /// Passes a new network version to the loop, unless the loop created it.
    fn follow_network(&mut self) {
        if self.is_announcing {
            return;
        }
        let Some(versions) = self.parts.network.versions() else { return };
        let newest = versions.newest();
        if newest.number == self.version {
            return;
        }
        self.version = newest.number;
        tracing::info!(version = newest.number, "topology changed");
        self.control.state().lock().clock.use_wall_clock_if_live(&self.parts.collectors);
        self.apply(Input::Network(Arc::clone(&newest.state)));
    }

    /// Requests the collectors of these switches to observe a pair. If one is too busy, the reroute is not confirmed there.
    fn observe(&self, routers: [RouterId; 2], observation: Observation) {
        let state = Arc::clone(self.control.state().lock().control.state());
        let switches = routers.map(|router| state.topology().name(Node::Router(router)));
        for collector in self.parts.collectors.all() {
            if switches.contains(&&*collector.description().switch) {
                let _ = collector.observe(observation);
            }
        }
    }

    /// Publishes and logs outcomes and decisions to reroute. Others are only recorded.
    fn publish_all(&self, records: Records, names: &Arc<Names>) {
        for error in records.errors {
            tracing::error!("{error}");
        }
        for decision in records.decisions {
            if matches!(decision.verdict, Verdict::Reroute | Verdict::Withheld) {
                log_decision(&decision, names);
                let (time, switch) = (decision.time, names.switch(decision.pair.source));
                self.publish(time, switch, EventKind::Decision(decision, Arc::clone(names)));
            }
        }
        for report in records.actions {
            if let ActionOutcome::Confirmed(after) = report.outcome {
                self.control.0.decision_to_path.record(Duration::from_nanos(after.0));
            }
            if report.outcome == ActionOutcome::TimedOut {
                self.warn_if_unresponsive(report.action.pair.source, names);
            }
            if report.outcome != ActionOutcome::Started {
                log_action(&report, names);
                let (time, switch) = (ended_at(&report), names.switch(report.action.pair.source));
                self.publish(time, switch, EventKind::Action(report, Arc::clone(names)));
            }
        }
        for (link, is_up) in records.links {
            let (switch, name) = names.cable(link);
            tracing::warn!(link = name, up = is_up, "link changed");
            let now = self.control.state().lock().clock.now();
            self.publish(now, switch, EventKind::Link { name: name.to_owned(), is_up });
        }
        for (pair, address) in records.broken_paths {
            let (src, dst) = (names.host(pair.source), names.host(pair.destination));
            tracing::warn!(src, dst, tree = address, "path broken");
        }
    }

    /// Publishes what a switch has reported.
    fn publish_input(&self, input: &Input) {
        let (now, names) = {
            let work = self.control.state().lock();
            (work.clock.now(), Arc::clone(&work.names))
        };
        match input {
            Input::RuleFaults { router, faults } => {
                self.publish(now, names.router(*router), EventKind::RuleFaults(*faults));
            }
            Input::Mastership { is_master } => self.publish(now, "", EventKind::Mastership(*is_master)),
            _ => {}
        }
    }

    /// Warns once about a host that ignores reroutes.
    fn warn_if_unresponsive(&self, host: EndpointId, names: &Names) {
        let work = self.control.state().lock();
        let unresponsive = work.control.controller().unresponsive().find(|(source, _)| *source == host);
        if let Some((_, UNRESPONSIVE_AFTER)) = unresponsive {
            tracing::warn!(host = names.host(host), "host does not follow reroutes");
        }
    }

    fn publish(&self, time: Timestamp, switch: &str, kind: EventKind) {
        let (collector, switch) = (Arc::clone(&self.name), switch.into());
        let emitted = self.control.state().lock().clock.emitted(time);
        self.parts.hub.publish(Event { collector, switch, time, emitted, kind });
    }
}

impl EventLoop for Driver {
    fn start(&mut self) {
        self.control.state().lock().clock.use_wall_clock_if_live(&self.parts.collectors);
        self.version = self.parts.network.versions().map_or(0, |versions| versions.newest().number);
        self.execute_commands();
    }

    fn process(&mut self) {
        for _ in 0..EVENTS_PER_TICK {
            match self.events.try_recv() {
                Ok(event) => self.handle_event(event),
                Err(_) => break,
            }
        }
        while let Some(answer) = self.queries.as_ref().and_then(|queries| queries.answers().try_recv().ok()) {
            self.handle_answer(answer);
        }
    }

    /// Also publishes decisions and outcomes.
    fn tick(&mut self) {
        self.follow_network();
        let Injected { tables, delivery } = &mut self.effects.injected;
        let late = delivery.as_mut().map(|delivery| delivery.flush());
        let answers = tables.as_mut().map(|tables| tables.answers());
        for input in late.into_iter().chain(answers).flatten() {
            self.apply(input);
        }
        let now = self.control.state().lock().clock.now();
        if let Err(error) = self.effects.actuator.maintain(now) {
            tracing::warn!("{error}");
        }
        for input in self.effects.actuator.take_inputs() {
            self.publish_input(&input);
            self.apply(input);
        }
        self.poll_carriers();
        self.apply(Input::Tick);
        let actuator = &self.effects.actuator;
        let (switches, refreshed) = (actuator.switches_report(), actuator.refresh_count());
        let (records, names) = {
            let mut work = self.control.state().lock();
            (work.switches, work.refreshed) = (switches, refreshed);
            let records = work.control.take_records();
            work.record_broken_paths(&records.broken_paths);
            (records, Arc::clone(&work.names))
        };
        self.publish_all(records, &names);
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        enum Wakeup {
            ControlEvent(ControlEvent),
            Answer(Answer),
            User,
            Timeout,
            Ended,
        }
        let never = crossbeam_channel::never();
        let answers = self.queries.as_ref().map_or(&never, CollectorQueries::answers);
        let wakeup = crossbeam_channel::select! {
            recv(self.events) -> event => event.map_or(Wakeup::Ended, Wakeup::ControlEvent),
            recv(answers) -> answer => answer.map_or(Wakeup::Ended, Wakeup::Answer),
            recv(self.wakeups) -> _ => Wakeup::User,
            default(timeout) => Wakeup::Timeout,
        };
        match wakeup {
            Wakeup::ControlEvent(event) => self.handle_event(event),
            Wakeup::Answer(answer) => self.handle_answer(answer),
            Wakeup::User => {}
            // Remote events may arrive long after the last local collector has ended.
            Wakeup::Timeout => return !(self.remotes.are_configured() && self.parts.lifecycle.is_stopping()),
            Wakeup::Ended => return false,
        }
        true
    }

    fn has_remotes(&self) -> bool {
        self.remotes.are_configured()
    }

    fn finish(&self) {
        let counters = self.control.state().report().counters;
        let decision_to_path = self.control.decision_to_path();
        let quantile = |share| {
            decision_to_path.quantile(share).map_or(Nanos::ZERO, |time| Nanos(time.as_nanos() as u64))
        };
        tracing::info!(
            rerouted = counters.started,
            confirmed = counters.confirmed,
            median = joined(quantile(0.5)),
            p99 = joined(quantile(0.99)),
            timed_out = counters.timed_out,
            refused = counters.refused,
            kept = counters.decisions[Verdict::Keep as usize],
            "controller stopped"
        );
    }
}

/// Converts an event to an input of the loop.
fn input(work: &mut Work, event: ControlEvent) -> Option<Input> {
    let router = |work: &Work, switch: &str| match work.control.state().topology().node_named(switch) {
        Some(Node::Router(router)) => Some(router),
        _ => None,
    };
    match event {
        ControlEvent::Congestion(switch, event) => {
            work.clock.observe(event.time);
            let router = router(work, &switch)?;
            Some(Input::Congestion { router, event })
        }
        ControlEvent::PacketTime => {
            work.clock.use_packet_time();
            None
        }
        ControlEvent::Address(switch, change) => {
            work.clock.observe(change.time);
            Some(Input::AddressChange { router: router(work, &switch), change })
        }
        ControlEvent::Arrival(report) => {
            work.clock.observe(report.time);
            Some(Input::Arrival(report))
        }
    }
}

/// Logs a reroute, or one that is withheld, with the rates that the controller expects on the new and on the old path.
fn log_decision(decision: &Decision, names: &Names) {
    use thalweg_control::decide::Cause;
    let &Decision { pair, from, to, ref cause, verdict, flow_moves, ref alternatives, .. } = decision;
    let expected =
        |address| alternatives.iter().find(|path| path.address == address).map(|path| path.expected);
    let rate = |address| expected(address).map_or_else(|| "unknown".to_owned(), joined);
    let cause = match cause {
        Cause::Congestion(link) => names.link(*link),
        Cause::Poll => "poll",
    };
    let (src, dst, expected, before) =
        (names.host(pair.source), names.host(pair.destination), rate(to), rate(from));
    match verdict {
        Verdict::Withheld => {
            tracing::info!(
                src,
                dst,
                tree = to,
                from_tree = from,
                expected,
                before,
                cause,
                "reroute withheld"
            );
        }
        _ => tracing::info!(
            src,
            dst,
            tree = to,
            from_tree = from,
            flow_moves,
            expected,
            before,
            cause,
            "rerouted"
        ),
    }
}

/// Formats a quantity without the space before its unit, for a log field.
fn joined(quantity: impl Display) -> String {
    quantity.to_string().replace(' ', "")
}

fn log_action(report: &ActionReport, names: &Names) {
    let ActionReport { action, outcome, .. } = report;
    let (src, dst, tree) =
        (names.host(action.pair.source), names.host(action.pair.destination), action.address);
    match outcome {
        ActionOutcome::Started => {}
        ActionOutcome::Confirmed(after) => {
            tracing::info!(src, dst, tree, took = joined(after), "reroute confirmed");
        }
        ActionOutcome::TimedOut => tracing::warn!(src, dst, tree, "reroute timed out"),
        ActionOutcome::Superseded => tracing::info!(src, dst, tree, "reroute superseded"),
        ActionOutcome::Refused(error) => tracing::warn!(src, dst, tree, error, "reroute refused"),
    }
}

/// Returns the packet time of an action's outcome.
fn ended_at(report: &ActionReport) -> Timestamp {
    let ActionReport { action, outcome, .. } = report;
    match outcome {
        ActionOutcome::Confirmed(after) => action.issued + *after,
        ActionOutcome::TimedOut => action.deadline,
        _ => action.issued,
    }
}
