//! `thalweg lab up --emulate`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use clap::{Args, ValueEnum as _};
use thalweg_experiment::files::{Format, Output};
use thalweg_experiment::results::Results;
use thalweg_experiment::{Experiment, Plan};
use thalweg_lab::{EmulatedLab, EmulatedPlan, Lab, Prefix};
use thalweg_scenarios::scenarios::emulated_queues::HostRun;
use thalweg_wire::Nanos;

use crate::cli::endpoint::WaitArg;
use crate::cli::exit_code::UsageError;
use crate::cli::file_kind::FileKind;
use crate::config::value::parse;
use crate::console;
use crate::emulated_lab::{self, LabRequest, report};

/// The overhead of endpoints by default: packets leave with their answer, and none is early while the arbiter is behind.
const LEAST_OVERHEAD: Nanos = Nanos(1);

/// Options of a lab over an emulated network.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Emulated network")]
pub(super) struct EmulatedArgs {
    /// Connect the hosts by an emulated network instead of switches: an experiment file, as for `thalweg emulate`.
    ///
    /// Takes hosts, rates, delays, queues, routing and failures from the file. Starts an arbiter, `thalweg emulate --real-time`, and an
    /// endpoint for each host, `thalweg endpoint`. All hosts are at one bridge: real packets take none of the paths of the
    /// emulated network, and see its delays, losses and marks. Needs Linux 6.6.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    emulate: Option<PathBuf>,

    /// Random seed of the emulated network. Overrides the file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Start a secondary arbiter, which takes over if the arbiter fails.
    #[arg(long)]
    standby: bool,

    /// How endpoints wait for packets [default: sleep]. `busy-poll` needs a processor for each host.
    #[arg(long, value_name = "HOW")]
    wait: Option<WaitArg>,

    /// Release each packet when its emulated delay and this time have passed, or with its answer if that comes later [default: no time].
    ///
    /// The way to the arbiter and back adds to each delay, and varies. With a time that is enough for 99 of 100 packets, all have
    /// the same delay. The logs of the endpoints have the p99 of their overhead.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    overhead: Option<Nanos>,

    /// Let requests to the arbiter and answers wait for others for this long [default: no time].
    ///
    /// More packets share a datagram, so the machine carries more of them, and each is delayed by up to twice this time.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    batch_delay: Option<Nanos>,

    /// Delay of a timeslot from which it is late [default: 50us].
    ///
    /// The emulation is valid if few timeslots are late. A longer time is enough for networks with long delays.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    late_after: Option<Nanos>,

    /// TCP congestion control of the hosts [default: the `[transport]` of the file, `cubic` if it has none].
    ///
    /// `cubic`, `reno`, `dctcp`, `htcp`, or another one of the kernel (`sysctl net.ipv4.tcp_available_congestion_control`). If the kernel lacks
    /// `dctcp` or `htcp`, the lab brings it as an eBPF program. With `dctcp`, the hosts use ECN.
    #[arg(long, value_name = "NAME")]
    tcp: Option<String>,

    /// Directory for the report of the arbiter and the logs. Created if missing [default: one that `down` removes].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl EmulatedArgs {
    /// Returns what to create; `None` without `--emulate`.
    ///
    /// # Errors
    /// If an option has no effect without it.
    pub(super) fn request(&self) -> anyhow::Result<Option<LabRequest>> {
        let Some(file) = self.emulate.clone() else {
            return match self.first_option() {
                Some(flag) => Err(UsageError(format!("{flag} needs --emulate FILE")).into()),
                None => Ok(None),
            };
        };
        let wait = self.wait.unwrap_or(WaitArg::Sleep);
        Ok(Some(LabRequest {
            file,
            seed: self.seed,
            has_standby: self.standby,
            wait: wait.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
            polls: wait == WaitArg::BusyPoll,
            overhead: Some(self.overhead.unwrap_or(LEAST_OVERHEAD)),
            batch_delay: self.batch_delay,
            late_after: self.late_after,
            congestion_control: self.tcp.clone(),
            output: self.output.clone(),
        }))
    }

    /// An option that has no effect without an emulated network. Clap does not refuse it, because the topology excludes `--emulate`.
    fn first_option(&self) -> Option<&'static str> {
        match self {
            EmulatedArgs { seed: Some(_), .. } => Some("--seed"),
            EmulatedArgs { standby: true, .. } => Some("--standby"),
            EmulatedArgs { wait: Some(_), .. } => Some("--wait"),
            EmulatedArgs { overhead: Some(_), .. } => Some("--overhead"),
            EmulatedArgs { batch_delay: Some(_), .. } => Some("--batch-delay"),
            EmulatedArgs { late_after: Some(_), .. } => Some("--late-after"),
            EmulatedArgs { tcp: Some(_), .. } => Some("--tcp"),
            EmulatedArgs { output: Some(_), .. } => Some("--output"),
            _ => None,
        }
    }
}

/// Creates a lab, and says how to use it.
pub(super) fn up(request: &LabRequest, prefix: Prefix, json: bool) -> anyhow::Result<()> {
    let plan = emulated_lab::plan(request, prefix)
        .map_err(|error| FileKind::Experiment.with_hint(error, &request.file))?;
    plan.warnings.iter().for_each(console::warn);
    let plan = plan.plan;
    plan.check().map_err(|error| UsageError(format!("{}: {error}", request.file.display())))?;
    let (hosts, processors) =
        (plan.topology.endpoints().len(), available_parallelism().map_or(1, NonZeroUsize::get));
    if request.polls && hosts >= processors {
        return Err(UsageError(format!(
            "--wait busy-poll needs {} processors, one for each of {hosts} hosts and one for the arbiter: this machine has {processors}; \
             use real-time or sleep",
            hosts + 1
        ))
        .into());
    }
    EmulatedLab::check_machine()?;
    emulated_lab::create_output(&plan)?;
    let lab = EmulatedLab::up(&plan)?;
    let status = emulated_lab::status(&lab)?;
    crate::cli::print(match json {
        true => report::json(&status),
        false => report::text(&status) + &report::usage(&status),
    })
}

/// Plans the lab of a scenario, with its reports in a folder.
///
/// # Errors
/// A message, if the experiment is invalid.
pub(super) fn planner(file: &Path, prefix: &Prefix, output: &Path) -> Result<EmulatedPlan, String> {
    let request = LabRequest {
        file: file.to_owned(),
        seed: None,
        has_standby: false,
        wait: "sleep".to_owned(),
        polls: false,
        overhead: None,
        batch_delay: None,
        late_after: None,
        congestion_control: None,
        output: Some(output.to_owned()),
    };
    let mut plan = emulated_lab::plan(&request, prefix.clone()).map_err(|error| format!("{error:#}"))?.plan;
    plan.arbiter_arguments.extend(["--format".into(), "csv".into()]);
    Ok(plan)
}

/// Runs an experiment of a scenario with emulated hosts, in virtual time, with a folder for its files.
///
/// # Errors
/// A message, if the experiment is invalid or cannot run.
pub(super) fn hosts(text: &str, folder: &Path, stop: &AtomicBool) -> Result<HostRun, String> {
    let run = || -> anyhow::Result<Results> {
        let plan = Plan::new(&Experiment::parse(text, "experiment")?)?;
        let output = Output { folder, format: Format::default() };
        Ok(thalweg_experiment::run(plan, Some(output), stop, &mut |_| ())?)
    };
    let results = run().map_err(|error| format!("{error:#}"))?;
    let rows = results.queues.iter().filter(|row| row.time_ns >= results.warm_up_ns);
    Ok(HostRun { goodput_bps: results.summary.goodput_bps, queue: rows.map(|row| row.packets).collect() })
}

/// Starts what has ended of a lab, and says what it was.
pub(super) fn restart(mut lab: EmulatedLab) -> anyhow::Result<()> {
    let names = lab.restart()?;
    crate::cli::print(match names.is_empty() {
        true => "the arbiter and all endpoints run\n".to_owned(),
        false => format!("started again: {}\n", names.join(", ")),
    })
}

/// Removes a lab, and reports on its run.
pub(super) fn down(lab: &EmulatedLab) -> anyhow::Result<()> {
    let ended = lab.stop()?;
    // With what endpoints have written at their end.
    let status = lab.status()?;
    let verdicts = emulated_lab::verdicts(&status);
    let removed = Lab::down(lab.prefix())?;
    crate::cli::print(report::removed(&status, ended, removed, &verdicts))
}
