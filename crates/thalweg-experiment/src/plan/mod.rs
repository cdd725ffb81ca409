//! What an experiment means: everything that a run needs, built and checked before the first slot.
//!
//! | file | what it makes of the experiment |
//! |---|---|
//! | `network` | a topology, and the names of its parts |
//! | `scheme`, `transport` | how routers and endpoints behave |
//! | `flows`, `packets` | what endpoints send |
//! | `measure`, `mirror`, `failure` | what is recorded, what is copied, and what breaks |
//! | `warnings` | settings that are valid and probably not meant |

mod failure;
mod flows;
mod measure;
mod mirror;
mod network;
mod packets;
mod scheme;
mod transport;
mod warnings;

use thalweg_emulator::SlotClock;
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::hosts::HostConfig;
use thalweg_emulator::ports::monitor::Monitor;
use thalweg_emulator::router::Balance;
use thalweg_emulator::schemes::Scheme;
use thalweg_emulator::workloads::Workload;
use thalweg_emulator::workloads::open_loop::PacketWorkload;
use thalweg_network::Topology;
use thalweg_wire::{Nanos, Timestamp};

pub use failure::{Event, FailureEvent};
pub use measure::Measure;

use super::experiment::table::{self, BalanceName, Packet, Routing, Top};
use super::experiment::{Experiment, ExperimentError, Problem};

/// An experiment, ready to run.
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Everything random comes of it.
    pub seed: u64,
    /// Time to emulate.
    pub duration: Nanos,
    /// How much of it passes before anything counts.
    pub warm_up: Nanos,
    /// How long the network may drain afterwards.
    pub drain: Nanos,
    /// Name of the topology's shape or file.
    pub topology_name: String,
    /// Who is attached to whom.
    pub topology: Topology,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// How routers choose among paths.
    pub balance: Balance,
    /// How routers manage their queues.
    pub scheme: Scheme,
    /// Name of the transport.
    pub transport_name: String,
    /// How endpoints send flows.
    pub hosts: HostConfig,
    /// Flows, by workload; there are no hosts if there are none.
    pub flows: Vec<Box<dyn Workload + Send>>,
    /// Packets without transport.
    pub packets: Vec<Box<dyn PacketWorkload>>,
    /// What is written down.
    pub measure: Measure,
    /// Monitor ports.
    pub monitors: Vec<Monitor>,
    /// What breaks, in order of time.
    pub events: Vec<Event>,
    /// Settings that are valid and probably not meant.
    pub warnings: Vec<String>,
}

impl Plan {
    /// What `experiment` means.
    ///
    /// # Errors
    /// With what is wrong: one thing for each section.
    pub fn new(experiment: &Experiment) -> Result<Plan, ExperimentError> {
        let mut problems = Problems(Vec::new());
        let plan = Plan::build(experiment, &mut problems);
        match plan {
            Some(plan) if problems.0.is_empty() => Ok(plan),
            _ => Err(experiment.error(problems.0)),
        }
    }

    fn build(experiment: &Experiment, problems: &mut Problems) -> Option<Plan> {
        let top = experiment.one::<Top>();
        let topology_entry = experiment.one::<table::Topology>();
        let transport_entry = experiment.one::<table::Transport>();
        let (duration, warm_up) = (top.duration, top.warm_up);
        let drain = top.drain.unwrap_or(Nanos(duration.0.saturating_mul(10)).max(Nanos::from_secs(1)));
        if warm_up >= duration {
            problems.0.push(top.refuse(Top::warm_up, "it must be shorter than the duration"));
        }
        let topology = problems.keep(network::topology(experiment, &topology_entry))?;
        let Packet { mtu } = topology_entry.keys();
        let Blueprint { clock, longest, .. } = Blueprint::new(&topology, mtu, 0);
        let scheme = problems.keep(scheme::scheme(&experiment.one::<table::Scheme>(), clock.rate));
        let stage = Stage {
            experiment,
            topology: &topology,
            clock,
            longest,
            seed: top.seed,
            until: Timestamp(duration.0),
        };
        let hosts = scheme
            .as_ref()
            .and_then(|scheme| problems.keep(transport::hosts(&transport_entry, scheme, mtu, &stage)));
        let workloads = experiment.all::<table::Workload>().enumerate();
        let flows: Vec<_> = workloads
            .filter_map(|(index, entry)| problems.keep(flows::workload(&entry, index as u64, &stage)))
            .collect();
        let mut packets = Vec::new();
        for (index, entry) in experiment.all::<table::Packets>().enumerate() {
            packets.extend(problems.keep(packets::senders(&entry, index as u64, &stage)).unwrap_or_default());
        }
        if flows.is_empty() && packets.is_empty() && problems.0.is_empty() {
            problems.0.push(top.refuse("", "nothing is sent: a [[workload]] or [[packets]] is needed"));
        }
        let measure = problems.keep(measure::measure(&experiment.one::<table::Measure>(), duration, &stage));
        let monitors: Vec<Monitor> = experiment
            .all::<table::Mirror>()
            .filter_map(|entry| problems.keep(mirror::monitor(&entry, &stage)))
            .collect();
        let events = experiment
            .all::<table::Failure>()
            .filter_map(|entry| problems.keep(failure::events(&entry, &topology)));
        let events = failure::in_order(events.flatten().collect());
        let (scheme, hosts, measure) = (scheme?, hosts?, measure?);
        let mut plan = Plan {
            name: network::name_of(experiment),
            seed: stage.seed,
            duration,
            warm_up,
            drain,
            topology_name: network::topology_name(&topology_entry),
            mtu,
            balance: match experiment.one::<Routing>().balance {
                BalanceName::Spray => Balance::Spray,
                BalanceName::Ecmp => Balance::Ecmp,
            },
            scheme,
            transport_name: transport_entry.entry.chosen().to_owned(),
            hosts,
            flows,
            packets,
            measure,
            monitors,
            events,
            warnings: Vec::new(),
            topology,
        };
        plan.warnings = warnings::of(&plan);
        if let Err(error) = thalweg_emulator::build::check(&plan.scheme, &plan.blueprint()) {
            problems.0.push(topology_entry.refuse("", error.to_string()));
        }
        Some(plan)
    }

    /// What the network is built from.
    pub fn blueprint(&self) -> Blueprint<'_> {
        Blueprint {
            balance: self.balance,
            monitors: &self.monitors,
            ..Blueprint::new(&self.topology, self.mtu, self.seed)
        }
    }
}

/// What the parts of an experiment are built on.
struct Stage<'a> {
    experiment: &'a Experiment,
    topology: &'a Topology,
    clock: SlotClock,
    /// Bytes of the longest packet, framing included.
    longest: u16,
    seed: u64,
    until: Timestamp,
}

/// All that is wrong.
struct Problems(Vec<Problem>);

impl Problems {
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem)).ok()
    }
}
