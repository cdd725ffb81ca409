//! ns-3 in real time with TapBridge: the program `live_star` of `bench/peers/ns3`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use thalweg_linux::Namespace;
use thalweg_linux::namespace::with_prefix;

use super::Setting;
use super::network::{Lateness, Network, Processes, QueueSample, Record};
use super::traffic::within;
use crate::emulator::ns3::{Programs, SOURCES};
use crate::sketches::peers::succeed;

/// Prefix of its namespaces.
const PREFIX: &str = "tbn-";

/// Its last line.
#[derive(Deserialize)]
struct Report {
    dropped: u64,
}

/// A network of ns-3.
struct Star {
    program: Child,
    output: BufReader<ChildStdout>,
    samples: PathBuf,
    hosts: Vec<PathBuf>,
    namespaces: Vec<Namespace>,
}

/// Creates the network, with devices of the kind `device`.
pub(super) fn up(setting: &Setting<'_>, device: &str) -> anyhow::Result<Box<dyn Network>> {
    let programs = Programs::build(Path::new(SOURCES), setting.build)?;
    for old in with_prefix(PREFIX)? {
        old.delete()?;
    }
    let create = |host| Namespace::create(format!("{PREFIX}h{host}"));
    let namespaces = (0..setting.hosts).map(create).collect::<Result<Vec<_>, _>>()?;
    let samples = setting.folder.join("ns3.csv");
    let names: Vec<_> = namespaces.iter().map(Namespace::name).collect();
    let mut command = Command::new(programs.live_star());
    command.args(["--device", device, "--mbps", &setting.mbps.to_string(), "--namespaces", &names.join(",")]);
    command.arg("--samples").arg(&samples);
    let mut program = command.stdout(Stdio::piped()).spawn().context("cannot run live_star")?;
    let output = BufReader::new(program.stdout.take().context("no output of live_star")?);
    let hosts = namespaces.iter().map(Namespace::path).collect();
    let mut star = Star { program, output, samples, hosts, namespaces };
    let mut line = String::new();
    star.output.read_line(&mut line)?;
    ensure!(line.trim() == "ready", "live_star did not start");
    star.set_addresses()?;
    Ok(Box::new(star))
}

impl Star {
    /// Gives each host its address, and the link-layer addresses of all others: point-to-point devices carry no ARP.
    fn set_addresses(&self) -> anyhow::Result<()> {
        for (host, namespace) in self.hosts.iter().enumerate() {
            let interface = format!("tap{host}");
            let ip = |words: &[&str]| succeed(within(namespace, "ip").args(words)).map(drop);
            ip(&["link", "set", "lo", "up"])?;
            ip(&["addr", "add", &format!("10.0.0.{}/24", host + 1), "dev", &interface])?;
            for other in (0..self.hosts.len()).filter(|other| *other != host) {
                let (address, mac) =
                    (format!("10.0.0.{}", other + 1), format!("02:00:00:00:00:{:02x}", other + 1));
                ip(&["neigh", "add", &address, "lladdr", &mac, "dev", &interface])?;
            }
        }
        Ok(())
    }

    /// Reads the samples: time, packets, delay.
    fn read_samples(&self) -> anyhow::Result<(Vec<QueueSample>, Lateness)> {
        let text = fs::read_to_string(&self.samples)
            .with_context(|| format!("cannot read {}", self.samples.display()))?;
        let (mut queue, mut delays) = (Vec::new(), Vec::new());
        for line in text.lines().skip(1) {
            let numbers: Vec<u64> = line.split(',').filter_map(|cell| cell.parse().ok()).collect();
            let [time_ns, packets, delay] = numbers[..] else {
                bail!("{}: expected three numbers, not {line:?}", self.samples.display());
            };
            queue.push(QueueSample { time_ns, packets: packets as f64 });
            delays.push((time_ns, delay));
        }
        Ok((queue, Lateness::Samples(delays)))
    }
}

impl Network for Star {
    fn hosts(&self) -> &[PathBuf] {
        &self.hosts
    }

    fn processes(&self) -> Processes {
        Processes { core: vec![self.program.id()], endpoints: Vec::new() }
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<Record> {
        succeed(Command::new("kill").args(["-TERM", &self.program.id().to_string()]))?;
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.program.wait()?;
        ensure!(status.success(), "live_star ended with {status}");
        let line = text.lines().last().unwrap_or_default();
        let report: Report =
            serde_json::from_str(line).with_context(|| format!("live_star printed {line:?}"))?;
        let (queue, lateness) = self.read_samples()?;
        Ok(Record { queue, lateness, dropped: report.dropped, packets: None })
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        for namespace in &self.namespaces {
            let _ = namespace.delete();
        }
    }
}
