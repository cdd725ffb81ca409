//! A run with a temporary fault: measures whether traffic engineering works during and after it.
//!
//! All reroutes are reset twice, during and after the fault, so that flows collide again as at the start. A working
//! loop resolves the collisions.

use std::sync::Arc;

use thalweg_control::Pair;
use thalweg_control::control_loop::{Command, Input};
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::routes::Paths;
use thalweg_emulator::hosts::FlowStatus;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId, Versions};
use thalweg_wire::{Bytes, Nanos, Timestamp};

use super::collectors::{Collectors, Reports, monitors};
use super::control::{ControlFaults, EmulatedControl, reconciled_routes};
use super::switches::Switches;
use super::trial::{Emulated, Method, PAPER_HOST_RATE, POLL_SLOTS, Trial};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    /// No congestion event arrives.
    EventsLost,
    /// Events are delayed by up to 5 ms, and so reordered.
    EventsReordered,
    /// Host 0 ignores reroute requests.
    UnresponsiveHost,
    /// A link between aggregation and core fails and is restored; trees are recomputed both times.
    LinkFails,
    /// A switch restarts: its links go down, and its table is empty afterwards.
    SwitchRestarts,
    /// A link fails; the controller is killed when half of the new rules are installed. A new one, which knows the network
    /// but no pairs or pending actions, starts 20 ms later, reads back the rules and completes the installation.
    ControllerKilled,
}

impl Fault {
    pub(super) const ALL: [Fault; 7] = [
        Fault::Nothing,
        Fault::EventsLost,
        Fault::EventsReordered,
        Fault::UnresponsiveHost,
        Fault::LinkFails,
        Fault::SwitchRestarts,
        Fault::ControllerKilled,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Fault::Nothing => "none",
            Fault::EventsLost => "all events lost",
            Fault::EventsReordered => "events delayed up to 5 ms and reordered",
            Fault::UnresponsiveHost => "a host ignores reroutes",
            Fault::LinkFails => "a link fails and is restored",
            Fault::SwitchRestarts => "a switch restarts with an empty table",
            Fault::ControllerKilled => "a link fails, the controller is killed while installing rules",
        }
    }

    fn control_faults(self) -> ControlFaults {
        match self {
            Fault::EventsLost => ControlFaults { loss: 1.0, ..ControlFaults::default() },
            Fault::EventsReordered => {
                ControlFaults { disorder: Nanos::from_millis(5), ..ControlFaults::default() }
            }
            Fault::UnresponsiveHost => {
                ControlFaults { ignoring: Some(EndpointId(0)), ..ControlFaults::default() }
            }
            _ => ControlFaults::default(),
        }
    }
}

/// The switch that restarts or whose link fails: the first aggregation switch.
const SWITCH: RouterId = RouterId(8);
/// The port whose link fails: to the first core switch.
const PORT: PortIndex = PortIndex(2);

const fn ms(ms: u64) -> Timestamp {
    Timestamp(ms * 1_000_000)
}

/// Start and end of the fault.
const FAULT: [Timestamp; 2] = [ms(60), ms(360)];
/// Times at which all reroutes are reset.
const RESET: [Timestamp; 2] = [ms(70), ms(380)];
/// Spans in which throughput is measured: before, during and after the fault.
const SPANS: [[Timestamp; 2]; 3] = [[ms(30), FAULT[0]], [ms(260), FAULT[1]], [ms(480), END]];
const END: Timestamp = ms(560);
/// Delay from a link state change until the controller knows it.
const LINK_NOTICE_DELAY: Nanos = Nanos::from_millis(1);
/// Delay from announcing new routes to the collectors until they are installed (Planck, section 4.1).
const ROUTE_LEAD_TIME: Nanos = Nanos::from_millis(1);
/// Probability that an event is lost while there is no fault.
const NO_LOSS: f64 = 0.0;
/// Time without a controller.
const CONTROLLER_DOWNTIME: Nanos = Nanos::from_millis(20);

/// A run with a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultRun {
    pub(super) fault: Fault,
    pub(super) seed: u64,
}

/// The results of a run with a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FaultResults {
    /// Gbit/s per host in each span.
    pub(super) rates: [f64; 3],
    /// Flows that share a link, at the end of each span.
    pub(super) sharing: [usize; 3],
    /// Paths on which the installed rules do not deliver packets, maximum and at the end.
    pub(super) broken_paths: [usize; 2],
    /// Reroutes of all controllers.
    pub(super) reroutes: u64,
}

impl FaultRun {
    /// Runs the emulation.
    ///
    /// # Errors
    /// If its settings are not valid.
    pub(super) fn run(&self) -> anyhow::Result<FaultResults> {
        let trial = Trial {
            method: Method::PLANCK,
            bytes: Bytes(1 << 30),
            seed: self.seed,
            host_rate: PAPER_HOST_RATE,
            ..Trial::default()
        };
        let topology = trial.fat_tree()?;
        let monitors = monitors(&topology);
        let mut emulated = Emulated::new(&trial, &topology, &monitors)?;
        let state = trial.state(&topology, LinkState::new(&topology))?;
        emulated.install(state.forwarding());
        let mut run = Run {
            fault: self.fault,
            switches: Switches::new(state.topology(), state.forwarding().all_tables()),
            versions: Versions::new(Arc::clone(&state)),
            control: EmulatedControl::new(
                &state,
                decider(),
                reconciled_routes(trial.trees(), ROUTE_LEAD_TIME),
                trial.control_delay,
                NO_LOSS,
                self.seed,
            )?,
            trial,
            is_installing: false,
            was_killed: false,
            controller_starts_at: None,
            results: FaultResults::default(),
            delivered_before: [0; 3],
            reroutes_before: 0,
        };
        let clock = emulated.network.clock();
        let shared = Arc::new(run.versions.clone());
        let mut collectors = Collectors::new(&topology, clock, &shared, &run.trial.rule, self.seed)?;
        let mut reports = Reports::default();
        let mut last = Timestamp(0);
        loop {
            emulated.slot();
            collectors.capture(emulated.network.as_mut(), &emulated.hosts);
            if !emulated.network.now().0.is_multiple_of(POLL_SLOTS) {
                continue;
            }
            let now = clock.start_of(emulated.network.now());
            collectors.process(now, &mut reports);
            if run.controller_starts_at.is_none() {
                run.control.handle_reports(&mut reports, now);
            } else {
                reports = Reports::default();
            }
            run.inject(&mut emulated, last, now);
            run.execute_commands(&mut emulated, &mut collectors, now)?;
            if run.controller_starts_at.is_none() {
                run.control.advance(&mut emulated.hosts, now);
            }
            run.measure(&emulated, last, now);
            last = now;
            if now >= END {
                run.results.broken_paths[1] = run.switches.broken_paths(emulated.network.links());
                run.results.reroutes = run.reroutes_before + run.control.reroutes();
                return Ok(run.results);
            }
        }
    }
}

fn decider() -> Box<Greedy> {
    Box::new(Greedy::new(GreedyOptions::default()))
}

struct Run {
    fault: Fault,
    trial: Trial,
    switches: Switches,
    versions: Versions,
    control: EmulatedControl,
    /// Whether rules are being installed.
    is_installing: bool,
    was_killed: bool,
    /// Start of the next controller.
    controller_starts_at: Option<Timestamp>,
    results: FaultResults,
    /// Bytes delivered before each span.
    delivered_before: [u64; 3],
    /// Reroutes of controllers that were killed.
    reroutes_before: u64,
}

impl Run {
    /// Returns the links that are down during the fault.
    fn links(&self, emulated: &Emulated) -> Vec<LinkId> {
        let topology = emulated.network.topology();
        match self.fault {
            Fault::LinkFails | Fault::ControllerKilled => vec![topology.link_at(SWITCH, PORT)],
            Fault::SwitchRestarts => {
                let ports = (0..topology.ports(SWITCH) as u16).map(PortIndex);
                ports.map(|port| topology.link_at(SWITCH, port)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn inject(&mut self, emulated: &mut Emulated, last: Timestamp, now: Timestamp) {
        let is_due = |at: Timestamp| last < at && at <= now;
        let links = self.links(emulated);
        if is_due(FAULT[0]) {
            self.control.control_faults = self.fault.control_faults();
            links.iter().for_each(|&link| emulated.network.fail(link));
            if self.fault == Fault::SwitchRestarts {
                self.switches.clear_rules(SWITCH);
            }
        }
        if is_due(FAULT[1]) {
            self.control.control_faults = ControlFaults::default();
            links.iter().for_each(|&link| emulated.network.repair(link));
        }
        if RESET.into_iter().any(is_due) {
            let flows: Vec<_> = emulated.hosts.flows().collect();
            flows.iter().for_each(|flow| emulated.hosts.set_address(flow.source, flow.destination, 0));
        }
        if !links.is_empty() && FAULT.into_iter().any(|at| is_due(at + LINK_NOTICE_DELAY)) {
            self.control.input(now, Input::Links(emulated.network.links().clone()));
        }
    }

    /// Executes the loop's commands to collectors and switches, one rule per call. [`EmulatedControl::advance`] carries out
    /// the reroutes, which are not among these commands.
    fn execute_commands(
        &mut self,
        emulated: &mut Emulated,
        collectors: &mut Collectors<'_>,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        if let Some(at) = self.controller_starts_at {
            if at > now {
                return Ok(());
            }
            self.controller_starts_at = None;
            self.reroutes_before += self.control.reroutes();
            self.control.restart(&self.versions.newest().state, decider(), now)?;
            self.control.input(now, Input::Tick);
        }
        while let Some(command) = self.control.next_command() {
            match command {
                Command::Announce { state, ahead } => {
                    self.versions.push(state, now)?;
                    collectors.set_network(&Arc::new(self.versions.clone()));
                    // The routes are valid from then on.
                    self.control.input(now, Input::Announced(now + ahead));
                }
                Command::ReadBack { .. } => {
                    let rules = self.switches.installed().clone();
                    self.control.input(now, Input::Tables { router: None, rules });
                }
                Command::RepairRules(changes) => {
                    self.is_installing = true;
                    self.switches.queue(changes);
                    if self.fault == Fault::ControllerKilled && now < FAULT[1] && !self.was_killed {
                        return self.kill(emulated, now);
                    }
                }
                _ => {}
            }
        }
        if self.is_installing {
            self.switches.step(emulated.network.as_mut())?;
            if self.switches.pending() == 0 {
                self.is_installing = false;
                self.control.input(now, Input::RulesRepaired);
            }
        }
        Ok(())
    }

    /// Installs half of the rules and kills the controller.
    fn kill(&mut self, emulated: &mut Emulated, now: Timestamp) -> anyhow::Result<()> {
        (0..self.switches.pending() / 2).try_for_each(|_| self.switches.step(emulated.network.as_mut()))?;
        self.switches.discard_pending();
        (self.is_installing, self.was_killed, self.controller_starts_at) =
            (false, true, Some(now + CONTROLLER_DOWNTIME));
        Ok(())
    }

    fn measure(&mut self, emulated: &Emulated, last: Timestamp, now: Timestamp) {
        let is_due = |at: Timestamp| last < at && at <= now;
        let delivered = emulated.hosts.totals().bytes_delivered;
        let hosts = emulated.network.topology().endpoints().len() as f64;
        for (place, [from, to]) in SPANS.into_iter().enumerate() {
            if is_due(from) {
                self.delivered_before[place] = delivered;
            }
            if is_due(to) {
                let bits = 8.0 * (delivered - self.delivered_before[place]) as f64;
                self.results.rates[place] = bits / to.since(from).0 as f64 / hosts;
                self.results.sharing[place] = self.sharing(emulated);
            }
        }
        if FAULT[0] < now && now.0 / 1_000_000 != last.0 / 1_000_000 {
            let broken_paths = self.switches.broken_paths(emulated.network.links());
            self.results.broken_paths[0] = self.results.broken_paths[0].max(broken_paths);
        }
    }

    /// Returns the number of flows that share a link.
    fn sharing(&self, emulated: &Emulated) -> usize {
        let mut paths = Paths::new(Arc::clone(&self.versions.newest().state));
        let mut links_of = |flow: &FlowStatus| {
            let pair = Pair { source: flow.source, destination: flow.destination };
            let address = emulated.hosts.address(flow.source, flow.destination);
            paths.of(pair, address).unwrap_or_default().to_vec()
        };
        let links: Vec<_> = emulated.hosts.flows().map(|flow| links_of(&flow)).collect();
        let users = |link| links.iter().filter(|of_flow| of_flow.contains(link)).count();
        links.iter().filter(|of_flow| of_flow.iter().any(|link| users(link) > 1)).count()
    }
}
