//! `collide`: a second flow comes onto the link of a first one, and the loop takes them apart.
//!
//! Two pairs of hosts whose base addresses lead over the same link send TCP. The first flow fills the link; the second
//! comes, and both share it. The collectors see more on its way to that link than it carries, the controller finds that
//! another address of one destination leads round it, the source is told by ARP, and its packets take the other path.
//!
//! | time | from | to |
//! |---|---|---|
//! | notice | first full packet of the second flow at a monitor port | the packet that gave the event away |
//! | decision | that packet | the controller turns to the event |
//! | action | that moment | the decision is taken and the ARP request sent |
//! | effect | the request | first packet with the new address at a monitor port |
//!
//! Event to new path is all but the first of these, and the loop is all of them.

use std::time::Duration;

use serde::Serialize;
use thalweg_control::Pair;
use thalweg_control::routes::{LinkNumber, Paths};
use thalweg_lab::headroom::{Begun, Verdict};
use thalweg_lab::{Headroom, Plan, Plane};
use thalweg_network::routing::TreeOptions;
use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, Topology};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::Setting;
use crate::closed_loop::ClosedLoop;
use crate::configuration::{By, Decider, Files, Steering};
use crate::error::ScenarioError;
use crate::session::{Session, Spare, trees};
use crate::spread::Spread;
use crate::trace::{Moved, Told, Trace};
use crate::traffic::{self, Load, Server, Transfer};

/// Addresses of a host: one for each spine.
pub(super) const ADDRESSES: u8 = 2;

/// Trees are drawn anew until two flows collide, so often at most.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=64;

/// How long the first flow has the link to itself: beyond its slow start.
pub(super) const ALONE: Duration = Duration::from_millis(700);

/// How long the second flow sends.
const TOGETHER: Duration = Duration::from_secs(1);

/// After a trial: for what is in queues, and for hosts to take their old ways.
pub(super) const REST: Duration = Duration::from_millis(150);

/// What the plot shows before and after the collision.
const SHOWN: (Nanos, Nanos) = (Nanos::from_millis(50), Nanos::from_millis(100));

/// When both flows should have their full rates, after the collision.
const AFTER: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_millis(800));

/// Two flows, and the link that they meet on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The flow that is there first, and the one that comes.
    pub pairs: [Pair; 2],
    /// Switches at both ends of the link, by name.
    pub link: (String, String),
    /// Of the trees that make it so.
    pub seed: u64,
}

/// The times of one turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// First full packet of the second flow to the packet that gave the event away.
    pub notice_ns: u64,
    /// That packet to the moment when the controller turned to the event.
    pub decision_ns: u64,
    /// That moment to the ARP request: deciding, and sending.
    pub action_ns: u64,
    /// The request to the first packet with the new address.
    pub effect_ns: u64,
}

impl Turn {
    /// From the decision to the first packet on the new path.
    pub fn decision_to_path(&self) -> Nanos {
        Nanos(self.action_ns + self.effect_ns)
    }

    /// From the event to the first packet on the new path.
    pub fn event_to_path(&self) -> Nanos {
        Nanos(self.decision_ns + self.action_ns + self.effect_ns)
    }

    /// From the collision to the first packet on the new path.
    pub fn whole(&self) -> Nanos {
        Nanos(self.notice_ns).saturating_add(self.event_to_path())
    }
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// What the loop took; `None` if the flows were not taken apart, or before they met.
    pub turn: Option<Turn>,
    /// Whether what arranges the second transfer was taken for it, and they never met.
    pub is_early: bool,
    /// What both flows carried from 0.2 to 0.8 s after the collision, payload alone, in bits per second.
    pub rates: [f64; 2],
    /// Part of the processors' time that was idle.
    pub idle: f64,
    /// Rates of both flows over time, in nanoseconds from the collision.
    #[serde(skip)]
    pub curves: [Vec<(f64, f64)>; 2],
}

/// What all trials came to.
#[derive(Clone, Debug)]
pub struct Results {
    /// Of the links.
    pub rate: BitRate,
    /// Who sent to whom: the names of hosts.
    pub flows: [String; 2],
    /// The link that they met on.
    pub link: (String, String),
    /// In their order.
    pub trials: Vec<Trial>,
    /// Of all trials together.
    pub headroom: Headroom,
    /// Frames that were lost between the monitor ports and the collectors, and frames and events of theirs that were overwritten
    /// before the lab looked at them.
    pub missed_frames: u64,
}

/// Runs it.
///
/// # Errors
/// If the lab cannot be had, or iperf3 fails.
pub fn run(trials: u32, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    run_on(Plane::Ebpf, By::Arp, trials, setting)
}

/// The same on switches of this kind, with flows sent another way by these means.
///
/// # Errors
/// If the lab cannot be had, or iperf3 fails.
pub(super) fn run_on(
    plane: Plane,
    by: By,
    trials: u32,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), plane, ..plan };
    let collision = choose(&plan.topology)?;
    let tables = trees(&plan.topology, ADDRESSES, collision.seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let steering = steering(by, collision.seed, setting.rate);
    let mut watched = ClosedLoop::start(&session.lab, &session.state, &steering)?;
    let servers = [0, 1].map(|flow| Server::start(&session.lab, collision.pairs[usize::from(flow)], flow));
    let _servers = servers.into_iter().collect::<Result<Vec<_>, _>>()?;
    session.wait(REST)?;
    let (mut done, mut spare) = (Vec::new(), Spare::default());
    for number in 1..=trials {
        let trial = trial(&session, &collision, &watched, &mut spare)?;
        let told = match &trial.turn {
            Some(turn) => format!("apart after {}", turn.whole()),
            None if trial.is_early => "apart before they met".to_owned(),
            None => "not taken apart".to_owned(),
        };
        (setting.hear)(&format!("trial {number} of {trials}: {told}"));
        done.push(trial);
    }
    let tally = watched.end();
    let topology = session.lab.topology();
    Ok(Results {
        rate: setting.rate,
        flows: collision.pairs.map(|pair| pair.name(topology).to_string()),
        link: collision.link,
        trials: done,
        headroom: spare.all(),
        missed_frames: tally.sources.kernel_drops + tally.missed,
    })
}

/// How it is steered by these means.
pub(super) fn steering(by: By, seed: u64, rate: BitRate) -> Steering {
    let trees = TreeOptions { addresses: ADDRESSES, seed };
    Steering { decider: Decider::Greedy, by, trees, rate }
}

/// What a user would write to steer it so, on switches of this kind.
///
/// # Errors
/// If there can be no such lab.
pub fn files(plane: Plane, by: By, setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), plane, ..plan };
    let seed = choose(&plan.topology)?.seed;
    Files::new(&plan, &steering(by, seed, setting.rate))
}

/// Sends by both flows, the second later, and watches them being taken apart; sends both home again.
///
/// # Errors
/// If iperf3 fails.
pub(super) fn trial(
    session: &Session,
    collision: &Collision,
    watched: &ClosedLoop,
    spare: &mut Spare,
) -> Result<Trial, ScenarioError> {
    let [first, second] = collision.pairs;
    watched.take_trace();
    let begun = Begun::now()?;
    let one = Transfer::start(&session.lab, first, 0, Load::Tcp(TOGETHER * 2))?;
    session.wait(ALONE)?;
    let other = Transfer::start(&session.lab, second, 1, Load::Tcp(TOGETHER))?;
    let is_stopped = || session.is_stopped();
    other.finish(is_stopped)?;
    let headroom = spare.add(&begun)?;
    one.finish(is_stopped)?;
    let trace = watched.take_trace();
    watched.send_home(&collision.pairs)?;
    session.wait(REST)?;
    let Some(&met) = trace.began.get(&second) else {
        return Err(ScenarioError::Watching("the second flow was not seen".to_owned()));
    };
    let rates = |(from, to): (Timestamp, Timestamp), step| {
        collision.pairs.map(|pair| {
            trace.arrived.get(&pair).map_or_else(Vec::new, |arrivals| arrivals.rates(met, (from, to), step))
        })
    };
    let after = rates((met + AFTER.0, met + AFTER.1), Nanos(AFTER.1.0 - AFTER.0.0));
    let told = trace.told.iter().find(|told| collision.pairs.contains(&told.pair));
    let is_early = told.is_some_and(|told| told.event < met);
    Ok(Trial {
        turn: told.filter(|_| !is_early).and_then(|told| turn(&trace, told, met)),
        is_early,
        rates: after.map(|steps| steps.first().map_or(0.0, |step| step.1)),
        idle: headroom.idle,
        curves: rates((met.saturating_sub(SHOWN.0), met + SHOWN.1), Nanos::from_millis(1)),
    })
}

/// What a turn of the loop took that ended in what a host was told, if that had an effect.
fn turn(trace: &Trace, told: &Told, met: Timestamp) -> Option<Turn> {
    let is_effect = |moved: &&Moved| {
        moved.pair == told.pair && moved.address == told.address && moved.time >= told.decided
    };
    let moved = trace.moved.iter().find(is_effect)?;
    Some(Turn {
        notice_ns: told.event.since(met).0,
        decision_ns: told.decided.since(told.event).0,
        action_ns: told.sent.since(told.decided).0,
        effect_ns: moved.time.since(told.sent).0,
    })
}

/// Two pairs whose packets meet on a link between switches, and that can be taken apart by sending either another way.
/// Sources are in different racks if there are such, so that neither monitor port has to carry both flows before they
/// meet.
///
/// # Errors
/// If there are none.
pub fn choose(topology: &std::sync::Arc<Topology>) -> Result<Collision, ScenarioError> {
    choose_where(topology, |_, _, _| true)
}

/// As [`choose`], of pairs and the link that they meet on for which something `holds`.
///
/// # Errors
/// If there are none.
pub(super) fn choose_where(
    topology: &std::sync::Arc<Topology>,
    holds: impl Fn(&mut Paths, [Pair; 2], LinkNumber) -> bool,
) -> Result<Collision, ScenarioError> {
    let mut best = None;
    for seed in SEEDS {
        let tables = Forwarding::tables(trees(topology, ADDRESSES, seed));
        let state = NetworkState::new(topology.clone(), LinkState::new(topology), tables)?;
        let mut paths = Paths::new(state.into());
        for pairs in candidates(topology) {
            let link = meeting(&mut paths, pairs).filter(|&link| holds(&mut paths, pairs, link));
            let Some(link) = link else { continue };
            let (router, port) = paths.port(link);
            let name = |node| topology.name(node).to_owned();
            let link = (name(Node::Router(router)), name(topology.peer(router, port).node));
            let collision = Collision { pairs, link, seed };
            let [one, other] = pairs.map(|pair| topology.router_of(pair.source));
            if one != other {
                return Ok(collision);
            }
            best.get_or_insert(collision);
        }
    }
    best.ok_or(ScenarioError::NothingCollides)
}

/// Other trees by which the same pairs meet.
///
/// # Errors
/// If there are none.
pub(super) fn other_trees(
    topology: &std::sync::Arc<Topology>,
    collision: &Collision,
) -> Result<u64, ScenarioError> {
    for seed in SEEDS.filter(|&seed| seed != collision.seed) {
        let tables = trees(topology, ADDRESSES, seed);
        if tables == trees(topology, ADDRESSES, collision.seed) {
            continue;
        }
        let state =
            NetworkState::new(topology.clone(), LinkState::new(topology), Forwarding::tables(tables))?;
        if meeting(&mut Paths::new(state.into()), collision.pairs).is_some() {
            return Ok(seed);
        }
    }
    Err(ScenarioError::NothingCollides)
}

/// All two pairs of four hosts, each pair between two racks.
fn candidates(topology: &Topology) -> impl Iterator<Item = [Pair; 2]> + '_ {
    let pairs = || {
        let ends = topology.endpoint_ids();
        let all =
            ends.flat_map(|source| topology.endpoint_ids().map(move |destination| (source, destination)));
        let far = |&(a, b): &(EndpointId, EndpointId)| topology.router_of(a) != topology.router_of(b);
        all.filter(far).map(|(source, destination)| Pair { source, destination })
    };
    let apart = |one: &Pair, other: &Pair| {
        let [a, b, c, d] = [one.source, one.destination, other.source, other.destination];
        a < c && a != d && b != c && b != d
    };
    pairs()
        .flat_map(move |one| pairs().filter(move |other| apart(&one, other)).map(move |other| [one, other]))
}

/// The link between switches that two pairs have in common by base addresses, if neither has any in common with the
/// other once it goes another way.
fn meeting(paths: &mut Paths, [one, other]: [Pair; 2]) -> Option<LinkNumber> {
    let mut links = |pair, address| paths.of(pair, address).map(<[_]>::to_vec);
    let (home, there) = (links(one, 0)?, links(other, 0)?);
    let (round, round_there) = (links(one, 1)?, links(other, 1)?);
    let are_apart = |a: &[_], b: &[_]| !a.iter().any(|link| b.contains(link));
    (are_apart(&round, &there) && are_apart(&home, &round_there))
        .then(|| home.iter().copied().find(|link| there.contains(link)))
        .flatten()
}

impl Results {
    /// The turns of the trials that had one.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> + '_ {
        self.trials.iter().filter_map(|trial| trial.turn.as_ref())
    }

    /// How one of their times lies.
    pub fn spread(&self, time: impl Fn(&Turn) -> Nanos) -> Spread {
        Spread::of(self.turns().map(time))
    }

    /// The trial whose loop took as long as half of them at most.
    pub fn typical(&self) -> Option<&Trial> {
        let whole = self.spread(Turn::whole).p50_ns;
        self.trials.iter().find(|trial| trial.turn.is_some_and(|turn| turn.whole().0 == whole))
    }

    /// Whether the machine had time to spare.
    pub fn is_conclusive(&self) -> bool {
        self.headroom.verdict() == Verdict::Conclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_told_in_parts_that_add_up() {
        let pair = Pair { source: EndpointId(0), destination: EndpointId(2) };
        let at = |ns: u64| Timestamp(1_000_000 + ns);
        let told = Told { pair, address: 1, event: at(400), decided: at(450), sent: at(470) };
        let moved = |address, ns| Moved { pair, address, time: at(ns) };
        let before = Trace { moved: vec![moved(1, 100), moved(0, 900)], ..Trace::default() };
        assert_eq!(turn(&before, &told, at(0)), None, "what was seen before, or elsewhere, is no effect");
        let trace = Trace { moved: vec![moved(1, 100), moved(0, 900), moved(1, 1_000)], ..Trace::default() };
        let turn = turn(&trace, &told, at(0)).unwrap();
        assert_eq!(turn, Turn { notice_ns: 400, decision_ns: 50, action_ns: 20, effect_ns: 530 });
        assert_eq!((turn.event_to_path(), turn.whole()), (Nanos(600), Nanos(1_000)));
    }

    #[test]
    fn two_flows_meet_on_a_link_and_come_from_different_racks() {
        let topology = Plan::leaf_spine(thalweg_lab::DEFAULT_RATE).unwrap().topology;
        let Collision { pairs: [one, other], link, .. } = choose(&topology).unwrap();
        assert_ne!(topology.router_of(one.source), topology.router_of(other.source));
        assert_eq!(topology.router_of(one.destination), topology.router_of(other.destination));
        assert!(link.0.starts_with("spine") && link.1.starts_with("leaf"), "{link:?}");
    }

    #[test]
    fn where_there_is_one_path_nothing_can_be_taken_apart() {
        use thalweg_network::topology::shapes::{Tiers, dumbbell};
        let topology = std::sync::Arc::new(dumbbell(2, Tiers::default()).unwrap());
        assert!(matches!(choose(&topology), Err(ScenarioError::NothingCollides)));
    }
}
