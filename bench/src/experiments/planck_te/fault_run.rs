//! A run in which something goes wrong, and is put right again; and whether steering goes on.
//!
//! Twice all hosts forget where they were sent, so that everybody collides anew as in the beginning: while something is
//! wrong, and after it has been put right. A loop that still works parts them again.

use std::sync::Arc;

use thalweg_control::Pair;
use thalweg_control::control_loop::{Command, Input};
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::routes::Paths;
use thalweg_emulator::hosts::FlowStatus;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId, Versions};
use thalweg_wire::{Bytes, Nanos, Timestamp};

use super::collectors::{Collectors, News, monitors};
use super::steering::{Hindrance, Steering, repairs};
use super::switches::Switches;
use super::trial::{Emulated, LOOK_EVERY, PAPER_HOSTS, Scheme, Trial};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    /// No notice of congestion arrives.
    EventsLost,
    /// Notices arrive up to 5 ms late, in any order.
    EventsReordered,
    /// Host 0 goes on sending to the address that it has.
    DeafHost,
    /// A link between aggregation and core is down; trees are found anew without it, and again when it is back.
    LinkFails,
    /// A switch restarts: its links are down, and its table is empty when they are up again.
    SwitchRestarts,
    /// A link fails; the controller is killed when half of the new rules are installed, and another one begins 20 ms later,
    /// which knows nothing, reads back what is installed and does the rest.
    ControllerKilled,
}

impl Fault {
    pub(super) const ALL: [Fault; 7] = [
        Fault::Nothing,
        Fault::EventsLost,
        Fault::EventsReordered,
        Fault::DeafHost,
        Fault::LinkFails,
        Fault::SwitchRestarts,
        Fault::ControllerKilled,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Fault::Nothing => "nothing",
            Fault::EventsLost => "all notices lost",
            Fault::EventsReordered => "notices up to 5 ms late, in any order",
            Fault::DeafHost => "a host takes no notice of its orders",
            Fault::LinkFails => "a link fails and returns",
            Fault::SwitchRestarts => "a switch restarts with an empty table",
            Fault::ControllerKilled => "a link fails, the controller is killed amid new rules",
        }
    }

    fn hindrance(self) -> Hindrance {
        match self {
            Fault::EventsLost => Hindrance { loss: 1.0, ..Hindrance::default() },
            Fault::EventsReordered => Hindrance { disorder: Nanos::from_millis(5), ..Hindrance::default() },
            Fault::DeafHost => Hindrance { deaf: Some(EndpointId(0)), ..Hindrance::default() },
            _ => Hindrance::default(),
        }
    }
}

/// The switch that restarts, and the one whose link fails: the first of the aggregation.
const SWITCH: RouterId = RouterId(8);
/// The port whose link fails: to the first core switch.
const PORT: PortIndex = PortIndex(2);

const fn ms(ms: u64) -> Timestamp {
    Timestamp(ms * 1_000_000)
}

/// From when to when something is wrong.
const WRONG: [Timestamp; 2] = [ms(60), ms(360)];
/// When all hosts forget.
const FORGET: [Timestamp; 2] = [ms(70), ms(380)];
/// Over which throughput is measured: before, while something is wrong, and after.
const SPANS: [[Timestamp; 2]; 3] = [[ms(30), WRONG[0]], [ms(260), WRONG[1]], [ms(480), END]];
const END: Timestamp = ms(560);
/// From a link's going down or up until the controller knows of it, and from new routes' being told to the collectors until
/// they are installed (section 4.1).
const NOTICED_AFTER: Nanos = Nanos::from_millis(1);
/// How long there is no controller.
const GONE_FOR: Nanos = Nanos::from_millis(20);

/// A run in which something goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordeal {
    pub(super) fault: Fault,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Passed {
    /// Gbit/s of a host, over each of the spans.
    pub(super) rates: [f64; 3],
    /// Flows that share a link between switches with another one, at the end of each span.
    pub(super) sharing: [usize; 3],
    /// Pairs and addresses that do not arrive, at worst and at the end.
    pub(super) astray: [usize; 2],
    /// Moves of the controller that there is in the end, and of those before.
    pub(super) moves: u64,
}

impl Ordeal {
    /// Runs it.
    ///
    /// # Errors
    /// If it cannot be.
    pub(super) fn run(&self) -> anyhow::Result<Passed> {
        let trial = Trial {
            scheme: Scheme::PLANCK,
            bytes: Bytes(1 << 30),
            seed: self.seed,
            host_rate: PAPER_HOSTS,
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
            steering: Steering::new(
                &state,
                decider(),
                repairs(trial.trees(), NOTICED_AFTER),
                trial.control_delay,
                0.0,
                self.seed,
            )?,
            trial,
            repairs: false,
            was_killed: false,
            begins_again: None,
            passed: Passed::default(),
            moves_before: 0,
        };
        let clock = emulated.network.clock();
        let shared = Arc::new(run.versions.clone());
        let mut collectors = Collectors::new(&topology, clock, &shared, &run.trial.rule, self.seed)?;
        let mut news = News::default();
        let mut last = Timestamp(0);
        loop {
            emulated.slot();
            collectors.take(emulated.network.as_mut(), &emulated.hosts);
            if !emulated.network.now().0.is_multiple_of(LOOK_EVERY) {
                continue;
            }
            let now = clock.start_of(emulated.network.now());
            collectors.read(now, &mut news);
            if run.begins_again.is_none() {
                run.steering.hear(&mut news, now);
            } else {
                news = News::default();
            }
            run.go_wrong(&mut emulated, last, now);
            run.put_right(&mut emulated, &mut collectors, now)?;
            if run.begins_again.is_none() {
                run.steering.advance(&mut emulated.hosts, now);
            }
            run.measure(&emulated, last, now);
            last = now;
            if now >= END {
                run.passed.astray[1] = run.switches.astray(emulated.network.links());
                run.passed.moves = run.moves_before + run.steering.moves();
                return Ok(run.passed);
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
    steering: Steering,
    /// Rules are being put right.
    repairs: bool,
    was_killed: bool,
    /// When there will be a controller again.
    begins_again: Option<Timestamp>,
    passed: Passed,
    moves_before: u64,
}

impl Run {
    /// Links that are down while something is wrong.
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

    fn go_wrong(&mut self, emulated: &mut Emulated, last: Timestamp, now: Timestamp) {
        let comes = |at: Timestamp| last < at && at <= now;
        let links = self.links(emulated);
        if comes(WRONG[0]) {
            self.steering.hindrance = self.fault.hindrance();
            links.iter().for_each(|&link| emulated.network.fail(link));
            if self.fault == Fault::SwitchRestarts {
                self.switches.lose(SWITCH);
            }
        }
        if comes(WRONG[1]) {
            self.steering.hindrance = Hindrance::default();
            links.iter().for_each(|&link| emulated.network.repair(link));
        }
        if FORGET.into_iter().any(comes) {
            let flows: Vec<_> = emulated.hosts.flows().collect();
            flows.iter().for_each(|flow| emulated.hosts.set_address(flow.source, flow.destination, 0));
        }
        if !links.is_empty() && WRONG.into_iter().any(|at| comes(at + NOTICED_AFTER)) {
            self.steering.tell(now, Input::Links(emulated.network.links().clone()));
        }
    }

    /// Carries out what the loop commands of collectors and switches, rule by rule.
    fn put_right(
        &mut self,
        emulated: &mut Emulated,
        collectors: &mut Collectors<'_>,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        if let Some(at) = self.begins_again {
            if at > now {
                return Ok(());
            }
            self.begins_again = None;
            self.moves_before += self.steering.moves();
            self.steering.restart(&self.versions.newest().state, decider(), now)?;
            self.steering.tell(now, Input::Tick);
        }
        while let Some(command) = self.steering.next_command() {
            match command {
                Command::Announce { state, ahead } => {
                    self.versions.push(state, now)?;
                    collectors.set_network(&Arc::new(self.versions.clone()));
                    self.steering.tell(now, Input::Announced(now + ahead));
                }
                Command::ReadBack { .. } => {
                    let rules = self.switches.installed().clone();
                    self.steering.tell(now, Input::Tables { router: None, rules });
                }
                Command::Repair(changes) => {
                    self.repairs = true;
                    self.switches.aim(changes);
                    if self.fault == Fault::ControllerKilled && now < WRONG[1] && !self.was_killed {
                        return self.kill(emulated, now);
                    }
                }
                _ => {}
            }
        }
        if self.repairs {
            self.switches.step(emulated.network.as_mut())?;
            if self.switches.to_do() == 0 {
                self.repairs = false;
                self.steering.tell(now, Input::Repaired);
            }
        }
        Ok(())
    }

    /// Half of the rules are installed; then there is no controller for a while.
    fn kill(&mut self, emulated: &mut Emulated, now: Timestamp) -> anyhow::Result<()> {
        (0..self.switches.to_do() / 2).try_for_each(|_| self.switches.step(emulated.network.as_mut()))?;
        self.switches.give_up();
        (self.repairs, self.was_killed, self.begins_again) = (false, true, Some(now + GONE_FOR));
        Ok(())
    }

    fn measure(&mut self, emulated: &Emulated, last: Timestamp, now: Timestamp) {
        let comes = |at: Timestamp| last < at && at <= now;
        let delivered = emulated.hosts.totals().bytes_delivered as f64;
        let hosts = emulated.network.topology().endpoints().len() as f64;
        for (place, [from, to]) in SPANS.into_iter().enumerate() {
            let rate = &mut self.passed.rates[place];
            if comes(from) {
                *rate = -delivered;
            }
            if comes(to) {
                *rate = 8.0 * (*rate + delivered) / to.since(from).0 as f64 / hosts;
                self.passed.sharing[place] = self.sharing(emulated);
            }
        }
        if WRONG[0] < now && now.0 / 1_000_000 != last.0 / 1_000_000 {
            let astray = self.switches.astray(emulated.network.links());
            self.passed.astray[0] = self.passed.astray[0].max(astray);
        }
    }

    /// Flows that are not alone on their links.
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
