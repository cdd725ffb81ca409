//! `thalweg lab`.

mod emulated;
mod fail;
mod run;

use std::ffi::OsString;
use std::process::Command;
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use thalweg_lab::{EmulatedLab, Lab, Plan, Plane, Prefix};
use thalweg_scenarios::{openflow, report, shape};
use thalweg_wire::BitRate;

use self::emulated::EmulatedArgs;
use self::fail::{FailArgs, RepairArgs};
use self::run::RunArgs;
use super::exit_code::of_child;
use crate::emulated_lab;

/// Build a test network on this machine, with switches or over an emulated network (Linux, root).
///
/// Hosts are network namespaces with the kernel's TCP. Switches are eBPF programs, or Open vSwitch, with monitor ports. With
/// `up --emulate`, an emulated network connects the hosts instead, with delays, queues and failures of an experiment file. `up`
/// creates a lab and exits. The lab remains until `down` removes it or the machine restarts. The names of all its
/// namespaces and interfaces start with its prefix.
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
    Restart(RestartArgs),
    Exec(ExecArgs),
    Fail(FailArgs),
    Repair(RepairArgs),
    Run(RunArgs),
}

#[derive(Args, Clone, Debug)]
struct PrefixArgs {
    /// Name prefix of the lab's namespaces and interfaces.
    #[arg(long, value_name = "PREFIX", value_parser = parsed::<Prefix>, default_value = "tw-")]
    prefix: Prefix,
}

/// Create a lab.
///
/// First removes a lab with the same prefix, and kills the processes in it. If creation fails, removes everything again.
#[derive(Args, Debug)]
struct UpArgs {
    /// Topology: `leaf-spine` (6 hosts, 5 switches), `fat-tree-4` (16 hosts, 20 switches), or a topology file (TOML, JSON).
    #[arg(value_name = "TOPOLOGY", required_unless_present = "emulate")]
    shape: Option<String>,

    /// Rate of all links [default: 100 Mbit/s, or the file's].
    #[arg(long, value_name = "RATE", value_parser = parsed::<BitRate>, conflicts_with = "emulate")]
    rate: Option<BitRate>,

    /// Kind of switches. Open vSwitch bridges accept OpenFlow controllers on the loopback interface of their namespace, on
    /// ports from 6653.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = SwitchKind::Ebpf, conflicts_with = "emulate")]
    switch: SwitchKind,

    #[command(flatten)]
    prefix: PrefixArgs,

    /// Print the status as JSON instead of tables.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    emulated: EmulatedArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SwitchKind {
    /// eBPF programs (fast)
    Ebpf,
    /// Open vSwitch in user space, with OpenFlow
    Ovs,
}

/// Remove a lab or its remains.
///
/// Ends the arbiter and the endpoints of an emulated network, and reports on the run. Kills the processes in the namespaces. Succeeds if the
/// lab does not exist.
#[derive(Args, Debug)]
struct DownArgs {
    #[command(flatten)]
    prefix: PrefixArgs,
}

/// Show the hosts, switches and counters of a lab, or its arbiter and endpoints.
#[derive(Args, Debug)]
struct StatusArgs {
    #[command(flatten)]
    prefix: PrefixArgs,

    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Start the arbiter and the endpoints of an emulated network again that have died.
///
/// Their reports and counters begin anew, and their logs continue. Packets that endpoints hold are requested from the new arbiter.
#[derive(Args, Debug)]
struct RestartArgs {
    #[command(flatten)]
    prefix: PrefixArgs,
}

/// Run a command on a host.
///
/// Exits with the exit code of the command, or 128 plus the signal number if a signal ended it. Exits with code 1 if the
/// command cannot be started.
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

impl LabArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the user is not root, or the lab cannot be created.
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            LabCommand::Up(args) => args.run(),
            LabCommand::Down(args) => args.run(),
            LabCommand::Status(args) => args.run(),
            LabCommand::Restart(args) => args.run(),
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
        let shape = match (self.emulated.request()?, self.shape) {
            (Some(request), _) => return emulated::up(&request, prefix, self.json),
            (None, shape) => shape.context("no topology given")?,
        };
        let plane = match self.switch {
            SwitchKind::Ebpf => Plane::Ebpf,
            SwitchKind::Ovs => Plane::Ovs,
        };
        let lab = Lab::up(Plan { plane, ..shape::plan(&shape, self.rate, prefix.clone())? })?;
        if let Err(error) = openflow::begin(&lab) {
            // Report the first error. `down` removes the rest.
            let _ = Lab::down(&prefix);
            return Err(error.into());
        }
        let status = lab.status()?;
        super::print(if self.json { report::status_json(&status) } else { report::hosts(&status) })
    }
}

impl DownArgs {
    fn run(self) -> anyhow::Result<()> {
        let PrefixArgs { prefix } = self.prefix;
        // What can only be removed has no report.
        if let Ok(Some(lab)) = EmulatedLab::find(&prefix) {
            return emulated::down(&lab);
        }
        super::print(report::removed(Lab::down(&prefix)?))
    }
}

impl StatusArgs {
    fn run(self) -> anyhow::Result<()> {
        if let Some(lab) = EmulatedLab::find(&self.prefix.prefix)? {
            let status = emulated_lab::status(&lab)?;
            return super::print(match self.json {
                true => emulated_lab::report::json(&status),
                false => emulated_lab::report::text(&status),
            });
        }
        let status = Lab::find(&self.prefix.prefix)?.status()?;
        super::print(match self.json {
            true => report::status_json(&status),
            false => report::status(&status),
        })
    }
}

impl RestartArgs {
    fn run(self) -> anyhow::Result<()> {
        let PrefixArgs { prefix } = self.prefix;
        match EmulatedLab::find(&prefix)? {
            Some(lab) => emulated::restart(lab),
            None => {
                let _switches = Lab::find(&prefix)?;
                anyhow::bail!(
                    "the lab {prefix} has no emulated network: `thalweg lab repair` repairs links and switches"
                )
            }
        }
    }
}

impl ExecArgs {
    fn run(self) -> anyhow::Result<()> {
        let (program, arguments) = self.command.split_first().context("no command given")?;
        let (mut command, prefix) = (Command::new(program), &self.prefix.prefix);
        command.args(arguments);
        let mut child = match EmulatedLab::find(prefix)? {
            Some(lab) => lab.exec(&self.host, &mut command)?,
            None => Lab::find(prefix)?.exec(&self.host, &mut command)?,
        };
        let status = child.wait()?;
        match status.success() {
            true => Ok(()),
            false => std::process::exit(of_child(status)),
        }
    }
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
