//! One run: a network at a load.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_emulator::workloads::Workload;
use thalweg_emulator::workloads::arrivals::Spacing;
use thalweg_emulator::workloads::patterns::{Rpc, RpcOptions};
use thalweg_emulator::workloads::sizes::{FlowSizes, SizeDistribution, Sizes};
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::WARM_UP;
use super::network::{CLIENTS, Emulation, Network, SERVERS, Testbed};
use super::requests::{Completed, Connections};
use super::unloaded::Unloaded;
use crate::error::ScenarioError;
use crate::quantiles::mean;
use crate::session::HeadroomSum;

/// Small flows have less, large ones at least so many bytes (Flexplane, section 5.1).
const SMALL: u64 = 100_000;
const LARGE: u64 = 10_000_000;

/// How long the last responses may take after the last request.
const DRAIN: Duration = Duration::from_secs(20);

/// The longest wait without a look at whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A response that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// When it was requested, after the start of the run.
    pub started: Nanos,
    /// Its size.
    pub bytes: u64,
    /// The time until the client had it.
    pub time: Nanos,
    /// That time, relative to the mean time of the same size on an otherwise idle network.
    pub normalised: f64,
}

impl Flow {
    /// Whether it is a small flow.
    pub const fn is_small(&self) -> bool {
        self.bytes < SMALL
    }

    const fn is_large(&self) -> bool {
        self.bytes >= LARGE
    }
}

/// Normalised completion times of some flows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Completions {
    /// The number of flows.
    pub flows: usize,
    /// The mean. Not a number without flows, as the quantiles.
    pub mean: f64,
    /// Standard error of the mean; 0 of fewer than two flows.
    pub standard_error: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile; of fewer than 100 flows, the maximum.
    pub p99: f64,
}

impl Completions {
    fn of(flows: impl Iterator<Item = Flow>) -> Completions {
        let mut times: Vec<f64> = flows.map(|flow| flow.normalised).collect();
        times.sort_unstable_by(f64::total_cmp);
        let mean = if times.is_empty() { f64::NAN } else { mean(times.iter().copied()) };
        let quantile = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(place).copied().unwrap_or(f64::NAN)
        };
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        let standard_error = match times.len() {
            0 | 1 => 0.0,
            count => (squares / (count - 1) as f64 / count as f64).sqrt(),
        };
        Completions { flows: times.len(), mean, standard_error, p50: quantile(50), p99: quantile(99) }
    }
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The network.
    pub network: Network,
    /// Payload that clients receive, as a share of their links.
    pub load: f64,
    /// Flows of less than 100 kB.
    pub small: Completions,
    /// Flows of 10 MB or more.
    pub large: Completions,
    /// All flows.
    pub all: Completions,
    /// Requests that were sent after the warm-up.
    pub requests: usize,
    /// Those whose responses had not arrived at the end. They are in no mean.
    pub unfinished: usize,
    /// The most that a request was sent too late.
    pub late_ns: u64,
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
    /// What arbiter and endpoints report, if the network is emulated.
    pub emulation: Option<Emulation>,
    /// The flows that count.
    #[serde(skip)]
    pub flows: Vec<Flow>,
}

/// What was measured in a lab.
pub(super) struct Measured {
    flows: Vec<Flow>,
    requests: usize,
    late: Duration,
    idle_ratio: f64,
}

/// Returns the requests of a load.
///
/// # Errors
/// If the load is not valid.
pub(super) fn workload(
    sizes: &SizeDistribution,
    load: f64,
    rate: BitRate,
    seed: u64,
) -> Result<Rpc, ScenarioError> {
    let [clients, servers] = [0..CLIENTS, CLIENTS..CLIENTS + SERVERS];
    let [clients, servers] = [clients, servers].map(|hosts| hosts.map(EndpointId).collect::<Vec<_>>());
    let build = || {
        let sizes = FlowSizes::of(Sizes::Drawn(sizes.clone()))?;
        let options = RpcOptions {
            load,
            rate,
            sizes,
            fan_in: 1,
            spacing: Spacing::Poisson,
            from: Timestamp(0),
            seed,
            index: 0,
        };
        Rpc::new(&clients, &servers, options)
    };
    build().map_err(|error| ScenarioError::Monitoring(error.to_string()))
}

/// Sends the requests of the warm-up and of `duration` when they are due, and waits for their responses.
///
/// # Errors
/// If a connection fails, or the user wants to stop.
pub(super) fn measure(
    testbed: &Testbed,
    mut workload: Rpc,
    duration: Duration,
    unloaded: &Unloaded,
    headroom: &mut HeadroomSum,
) -> Result<Measured, ScenarioError> {
    let mut connections = Connections::open(testbed)?;
    let (probe, start) = (HeadroomProbe::start()?, Instant::now());
    let end = WARM_UP + duration;
    let (mut flows, mut requests, mut late) = (Vec::new(), 0, Duration::ZERO);
    let mut count = |completed: Completed| {
        let started = completed.sent_at.saturating_duration_since(start);
        if started >= WARM_UP {
            flows.push(flow(&completed, started, unloaded));
        }
    };
    while let Some(next) = workload.start() {
        let due = Duration::from_nanos(next.at.0);
        if due >= end {
            break;
        }
        collect(testbed, &mut connections, start + due, false, &mut count)?;
        if due >= WARM_UP {
            late = late.max(start.elapsed().saturating_sub(due));
            requests += 1;
        }
        connections.request(next.destination.0, next.source.0, next.bytes)?;
    }
    let idle_ratio = headroom.add(&probe)?.idle;
    collect(testbed, &mut connections, start + end + DRAIN, true, &mut count)?;
    Ok(Measured { flows, requests, late, idle_ratio })
}

/// Takes responses until `until`, or until none is outstanding.
fn collect(
    testbed: &Testbed,
    connections: &mut Connections<'_>,
    until: Instant,
    ends_without: bool,
    count: &mut dyn FnMut(Completed),
) -> Result<(), ScenarioError> {
    loop {
        if testbed.is_stopped() {
            return Err(ScenarioError::Interrupted);
        }
        let now = Instant::now();
        if now >= until || (ends_without && connections.outstanding() == 0) {
            return Ok(());
        }
        if let Some(completed) = connections.wait(until.min(now + LOOK))? {
            count(completed);
        }
    }
}

fn flow(completed: &Completed, started: Duration, unloaded: &Unloaded) -> Flow {
    let Completed { bytes, time, .. } = *completed;
    let normalised = time.0 as f64 / unloaded.time_of(bytes).0.max(1) as f64;
    Flow { started: Nanos(started.as_nanos() as u64), bytes, time, normalised }
}

impl Run {
    pub(super) fn new(network: Network, load: f64, measured: Measured, emulation: Option<Emulation>) -> Run {
        let Measured { flows, requests, late, idle_ratio } = measured;
        let of = |counts: fn(&Flow) -> bool| Completions::of(flows.iter().copied().filter(counts));
        Run {
            network,
            load,
            small: of(Flow::is_small),
            large: of(Flow::is_large),
            all: of(|_| true),
            requests,
            unfinished: requests.saturating_sub(flows.len()),
            late_ns: late.as_nanos() as u64,
            idle_ratio,
            emulation,
            flows,
        }
    }

    /// Whether its delays are those of the network: always, unless an arbiter was late too often.
    pub fn is_valid(&self) -> bool {
        self.emulation.as_ref().is_none_or(|emulation| emulation.arbiter.valid)
    }
}

/// `DCTCP, load 0.3, small flows 1.20, large flows 1.50; 0.0100 % of the slots late`
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, load {}", self.network.name(), self.load)?;
        let groups = [("small", &self.small), ("large", &self.large)];
        for (name, flows) in groups.iter().filter(|(_, flows)| flows.flows > 0) {
            write!(f, ", {name} flows {:.2}", flows.mean)?;
        }
        match &self.emulation {
            Some(it) => write!(f, "; {:.4} % of the slots late", 100.0 * it.arbiter.late_share),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64, normalised: f64) -> Flow {
        Flow { started: Nanos(0), bytes, time: Nanos(1), normalised }
    }

    #[test]
    fn flows_are_summed_up_by_size() {
        let flows = vec![of(99_999, 1.0), of(8_760, 3.0), of(100_000, 9.0), of(10_000_000, 2.0)];
        let measured = Measured { flows, requests: 6, late: Duration::from_nanos(5), idle_ratio: 0.5 };
        let run = Run::new(Network::Kernel, 0.3, measured, None);
        assert_eq!((run.small.flows, run.small.mean, run.small.p50, run.small.p99), (2, 2.0, 1.0, 3.0));
        assert_eq!((run.small.standard_error, run.large.standard_error), (1.0, 0.0));
        assert_eq!((run.large.flows, run.large.mean), (1, 2.0));
        assert_eq!((run.all.flows, run.unfinished, run.late_ns, run.is_valid()), (4, 2, 5, true));
        let none = Completions::of(std::iter::empty());
        assert!(none.flows == 0 && none.mean.is_nan() && none.p99.is_nan());
        assert!(serde_json::to_string(&none).unwrap().contains(r#""mean":null"#));
    }

    #[test]
    fn requests_are_the_same_for_all_networks_and_load_the_links_of_clients() {
        let sizes = SizeDistribution::published("web_search").unwrap();
        let rate = BitRate(100_000_000);
        let starts = || {
            let mut workload = workload(&sizes, 0.5, rate, 3).unwrap();
            std::iter::from_fn(move || workload.start()).take(20_000).collect::<Vec<_>>()
        };
        let flows = starts();
        assert_eq!(flows, starts());
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let seconds = flows.last().unwrap().at.0 as f64 / 1e9;
        let load = bytes as f64 * 8.0 / seconds / (f64::from(CLIENTS) * rate.0 as f64);
        // The standard error is 0.5 * 2.1 / sqrt(20,000) = 0.007.
        assert!((load - 0.5).abs() < 0.035, "{load}");
        assert!(flows.iter().all(|flow| flow.destination.0 < CLIENTS && flow.source.0 >= CLIENTS));
        assert!(workload(&sizes, 0.0, rate, 3).is_err());
    }
}
