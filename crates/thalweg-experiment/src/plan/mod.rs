//! The plan of an experiment: everything that a run needs, checked before the first slot.
//!
//! | module | part |
//! |---|---|
//! | `network` | the topology and the names of its parts |
//! | `scheme`, `transport` | the behaviour of routers and endpoints |
//! | `flows`, `packets` | the traffic of endpoints |
//! | `measure`, `series`, `mirror`, `failure` | what is recorded, what is copied, and what breaks |
//! | `warnings` | settings that are valid and probably not meant |

mod failure;
mod flows;
mod measure;
mod mirror;
mod network;
mod packets;
mod scheme;
mod series;
mod transport;
mod warnings;

use crate::experiment::own_scheme;
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
pub(crate) use series::MAX_KEPT_ROWS;
pub use series::{FlowSeriesPlan, QueueSeriesPlan};

use super::experiment::table::{self, BalanceName, Packet, Routing, Top};
use super::experiment::{Experiment, ExperimentError, Problem};

/// A checked experiment, ready to run.
pub struct Plan {
    /// The name.
    pub name: String,
    /// The random seed.
    pub seed: u64,
    /// Time to emulate.
    pub duration: Nanos,
    /// Time before the measurement starts.
    pub warm_up: Nanos,
    /// Time in which the network may drain afterwards.
    pub drain: Nanos,
    /// The name of the topology's shape or file.
    pub topology_name: String,
    /// The topology.
    pub topology: Topology,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// How routers choose among equal-cost paths.
    pub balance: Balance,
    /// The scheme of all routers.
    pub scheme: Scheme,
    /// Name of the transport.
    pub transport_name: String,
    /// The hosts' configuration.
    pub hosts: HostConfig,
    /// Flows, by workload. Without any there are no hosts.
    pub flows: Vec<Box<dyn Workload + Send>>,
    /// Packets without transport.
    pub packets: Vec<Box<dyn PacketWorkload>>,
    /// What is recorded.
    pub measure: Measure,
    /// Flows to sample over time.
    pub flow_series: Option<FlowSeriesPlan>,
    /// Queues to sample over time.
    pub queue_series: Option<QueueSeriesPlan>,
    /// Monitor ports.
    pub monitors: Vec<Monitor>,
    /// Failures, in order of time.
    pub events: Vec<Event>,
    /// Settings that are valid and probably not meant.
    pub warnings: Vec<String>,
    /// Threads of the run, 1 by default. Results do not depend on it.
    pub threads: usize,
}

impl Plan {
    /// Whether the run can use several threads: without hosts, whose transport reacts to outcomes, and without monitor ports.
    pub fn can_use_threads(&self) -> bool {
        self.flows.is_empty() && self.monitors.is_empty()
    }

    /// Builds the plan of `experiment`.
    ///
    /// # Errors
    /// All mistakes, one per section.
    pub fn new(experiment: &Experiment) -> Result<Plan, ExperimentError> {
        Plan::checked(experiment, true)
    }

    /// Builds the plan of a network for remote endpoints: nothing has to be sent by itself. What has no effect there is named by the warnings,
    /// and left out.
    ///
    /// # Errors
    /// All mistakes, one per section.
    pub fn for_real_time(experiment: &Experiment) -> Result<Plan, ExperimentError> {
        let plan = Plan::checked(experiment, false)?;
        let mut warnings = Vec::new();
        for (is_used, section) in [
            (!plan.flows.is_empty(), "workload"),
            (!plan.packets.is_empty(), "packets"),
            (!plan.monitors.is_empty(), "mirror"),
        ] {
            if is_used {
                warnings.push(format!(
                    "[[{section}]] has no effect in real time: the packets come from endpoints"
                ));
            }
        }
        for (is_used, section) in
            [(plan.flow_series.is_some(), "flow_series"), (plan.queue_series.is_some(), "queue_series")]
        {
            if is_used {
                warnings.push(format!("[{section}] has no effect in real time: use queues.parquet"));
            }
        }
        Ok(Plan { warnings, flows: Vec::new(), packets: Vec::new(), monitors: Vec::new(), ..plan })
    }

    fn checked(experiment: &Experiment, needs_traffic: bool) -> Result<Plan, ExperimentError> {
        let mut problems = Problems(Vec::new());
        let plan = Plan::build(experiment, needs_traffic, &mut problems);
        match plan {
            Some(plan) if problems.0.is_empty() => Ok(plan),
            _ => Err(experiment.error(problems.0)),
        }
    }

    fn build(experiment: &Experiment, needs_traffic: bool, problems: &mut Problems) -> Option<Plan> {
        let top = experiment.one::<Top>();
        let topology_entry = experiment.one::<table::Topology>();
        let transport_entry = experiment.one::<table::Transport>();
        let (duration, warm_up) = (top.duration, top.warm_up);
        let drain = top.drain.unwrap_or(Nanos(duration.0.saturating_mul(10)).max(Nanos::from_secs(1)));
        if warm_up >= duration {
            problems.0.push(top.refuse(Top::warm_up, "expected a time shorter than the duration"));
        }
        let topology = problems.keep(network::topology(experiment, &topology_entry))?;
        let Packet { mtu } = topology_entry.keys();
        let Blueprint { clock, longest, .. } = Blueprint::new(&topology, mtu, 0);
        let scheme = problems.keep(scheme::scheme(&experiment.one::<own_scheme::Scheme>(), clock.rate));
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
        if needs_traffic && flows.is_empty() && packets.is_empty() && problems.0.is_empty() {
            problems.0.push(top.refuse("", "nothing is sent: a [[workload]] or [[packets]] is needed"));
        }
        let measure = problems.keep(measure::measure(&experiment.one::<table::Measure>(), duration, &stage));
        let flow_series = series::flow_series(&experiment.one::<table::FlowSeries>(), flows.len(), &stage);
        let flow_series = problems.keep(flow_series).flatten();
        let queue_series = series::queue_series(&experiment.one::<table::QueueSeries>(), &stage);
        let queue_series = problems.keep(queue_series).flatten();
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
            flow_series,
            queue_series,
            monitors,
            events,
            warnings: Vec::new(),
            threads: 1,
            topology,
        };
        plan.warnings = warnings::of(&plan, experiment);
        if let Err(error) = thalweg_emulator::network::check(&plan.scheme, &plan.blueprint()) {
            problems.0.push(topology_entry.refuse("", error.to_string()));
        }
        Some(plan)
    }

    /// The blueprint of the network.
    pub fn blueprint(&self) -> Blueprint<'_> {
        Blueprint {
            balance: self.balance,
            monitors: &self.monitors,
            counts_classes: self.queue_series.as_ref().is_some_and(|series| series.classes),
            ..Blueprint::new(&self.topology, self.mtu, self.seed)
        }
    }
}

/// What all parts of a plan depend on.
struct Stage<'a> {
    experiment: &'a Experiment,
    topology: &'a Topology,
    clock: SlotClock,
    /// Bytes of the longest packet, framing included.
    longest: u16,
    seed: u64,
    until: Timestamp,
}

/// All mistakes.
struct Problems(Vec<Problem>);

impl Problems {
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem)).ok()
    }
}
