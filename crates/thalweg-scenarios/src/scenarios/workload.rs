//! `stride`, `bijection`, `random`, `shuffle`: all hosts of a fat tree send at once (Planck, section 7.1).
//!
//! Each method runs in its own lab with the same trees and flows, drawn from the seed:
//!
//! | method | traffic engineering |
//! |---|---|
//! | `static` | flows stay on the base addresses of their destinations (PAST) |
//! | `poll-1s`, `poll-0.1s` | global first fit every 1 s or 0.1 s (Hedera) |
//! | `planck` | Planck's algorithm, on congestion events of collectors |
//! | `optimal` | none needed: all hosts are attached to one switch |
//! Every host sends what its link carries in the given time: in `shuffle` divided among all other hosts, in random
//! order, two at a time; otherwise to one host.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_control::Pair;
use thalweg_emulator::workloads::random::Random;
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::{Headroom, LabError, Plan};
use thalweg_network::routing::TreeOptions;
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::Setting;
use crate::closed_loop::ClosedLoop;
use crate::configuration::{ActuatorKind, Decider, Files, RerouteOptions};
use crate::error::ScenarioError;
use crate::session::{HeadroomSum, Session, trees};
use crate::streams::transfer;
use thalweg_linux::clock::realtime;

/// Addresses of a host: one per core switch.
const ADDRESSES: u8 = 4;

/// Concurrent transfers of a host in `shuffle` (Planck, section 7.1).
const CONCURRENT_TRANSFERS: usize = 2;

/// A traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Host i sends to host i + n/2: all flows cross the core. Stride(8) for 16 hosts.
    Stride,
    /// Each host sends to another, and each receives from one.
    Bijection,
    /// Each host sends to a random other one: some receive from several.
    Random,
    /// Each host sends to all others.
    Shuffle,
}

/// A method of traffic engineering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// None.
    Static,
    /// Global first fit, at this interval.
    Poll(Nanos),
    /// Planck's algorithm.
    Planck,
    /// None, with all hosts at one switch.
    Optimal,
}

/// The text is not the name of a method.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown method {text:?}: expected static, poll-1s, poll-0.1s, planck or optimal")]
pub struct ParseMethodError {
    text: String,
}

impl Method {
    /// The methods that are compared by default.
    pub const ALL: [Method; 5] = [
        Method::Static,
        Method::Poll(Nanos::from_secs(1)),
        Method::Poll(Nanos::from_millis(100)),
        Method::Planck,
        Method::Optimal,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> String {
        match self {
            Method::Static => "static".to_owned(),
            Method::Poll(interval) => format!("poll-{}s", interval.as_secs_f64()),
            Method::Planck => "planck".to_owned(),
            Method::Optimal => "optimal".to_owned(),
        }
    }

    fn reroute_options(self, seed: u64, rate: BitRate) -> RerouteOptions {
        let decider = match self {
            Method::Static | Method::Optimal => Decider::Static,
            Method::Poll(interval) => Decider::FirstFit(interval),
            Method::Planck => Decider::Greedy,
        };
        RerouteOptions {
            decider,
            actuator: ActuatorKind::Arp,
            trees: TreeOptions { addresses: ADDRESSES, seed },
            rate,
        }
    }
}

impl FromStr for Method {
    type Err = ParseMethodError;

    fn from_str(text: &str) -> Result<Method, ParseMethodError> {
        let named = Method::ALL.into_iter().find(|method| method.name() == text);
        named.ok_or_else(|| ParseMethodError { text: text.to_owned() })
    }
}

impl Pattern {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Stride => "stride",
            Pattern::Bijection => "bijection",
            Pattern::Random => "random",
            Pattern::Shuffle => "shuffle",
        }
    }

    /// Returns the destinations of each host, in the order in which it sends to them.
    pub fn destinations(self, hosts: u16, seed: u64) -> Vec<Vec<EndpointId>> {
        let count = usize::from(hosts);
        let mut random = Random::new(seed, self.name(), 0);
        let to = |index: usize| vec![EndpointId(index as u16)];
        match self {
            Pattern::Stride => (0..count).map(|host| to((host + count / 2) % count)).collect(),
            Pattern::Bijection => random.derangement(count).into_iter().map(to).collect(),
            // A step of 1 to count - 1 never returns to the host itself.
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

/// The results of one method.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The method.
    pub method: Method,
    /// Throughput of every flow in bits per second: payload over the time from connecting to the last byte.
    pub flow_rates: Vec<f64>,
    /// Time that each host took to send everything.
    pub host_times: Vec<Duration>,
    /// Times of reroutes since the start.
    pub reroutes: Vec<Duration>,
    /// Number of reroutes of the flow that was rerouted most; 0 without a controller that counts them.
    pub most_flow_moves: u32,
    /// Headroom of the machine.
    pub headroom: Headroom,
}

/// The results of all methods.
#[derive(Clone, Debug)]
pub struct Results {
    /// The traffic pattern.
    pub pattern: Pattern,
    /// Rate of the links.
    pub rate: BitRate,
    /// Sending rate of a host as a share of that.
    pub host_share: f64,
    /// Seed of flows and trees.
    pub seed: u64,
    /// Time that each host would need alone.
    pub time: Duration,
    /// The methods, in the order requested.
    pub outcomes: Vec<Outcome>,
}

/// The summary of one method.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The method.
    pub method: String,
    /// Mean throughput of the flows, in bits per second.
    pub mean_bps: f64,
    /// Throughput of the slowest flow, in bits per second.
    pub min_bps: f64,
    /// Time until the last byte of all flows.
    pub completion_ns: u64,
    /// Number of reroutes.
    pub reroutes: u64,
    /// Number of reroutes of the flow that was rerouted most; 0 without a controller that counts them.
    pub most_flow_moves: u32,
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
    /// Whether the headroom was sufficient.
    pub conclusive: bool,
}

/// Runs a pattern with each of the methods.
///
/// # Errors
/// If a lab cannot be created, or a connection fails.
pub fn run(
    pattern: Pattern,
    methods: &[Method],
    time: Duration,
    seed: u64,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    let mut outcomes = Vec::new();
    for &method in methods {
        let outcome = one(pattern, method, time, seed, setting)?;
        let mean = outcome.flow_rates.iter().sum::<f64>() / outcome.flow_rates.len().max(1) as f64;
        (setting.on_progress)(&format!("{}: mean flow rate {}", method.name(), BitRate(mean as u64)));
        outcomes.push(outcome);
    }
    Ok(Results { pattern, rate: setting.rate, host_share: setting.host_share, seed, time, outcomes })
}

/// Returns the plan of a method's lab.
fn plan(method: Method, setting: &Setting<'_>) -> Result<Plan, ScenarioError> {
    let mut plan = Plan::fat_tree_4(setting.rate).map_err(LabError::from)?;
    if method == Method::Optimal {
        let hosts = plan.topology.endpoints().len() as u32;
        let link = LinkSpec { rate: setting.rate, ..LinkSpec::default() };
        plan = Plan::new(rack(hosts, link).expect("a small topology with valid links"));
    }
    Ok(Plan { prefix: setting.prefix.clone(), host_share: setting.host_share, ..plan })
}

/// Returns the configuration files for a method.
///
/// # Errors
/// If the lab's plan is not valid.
pub fn files(method: Method, seed: u64, setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    Files::new(&plan(method, setting)?, &method.reroute_options(seed, setting.rate))
}

fn one(
    pattern: Pattern,
    method: Method,
    time: Duration,
    seed: u64,
    setting: &mut Setting<'_>,
) -> Result<Outcome, ScenarioError> {
    let plan = plan(method, setting)?;
    let hosts = plan.topology.endpoints().len() as u16;
    let bytes = (setting.rate.0 as f64 * plan.host_share * time.as_secs_f64() / 8.0) as u64;
    let tables = trees(&plan.topology, ADDRESSES, seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let reroute_options = method.reroute_options(seed, setting.rate);
    let mut closed_loop = ClosedLoop::start(&session.lab, &session.state, &reroute_options)?;
    let (probe, mut headroom, origin) = (HeadroomProbe::start()?, HeadroomSum::default(), realtime());
    let (flows, hosts) = send_all(&session, &pattern.destinations(hosts, seed), bytes)?;
    headroom.add(&probe)?;
    let trace = closed_loop.take_trace();
    let (requests, most_flow_moves) = (trace.requests, trace.most_flow_moves);
    let reroutes =
        requests.iter().map(|request| Duration::from_nanos(request.decided.since(origin).0)).collect();
    closed_loop.finish();
    let headroom = headroom.total();
    Ok(Outcome { method, flow_rates: flows, host_times: hosts, reroutes, most_flow_moves, headroom })
}

/// Sends from every host to its destinations, two at a time. Returns the throughput of all flows and the time of each
/// host.
fn send_all(
    session: &Session,
    destinations: &[Vec<EndpointId>],
    bytes: u64,
) -> Result<(Vec<f64>, Vec<Duration>), ScenarioError> {
    let start = Instant::now();
    let is_stopped = || session.is_stopped();
    let worker = |source: EndpointId, queue: &Mutex<VecDeque<EndpointId>>, bytes: u64| {
        let mut rates = Vec::new();
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some(destination) = next() {
            let took = transfer(&session.lab, Pair { source, destination }, bytes, &is_stopped)?;
            rates.push(8.0 * bytes as f64 / took.as_secs_f64());
        }
        Ok((rates, start.elapsed()))
    };
    let queues: Vec<_> = destinations.iter().map(|list| Mutex::new(list.iter().copied().collect())).collect();
    thread::scope(|scope| {
        let worker = &worker;
        let mut workers = Vec::new();
        for (host, queue) in (0..).map(EndpointId).zip(&queues) {
            let count = destinations[host.index()].len();
            let share = bytes / count.max(1) as u64;
            for _ in 0..count.min(CONCURRENT_TRANSFERS) {
                workers.push((host, scope.spawn(move || worker(host, queue, share))));
            }
        }
        let mut flows = Vec::new();
        let mut hosts = vec![Duration::ZERO; destinations.len()];
        for (host, worker) in workers {
            let ended: Result<(Vec<f64>, Duration), ScenarioError> = worker
                .join()
                .map_err(|_| ScenarioError::Monitoring("a transfer thread panicked".to_owned()))?;
            let (rates, took) = ended?;
            flows.extend(rates);
            hosts[host.index()] = hosts[host.index()].max(took);
        }
        Ok((flows, hosts))
    })
}

impl Outcome {
    /// Returns the summary.
    pub fn row(&self) -> Row {
        Row {
            method: self.method.name(),
            mean_bps: self.flow_rates.iter().sum::<f64>() / self.flow_rates.len().max(1) as f64,
            min_bps: self.flow_rates.iter().copied().fold(f64::INFINITY, f64::min),
            completion_ns: self.host_times.iter().max().map_or(0, |time| time.as_nanos() as u64),
            reroutes: self.reroutes.len() as u64,
            most_flow_moves: self.most_flow_moves,
            idle_ratio: self.headroom.idle,
            conclusive: self.headroom.verdict() == thalweg_lab::Verdict::Conclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn patterns_have_their_shape_and_no_self_traffic() {
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
    fn scheme_names_parse() {
        for method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
        assert!("ecmp".parse::<Method>().unwrap_err().to_string().contains("poll-0.1s"));
    }
}
