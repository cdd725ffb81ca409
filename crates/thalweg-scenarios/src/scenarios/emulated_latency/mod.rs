//! `emulated-latency`: what the real-time emulation adds to the latency of a packet (Flexplane, NSDI 2017, figure 3).
//!
//! ```text
//!   h0  datagrams of 1,500 bytes ── emulated network of 10 Gbit/s, or a bridge ── h1
//! ```
//!
//! A datagram without a firewall mark is held by the endpoint of h0, until the arbiter has decided. One with the mark of the endpoints passes
//! at once: the bare path is the same interface, bridge and receiver. Both are measured in turns at each rate. Each rate has a lab of its
//! own, so the arbiter's verdict on late timeslots is that of the rate. Latency is the time from the call of the sender to the kernel of the receiver, so
//! it includes the emulated delay of a few microseconds.
//!
//! | file | contents |
//! |---|---|
//! | [`stream`] | datagrams at a constant rate, and the time that each takes |
//! | [`bounds`] | the claims, with bounds that were fixed before the first measurement |

pub mod bounds;
pub mod stream;

use std::time::Duration;

use serde::Serialize;
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::{HOST_INTERFACE, Headroom};
use thalweg_realtime::endpoint::MARK;

use super::Setting;
use crate::emulated::{ArbiterRun, EmulatedSession, Planner};
use crate::error::ScenarioError;
use crate::quantiles::Quantiles;
use crate::session::HeadroomSum;
use stream::{Route, Streamed};

/// Packets per second.
pub const RATES: [u32; 6] = [1_000, 5_000, 10_000, 20_000, 40_000, 60_000];

/// The rate of the claims (the lightest load of figure 3).
pub const CLAIMED_RATE: u32 = 10_000;

/// Default duration of each measurement.
pub const DEFAULT_SECONDS: u64 = 2;

/// The emulated network: as fast as the paper's, so that it adds little itself.
const EXPERIMENT: &str = "\
name = \"emulated-latency\"
duration = \"1s\"

[topology]
shape = \"rack\"
endpoints = 2
rate = \"10gbps\"
delay = \"0s\"

[scheme]
name = \"droptail\"
buffer = 1024
";

/// Options of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Trials, each with two measurements at every rate.
    pub trials: u32,
    /// Duration of a measurement.
    pub duration: Duration,
}

/// A path of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Past the endpoint.
    Bare,
    /// Through the emulated network.
    Emulated,
}

/// The measurements of a path at a rate, over all trials.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Packets per second.
    pub packets_per_second: u32,
    /// The path.
    pub path: Path,
    /// Latencies.
    pub latency: Quantiles,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Datagrams that arrived twice.
    pub duplicates: u64,
    /// Frames that the record of the receiver missed.
    pub unseen: u64,
    /// The most that a datagram was sent too late, in nanoseconds.
    pub late_ns: u64,
}

/// What an arbiter reports on all measurements at a rate, those of the bare path included.
#[derive(Clone, Debug, Serialize)]
pub struct ArbiterAtRate {
    /// Packets per second.
    pub packets_per_second: u32,
    /// Its report.
    #[serde(flatten)]
    pub run: ArbiterRun,
}

/// The results of all trials.
#[derive(Clone, Debug)]
pub struct Results {
    /// The options.
    pub options: Options,
    /// By rate, the bare path first.
    pub measurements: Vec<Measurement>,
    /// What the arbiters report, by rate.
    pub arbiters: Vec<ArbiterAtRate>,
    /// Headroom over the measurements at the rate of the claims.
    pub headroom: Headroom,
}

/// Runs the scenario.
///
/// # Errors
/// If the lab cannot be created, or packets cannot be recorded.
pub fn run(
    options: &Options,
    planner: &Planner<'_>,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    let mut headroom = HeadroomSum::default();
    let (mut measurements, mut arbiters) = (Vec::new(), Vec::new());
    for rate in RATES {
        let (of_rate, run) = at_rate(rate, options, planner, &mut headroom, setting)?;
        measurements.extend(of_rate);
        arbiters.push(ArbiterAtRate { packets_per_second: rate, run });
    }
    Ok(Results { options: *options, measurements, arbiters, headroom: headroom.total() })
}

/// Measures both paths at a rate in a new lab.
fn at_rate(
    rate: u32,
    options: &Options,
    planner: &Planner<'_>,
    headroom: &mut HeadroomSum,
    setting: &mut Setting<'_>,
) -> Result<([Measurement; 2], ArbiterRun), ScenarioError> {
    let folder = tempfile::tempdir()
        .map_err(|error| ScenarioError::Monitoring(format!("cannot create a temporary folder: {error}")))?;
    let session = EmulatedSession::up(EXPERIMENT, planner, &setting.prefix, folder.path(), &setting.stop)?;
    let mut streams = [Path::Bare, Path::Emulated].map(|path| (path, Streamed::default()));
    for number in 1..=options.trials {
        for (path, sum) in &mut streams {
            if session.is_stopped() {
                return Err(ScenarioError::Interrupted);
            }
            let route = Route {
                from: session.host(0),
                to: session.host(1),
                interface: HOST_INTERFACE.to_owned(),
                address: session.address(1),
                mark: if *path == Path::Bare { MARK } else { 0 },
            };
            let probe = HeadroomProbe::start()?;
            let streamed = stream::run(&route, rate, options.duration)?;
            // At the highest rates, the machine is to be busy.
            if rate == CLAIMED_RATE {
                headroom.add(&probe)?;
            }
            let quantiles = Quantiles::of(streamed.latencies.iter().copied());
            (setting.on_progress)(&format!(
                "{rate} packets/s, trial {number} of {}, {}: p50 {:.1} us, p99 {:.1} us",
                options.trials,
                path.name(),
                quantiles.p50_ns as f64 / 1e3,
                quantiles.p99_ns as f64 / 1e3,
            ));
            sum.add(streamed);
        }
    }
    Ok((streams.map(|(path, sum)| Measurement::of(rate, path, &sum)), session.finish()?))
}

impl Path {
    /// Returns the name, as in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Path::Bare => "bare",
            Path::Emulated => "emulated",
        }
    }
}

impl Measurement {
    fn of(packets_per_second: u32, path: Path, sum: &Streamed) -> Measurement {
        Measurement {
            packets_per_second,
            path,
            latency: Quantiles::of(sum.latencies.iter().copied()),
            sent: sum.sent,
            lost: sum.lost(),
            reordered: sum.reordered,
            duplicates: sum.duplicates,
            unseen: sum.unseen,
            late_ns: sum.late.0,
        }
    }
}

impl Results {
    /// Returns the report of the arbiter at a rate.
    pub fn arbiter(&self, rate: u32) -> Option<&ArbiterRun> {
        self.arbiters.iter().find(|it| it.packets_per_second == rate).map(|it| &it.run)
    }

    /// Returns the measurement of a path at a rate.
    pub fn at(&self, rate: u32, path: Path) -> Option<&Measurement> {
        self.measurements.iter().find(|it| it.packets_per_second == rate && it.path == path)
    }
}
