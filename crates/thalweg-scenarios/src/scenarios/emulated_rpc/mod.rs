//! `emulated-rpc`: completion times of requests with real TCP over emulated networks, and over queues of the kernel (Flexplane, NSDI 2017,
//! figures 4 and 7).
//!
//! ```text
//!   h0 ┐                                                 ┌ h4
//!   h1 ├─ requests ── emulated switch, or token buckets ─┤ ...
//!   h2 │                                                 │
//!   h3 ┘                                  responses ──── └ h11
//! ```
//!
//! Clients request responses of web-search sizes from random servers, by a Poisson process. All networks have the same requests. Times are
//! normalised by those of the same size that are requested continuously on an otherwise idle network of the same scheme. Each load has a
//! lab of its own, so the arbiter's verdict on late timeslots is that of the load.
//!
//! | file | contents |
//! |---|---|
//! | [`network`] | the networks, and their labs |
//! | `requests` | requests over TCP |
//! | [`unloaded`] | times on an otherwise idle network |
//! | [`run`](mod@run) | one run: a network at a load |
//! | [`bounds`] | the claims, with bounds that were fixed before the first measurement |

pub mod bounds;
pub mod network;
mod requests;
pub mod run;
pub mod unloaded;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;
use thalweg_emulator::workloads::sizes::SizeDistribution;
use thalweg_lab::Headroom;
use thalweg_wire::BitRate;

use super::Setting;
use crate::emulated::Planner;
use crate::error::ScenarioError;
use crate::session::HeadroomSum;
use network::{Emulation, Network, Testbed};
use requests::Connections;
use run::{Flow, Run};
use unloaded::Unloaded;

/// Default time in which requests count, after the warm-up.
pub const DEFAULT_SECONDS: u64 = 20;

/// Default rate of the links.
pub const DEFAULT_RATE: BitRate = BitRate(100_000_000);

/// Default loads: payload that clients receive, as a share of their links.
pub const DEFAULT_LOADS: [f64; 8] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];

/// Requests that are sent before do not count.
pub const WARM_UP: Duration = Duration::from_secs(2);

/// The sizes of responses.
const SIZES: &str = "web_search";

/// Options of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The networks.
    pub networks: Vec<Network>,
    /// The loads, above 0 and below 1.
    pub loads: Vec<f64>,
    /// Time in which requests count.
    pub duration: Duration,
    /// Seed of the requests.
    pub seed: u64,
}

/// What was measured on an otherwise idle network.
#[derive(Clone, Debug, Serialize)]
pub struct OfNetwork {
    /// The network.
    pub network: Network,
    /// Times of requests.
    #[serde(flatten)]
    pub unloaded: Unloaded,
    /// What the arbiter reports, if it is emulated.
    pub emulation: Option<Emulation>,
}

/// The results of all runs.
#[derive(Clone, Debug)]
pub struct Results {
    /// The options.
    pub options: Options,
    /// Rate of the links.
    pub rate: BitRate,
    /// The unloaded networks.
    pub unloaded: Vec<OfNetwork>,
    /// All runs, by network and load.
    pub runs: Vec<Run>,
    /// Headroom over all runs.
    pub headroom: Headroom,
}

/// A flow of a run, as a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    network: Network,
    load: f64,
    started_ns: u64,
    bytes: u64,
    fct_ns: u64,
    normalised: f64,
}

/// Runs the scenario.
///
/// # Errors
/// If a lab cannot be created, or a connection fails.
pub fn run(
    options: &Options,
    planner: &Planner<'_>,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    let sizes =
        SizeDistribution::published(SIZES).map_err(|error| ScenarioError::Monitoring(error.to_string()))?;
    let mut headroom = HeadroomSum::default();
    let (mut all_unloaded, mut runs) = (Vec::new(), Vec::new());
    for &network in &options.networks {
        let folder = folder()?;
        let testbed = up(network, planner, folder.path(), setting)?;
        // The thread of a host leaves the processor of the arbiter to it.
        let unloaded = testbed.host(0).within(|| {
            let mut connections = Connections::open(&testbed)?;
            Unloaded::measure(&mut connections, &sizes, &|| testbed.is_stopped())
        })??;
        let emulation = testbed.finish(folder.path())?;
        (setting.on_progress)(&format!(
            "{}, unloaded: one packet takes {:.0} us without a pause, {:.0} us more after the longest",
            network.name(),
            unloaded.pauses.first().map_or(0.0, |it| it.mean_ns) / 1e3,
            unloaded.idle_ns() / 1e3,
        ));
        for &load in &options.loads {
            let folder = self::folder()?;
            let testbed = up(network, planner, folder.path(), setting)?;
            let workload = run::workload(&sizes, load, setting.rate, options.seed)?;
            let measure = || run::measure(&testbed, workload, options.duration, &unloaded, &mut headroom);
            let measured = testbed.host(0).within(measure)??;
            let emulation = testbed.finish(folder.path())?;
            let run = Run::new(network, load, measured, emulation);
            (setting.on_progress)(&run.to_string());
            runs.push(run);
        }
        all_unloaded.push(OfNetwork { network, unloaded, emulation });
    }
    Ok(Results {
        options: options.clone(),
        rate: setting.rate,
        unloaded: all_unloaded,
        runs,
        headroom: headroom.total(),
    })
}

fn folder() -> Result<TempDir, ScenarioError> {
    tempfile::tempdir()
        .map_err(|error| ScenarioError::Monitoring(format!("cannot create a temporary folder: {error}")))
}

fn up(
    network: Network,
    planner: &Planner<'_>,
    folder: &Path,
    setting: &Setting<'_>,
) -> Result<Testbed, ScenarioError> {
    Testbed::up(network, setting.rate, planner, &setting.prefix, folder, &setting.stop)
}

impl Results {
    /// Returns the run of a network at a load.
    pub fn at(&self, network: Network, load: f64) -> Option<&Run> {
        self.runs.iter().find(|run| run.network == network && (run.load - load).abs() < 1e-9)
    }

    /// Returns what was measured on an otherwise idle network.
    pub fn unloaded(&self, network: Network) -> Option<&Unloaded> {
        self.unloaded.iter().find(|it| it.network == network).map(|it| &it.unloaded)
    }

    /// The mean normalised time of the small flows of a run if all of them took as much longer as an idle network makes a packet take, and
    /// met no other flow.
    pub fn expected_when_idle(&self, run: &Run) -> Option<f64> {
        let unloaded = self.unloaded(run.network)?;
        let idle_ns = unloaded.idle_ns();
        let ratio = |flow: &Flow| 1.0 + idle_ns / unloaded.time_of(flow.bytes).0.max(1) as f64;
        let small: Vec<f64> = run.flows.iter().filter(|flow| flow.is_small()).map(ratio).collect();
        (!small.is_empty()).then(|| small.iter().sum::<f64>() / small.len() as f64)
    }

    /// Returns all flows, in the order of runs.
    pub fn flows(&self) -> impl Iterator<Item = FlowRow> {
        self.runs.iter().flat_map(|run| {
            run.flows.iter().map(|flow| FlowRow {
                network: run.network,
                load: run.load,
                started_ns: flow.started.0,
                bytes: flow.bytes,
                fct_ns: flow.time.0,
                normalised: flow.normalised,
            })
        })
    }
}
