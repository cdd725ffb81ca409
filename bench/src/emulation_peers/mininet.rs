//! Mininet with HTB: the script `bench/peers/mininet_star.py`, in a network namespace of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde::Deserialize;
use thalweg_linux::Namespace;
use thalweg_linux::clock::realtime;
use thalweg_linux::namespace::with_prefix;
use thalweg_linux::netlink::Netlink;

use super::Setting;
use super::network::{Lateness, Network, Processes, QueueSample, Record};

/// Debian's Python, which finds Debian's Mininet.
pub(super) const PYTHON: &str = "/usr/bin/python3";

const SCRIPT: &str = "bench/peers/mininet_star.py";

/// Name of the namespace of the switch.
const SWITCH: &str = "tbm-switch";

/// The highest rate of TCLink in Mbit/s (`bwParamMax` in `mininet/link.py`). It ignores others with a message.
const MAX_MBPS: u32 = 1_000;

/// Time between two samples of the queue.
const INTERVAL: Duration = Duration::from_millis(2);

/// Bytes by which the kernel counts a packet of the largest size: 1,500, and 14 of Ethernet.
const PACKET_BYTES: f64 = 1_514.0;

/// The first line of the script.
#[derive(Deserialize)]
struct Started {
    hosts: BTreeMap<String, u32>,
    ports: Vec<String>,
}

/// A network of Mininet. The script removes it when its input ends.
struct Star {
    script: Child,
    hosts: Vec<PathBuf>,
    switch: Namespace,
    sampler: Option<Sampler>,
}

/// Returns which parameters of TCLink this kernel supports: the name, and an error or nothing.
///
/// # Errors
/// If the script fails.
pub(super) fn probe() -> anyhow::Result<BTreeMap<String, String>> {
    let switch = make_switch()?;
    let probed = switch
        .spawn(Command::new(PYTHON).arg(SCRIPT).arg("--probe").stdout(Stdio::piped()).stderr(Stdio::piped()));
    let output = probed.map_err(anyhow::Error::from).and_then(|child| Ok(child.wait_with_output()?));
    let _ = switch.delete();
    serde_json::from_slice(&output?.stdout).context("unexpected output of mininet_star.py --probe")
}

fn make_switch() -> anyhow::Result<Namespace> {
    for old in with_prefix(SWITCH)? {
        old.delete()?;
    }
    let switch = Namespace::create(SWITCH.to_owned())?;
    Netlink::open_within(&switch)?.set_loopback_up()?;
    Ok(switch)
}

/// Creates the network.
pub(super) fn up(setting: &Setting<'_>, counts_framing: bool) -> anyhow::Result<Box<dyn Network>> {
    ensure!(setting.mbps <= MAX_MBPS, "TCLink ignores rates above {MAX_MBPS} Mbit/s");
    let switch = make_switch()?;
    let mut command = Command::new(PYTHON);
    command.arg(SCRIPT).args(["--hosts", &setting.hosts.to_string(), "--mbps", &setting.mbps.to_string()]);
    command.args(["--queue", &setting.queue.to_string()]);
    command.args(counts_framing.then_some("--wire")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut script = switch.spawn(&mut command)?;
    let mut line = String::new();
    let read = script.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    let mut star = Star { script, hosts: Vec::new(), switch, sampler: None };
    read.context("no output of mininet_star.py")??;
    let started: Started = serde_json::from_str(&line).context("mininet_star.py did not start")?;
    let host = |number: u32| {
        let pid = started.hosts.get(&format!("h{number}"))?;
        Some(PathBuf::from(format!("/proc/{pid}/ns/net")))
    };
    let hosts = (1..=setting.hosts).map(host).collect::<Option<Vec<_>>>();
    star.hosts = hosts.context("mininet_star.py names too few hosts")?;
    let port = started.ports.last().context("mininet_star.py names no ports")?;
    star.sampler = Some(Sampler::start(&star.switch, port)?);
    Ok(Box::new(star))
}

impl Network for Star {
    fn hosts(&self) -> &[PathBuf] {
        &self.hosts
    }

    fn processes(&self) -> Processes {
        Processes::default()
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<Record> {
        let sampler = self.sampler.take().context("no sampler")?;
        let (queue, dropped) = sampler.stop()?;
        Ok(Record { queue, lateness: Lateness::Unknown, dropped, packets: None })
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        drop(self.sampler.take());
        drop(self.script.stdin.take());
        let _ = self.script.wait();
        let _ = self.switch.delete();
    }
}

/// A thread that reads the queue of an interface.
struct Sampler {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<(Vec<QueueSample>, u64)>>,
}

impl Sampler {
    fn start(namespace: &Namespace, interface: &str) -> anyhow::Result<Sampler> {
        let netlink = Netlink::open_within(namespace)?;
        let interface = netlink.interface(interface)?;
        let ends = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let (mut samples, mut dropped) = (Vec::new(), 0);
            while !has_ended.load(Ordering::Relaxed) {
                let queues = netlink.queues(interface)?;
                let leaf = queues.iter().find(|queue| queue.kind == "pfifo" || queue.kind == "netem");
                let counters = leaf.context("the port has no pfifo")?.counters;
                let packets = counters.backlog.0 as f64 / PACKET_BYTES;
                samples.push(QueueSample { time_ns: realtime().0, packets });
                dropped = counters.dropped_packets;
                thread::sleep(INTERVAL);
            }
            Ok((samples, dropped))
        });
        Ok(Sampler { ends, thread })
    }

    fn stop(self) -> anyhow::Result<(Vec<QueueSample>, u64)> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the sampler panicked"))?
    }
}
