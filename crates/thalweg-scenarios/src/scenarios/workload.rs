//! `stride`, `bijection`, `random`, `shuffle`: all hosts of a fat tree send at once, and flows meet (Planck, section 7.1).
//!
//! Each scheme of steering gets a lab of its own, the same trees and the same flows, all drawn from the seed:
//!
//! | scheme | what it does |
//! |---|---|
//! | `static` | flows stay on the base addresses of their destinations (PAST) |
//! | `poll-1s`, `poll-0.1s` | global first fit, every second or ten times a second (Hedera) |
//! | `planck` | Planck's algorithm, when collectors tell of congestion |
//! | `optimal` | none is needed: all hosts are at one switch |
//!
//! Every host has the same amount to send: what its link carries in the time given. In `shuffle` that is divided among
//! all other hosts, in random order, two at a time; else it goes to one.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_control::Pair;
use thalweg_emulator::workloads::random::Random;
use thalweg_lab::headroom::Begun;
use thalweg_lab::{Headroom, LabError, Plan};
use thalweg_network::routing::TreeOptions;
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::Setting;
use crate::closed_loop::ClosedLoop;
use crate::configuration::{By, Decider, Files, Steering};
use crate::error::ScenarioError;
use crate::session::{Session, Spare, trees};
use crate::streams::transfer;
use thalweg_daemon::clock::wall_clock;

/// Addresses of a host: one for each core switch.
const ADDRESSES: u8 = 4;

/// Transfers that a host has under way in `shuffle` (Planck, section 7.1).
const AT_A_TIME: usize = 2;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each host to the one half of all hosts on: all flows cross the core. Stride(8) of 16.
    Stride,
    /// Each host to another, so that each receives from one.
    Bijection,
    /// Each host to any other: some receive from several.
    Random,
    /// Each host to all others.
    Shuffle,
}

/// What steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Nothing.
    Static,
    /// First fit, so often.
    Poll(Nanos),
    /// Planck's algorithm.
    Planck,
    /// Nothing has to.
    Optimal,
}

/// What was asked for is no scheme.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no scheme {text:?}: expected static, poll-1s, poll-0.1s, planck or optimal")]
pub struct ParseSchemeError {
    text: String,
}

impl Scheme {
    /// All that are compared unless said otherwise.
    pub const ALL: [Scheme; 5] = [
        Scheme::Static,
        Scheme::Poll(Nanos::from_secs(1)),
        Scheme::Poll(Nanos::from_millis(100)),
        Scheme::Planck,
        Scheme::Optimal,
    ];

    /// As it is typed.
    pub fn name(self) -> String {
        match self {
            Scheme::Static => "static".to_owned(),
            Scheme::Poll(interval) => format!("poll-{}s", interval.as_secs_f64()),
            Scheme::Planck => "planck".to_owned(),
            Scheme::Optimal => "optimal".to_owned(),
        }
    }

    fn steering(self, seed: u64, rate: BitRate) -> Steering {
        let decider = match self {
            Scheme::Static | Scheme::Optimal => Decider::Static,
            Scheme::Poll(interval) => Decider::FirstFit(interval),
            Scheme::Planck => Decider::Greedy,
        };
        Steering { decider, by: By::Arp, trees: TreeOptions { addresses: ADDRESSES, seed }, rate }
    }
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Scheme, ParseSchemeError> {
        let named = Scheme::ALL.into_iter().find(|scheme| scheme.name() == text);
        named.ok_or_else(|| ParseSchemeError { text: text.to_owned() })
    }
}

impl Pattern {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Stride => "stride",
            Pattern::Bijection => "bijection",
            Pattern::Random => "random",
            Pattern::Shuffle => "shuffle",
        }
    }

    /// By host, to whom it sends, in its order.
    pub fn destinations(self, hosts: u16, seed: u64) -> Vec<Vec<EndpointId>> {
        let count = usize::from(hosts);
        let mut random = Random::new(seed, self.name(), 0);
        let to = |index: usize| vec![EndpointId(index as u16)];
        match self {
            Pattern::Stride => (0..count).map(|host| to((host + count / 2) % count)).collect(),
            Pattern::Bijection => random.derangement(count).into_iter().map(to).collect(),
            // One of the others: a step of at least one on, all the way round at most.
            Pattern::Random => {
                (0..count).map(|host| to((host + 1 + random.index(count - 1)) % count)).collect()
            }
            Pattern::Shuffle => (0..hosts)
                .map(|host| {
                    let mut others: Vec<_> =
                        (0..hosts).filter(|&other| other != host).map(EndpointId).collect();
                    random.shuffle(&mut others);
                    others
                })
                .collect(),
        }
    }
}

/// What a scheme came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub scheme: Scheme,
    /// Throughput of every flow: payload over the time from its connection to its last byte, in bits per second.
    pub flows: Vec<f64>,
    /// How long each host took to send all that it had.
    pub hosts: Vec<Duration>,
    /// When a pair was sent another way, from the beginning on.
    pub moved: Vec<Duration>,
    /// What the machine had left.
    pub headroom: Headroom,
}

/// What all schemes came to.
#[derive(Clone, Debug)]
pub struct Results {
    /// Who sent to whom.
    pub pattern: Pattern,
    /// Of the links.
    pub rate: BitRate,
    /// Of flows and trees.
    pub seed: u64,
    /// What each host would have needed alone.
    pub time: Duration,
    /// In the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// A row of the results.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The scheme.
    pub scheme: String,
    /// Mean throughput of flows, in bits per second.
    pub mean_bps: f64,
    /// Of the slowest flow.
    pub least_bps: f64,
    /// Until the last byte of all.
    pub seconds: f64,
    /// How often a pair was sent another way.
    pub moves: u64,
    /// Part of the processors' time that was idle.
    pub idle: f64,
    /// Whether that was enough.
    pub conclusive: bool,
}

/// Runs a pattern under each of some schemes.
///
/// # Errors
/// If a lab cannot be had, or a connection fails.
pub fn run(
    pattern: Pattern,
    schemes: &[Scheme],
    time: Duration,
    seed: u64,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    let mut outcomes = Vec::new();
    for &scheme in schemes {
        let outcome = one(pattern, scheme, time, seed, setting)?;
        let mean = outcome.flows.iter().sum::<f64>() / outcome.flows.len().max(1) as f64;
        (setting.hear)(&format!("{}: flows at {}", scheme.name(), BitRate(mean as u64)));
        outcomes.push(outcome);
    }
    Ok(Results { pattern, rate: setting.rate, seed, time, outcomes })
}

/// The network of a scheme.
fn plan(scheme: Scheme, setting: &Setting<'_>) -> Result<Plan, ScenarioError> {
    let mut plan = Plan::fat_tree_4(setting.rate).map_err(LabError::from)?;
    if scheme == Scheme::Optimal {
        let hosts = plan.topology.endpoints().len() as u32;
        let link = LinkSpec { rate: setting.rate, ..LinkSpec::default() };
        plan = Plan::new(rack(hosts, link).expect("a small topology of links that can be"));
    }
    Ok(Plan { prefix: setting.prefix.clone(), ..plan })
}

/// What a user would write to steer it so under a scheme.
///
/// # Errors
/// If there can be no such lab.
pub fn files(scheme: Scheme, seed: u64, setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    Files::new(&plan(scheme, setting)?, &scheme.steering(seed, setting.rate))
}

fn one(
    pattern: Pattern,
    scheme: Scheme,
    time: Duration,
    seed: u64,
    setting: &mut Setting<'_>,
) -> Result<Outcome, ScenarioError> {
    let plan = plan(scheme, setting)?;
    let hosts = plan.topology.endpoints().len() as u16;
    let bytes = (setting.rate.0 as f64 * plan.host_share * time.as_secs_f64() / 8.0) as u64;
    let tables = trees(&plan.topology, ADDRESSES, seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let steering = scheme.steering(seed, setting.rate);
    let mut watched = ClosedLoop::start(&session.lab, &session.state, &steering)?;
    let (begun, mut spare, origin) = (Begun::now()?, Spare::default(), wall_clock());
    let (flows, hosts) = send_all(&session, &pattern.destinations(hosts, seed), bytes)?;
    spare.add(&begun)?;
    let told = watched.take_trace().told;
    let moved = told.iter().map(|told| Duration::from_nanos(told.decided.since(origin).0)).collect();
    watched.end();
    Ok(Outcome { scheme, flows, hosts, moved, headroom: spare.all() })
}

/// Sends from every host to all of its destinations, two at a time. Gives the throughput of all flows, and how long each
/// host took.
fn send_all(
    session: &Session,
    destinations: &[Vec<EndpointId>],
    bytes: u64,
) -> Result<(Vec<f64>, Vec<Duration>), ScenarioError> {
    let begun = Instant::now();
    let is_stopped = || session.is_stopped();
    let worker = |source: EndpointId, queue: &Mutex<VecDeque<EndpointId>>, bytes: u64| {
        let mut rates = Vec::new();
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some(destination) = next() {
            let took = transfer(&session.lab, Pair { source, destination }, bytes, &is_stopped)?;
            rates.push(8.0 * bytes as f64 / took.as_secs_f64());
        }
        Ok((rates, begun.elapsed()))
    };
    let queues: Vec<_> = destinations.iter().map(|list| Mutex::new(list.iter().copied().collect())).collect();
    thread::scope(|scope| {
        let worker = &worker;
        let mut workers = Vec::new();
        for (host, queue) in (0..).map(EndpointId).zip(&queues) {
            let count = destinations[host.index()].len();
            let share = bytes / count.max(1) as u64;
            for _ in 0..count.min(AT_A_TIME) {
                workers.push((host, scope.spawn(move || worker(host, queue, share))));
            }
        }
        let mut flows = Vec::new();
        let mut hosts = vec![Duration::ZERO; destinations.len()];
        for (host, worker) in workers {
            let ended: Result<(Vec<f64>, Duration), ScenarioError> =
                worker.join().map_err(|_| ScenarioError::Watching("a mistake of the program".to_owned()))?;
            let (rates, took) = ended?;
            flows.extend(rates);
            hosts[host.index()] = hosts[host.index()].max(took);
        }
        Ok((flows, hosts))
    })
}

impl Outcome {
    /// What it comes to.
    pub fn row(&self) -> Row {
        Row {
            scheme: self.scheme.name(),
            mean_bps: self.flows.iter().sum::<f64>() / self.flows.len().max(1) as f64,
            least_bps: self.flows.iter().copied().fold(f64::INFINITY, f64::min),
            seconds: self.hosts.iter().max().map_or(0.0, Duration::as_secs_f64),
            moves: self.moved.len() as u64,
            idle: self.headroom.idle,
            conclusive: self.headroom.verdict() == thalweg_lab::Verdict::Conclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nobody_sends_to_itself_and_patterns_are_what_they_are_called() {
        for seed in 1..20 {
            for pattern in [Pattern::Stride, Pattern::Bijection, Pattern::Random, Pattern::Shuffle] {
                let all = pattern.destinations(16, seed);
                assert_eq!(all.len(), 16);
                for (host, to) in (0..).map(EndpointId).zip(&all) {
                    assert!(!to.contains(&host) && to.iter().all(|to| to.index() < 16), "{pattern:?}");
                }
                let receivers: BTreeSet<_> = all.iter().map(|to| to[0]).collect();
                match pattern {
                    Pattern::Stride => assert_eq!(all[3], [EndpointId(11)]),
                    Pattern::Bijection => assert_eq!(receivers.len(), 16),
                    Pattern::Random => {}
                    Pattern::Shuffle => {
                        assert!(all.iter().all(|to| to.iter().collect::<BTreeSet<_>>().len() == 15));
                    }
                }
            }
        }
    }

    #[test]
    fn schemes_are_read_as_they_are_written() {
        for scheme in Scheme::ALL {
            assert_eq!(scheme.name().parse(), Ok(scheme));
        }
        assert!("ecmp".parse::<Scheme>().unwrap_err().to_string().contains("poll-0.1s"));
    }
}
