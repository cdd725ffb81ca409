//! `switch-buffer`: whether a TCP flow causes losses, by its TCP buffer, rate and round trip (the heavy-hitter dissertation,
//! University of Virginia 2018, section 3.5.2, table 3.3 and figures 3.9 to 3.12, at 1 Gbit/s).
//!
//! ```text
//!   h1  background      ──┐
//!                         ├ router ── wan: a queue of the switch's size ── h3
//!   h2  iperf3, H-TCP   ──┘
//! ```
//!
//! Link, buffers and rates are scaled down by one factor, times are not. So each buffer keeps its ratio to rate times round trip,
//! but holds fewer packets. A round trip of 100 ms is a [delay line](thalweg_lab::router::delay) for the acknowledgements.
//!
//! | file | contents |
//! |---|---|
//! | [`mod@run`] | one run of a case |
//! | [`bounds`] | the claims, with bounds that were fixed before the first measurement |

pub mod bounds;
pub mod run;

use std::time::Duration;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use thalweg_lab::router::Forwarding;
use thalweg_lab::{Algorithm, Headroom, LabTcp};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::Setting;
use super::isolate::Router;
use crate::error::ScenarioError;
use crate::session::HeadroomSum;
use crate::traffic;
pub use run::{Run, Second};

/// Default rate of the link.
pub const DEFAULT_RATE: BitRate = BitRate(100_000_000);

/// Default duration of the flow, as in the dissertation.
pub const DEFAULT_SECONDS: u64 = 60;

/// Rate of the link in the dissertation.
pub const SOURCE_RATE: BitRate = BitRate(1_000_000_000);

/// Buffer of its switch.
pub const SOURCE_BUFFER: Bytes = Bytes(2_000_000);

/// Mean rate of its background traffic.
pub const SOURCE_BACKGROUND: BitRate = BitRate(350_000_000);

/// A case of table 3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its number, from 1.
    pub number: usize,
    /// The TCP buffer at both ends, in bytes.
    pub tcp_buffer: Bytes,
    /// Added to the round trip, in nanoseconds.
    pub delay: Nanos,
    /// The flow sends at most at this rate, in bits per second.
    pub flow_limit: BitRate,
    /// Whether the dissertation saw losses.
    pub loses: bool,
}

impl Serialize for Case {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Case", 5)?;
        fields.serialize_field("case", &self.number)?;
        fields.serialize_field("tcp_buffer_bytes", &self.tcp_buffer.0)?;
        fields.serialize_field("delay_ns", &self.delay.0)?;
        fields.serialize_field("flow_limit_bps", &self.flow_limit.0)?;
        fields.serialize_field("source_loses", &self.loses)?;
        fields.end()
    }
}

/// The cases, at the rate of the dissertation.
pub const SOURCE_CASES: [Case; 5] = [
    case(1, 160_000, 0, 800, false),
    case(2, 2_000_000, 0, 800, true),
    case(3, 10_000_000, 0, 100, false),
    case(4, 40_000_000, 100, 800, true),
    case(5, 40_000_000, 100, 100, false),
];

const fn case(number: usize, tcp_buffer: u64, delay_ms: u64, mbps: u64, loses: bool) -> Case {
    Case {
        number,
        tcp_buffer: Bytes(tcp_buffer),
        delay: Nanos::from_millis(delay_ms),
        flow_limit: BitRate(mbps * 1_000_000),
        loses,
    }
}

/// Options of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Trials, each with a run of every case.
    pub trials: u32,
    /// Duration of the flow in a run, in whole seconds.
    pub duration: Duration,
    /// The seed of the background traffic of the first trial; the next trial has the next seed.
    pub seed: u64,
}

/// The scaled network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Rate of the link.
    pub link_rate: BitRate,
    /// Buffer of the switch.
    pub buffer: Bytes,
    /// Mean rate of the background traffic.
    pub background: BitRate,
    /// The cases.
    pub cases: [Case; 5],
}

impl Parameters {
    /// Scales the network of the dissertation to a link of this rate.
    pub fn new(link_rate: BitRate) -> Parameters {
        let scaled = |value: u64| {
            u64::try_from(u128::from(value) * u128::from(link_rate.0) / u128::from(SOURCE_RATE.0))
                .unwrap_or(u64::MAX)
        };
        Parameters {
            link_rate,
            buffer: Bytes(scaled(SOURCE_BUFFER.0)),
            background: BitRate(scaled(SOURCE_BACKGROUND.0)),
            cases: SOURCE_CASES.map(|case| Case {
                tcp_buffer: Bytes(scaled(case.tcp_buffer.0)),
                flow_limit: BitRate(scaled(case.flow_limit.0)),
                ..case
            }),
        }
    }
}

/// A trial: one run of every case, with the same background traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// The seed of its background traffic.
    pub seed: u64,
    /// The runs in the order of the cases.
    pub runs: Vec<Run>,
}

/// The results of all trials.
#[derive(Clone, Debug)]
pub struct Results {
    /// The network.
    pub parameters: Parameters,
    /// Duration of the flow in each run.
    pub duration: Duration,
    /// The congestion control of the flow.
    pub congestion_control: String,
    /// The trials in order.
    pub trials: Vec<Trial>,
    /// Headroom over all runs.
    pub headroom: Headroom,
}

/// The numbers of the hosts.
const BACKGROUND: usize = 1;
const FLOW: usize = 2;

/// Runs the scenario.
///
/// # Errors
/// If the lab cannot be created, H-TCP cannot be registered, or iperf3 fails.
pub fn run(options: &Options, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let parameters = Parameters::new(setting.rate);
    let router = Router::with(&[None, Some(parameters.cases[0].flow_limit)], Forwarding::Kernel, setting)?;
    router.lab.set_link(parameters.link_rate, parameters.buffer)?;
    let h_tcp = LabTcp::register(Algorithm::HTcp)?;
    let (mut trials, mut headroom) = (Vec::new(), HeadroomSum::default());
    for number in 0..options.trials {
        let seed = options.seed.wrapping_add(u64::from(number));
        let mut runs = Vec::new();
        for case in &parameters.cases {
            let run =
                run::run(&router, &parameters, case, h_tcp.name(), options.duration, seed, &mut headroom)?;
            (setting.on_progress)(&format!("trial {} of {}, {run}", number + 1, options.trials));
            runs.push(run);
        }
        trials.push(Trial { seed, runs });
    }
    Ok(Results {
        parameters,
        duration: options.duration,
        congestion_control: h_tcp.name().to_owned(),
        trials,
        headroom: headroom.total(),
    })
}

impl Results {
    /// Returns all runs of a case, by its number.
    pub fn runs(&self, number: usize) -> impl Iterator<Item = &Run> + '_ {
        self.trials.iter().flat_map(|trial| &trial.runs).filter(move |run| run.case.number == number)
    }

    /// Returns the trial to plot: the first.
    pub fn plotted(&self) -> Option<&Trial> {
        self.trials.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_keep_their_ratio_to_the_rate() {
        let scaled = Parameters::new(DEFAULT_RATE);
        assert_eq!((scaled.buffer, scaled.background), (Bytes(200_000), BitRate(35_000_000)));
        for (case, source) in scaled.cases.iter().zip(SOURCE_CASES) {
            let seconds = |case: &Case| case.tcp_buffer.0 as f64 * 8.0 / case.flow_limit.0 as f64;
            assert!((seconds(case) - seconds(&source)).abs() < 1e-9);
            assert_eq!((case.delay, case.loses), (source.delay, source.loses));
        }
        assert_eq!(Parameters::new(SOURCE_RATE).cases, SOURCE_CASES);
    }
}
