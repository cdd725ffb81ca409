//! `thalweg lab up --emulate`: a rack in an experiment file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use super::Setting;
use super::network::{Lateness, Network, Processes, QueueSample, Record};
use crate::sketches::peers::succeed;

/// Prefix of its namespaces.
const PREFIX: &str = "tbt-";

/// A lab over an emulated network.
struct Lab {
    program: PathBuf,
    folder: PathBuf,
    receiver: String,
    hosts: Vec<PathBuf>,
    processes: Processes,
    is_up: bool,
}

/// Creates a lab.
pub(super) fn up(setting: &Setting<'_>, options: &[&str]) -> anyhow::Result<Box<dyn Network>> {
    let folder = setting.folder.join("thalweg");
    fs::create_dir_all(&folder)?;
    let file = folder.join("star.toml");
    fs::write(&file, experiment(setting))?;
    let program = std::path::absolute(setting.thalweg)?;
    let receiver = format!("h{}", setting.hosts - 1);
    let hosts = (0..setting.hosts).map(|host| PathBuf::from(format!("/run/netns/{PREFIX}h{host}"))).collect();
    let mut lab = Lab { program, folder, receiver, hosts, processes: Processes::default(), is_up: true };
    let mut command = lab.command("up");
    command.arg("--emulate").arg(&file).arg("--output").arg(&lab.folder).args(options);
    succeed(&mut command)?;
    lab.processes = lab.find_processes()?;
    Ok(Box::new(lab))
}

/// Returns the experiment file.
fn experiment(setting: &Setting<'_>) -> String {
    let Setting { hosts, mbps, queue, .. } = setting;
    format!(
        "name = \"star\"\nduration = \"1s\"\n\n[topology]\nshape = \"rack\"\nendpoints = {hosts}\nrate = \"{mbps}mbps\"\n\n\
         [scheme]\nname = \"droptail\"\nbuffer = {queue}\n\n[measure]\nqueue_interval = \"1ms\"\nports = [\"tor0 > h{}\"]\n",
        hosts - 1
    )
}

impl Lab {
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lab", verb, "--prefix", PREFIX]);
        command
    }

    fn find_processes(&self) -> anyhow::Result<Processes> {
        let printed = succeed(self.command("status").arg("--json"))?;
        let status: Value = serde_json::from_str(&printed).context("the status of the lab")?;
        let list = |key: &str| status[key].as_array().cloned().unwrap_or_default();
        let pid = |value: &Value| u32::try_from(value["pid"].as_u64()?).ok();
        let core: Vec<_> = list("arbiters").iter().filter_map(pid).collect();
        let endpoints: Vec<_> = list("hosts").iter().filter_map(|host| pid(&host["endpoint"])).collect();
        let is_complete = core.len() == 1 && endpoints.len() == self.hosts.len();
        ensure!(is_complete, "the lab has {} arbiters and {} endpoints", core.len(), endpoints.len());
        Ok(Processes { core, endpoints })
    }

    fn down(&mut self) -> anyhow::Result<()> {
        self.is_up = false;
        succeed(&mut self.command("down")).map(drop)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.is_up {
            let _ = self.down();
        }
    }
}

impl Network for Lab {
    fn hosts(&self) -> &[PathBuf] {
        &self.hosts
    }

    fn processes(&self) -> Processes {
        self.processes.clone()
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<Record> {
        self.down()?;
        let path = self.folder.join("real-time.json");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let report: Value = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let number =
            |key: &str| report[key].as_u64().with_context(|| format!("{}: no {key}", path.display()));
        let share = report["late_share"].as_f64().context("real-time.json: no late_share")?;
        let dropped = report["packets"]["dropped"].as_u64().context("real-time.json: no packets.dropped")?;
        let start = number("started_at_ns")?;
        let packets = Some(number("requests")?);
        let lateness = Lateness::Slots { late_share: share, worst_ns: number("worst_delay_ns")? };
        let queue = read_queue(&self.folder.join("queues.parquet"), &self.receiver, start)?;
        Ok(Record { queue, lateness, dropped, packets })
    }
}

/// Reads the samples of the queue to `receiver` from the table of queues. `start` is the time of its first slot since 1970, in nanoseconds.
fn read_queue(path: &Path, receiver: &str, start: u64) -> anyhow::Result<Vec<QueueSample>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let reader = SerializedFileReader::new(file).with_context(|| format!("{}", path.display()))?;
    let mut samples = Vec::new();
    for row in reader.get_row_iter(None)? {
        let (mut time, mut packets, mut to) = (0, 0, String::new());
        for (name, field) in row?.get_column_iter() {
            match (name.as_str(), field) {
                ("time_ns", Field::Long(value)) => time = *value,
                ("packets", Field::Long(value)) => packets = *value,
                ("to", Field::Str(value)) => to.clone_from(value),
                _ => {}
            }
        }
        if to == receiver {
            samples.push(QueueSample { time_ns: start.saturating_add_signed(time), packets: packets as f64 });
        }
    }
    ensure!(!samples.is_empty(), "{}: no samples of the port to {receiver}", path.display());
    Ok(samples)
}
