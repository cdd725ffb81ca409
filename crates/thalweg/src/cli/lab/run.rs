//! `thalweg lab run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_lab::{DEFAULT_HOST_SHARE, DEFAULT_RATE, Plane};
use thalweg_scenarios::configuration::ActuatorKind;
use thalweg_scenarios::scenarios::emulated_rpc::network::Network;
use thalweg_scenarios::scenarios::faults::Fault;
use thalweg_scenarios::scenarios::workload::{Method, Pattern};
use thalweg_scenarios::scenarios::{
    Setting, collide, emulated_latency, emulated_queues, emulated_rpc, faults, isolate, reroute_latency,
    switch_buffer, udp, workload,
};
use thalweg_scenarios::{plot, report};
use thalweg_wire::{BitRate, Nanos};

use super::{PrefixArgs, emulated, parsed};
use crate::cli::exit_code::UsageError;
use crate::config::value::parse;
use crate::console;

/// Default link rate of the fat tree. Each packet crosses five switches on the CPUs of one machine.
const TREE_RATE: BitRate = BitRate(20_000_000);

/// Default number of trials.
const DEFAULT_TRIALS: u32 = 10;

/// Default duration of `udp`.
const UDP_SECONDS: u64 = 60;

/// Default amount of data per host of a workload, as time at link rate.
const SEND_SECONDS: u64 = 5;

/// Run a measurement scenario in a temporary lab.
///
/// Removes a lab with the same prefix, creates a new one, runs the scenario and removes the lab. Reports the idle CPU time with each measurement. Marks results
/// as `inconclusive` if the machine was too busy, such as below 30 % idle. Needs iperf3.
#[derive(Args, Debug)]
pub(super) struct RunArgs {
    /// Scenario.
    #[arg(value_name = "SCENARIO", value_enum)]
    scenario: Scenario,

    /// Number of trials of `collide`, of `emulated-latency`, of each scheme in `emulated-queues` (default 3), of `isolate`, of each case in `switch-buffer`, and of each actuator in `reroute-latency` [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: Option<u32>,

    /// `udp`: duration of the flow (default 60s). `emulated-latency`: duration of each measurement (default 2s). `emulated-queues`, `isolate`, `switch-buffer`: duration of the flows in each run (default 10s, 5s and 60s). `emulated-rpc`: time of the requests at each load (default 20s). `stride`, `bijection`, `random`, `shuffle`: each host sends as much as its
    /// link carries in this time (default 5s).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Rerouting methods: `static`, `poll-1s`, `poll-0.1s`, `planck`, `optimal` [default: all].
    ///
    /// For `stride`, `bijection`, `random` and `shuffle`. Separate several by commas.
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = parsed::<Method>)]
    method: Vec<Method>,

    /// Networks of `emulated-rpc`: `kernel`, `droptail`, `dctcp`, `hull`, `pfabric` [default: all].
    ///
    /// `kernel` is not emulated: its queues are token buckets. Separate several by commas.
    #[arg(long, value_name = "SCHEME", value_delimiter = ',', value_parser = parsed::<Network>)]
    scheme: Vec<Network>,

    /// Loads of `emulated-rpc`: payload that clients receive, as a share of their links, above 0 and up to 1 [default: 0.1 to 0.8 in steps of 0.1].
    ///
    /// Separate several by commas.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = share)]
    load: Vec<f64>,

    /// Faults to inject: `switch-restart`, `controller-killed`, `events-lost`, `events-reordered`, `unresponsive-host`,
    /// `link-failure`, `wrong-topology` [default: all].
    ///
    /// For `faults`. Separate several by commas.
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = parsed::<Fault>)]
    fault: Vec<Fault>,

    /// Flight duration of the detector, for `isolate` [default: 10ms].
    ///
    /// A flow is isolated when it has sent more than a tenth of the link's rate on average for this time.
    #[arg(long, value_name = "TIME", value_parser = flight_duration)]
    flight_duration: Option<Nanos>,

    /// Actuator that isolates the flow, for `isolate`: `tc` (traffic control of the router), or `openflow` (rules of an Open
    /// vSwitch instead of the router; needs the packages openvswitch-switch, ethtool and iproute2) [default: tc].
    #[arg(long, value_name = "ACTUATOR", value_parser = parsed::<isolate::Actuator>)]
    actuator: Option<isolate::Actuator>,

    /// Random seed of sender and receiver pairs, trees, faults, background traffic, requests, and emulated hosts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Rate of all links; of `isolate` and `switch-buffer`: of the link behind the router [default: 100 Mbit/s, 20 Mbit/s on the fat tree, 200
    /// Mbit/s for `isolate`, 600 Mbit/s for `emulated-queues`].
    #[arg(long, value_name = "RATE", value_parser = parsed::<BitRate>)]
    rate: Option<BitRate>,

    /// Sending rate of each host as a share of its link's rate, above 0 and up to 1 [default: 0.96].
    ///
    /// For `stride`, `bijection`, `random` and `shuffle`. Hosts that fill their links are the hard case: two flows that collide
    /// lose half of their rate. With 0.6, as in the testbed of the Planck paper, they lose a seventh.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    host_share: Option<f64>,

    #[command(flatten)]
    prefix: PrefixArgs,

    /// Print the configuration of the daemon that controls the lab and exit.
    ///
    /// With `--output`, also writes it to `thalweg.toml`, with its topology file. `reroute-latency` prints the OpenFlow
    /// configuration. `stride`, `bijection`, `random` and `shuffle` print that of the first `--method`, by default `planck`.
    #[arg(long, help_heading = "Output")]
    print_config: bool,

    /// Directory for the plot and the results as JSON. Created if missing.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Print one line of JSON instead of tables.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Two TCP flows collide on a link: time until one is rerouted
    Collide,
    /// Time from a reroute to the first packet on the new path, by ARP and by OpenFlow (needs Open vSwitch)
    RerouteLatency,
    /// A rerouted UDP flow stays on its new path
    Udp,
    /// A ping beside a large TCP flow through a router, without and with isolation of the flow
    Isolate,
    /// Losses that a large TCP flow causes, by its TCP buffer, rate and round trip
    SwitchBuffer,
    /// Latency that the real-time emulation of a network adds to packets, by their rate
    EmulatedLatency,
    /// Throughput and queue of five senders to one receiver over the real-time emulation, beside those of emulated hosts
    EmulatedQueues,
    /// Completion times of requests with real TCP over the real-time emulation, by scheme and load
    EmulatedRpc,
    /// Fault injection: forwarding and rerouting recover from every fault
    Faults,
    /// Fat tree: host i sends to host i + 8
    Stride,
    /// Fat tree: each host sends to one host and receives from one
    Bijection,
    /// Fat tree: each host sends to a random host
    Random,
    /// Fat tree: each host sends to all others, two at a time
    Shuffle,
}

impl Scenario {
    /// The rate of the links unless another one is given.
    const fn default_rate(self) -> BitRate {
        match self {
            Scenario::Isolate => isolate::DEFAULT_RATE,
            Scenario::EmulatedQueues => emulated_queues::DEFAULT_RATE,
            Scenario::EmulatedRpc => emulated_rpc::DEFAULT_RATE,
            Scenario::SwitchBuffer => switch_buffer::DEFAULT_RATE,
            _ if self.is_workload() => TREE_RATE,
            _ => DEFAULT_RATE,
        }
    }

    /// Whether all hosts of a fat tree send at once.
    const fn is_workload(self) -> bool {
        matches!(self, Scenario::Stride | Scenario::Bijection | Scenario::Random | Scenario::Shuffle)
    }
}

impl RunArgs {
    /// Runs the scenario.
    ///
    /// # Errors
    /// If an option does not apply, the lab cannot be created, or the scenario fails.
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.check_options()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
                .context("cannot install signal handlers")?;
        }
        let mut on_progress = |line: &str| console::note(line);
        let trials = self.trials.unwrap_or(DEFAULT_TRIALS);
        let mut setting = Setting {
            rate: self.rate.unwrap_or(self.scenario.default_rate()),
            host_share: self.host_share.unwrap_or(DEFAULT_HOST_SHARE),
            prefix: self.prefix.prefix.clone(),
            stop,
            on_progress: &mut on_progress,
        };
        if self.print_config {
            return self.print_files(&setting);
        }
        let pattern = match self.scenario {
            Scenario::Collide => {
                let results = collide::run(trials, &mut setting)?;
                let json = report::collide_json(&results);
                self.save("collide", &json, Some(plot::collide(&results)))?;
                return crate::cli::print(if self.json { json } else { report::collide(&results) });
            }
            Scenario::RerouteLatency => {
                let results = reroute_latency::run(trials, &mut setting)?;
                let json = report::reroute_latency_json(&results);
                self.save("reroute-latency", &json, Some(plot::reroute_latency(&results)))?;
                return crate::cli::print(if self.json { json } else { report::reroute_latency(&results) });
            }
            Scenario::Udp => {
                let results = udp::run(self.time(UDP_SECONDS), &mut setting)?;
                let json = report::udp_json(&results);
                self.save("udp", &json, None)?;
                return crate::cli::print(if self.json { json } else { report::udp(&results) });
            }
            Scenario::Isolate => {
                let results = isolate::run(&self.isolate_options(), &mut setting)?;
                let json = report::isolate_json(&results);
                self.save("isolate", &json, Some(plot::isolate(&results)))?;
                return crate::cli::print(if self.json { json } else { report::isolate(&results) });
            }
            Scenario::SwitchBuffer => {
                let options = switch_buffer::Options {
                    trials,
                    duration: self.time(switch_buffer::DEFAULT_SECONDS),
                    seed: self.seed,
                };
                let results = switch_buffer::run(&options, &mut setting)?;
                let json = report::switch_buffer_json(&results);
                self.save("switch-buffer", &json, Some(plot::switch_buffer(&results)))?;
                return crate::cli::print(if self.json { json } else { report::switch_buffer(&results) });
            }
            Scenario::EmulatedLatency => {
                let duration = self.time(emulated_latency::DEFAULT_SECONDS);
                let options = emulated_latency::Options { trials, duration };
                let results = emulated_latency::run(&options, &emulated::planner, &mut setting)?;
                let json = report::emulated_latency_json(&results);
                self.save("emulated-latency", &json, Some(plot::emulated_latency(&results)))?;
                return crate::cli::print(if self.json { json } else { report::emulated_latency(&results) });
            }
            Scenario::EmulatedQueues => {
                let options = emulated_queues::Options {
                    trials: self.trials.unwrap_or(emulated_queues::DEFAULT_TRIALS),
                    duration: self.time(emulated_queues::DEFAULT_SECONDS),
                    seed: self.seed,
                };
                let stop = Arc::clone(&setting.stop);
                let hosts = |text: &str, folder: &Path| emulated::hosts(text, folder, &stop);
                let results = emulated_queues::run(&options, &emulated::planner, &hosts, &mut setting)?;
                let json = report::emulated_queues_json(&results);
                self.save("emulated-queues", &json, Some(plot::emulated_queues(&results)))?;
                return crate::cli::print(if self.json { json } else { report::emulated_queues(&results) });
            }
            Scenario::EmulatedRpc => {
                let results = emulated_rpc::run(&self.rpc_options(), &emulated::planner, &mut setting)?;
                let json = report::emulated_rpc_json(&results);
                self.save("emulated-rpc", &json, Some(plot::emulated_rpc(&results)))?;
                self.save_text("emulated-rpc.csv", &report::emulated_rpc_flows(&results)?)?;
                return crate::cli::print(if self.json { json } else { report::emulated_rpc(&results) });
            }
            Scenario::Faults => {
                let faults = if self.fault.is_empty() { &Fault::ALL } else { self.fault.as_slice() };
                let results = faults::run(faults, self.seed, &mut setting)?;
                let json = report::faults_json(&results);
                self.save("faults", &json, None)?;
                return crate::cli::print(if self.json { json } else { report::faults(&results) });
            }
            Scenario::Stride => Pattern::Stride,
            Scenario::Bijection => Pattern::Bijection,
            Scenario::Random => Pattern::Random,
            Scenario::Shuffle => Pattern::Shuffle,
        };
        let methods = if self.method.is_empty() { &Method::ALL } else { self.method.as_slice() };
        let results = workload::run(pattern, methods, self.time(SEND_SECONDS), self.seed, &mut setting)?;
        let json = report::workload_json(&results);
        self.save(pattern.name(), &json, Some(plot::workload(&results)))?;
        crate::cli::print(if self.json { json } else { report::workload(&results) })
    }

    /// Returns the options of `emulated-rpc`.
    fn rpc_options(&self) -> emulated_rpc::Options {
        let or = |given: &[f64]| match given {
            [] => emulated_rpc::DEFAULT_LOADS.to_vec(),
            given => given.to_vec(),
        };
        emulated_rpc::Options {
            networks: if self.scheme.is_empty() { Network::ALL.to_vec() } else { self.scheme.clone() },
            loads: or(&self.load),
            duration: self.time(emulated_rpc::DEFAULT_SECONDS),
            seed: self.seed,
        }
    }

    /// Returns the options of `isolate`.
    fn isolate_options(&self) -> isolate::Options {
        isolate::Options {
            trials: self.trials.unwrap_or(DEFAULT_TRIALS),
            duration: self.time(isolate::DEFAULT_SECONDS),
            flight_duration: self.flight_duration.unwrap_or(isolate::DEFAULT_FLIGHT),
            seed: self.seed,
            actuator: self.actuator.unwrap_or_default(),
        }
    }

    /// Refuses options that the scenario does not have.
    fn check_options(&self) -> Result<(), UsageError> {
        use Scenario::{
            Collide, EmulatedLatency, EmulatedQueues, EmulatedRpc, Faults, Isolate, RerouteLatency,
            SwitchBuffer, Udp,
        };
        let (scenario, is_workload) = (self.scenario, self.scenario.is_workload());
        let has_trials = matches!(
            scenario,
            Collide | EmulatedLatency | EmulatedQueues | Isolate | RerouteLatency | SwitchBuffer
        );
        let workloads = "stride, bijection, random and shuffle";
        for (flag, is_given, applies, to) in [
            (
                "--trials",
                self.trials.is_some(),
                has_trials,
                "collide, emulated-latency, emulated-queues, isolate, reroute-latency and switch-buffer",
            ),
            ("--flight-duration", self.flight_duration.is_some(), scenario == Isolate, "isolate"),
            ("--actuator", self.actuator.is_some(), scenario == Isolate, "isolate"),
            (
                "--duration",
                self.duration.is_some(),
                is_workload
                    || matches!(
                        scenario,
                        EmulatedLatency | EmulatedQueues | EmulatedRpc | Isolate | SwitchBuffer | Udp
                    ),
                &format!(
                    "udp, emulated-latency, emulated-queues, emulated-rpc, isolate, switch-buffer, {workloads}"
                ),
            ),
            ("--method", !self.method.is_empty(), is_workload, workloads),
            ("--rate", self.rate.is_some(), scenario != EmulatedLatency, "all other scenarios"),
            ("--host-share", self.host_share.is_some(), is_workload, workloads),
            ("--scheme", !self.scheme.is_empty(), scenario == EmulatedRpc, "emulated-rpc"),
            ("--load", !self.load.is_empty(), scenario == EmulatedRpc, "emulated-rpc"),
            ("--fault", !self.fault.is_empty(), scenario == Faults, "faults"),
            (
                "--print-config",
                self.print_config,
                !matches!(scenario, EmulatedLatency | EmulatedQueues | EmulatedRpc | SwitchBuffer),
                "all other scenarios, in which a daemon runs",
            ),
        ] {
            if is_given && !applies {
                let name =
                    scenario.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned());
                return Err(UsageError(format!("{flag} cannot be used with {name}: it applies to {to}")));
            }
        }
        // iperf3 counts whole seconds.
        match self.duration {
            Some(time) if scenario != EmulatedLatency && time.subsec_nanos() != 0 => Err(UsageError(
                "invalid value for '--duration <TIME>': expected whole seconds from 1s to 3600s".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Prints the daemon's configuration.
    fn print_files(&self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let files = match self.scenario {
            Scenario::Collide | Scenario::Faults => collide::files(Plane::Ebpf, ActuatorKind::Arp, setting)?,
            Scenario::RerouteLatency => collide::files(Plane::Ovs, ActuatorKind::OpenFlow, setting)?,
            Scenario::Udp => udp::files(setting)?,
            Scenario::Isolate => {
                // Without a topology file.
                let text = isolate::configuration(&self.isolate_options(), setting);
                self.save_text("thalweg.toml", &text)?;
                return crate::cli::print(text);
            }
            Scenario::EmulatedLatency
            | Scenario::EmulatedQueues
            | Scenario::EmulatedRpc
            | Scenario::SwitchBuffer => {
                unreachable!("its options are checked")
            }
            Scenario::Stride | Scenario::Bijection | Scenario::Random | Scenario::Shuffle => {
                let method = self.method.first().copied().unwrap_or(Method::Planck);
                workload::files(method, self.seed, setting)?
            }
        };
        if let Some(folder) = &self.output {
            files.write(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        }
        crate::cli::print(files.daemon)
    }

    /// Writes a file to the output directory, if any.
    fn save_text(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let Some(folder) = &self.output else { return Ok(()) };
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        write(&folder.join(name), text)
    }

    fn time(&self, default: u64) -> Duration {
        self.duration.unwrap_or(Duration::from_secs(default))
    }

    /// Writes results to the output directory.
    fn save(
        &self,
        name: &str,
        json: &str,
        svg: Option<Result<String, thalweg_plot::DrawError>>,
    ) -> anyhow::Result<()> {
        self.save_text(&format!("{name}.json"), json)?;
        let Some(svg) = svg else { return Ok(()) };
        let svg = svg.map_err(|error| anyhow::anyhow!("cannot draw the plot: {error}"))?;
        self.save_text(&format!("{name}.svg"), &svg)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Parses a share above 0 and up to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0, up to 1".to_owned())
}

/// Parses a duration of up to an hour.
fn duration(text: &str) -> Result<Duration, String> {
    let time: Nanos = parse(text)?;
    match (Nanos::from_millis(100)..=Nanos::from_secs(3_600)).contains(&time) {
        true => Ok(Duration::from_nanos(time.0)),
        false => Err("expected 100ms to 3600s".to_owned()),
    }
}

/// Parses a flight duration: that of the daemon, up to a second.
fn flight_duration(text: &str) -> Result<Nanos, String> {
    let time: Nanos = parse(text)?;
    match (Nanos::from_millis(1)..=Nanos::from_secs(1)).contains(&time) {
        true => Ok(time),
        false => Err("expected 1ms to 1s".to_owned()),
    }
}
