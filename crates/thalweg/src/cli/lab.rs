//! `thalweg lab`.

mod fail;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_lab::{DEFAULT_RATE, Lab, Plan, Plane, Prefix};
use thalweg_wire::BitRate;

use self::fail::{FailArgs, RepairArgs};
use thalweg_scenarios::configuration::By;
use thalweg_scenarios::scenarios::faults::Fault;
use thalweg_scenarios::scenarios::workload::{Pattern, Scheme};
use thalweg_scenarios::scenarios::{Setting, collide, faults, reroute_latency, udp, workload};
use thalweg_scenarios::{openflow, plot, report, shape};

/// Rate of links on the fat tree unless said otherwise: a packet crosses five switches there, on the processors of one
/// machine.
const TREE_RATE: BitRate = BitRate(20_000_000);

/// How long `udp` watches unless said otherwise.
const UDP_SECONDS: u64 = 60;

/// What hosts have to send on the fat tree unless said otherwise, as time at their links' rate.
const SEND_SECONDS: u64 = 5;

/// Build a network on this machine, and try steering in it (Linux, root).
///
/// Hosts are network namespaces with the kernel's own TCP, switches are eBPF programs with monitor ports that mirror all
/// they forward. A lab needs no process to stay up; what it is made of begins with its prefix, and `down` removes it
/// whole.
#[derive(Args, Debug)]
pub(super) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    Up(UpArgs),
    Down(DownArgs),
    Status(StatusArgs),
    Exec(ExecArgs),
    Fail(FailArgs),
    Repair(RepairArgs),
    Run(RunArgs),
}

#[derive(Args, Clone, Debug)]
struct PrefixArgs {
    /// What the names of all that belongs to the lab begin with.
    #[arg(long, value_name = "PREFIX", value_parser = parsed::<Prefix>, default_value = "tw-")]
    prefix: Prefix,
}

/// Make a lab.
///
/// What a lab of the same prefix has left behind is removed first. If something fails, all is removed again.
#[derive(Args, Debug)]
struct UpArgs {
    /// `leaf-spine` (6 hosts, 5 switches), `fat-tree-4` (16 hosts, 20 switches), or a topology file, TOML or JSON.
    #[arg(value_name = "TOPOLOGY")]
    shape: String,

    /// Rate of all links [default: 100 Mbit/s, or what the file says].
    #[arg(long, value_name = "RATE", value_parser = parsed::<BitRate>)]
    rate: Option<BitRate>,

    /// What the switches are. Those of Open vSwitch are told by OpenFlow what to forward, and may be told otherwise: they
    /// listen on the loopback interface of their namespace, from port 6653 on.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = SwitchKind::Ebpf)]
    switch: SwitchKind,

    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SwitchKind {
    /// eBPF programs: fast.
    Ebpf,
    /// Open vSwitch in user space: for what speaks OpenFlow.
    Ovs,
}

/// Remove a lab, or what is left of it.
///
/// Processes in its namespaces are killed. To remove what is not there is no error.
#[derive(Args, Debug)]
struct DownArgs {
    #[command(flatten)]
    prefix: PrefixArgs,
}

/// Show what a lab is and has counted.
#[derive(Args, Debug)]
struct StatusArgs {
    #[command(flatten)]
    prefix: PrefixArgs,

    /// JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Run a command on a host.
///
/// Ends as the command does.
#[derive(Args, Debug)]
struct ExecArgs {
    /// Name of the host, as `thalweg lab status` shows it.
    #[arg(value_name = "HOST")]
    host: String,

    #[command(flatten)]
    prefix: PrefixArgs,

    /// The command and its arguments, after `--`.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<OsString>,
}

/// Try something in a lab of its own, and show what came of it.
///
/// The lab is made for it and removed again. Whatever is measured comes with what the machine had left: with less than
/// 30 % of its processors' time idle it says `inconclusive`. Needs iperf3.
#[derive(Args, Debug)]
struct RunArgs {
    /// What to try.
    #[arg(value_name = "SCENARIO", value_enum)]
    scenario: Scenario,

    /// How often (`collide`, and `reroute-latency` by each means).
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,

    /// How long the flow is watched (`udp`, 60 by default), or a host would have to send alone (the others, 5).
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,

    /// What steers: `static`, `poll-1s`, `poll-0.1s`, `planck`, `optimal` [default: each in turn].
    ///
    /// For `stride`, `bijection`, `random` and `shuffle`; several with commas between.
    #[arg(long, value_name = "SCHEME", value_delimiter = ',', value_parser = parsed::<Scheme>)]
    scheme: Vec<Scheme>,

    /// What befalls: `switch-restart`, `controller-killed`, `events-lost`, `events-reordered`, `deaf-host`, `link-failure`,
    /// `wrong-topology` [default: each in turn].
    ///
    /// For `faults`; several with commas between.
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = parsed::<Fault>)]
    fault: Vec<Fault>,

    /// Seed of who sends to whom, and by which trees; of what is left to chance in `faults`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Rate of all links [default: 100 Mbit/s, 20 Mbit/s on the fat tree].
    #[arg(long, value_name = "RATE", value_parser = parsed::<BitRate>)]
    rate: Option<BitRate>,

    #[command(flatten)]
    prefix: PrefixArgs,

    /// Print the daemon's file that the lab is steered with, and do nothing else.
    ///
    /// With `--out` it is written there as `thalweg.toml`, and beside it the network's file that it names. `reroute-latency` prints the one with
    /// OpenFlow, a fat tree that of `planck`, or of the first `--scheme`.
    #[arg(long, help_heading = "Output")]
    print_config: bool,

    /// Folder for a plot and the results as JSON; it is made if it is not there.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,

    /// A line of JSON in the place of tables.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Two TCP flows come onto one link, and are taken apart within milliseconds.
    Collide,
    /// How soon packets take another path, by ARP and by OpenFlow. Needs Open vSwitch.
    RerouteLatency,
    /// A UDP flow stays where it was sent.
    Udp,
    /// Whatever befalls network or controller, forwarding is whole again after, and the loop goes on.
    Faults,
    /// Fat tree: each host sends to the one half of all hosts on.
    Stride,
    /// Fat tree: each host sends to another, and receives from one.
    Bijection,
    /// Fat tree: each host sends to any other.
    Random,
    /// Fat tree: each host sends to all others, two at a time.
    Shuffle,
}

impl LabArgs {
    /// Does it.
    ///
    /// # Errors
    /// If this is not root, or the lab cannot be had.
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            LabCommand::Up(args) => args.run(),
            LabCommand::Down(args) => args.run(),
            LabCommand::Status(args) => args.run(),
            LabCommand::Exec(args) => args.run(),
            LabCommand::Fail(args) => args.run(),
            LabCommand::Repair(args) => args.run(),
            LabCommand::Run(args) => args.run(),
        }
    }
}

impl UpArgs {
    fn run(self) -> anyhow::Result<()> {
        let PrefixArgs { prefix } = self.prefix;
        let plane = match self.switch {
            SwitchKind::Ebpf => Plane::Ebpf,
            SwitchKind::Ovs => Plane::Ovs,
        };
        let lab = Lab::up(Plan { plane, ..shape::plan(&self.shape, self.rate, prefix.clone())? })?;
        if let Err(error) = openflow::begin(&lab) {
            // The first error is the one to report; what stays behind goes with `down`.
            let _ = Lab::down(&prefix);
            return Err(error.into());
        }
        super::print(report::hosts(&lab.status()?))
    }
}

impl DownArgs {
    fn run(self) -> anyhow::Result<()> {
        let removed = Lab::down(&self.prefix.prefix)?;
        super::print(report::removed(removed))
    }
}

impl StatusArgs {
    fn run(self) -> anyhow::Result<()> {
        let status = Lab::find(&self.prefix.prefix)?.status()?;
        super::print(match self.json {
            true => report::status_json(&status),
            false => report::status(&status),
        })
    }
}

impl ExecArgs {
    fn run(self) -> anyhow::Result<()> {
        let (program, arguments) = self.command.split_first().context("there is no command")?;
        let lab = Lab::find(&self.prefix.prefix)?;
        let status = lab.exec(&self.host, Command::new(program).args(arguments))?.wait()?;
        match status.success() {
            true => Ok(()),
            false => bail!("{} on {}: {status}", program.display(), self.host),
        }
    }
}

impl RunArgs {
    fn run(self) -> anyhow::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
                .context("cannot listen to signals")?;
        }
        let mut hear = |told: &str| eprintln!("{told}");
        let is_tree = matches!(
            self.scenario,
            Scenario::Stride | Scenario::Bijection | Scenario::Random | Scenario::Shuffle
        );
        let mut setting = Setting {
            rate: self.rate.unwrap_or(if is_tree { TREE_RATE } else { DEFAULT_RATE }),
            prefix: self.prefix.prefix.clone(),
            stop,
            hear: &mut hear,
        };
        if self.print_config {
            return self.print_files(&setting);
        }
        let pattern = match self.scenario {
            Scenario::Collide => {
                let results = collide::run(self.trials, &mut setting)?;
                let json = report::collide_json(&results);
                self.keep("collide", &json, Some(plot::collide(&results)))?;
                return super::print(if self.json { json } else { report::collide(&results) });
            }
            Scenario::RerouteLatency => {
                let results = reroute_latency::run(self.trials, &mut setting)?;
                let json = report::reroute_latency_json(&results);
                self.keep("reroute-latency", &json, Some(plot::reroute_latency(&results)))?;
                return super::print(if self.json { json } else { report::reroute_latency(&results) });
            }
            Scenario::Udp => {
                let results = udp::run(self.time(UDP_SECONDS), &mut setting)?;
                let json = report::udp_json(&results);
                self.keep("udp", &json, None)?;
                return super::print(if self.json { json } else { report::udp(&results) });
            }
            Scenario::Faults => {
                let faults = if self.fault.is_empty() { &Fault::ALL } else { self.fault.as_slice() };
                let results = faults::run(faults, self.seed, &mut setting)?;
                let json = report::faults_json(&results);
                self.keep("faults", &json, None)?;
                return super::print(if self.json { json } else { report::faults(&results) });
            }
            Scenario::Stride => Pattern::Stride,
            Scenario::Bijection => Pattern::Bijection,
            Scenario::Random => Pattern::Random,
            Scenario::Shuffle => Pattern::Shuffle,
        };
        let schemes = if self.scheme.is_empty() { &Scheme::ALL } else { self.scheme.as_slice() };
        let results = workload::run(pattern, schemes, self.time(SEND_SECONDS), self.seed, &mut setting)?;
        let json = report::workload_json(&results);
        self.keep(pattern.name(), &json, Some(plot::workload(&results)))?;
        super::print(if self.json { json } else { report::workload(&results) })
    }

    /// What the daemon would be started with.
    fn print_files(&self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let files = match self.scenario {
            Scenario::Collide | Scenario::Faults => collide::files(Plane::Ebpf, By::Arp, setting)?,
            Scenario::RerouteLatency => collide::files(Plane::Ovs, By::OpenFlow, setting)?,
            Scenario::Udp => udp::files(setting)?,
            Scenario::Stride | Scenario::Bijection | Scenario::Random | Scenario::Shuffle => {
                let scheme = self.scheme.first().copied().unwrap_or(Scheme::Planck);
                workload::files(scheme, self.seed, setting)?
            }
        };
        if let Some(folder) = &self.out {
            files.write(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        }
        super::print(files.daemon)
    }

    fn time(&self, default: u64) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(default))
    }

    /// Leaves results in the folder.
    fn keep(
        &self,
        name: &str,
        json: &str,
        svg: Option<Result<String, thalweg_plot::DrawError>>,
    ) -> anyhow::Result<()> {
        let Some(folder) = &self.out else { return Ok(()) };
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        write(&folder.join(format!("{name}.json")), json)?;
        let Some(svg) = svg else { return Ok(()) };
        let svg = svg.map_err(|error| anyhow::anyhow!("cannot draw the plot: {error}"))?;
        write(&folder.join(format!("{name}.svg")), &svg)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
