//! The thread: hears what collectors tell, has the controller decide, and tells what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use thalweg_control::Pair;
use thalweg_control::controller::UNRESPONSIVE;
use thalweg_control::decide::{Decision, Observed, Verdict};
use thalweg_control::notices::congestion;
use thalweg_network::{EndpointId, Node, Topology};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::Control;
use super::actuators::Upkeep;
use super::desk::{ActionOutcome, ActionReport, News, Work};
use super::names::Names;
use super::notices::Notice;
use super::remotes::Remotes;
use super::routes::Routes;
use crate::serve::daemon::Daemon;
use crate::serve::event::{Event, EventKind};

/// How late deadlines, polls and a new network may be noticed.
const TICK: Duration = Duration::from_millis(5);

/// Notices that are dealt with before what came of them is told.
const AT_ONCE: usize = 64;

/// After so long collectors have seen whoever sends, and a controller that has just begun looks where flows are.
const LEARNING: Duration = Duration::from_secs(1);

/// How long all flows are waited for when they are polled.
const POLL_PATIENCE: Duration = Duration::from_millis(500);

/// The name under which the controller tells of what it does, as collectors have theirs.
const NAME: &str = "control";

/// The controller's thread.
pub(super) struct Steering {
    control: Control,
    daemon: Daemon,
    routes: Routes,
    upkeep: Box<dyn Upkeep>,
    remotes: Remotes,
    /// When the routes are to be set, which collectors know of.
    install_at: Option<Timestamp>,
    /// When it looks where flows are that a controller before it may have steered.
    learn_at: Option<Instant>,
    name: Arc<str>,
}

impl Steering {
    pub(super) fn new(
        control: Control,
        daemon: Daemon,
        routes: Routes,
        upkeep: Box<dyn Upkeep>,
        remotes: Remotes,
    ) -> Steering {
        let learn_at = Some(Instant::now() + LEARNING);
        Steering { control, daemon, routes, upkeep, remotes, install_at: None, learn_at, name: NAME.into() }
    }

    /// Meets whoever is to carry decisions out.
    ///
    /// # Errors
    /// In words, if that cannot be.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        self.upkeep.begin()
    }

    /// Steers until nobody tells anything any more.
    pub(super) fn run(mut self, notices: &Receiver<Notice>) {
        self.announce();
        let mut heard = Vec::with_capacity(AT_ONCE);
        loop {
            match notices.recv_timeout(TICK) {
                Ok(notice) => heard.push(notice),
                // Whoever listens to others may do so long after the last collector here has ended.
                Err(RecvTimeoutError::Timeout) if self.remotes.are_there() && self.daemon.is_stopping() => {
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            heard.extend(notices.try_iter().take(AT_ONCE - 1));
            self.follow_network();
            let (news, names) = self.round(&mut heard);
            self.tell(news, &names);
        }
        self.sum_up();
    }

    /// Tells collectors of the routes; they are set when they are to hold.
    fn announce(&mut self) {
        self.control.desk().lock().clock.follow(&self.daemon);
        self.install_at = self.routes.announce(self.control.config(), &self.daemon);
        if self.install_at.is_some() {
            self.remotes.push(self.routes.state());
        }
        self.control.desk().lock().has_routes = self.install_at.is_none();
    }

    /// Takes up another network, if somebody else has given the daemon one.
    fn follow_network(&mut self) {
        let Some(versions) = self.daemon.network() else { return };
        let newest = versions.newest();
        if newest.number == self.routes.version() {
            return;
        }
        match Routes::new(self.control.config(), &newest.state) {
            Ok(routes) => {
                tracing::info!(version = newest.number, "steers a new network");
                self.routes = routes;
                self.control.desk().set_paths(self.routes.state());
                self.announce();
            }
            Err(error) => tracing::error!("cannot steer the new network: {error}"),
        }
    }

    /// Deals with what was heard, and with what is due.
    fn round(&mut self, heard: &mut Vec<Notice>) -> (News, Arc<Names>) {
        let desk = self.control.desk();
        let poll = {
            let mut work = desk.lock();
            let now = work.clock.now();
            if self.install_at.is_some_and(|at| at <= now) {
                self.install_at = None;
                match self.upkeep.install(self.routes.state()) {
                    Ok(()) => work.has_routes = true,
                    Err(error) => tracing::error!("routes are not set: {error}"),
                }
            }
            heard.drain(..).for_each(|notice| hear(&mut work, &notice));
            let now = work.clock.now();
            work.controller.advance(now);
            work.controller.next_poll().filter(|&at| at <= now && work.has_routes)
        };
        let learns = self.learn_at.take_if(|at| *at <= Instant::now()).is_some();
        if learns || poll.is_some() {
            // Collectors are asked without holding anybody up.
            let flows = all_flows(&self.daemon, self.routes.state().topology());
            let mut work = desk.lock();
            let now = work.clock.now();
            match poll {
                Some(_) => work.controller.polled(&flows, now),
                None => work.controller.find(&flows, now),
            }
        }
        let mut work = desk.lock();
        self.upkeep.tend(work.clock.now());
        work.switches = self.upkeep.switches();
        (work.take_news(), Arc::clone(&work.names))
    }

    /// Tells subscribers and the log; decisions to stay are only kept.
    fn tell(&self, news: News, names: &Arc<Names>) {
        for decision in news.decisions {
            if decision.verdict == Verdict::Goes {
                tracing::info!("{}", decision_in_words(&decision, names));
                let (time, switch) = (decision.time, names.switch(decision.pair.source));
                self.publish(time, switch, EventKind::Decision(decision, Arc::clone(names)));
            }
        }
        for report in news.actions {
            if let ActionOutcome::Confirmed(after) = report.outcome {
                self.control.0.effect.record(Duration::from_nanos(after.0));
            }
            if report.outcome == ActionOutcome::Expired {
                self.warn_of(report.action.pair.source, names);
            }
            if report.outcome != ActionOutcome::Begun {
                log_action(&report, names);
                let (time, switch) = (ended_at(&report), names.switch(report.action.pair.source));
                self.publish(time, switch, EventKind::Action(report, Arc::clone(names)));
            }
        }
    }

    /// Says once that a host takes no notice.
    fn warn_of(&self, host: EndpointId, names: &Names) {
        let unresponsive =
            self.control.desk().lock().controller.unresponsive().find(|(source, _)| *source == host);
        if let Some((_, UNRESPONSIVE)) = unresponsive {
            tracing::warn!("{} takes no notice of what it is told, or sends no more", names.host(host));
        }
    }

    fn publish(&self, time: Timestamp, switch: &str, kind: EventKind) {
        let (collector, switch) = (Arc::clone(&self.name), switch.into());
        let emitted = self.control.desk().lock().clock.emitted(time);
        self.daemon.hub().publish(Event { collector, switch, time, emitted, kind });
    }

    /// The last word.
    fn sum_up(&self) {
        let counters = self.control.desk().report().counters;
        let effect = self.control.effect_latency();
        let quantile =
            |share| effect.quantile(share).map_or(Nanos::ZERO, |time| Nanos(time.as_nanos() as u64));
        tracing::info!(
            "steered: {} flows sent another way, {} seen to go there (half of them within {}, 99 % within {} of the \
             decision), {} not in time, {} refused; {} decisions to stay",
            counters.begun,
            counters.confirmed,
            quantile(0.5),
            quantile(0.99),
            counters.expired,
            counters.refused,
            counters.decisions[Verdict::Stays as usize],
        );
    }
}

/// What a collector tells goes to the controller, once there are routes to choose among.
fn hear(work: &mut Work, notice: &Notice) {
    match notice {
        Notice::Link(switch, event) => {
            work.clock.hear(event.time);
            let paths = work.controller.paths();
            let Some(Node::Router(router)) = paths.topology().node_named(switch) else { return };
            let congestion = congestion(paths, router, event, 0.0);
            if let Some(congestion) = congestion.filter(|_| work.has_routes) {
                work.controller.congested(&congestion);
            }
        }
        Notice::PacketTime => work.clock.go_by_packets(),
        Notice::Address(change) => {
            work.clock.hear(change.time);
            let topology = work.controller.paths().topology();
            if let Some((pair, address)) = Pair::of(topology, &change.to) {
                work.controller.seen(pair, address, change.time);
            }
        }
    }
}

/// All traffic there is, as the switches see it where it begins, or wherever it is seen if nobody looks there. Collectors
/// that do not answer in time are left out.
fn all_flows(daemon: &Daemon, topology: &Topology) -> Vec<Observed> {
    // By pair: whether it was seen where it begins, and how.
    let mut found: BTreeMap<Pair, (bool, Observed)> = BTreeMap::new();
    for collector in daemon.collectors() {
        let Some(Node::Router(router)) = topology.node_named(&collector.description().switch) else {
            continue;
        };
        let mut here: BTreeMap<Pair, Observed> = BTreeMap::new();
        let answered = collector.flows(POLL_PATIENCE, |report| {
            let Some(known) = report.rate.filter(|known| known.rate.value > 0.0) else { return };
            let Some((pair, address)) = Pair::of(topology, &known.ethernet) else { return };
            let seen = here.entry(pair).or_insert(Observed { pair, address, rate: BitRate(0) });
            seen.rate.0 += known.rate.value as u64;
        });
        if let Err(error) = answered {
            tracing::warn!(collector = collector.name(), "was not polled: {error}");
        }
        for (pair, observed) in here {
            let is_first = topology.router_of(pair.source) == router;
            let better = found.get(&pair).is_none_or(|(was_first, _)| is_first && !was_first);
            if better {
                found.insert(pair, (is_first, observed));
            }
        }
    }
    found.into_values().map(|(_, observed)| observed).collect()
}

/// `h0 > h8 goes by address 2, not 0: expects 948 Mbit/s, not 474 Mbit/s; edge0:p2:out is congested`
fn decision_in_words(decision: &Decision, names: &Names) -> String {
    use thalweg_control::decide::Cause;
    let Decision { pair, from, to, cause, alternatives, .. } = decision;
    let expected = |address| alternatives.iter().find(|way| way.address == address).map(|way| way.expected);
    let promise = match (expected(*to), expected(*from)) {
        (Some(there), Some(here)) => format!("{there} expected there, {here} here"),
        (Some(there), None) => format!("{there} expected there"),
        _ => "it fits there".to_owned(),
    };
    let why = match cause {
        Cause::Congestion(link) => format!("{} is congested", names.link(*link)),
        Cause::Poll => "it was polled".to_owned(),
    };
    format!("{} goes by address {to}, not {from}: {promise}; {why}", names.pair(*pair))
}

fn log_action(report: &ActionReport, names: &Names) {
    let ActionReport { action, outcome } = report;
    let what = format!("{} by address {}", names.pair(action.pair), action.address);
    match outcome {
        ActionOutcome::Begun => {}
        ActionOutcome::Confirmed(after) => tracing::info!("{what}: seen, {after} after the decision"),
        ActionOutcome::Expired => tracing::warn!("{what}: not seen in time"),
        ActionOutcome::Superseded => tracing::info!("{what}: overtaken by another decision"),
        ActionOutcome::Refused(error) => tracing::warn!("{what}: refused: {error}"),
    }
}

/// When something came of an action, by packet time.
fn ended_at(report: &ActionReport) -> Timestamp {
    let ActionReport { action, outcome } = report;
    match outcome {
        ActionOutcome::Confirmed(after) => action.issued + *after,
        ActionOutcome::Expired => action.deadline,
        _ => action.issued,
    }
}
