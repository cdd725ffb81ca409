//! `thalweg topology`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, Subcommand};
use thalweg_network::LinkSpec;
use thalweg_network::import::{Discovery, ImportError, Imported};
use thalweg_wire::BitRate;

use super::exit_code::UsageError;
use crate::console;

/// Create topology files.
#[derive(Args, Debug)]
pub(super) struct TopologyArgs {
    #[command(subcommand)]
    command: TopologyCommand,
}

#[derive(Debug, Subcommand)]
enum TopologyCommand {
    Import(ImportArgs),
}

/// Create a topology file from LLDP neighbours and Open vSwitch.
///
/// The switches are those whose reports are given. Every other neighbour is a host. Ports get the switches' own names. What cannot
/// be expressed in a topology is left out, with a note.
#[derive(Args, Debug)]
struct ImportArgs {
    /// Neighbours of a switch: the output of `lldpcli -f json show neighbors` there. SWITCH is its LLDP system name.
    #[arg(long, value_name = "SWITCH=FILE")]
    lldp: Vec<Report>,

    /// Ports of an Open vSwitch bridge: the output of `ovs-ofctl show BRIDGE`.
    #[arg(long, value_name = "BRIDGE=FILE")]
    ovs_show: Vec<Report>,

    /// Forwarding table of a bridge: the output of `ovs-ofctl dump-flows BRIDGE`. Needs its --ovs-show.
    #[arg(long, value_name = "BRIDGE=FILE")]
    ovs_flows: Vec<Report>,

    /// Connections of the bridges: the output of `ovs-vsctl --format=json list Interface`.
    ///
    /// Patch ports connect bridges. A port with external_ids:attached-mac leads to a host, named by external_ids:iface-id, else by the
    /// port.
    #[arg(long, value_name = "FILE")]
    ovs_interfaces: Vec<PathBuf>,

    /// Rate of links whose rate is not reported.
    #[arg(long, value_name = "RATE", default_value = "10gbps")]
    rate: BitRate,

    /// Output file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A report of a switch.
#[derive(Clone, Debug)]
struct Report {
    switch: String,
    file: PathBuf,
}

impl FromStr for Report {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Report, &'static str> {
        match text.split_once('=') {
            Some((switch, file)) if !switch.is_empty() && !file.is_empty() => {
                Ok(Report { switch: switch.to_owned(), file: file.into() })
            }
            _ => Err("expected the name of a switch and a file, such as leaf0=leaf0.json"),
        }
    }
}

impl TopologyArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If a report cannot be read or is invalid, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let TopologyCommand::Import(args) = self.command;
        let Imported { toml, notes } = args.import()?;
        for note in notes {
            console::warn(&note);
        }
        match &args.output {
            None => super::print(toml),
            Some(file) => {
                std::fs::write(file, toml).with_context(|| format!("cannot write {}", file.display()))
            }
        }
    }
}

impl ImportArgs {
    fn import(&self) -> anyhow::Result<Imported> {
        if self.lldp.is_empty() && self.ovs_show.is_empty() {
            return Err(UsageError("nothing to import: add --lldp or --ovs-show".to_owned()).into());
        }
        let link = LinkSpec { rate: self.rate, ..LinkSpec::default() };
        let reports = self.lldp.iter().chain(&self.ovs_show);
        let mut discovery = Discovery::new(reports.map(|report| report.switch.clone()));
        for Report { switch, file } in &self.lldp {
            usage(discovery.add_lldp(switch, &read(file)?, &name(file)))?;
        }
        let mut bridges = BTreeMap::new();
        for Report { switch, file } in &self.ovs_show {
            let bridge = usage(discovery.add_bridge(switch, &read(file)?, link, &name(file)))?;
            bridges.insert(switch.clone(), bridge);
        }
        for file in &self.ovs_interfaces {
            usage(discovery.add_interfaces(&bridges, &read(file)?, &name(file)))?;
        }
        for Report { switch, file } in &self.ovs_flows {
            let bridge = bridges.get(switch);
            let bridge = bridge
                .ok_or_else(|| UsageError(format!("--ovs-flows {switch}: add --ovs-show {switch}=FILE")))?;
            usage(discovery.add_flows(switch, bridge, &read(file)?, &name(file)))?;
        }
        usage(discovery.build(link))
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = thalweg_config::read_text(file);
    text.map_err(|error| UsageError(format!("cannot read {}: {error}", file.display())).into())
}

fn name(file: &Path) -> String {
    file.display().to_string()
}

/// An invalid report is a usage error.
fn usage<T>(result: Result<T, ImportError>) -> anyhow::Result<T> {
    result.map_err(|error| UsageError(error.to_string()).into())
}
