//! One run: a workload over a network under a method, until all flows have ended.

use std::sync::Arc;

use anyhow::ensure;
use thalweg_control::control_loop::RouteOptions;
use thalweg_control::decide::Decider;
use thalweg_control::decide::first_fit::FirstFit;
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::decide::static_routing::StaticRouting;
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::hosts::{CompletedFlow, HostConfig, Hosts, Totals};
use thalweg_emulator::schemes::drop_tail::DropTailConfig;
use thalweg_emulator::schemes::list::Scheme as Queues;
use thalweg_emulator::workloads::Workload;
use thalweg_emulator::workloads::random::Random;
use thalweg_emulator::{Network, network};
use thalweg_measure::collector::LinkRule;
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, fat_tree, rack};
use thalweg_network::{
    Forwarding, LinkSpec, LinkState, NetworkState, Node, RouterId, Topology, TopologyBuilder, Versions,
};
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

use super::collectors::{Collectors, Reports, monitors, rule};
use super::control::{ControlResults, EmulatedControl};
use super::workload::Pattern;

/// Default rate of links.
pub(super) const RATE: BitRate = BitRate(10_000_000_000);

/// Rate of hosts' links at which an undisturbed flow of 100 MiB has 5.9 Gbit/s, as in the paper (figure 18b), whose
/// hosts sent below their links' 10 Gbit/s.
pub(super) const PAPER_HOST_RATE: BitRate = BitRate(6_500_000_000);

/// Delay of a host before it processes a packet: the round trip is about 190 us, as in the paper's network (section
/// 5.4).
const STACK_DELAY: Nanos = Nanos::from_micros(90);

/// Queue of a port in packets: 3.5 ms, as the paper's switch gave one congested port (section 5.1).
const QUEUE: u32 = 2_844;

/// Polling interval of collectors and controller, in slots of 1.23 us.
pub(super) const POLL_SLOTS: u64 = 8;

/// Time limit of a run; the slowest one ends earlier.
const LIMIT: Nanos = Nanos::from_secs(60);

/// A method of traffic engineering (section 7.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// None: PAST.
    Static,
    /// Global first fit, at this interval.
    Poll(Nanos),
    /// Algorithm 1.
    Planck(GreedyOptions),
    /// None, with all hosts at one switch.
    Optimal,
}

impl Method {
    pub(super) const POLL_1_S: Method = Method::Poll(Nanos::from_secs(1));
    pub(super) const POLL_100_MS: Method = Method::Poll(Nanos::from_millis(100));
    pub(super) const PLANCK: Method = Method::Planck(GreedyOptions::DEFAULT);

    /// Returns the methods that the paper compares.
    pub(super) fn all() -> [Method; 5] {
        [Method::Static, Method::POLL_1_S, Method::POLL_100_MS, Method::PLANCK, Method::Optimal]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Static => "Static",
            Method::Poll(interval) if interval == Nanos::from_secs(1) => "Poll-1s",
            Method::Poll(_) => "Poll-0.1s",
            Method::Planck(_) => "PlanckTE",
            Method::Optimal => "Optimal",
        }
    }

    fn decider(self) -> Option<Box<dyn Decider>> {
        match self {
            Method::Static => Some(Box::new(StaticRouting)),
            Method::Poll(interval) => Some(Box::new(FirstFit::new(interval))),
            Method::Planck(options) => Some(Box::new(Greedy::new(options))),
            Method::Optimal => None,
        }
    }

    /// Returns the start of the first flow: at a random time between two polls, which start at time 0.
    fn begin(self, seed: u64) -> Timestamp {
        match self {
            Method::Poll(interval) => Timestamp(Random::new(seed, "poll", 0).below(interval.0)),
            _ => Timestamp(0),
        }
    }
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) method: Method,
    pub(super) pattern: Pattern,
    /// Size of each flow.
    pub(super) bytes: Bytes,
    pub(super) seed: u64,
    /// Ports of a switch of the fat tree.
    pub(super) arity: u32,
    /// Addresses of a host, each with its own tree.
    pub(super) addresses: u8,
    /// Rate of hosts' links.
    pub(super) host_rate: BitRate,
    /// Rate of the first core switch's links.
    pub(super) core_rate: BitRate,
    /// Delay from a congestion event until the host uses the new address.
    pub(super) control_delay: Nanos,
    /// Probability that an event is lost.
    pub(super) loss: f64,
    pub(super) rule: LinkRule,
}

impl Default for Trial {
    /// 16 hosts, and figure 16's delay.
    fn default() -> Self {
        Trial {
            method: Method::Static,
            pattern: Pattern::Stride,
            bytes: Bytes(50 << 20),
            seed: 1,
            arity: 4,
            addresses: 4,
            host_rate: RATE,
            core_rate: RATE,
            control_delay: Nanos::from_micros(2_500),
            loss: 0.0,
            rule: rule(),
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Results {
    /// All flows, in the order of their start.
    pub(super) flows: Vec<CompletedFlow>,
    pub(super) totals: Totals,
    pub(super) control_results: ControlResults,
}

impl Results {
    /// Returns the throughput of each flow from its start to the last byte, in Gbit/s.
    pub(super) fn throughputs(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| 8.0 * flow.bytes as f64 / flow.completion_time().0 as f64).collect()
    }

    /// Returns the mean throughput of the flows.
    pub(super) fn throughput(&self) -> f64 {
        crate::statistics::mean(&self.throughputs())
    }
}

impl Trial {
    /// Runs the trial.
    ///
    /// # Errors
    /// If the settings are not valid, or the trial exceeds the time limit.
    pub(super) fn run(&self) -> anyhow::Result<Results> {
        match self.method.decider() {
            Some(decider) => self.run_steered(decider),
            None => self.run_on_one_switch(),
        }
    }

    fn hosts(&self) -> usize {
        self.arity.pow(3) as usize / 4
    }

    fn run_on_one_switch(&self) -> anyhow::Result<Results> {
        let topology = rack(self.hosts() as u32, LinkSpec { rate: self.host_rate, ..LinkSpec::default() })?;
        let mut emulated = Emulated::new(self, &topology, &[])?;
        while emulated.is_active()? {
            emulated.slot();
        }
        Ok(emulated.results(ControlResults::default()))
    }

    /// Returns the fat tree with the trial's rates.
    pub(super) fn fat_tree(&self) -> anyhow::Result<Topology> {
        let access = LinkSpec { rate: self.host_rate, ..LinkSpec::default() };
        let even = fat_tree(self.arity, Tiers { access, ..Tiers::default() })?;
        if self.core_rate == RATE {
            return Ok(even);
        }
        let core = RouterId((even.routers().len() - (self.arity.pow(2) / 4) as usize) as u16);
        let mut builder = TopologyBuilder::new();
        for router in even.routers() {
            builder.add_router(&router.name)?;
        }
        for endpoint in even.endpoint_ids() {
            builder.add_endpoint(
                &even.endpoints()[endpoint.index()].name,
                even.router_of(endpoint),
                access,
            )?;
        }
        for link in even.links() {
            if let [Node::Router(a), Node::Router(b)] = link.ends.map(|end| end.node) {
                let rate = if a == core || b == core { self.core_rate } else { link.rate };
                builder.connect(a, b, LinkSpec { rate, ..link.spec() })?;
            }
        }
        Ok(builder.build()?)
    }

    fn run_steered(&self, decider: Box<dyn Decider>) -> anyhow::Result<Results> {
        let topology = self.fat_tree()?;
        let watches = matches!(self.method, Method::Planck(_));
        let monitors = if watches { monitors(&topology) } else { Vec::new() };
        let mut emulated = Emulated::new(self, &topology, &monitors)?;
        let state = self.state(&topology, LinkState::new(&topology))?;
        emulated.install(state.forwarding());
        let versions = Arc::new(Versions::new(Arc::clone(&state)));
        let routes = RouteOptions::default();
        let mut control =
            EmulatedControl::new(&state, decider, routes, self.control_delay, self.loss, self.seed)?;
        let clock = emulated.network.clock();
        let mut collectors = Collectors::new(&topology, clock, &versions, &self.rule, self.seed)?;
        let mut reports = Reports::default();
        while emulated.is_active()? {
            emulated.slot();
            let Emulated { network, hosts, .. } = &mut emulated;
            if watches {
                collectors.capture(network.as_mut(), hosts);
            }
            if network.now().0.is_multiple_of(POLL_SLOTS) {
                let now = clock.start_of(network.now());
                if watches {
                    collectors.process(now, &mut reports);
                    control.handle_reports(&mut reports, now);
                }
                control.advance(hosts, now);
            }
        }
        Ok(emulated.results(control.end()))
    }

    /// Returns the tree options.
    pub(super) fn trees(&self) -> TreeOptions {
        TreeOptions { seed: self.seed, addresses: self.addresses }
    }

    /// Returns the network state with these link states.
    pub(super) fn state(&self, topology: &Topology, links: LinkState) -> anyhow::Result<Arc<NetworkState>> {
        let trees = self.trees();
        // In the emulator packets keep their address up to the destination.
        let forwarding = Forwarding::tables(spanning_trees(topology, &links, trees)).with_write_back(false);
        Ok(Arc::new(NetworkState::new(topology.clone(), links, forwarding)?))
    }
}

/// Hosts and the network between them.
pub(super) struct Emulated {
    pub(super) network: Box<dyn Network>,
    pub(super) hosts: Hosts,
    workload: Box<dyn Workload>,
    flows: Vec<CompletedFlow>,
}

impl Emulated {
    pub(super) fn new(
        trial: &Trial,
        topology: &Topology,
        monitors: &[thalweg_emulator::ports::monitor::Monitor],
    ) -> anyhow::Result<Emulated> {
        let blueprint = Blueprint { monitors, ..Blueprint::new(topology, 1_500, trial.seed) };
        let queues = Queues::DropTail(DropTailConfig { buffer: QUEUE });
        let config = HostConfig { stack_delay: STACK_DELAY, seed: trial.seed, ..HostConfig::default() };
        let hosts = topology.endpoints().len();
        let begin = trial.method.begin(trial.seed);
        Ok(Emulated {
            network: network::build(&queues, &blueprint)?,
            hosts: Hosts::new(config, hosts, blueprint.clock)?,
            workload: trial.pattern.flows(hosts, trial.bytes, begin, trial.seed)?,
            flows: Vec::new(),
        })
    }

    pub(super) fn install(&mut self, forwarding: &Forwarding) {
        let routers = self.network.topology().router_ids();
        for router in routers {
            self.network.set_forwarding(router, forwarding.table(router).cloned());
        }
    }

    /// Whether flows are still active.
    fn is_active(&self) -> anyhow::Result<bool> {
        let now = self.network.clock().start_of(self.network.now());
        ensure!(now.0 < LIMIT.0, "{} flows have not ended after {LIMIT}", self.hosts.active_flows());
        Ok(self.hosts.active_flows() > 0 || self.workload.next_start().is_some())
    }

    pub(super) fn slot(&mut self) {
        self.hosts.slot(self.network.as_mut(), self.workload.as_mut());
        self.flows.extend(self.hosts.drain_completed());
    }

    fn results(mut self, control_results: ControlResults) -> Results {
        self.flows.sort_by_key(|flow| flow.flow);
        Results { flows: self.flows, totals: self.hosts.totals(), control_results }
    }
}
