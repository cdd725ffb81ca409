//! `isolate`: a ping beside a large TCP flow, with and without isolation of the flow (figures 3.7 and 3.8 of the heavy-hitter
//! dissertation, University of Virginia 2018, section 3.5.1).
//!
//! ```text
//!   h1  ping            ──┐
//!   h2  background      ──┤ router ── wan: the link ── h4
//!   h3  iperf3, H-TCP   ──┘
//! ```
//!
//! The router forwards in a namespace of its own. The daemon measures at its ingress and isolates at `wan`. The flow sends
//! at up to 80 % of the link, the background traffic at 35 % on average, so the link is overloaded while the flow lasts.
//! Each trial runs without isolation (a dry run with the same queues: one first in, first out), and with each queueing.
//!
//! | file | contents |
//! |---|---|
//! | [`capture`] | records packets at an interface, with the kernel's times |
//! | [`background`] | bursts of UDP from a seed |
//! | [`ping`] | echo requests, and their delays |
//! | [`flow`] | what the records say about the TCP flow: threshold crossed, retransmissions, overtaking |
//! | [`daemon`] | the daemon and its configuration |
//! | [`mod@run`] | one run |
//! | [`saturation`] | what the scavenger queue gets while the primary queue fills the link |
//! | [`bounds`] | the claims, with bounds that were fixed before the first measurement |
//!
//! # How the latency of a redirection is measured
//! It begins with the packet by which the flow exceeds the threshold, by the exact definition: the first packet whose
//! preceding `T`, itself included, contains more than `R * T` bytes. It is found afterwards in the record of all packets at
//! the router's ingress. It ends when the first packet of the flow enters the scavenger queue: the program before the queue
//! notes that time in the entry of the flow, directly before HTB reads the class. With Open vSwitch another program at the same
//! place notes the first packet of the flow with DSCP 1, which the filter of HTB then classifies. All times are of the kernel. One is of
//! the wall clock, the other of the monotonic clock, and the difference is read with an error of microseconds.

pub mod background;
pub mod bounds;
pub mod capture;
pub mod daemon;
pub mod flow;
pub mod ping;
pub mod run;
pub mod saturation;

use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use thalweg_lab::router::Forwarding;
use thalweg_lab::router::switch::SwitchQueues;
use thalweg_lab::{Algorithm, Headroom, LabTcp, RouterLab};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::Setting;
use crate::error::ScenarioError;
use crate::session::{HeadroomSum, is_stopped, wait};
use crate::traffic;
pub use run::Run;

/// Default rate of the link: two processors carry it and stay idle more than half of the time.
pub const DEFAULT_RATE: BitRate = BitRate(200_000_000);

/// Default duration of the flow.
pub const DEFAULT_SECONDS: u64 = 5;

/// Rate of the flow as a share of the link, as in the dissertation.
pub const FLOW_SHARE: f64 = 0.8;

/// Mean rate of the background traffic as a share of the link, as in the dissertation's section 3.5.2.
pub const BACKGROUND_SHARE: f64 = 0.35;

/// The rate threshold as a share of the link, as in the dissertation: 100 Mbit/s of 1 Gbit/s.
pub const THRESHOLD_SHARE: f64 = 0.1;

/// Default flight duration. The dissertation has 1 s.
pub const DEFAULT_FLIGHT: Nanos = Nanos::from_millis(10);

/// Size of either queue, as time at the rate of the link: 2 MB at 1 Gbit/s, as the dissertation's switch has.
const BUFFER: Nanos = Nanos::from_millis(16);

/// Guaranteed share of the scavenger queue with `borrow`.
pub const SCAVENGER_SHARE: f64 = 0.05;

/// How the flow is isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Not at all: one queue, first in, first out.
    None,
    /// A scavenger queue with a share; both queues borrow.
    Borrow,
    /// A scavenger queue that gets what the primary queue leaves.
    Strict,
}

impl Isolation {
    /// All, in the order of the runs.
    pub const ALL: [Isolation; 3] = [Isolation::None, Isolation::Borrow, Isolation::Strict];

    /// Returns the name in tables and plots.
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::None => "none (FIFO)",
            Isolation::Borrow => "borrow",
            Isolation::Strict => "strict",
        }
    }
}

/// How flows are redirected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Actuator {
    /// By traffic control of the router itself.
    #[default]
    Tc,
    /// By OpenFlow rules of an Open vSwitch in user space instead of the router.
    #[serde(rename = "openflow")]
    OpenFlow,
}

impl Actuator {
    /// All.
    pub const ALL: [Actuator; 2] = [Actuator::Tc, Actuator::OpenFlow];

    /// Returns the name, as `isolation.actuator` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Actuator::Tc => "tc",
            Actuator::OpenFlow => "openflow",
        }
    }
}

impl FromStr for Actuator {
    type Err = String;

    fn from_str(text: &str) -> Result<Actuator, String> {
        let found = Actuator::ALL.into_iter().find(|actuator| actuator.name() == text);
        found.ok_or_else(|| format!("unknown actuator {text:?}: expected tc or openflow"))
    }
}

/// Options of the scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Trials, each with a run of every [`Isolation`].
    pub trials: u32,
    /// Duration of the flow in a run, in whole seconds.
    pub duration: Duration,
    /// The flight duration T of the detector.
    pub flight_duration: Nanos,
    /// The seed of the background traffic of the first trial; the next trial has the next seed.
    pub seed: u64,
    /// How flows are redirected.
    pub actuator: Actuator,
}

/// The network and the daemon of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Rate of the link.
    pub link_rate: BitRate,
    /// The flight duration T.
    pub flight_duration: Nanos,
    /// The rate threshold R.
    pub rate_threshold: BitRate,
    /// Size of either queue.
    pub queue: Bytes,
    /// How flows are redirected.
    pub actuator: Actuator,
}

impl Parameters {
    /// Returns the parameters of a scenario.
    pub fn new(link_rate: BitRate, options: &Options) -> Parameters {
        let share = |share: f64| BitRate((link_rate.0 as f64 * share) as u64);
        Parameters {
            link_rate,
            flight_duration: options.flight_duration,
            rate_threshold: share(THRESHOLD_SHARE),
            queue: link_rate.amount_in(BUFFER),
            actuator: options.actuator,
        }
    }

    /// Returns a share of the link's rate.
    pub(crate) fn share(&self, share: f64) -> BitRate {
        BitRate((self.link_rate.0 as f64 * share) as u64)
    }
}

/// A trial: one run of every [`Isolation`], with the same background traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// The seed of its background traffic.
    pub seed: u64,
    /// The runs in the order of [`Isolation::ALL`].
    pub runs: Vec<Run>,
}

/// The results of all trials.
#[derive(Clone, Debug)]
pub struct Results {
    /// The network and the daemon.
    pub parameters: Parameters,
    /// Duration of the flow in each run.
    pub duration: Duration,
    /// The congestion control of the flow.
    pub congestion_control: String,
    /// The trials in order.
    pub trials: Vec<Trial>,
    /// What the scavenger queue gets while the primary queue fills the link.
    pub saturation: Vec<saturation::Share>,
    /// Headroom over all runs.
    pub headroom: Headroom,
}

/// Runs the scenario.
///
/// # Errors
/// If the lab cannot be created, H-TCP cannot be registered, or iperf3 fails.
pub fn run(options: &Options, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let parameters = Parameters::new(setting.rate, options);
    let router = Router::up(&parameters, setting)?;
    let h_tcp = LabTcp::register(Algorithm::HTcp)?;
    let (mut trials, mut headroom) = (Vec::new(), HeadroomSum::default());
    for number in 0..options.trials {
        let seed = options.seed.wrapping_add(u64::from(number));
        let mut runs = Vec::new();
        for isolation in Isolation::ALL {
            let run = run::run(&router, &parameters, isolation, h_tcp.name(), options, seed, &mut headroom)?;
            (setting.on_progress)(&format!("trial {} of {}, {run}", number + 1, options.trials));
            runs.push(run);
        }
        trials.push(Trial { seed, runs });
    }
    (setting.on_progress)("scavenger queue beside a full primary queue");
    let saturation = saturation::measure(&router, &parameters)?;
    Ok(Results {
        parameters,
        duration: options.duration,
        congestion_control: h_tcp.name().to_owned(),
        trials,
        saturation,
        headroom: headroom.total(),
    })
}

/// Returns the daemon's configuration, with `borrow`.
pub fn configuration(options: &Options, setting: &Setting<'_>) -> String {
    let parameters = Parameters::new(setting.rate, options);
    daemon::configuration(&setting.prefix, &parameters, Isolation::Borrow, daemon::Detects::Cheetahs)
}

/// The router, removed on drop.
pub(crate) struct Router {
    pub(crate) lab: RouterLab,
    pub(crate) prefix: thalweg_lab::Prefix,
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The numbers of the hosts.
pub(crate) const PING: usize = 1;
pub(crate) const BACKGROUND: usize = 2;
pub(crate) const FLOW: usize = 3;

impl Router {
    fn up(parameters: &Parameters, setting: &Setting<'_>) -> Result<Router, ScenarioError> {
        let forwarding = match parameters.actuator {
            Actuator::Tc => Forwarding::Kernel,
            Actuator::OpenFlow => Forwarding::OpenVSwitch,
        };
        let senders = [None, None, Some(parameters.share(FLOW_SHARE))];
        Router::with(&senders, forwarding, setting)
    }

    /// Creates a router with these senders.
    ///
    /// # Errors
    /// If the lab cannot be created.
    pub(crate) fn with(
        senders: &[Option<BitRate>],
        forwarding: Forwarding,
        setting: &Setting<'_>,
    ) -> Result<Router, ScenarioError> {
        if thalweg_lab::Lab::is_up(&setting.prefix) {
            return Err(ScenarioError::PrefixInUse { prefix: setting.prefix.to_string() });
        }
        let lab = RouterLab::up(&setting.prefix, senders, forwarding)?;
        Ok(Router { lab, prefix: setting.prefix.clone(), stop: std::sync::Arc::clone(&setting.stop) })
    }

    /// Sets up the queues of the link, unless the daemon does.
    fn set_queues(&self, parameters: &Parameters, isolation: Isolation) -> Result<(), ScenarioError> {
        if parameters.actuator == Actuator::Tc {
            return Ok(());
        }
        let is_strict = isolation != Isolation::Borrow;
        let queues = SwitchQueues {
            rate: parameters.link_rate,
            // Open vSwitch raises it to its minimum.
            scavenger_rate: if is_strict { BitRate(0) } else { parameters.share(SCAVENGER_SHARE) },
            is_strict,
            limit: parameters.queue,
        };
        Ok(self.lab.set_queues(&queues)?)
    }

    /// Whether the scenario was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        is_stopped(&self.stop)
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    /// If the scenario is asked to stop.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), ScenarioError> {
        wait(&self.stop, time)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // The next lab of the same prefix, or `thalweg lab down`, removes what this leaves.
        let _ = thalweg_lab::Lab::down(&self.prefix);
    }
}

impl Results {
    /// Returns all runs with this isolation.
    pub fn runs(&self, isolation: Isolation) -> impl Iterator<Item = &Run> + '_ {
        self.trials.iter().flat_map(|trial| &trial.runs).filter(move |run| run.isolation == isolation)
    }

    /// Returns the trial to plot: the first.
    pub fn plotted(&self) -> Option<&Trial> {
        self.trials.first()
    }
}
