//! Isolation by tc with very many redirections: a daemon whose collector finds ever new cheetah flows.
//!
//! A router in a network namespace forwards flows of one packet per second, each of which is a cheetah flow by a very low rate
//! threshold. Flows live for `LIFE` seconds, so that each second as many are redirected as released. tcpreplay sends them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use thalweg_api::Redirections;
use thalweg_api::client::{Client, ClientOptions};
use thalweg_linux::Namespace;
use thalweg_linux::clock::realtime;
use thalweg_wire::Timestamp;

use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::statistics::quantile;

/// Seconds for which a flow sends a packet per second.
const LIFE: u64 = 20;

/// Maximum time until all flows are redirected, and of each other step.
const PATIENCE: Duration = Duration::from_secs(120);

/// Destination of all flows, and the port of the daemon's API.
const DESTINATION: &str = "192.0.2.2";
const API_PORT: u16 = 19_477;

/// Redirections asked for at once.
const PAGE: usize = 1_000;

/// Hardware addresses of the router's interface to the senders, and of the receiver.
const ROUTER_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RECEIVER_ADDRESS: &str = "02:00:00:00:00:02";

/// Length of an IPv4 packet: header, UDP header and 36 bytes.
const LENGTH: u16 = 64;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct IsolationOptions {
    /// Flows that are redirected at the same time
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=240_000))]
    pub flows: u64,
    /// Seconds to measure
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// The program
    #[arg(long, default_value = "target/release/thalweg")]
    pub thalweg: PathBuf,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// Without root or tcpreplay, or if the daemon cannot be started or does not redirect the flows.
pub fn run(options: &IsolationOptions) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("thalweg-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(options, &folder);
    let _ = fs::remove_dir_all(&folder);
    let measured = result?;
    let command = format!("thalweg-bench isolation --flows {} --seconds {}", options.flows, options.seconds);
    let mut page = Page::new("Isolation by tc with many redirections", &command);
    page.paragraph(format!(
        "{} flows through a router, a packet per second each; every second a flow in {LIFE} ends and another begins. The daemon \
         finds, redirects, refreshes, reads and releases them, on the same processors as router and sender.",
        grouped(options.flows)
    ));
    let table = measured.table();
    page.table(&table);
    save_page(&options.output, "isolation", &page)?;
    save_rows(&options.output, "isolation", &table)
}

/// What was measured.
struct Measured {
    seconds: f64,
    /// The fewest active redirections.
    active: f64,
    /// Differences of the daemon's counters.
    counters: BTreeMap<String, f64>,
    /// Processor time by thread, in seconds.
    processor: BTreeMap<String, f64>,
    /// Times from the packet by which a flow was found to its redirection, in milliseconds, in order.
    delays: Vec<f64>,
}

impl Measured {
    fn counter(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    fn change(&self, change: &str) -> f64 {
        self.counter(&format!("thalweg_redirection_changes_total{{change=\"{change}\"}}"))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["quantity", "figure"]);
        let per_second = |count: f64| grouped((count / self.seconds) as u64);
        let share = |seconds: f64| format!("{:.1} %", 100.0 * seconds / self.seconds);
        row!(table, "active redirections, at least", grouped(self.active as u64));
        row!(table, "changes per second", per_second(self.change("redirected") + self.change("released")));
        row!(table, "of those, flows redirected per second", per_second(self.change("redirected")));
        let isolation = self.processor.get("isolation").copied().unwrap_or_default();
        row!(table, "processor time of the isolation thread", share(isolation));
        row!(table, "processor time of the daemon", share(self.processor.values().sum()));
        for (name, share) in [("median", 0.5), ("99th percentile", 0.99), ("longest", 1.0)] {
            let delay = quantile(&self.delays, share);
            row!(table, format!("packet to redirection, {name}, ms"), format!("{delay:.2}"));
        }
        row!(table, "of redirections", grouped(self.delays.len() as u64));
        for (name, change) in [
            ("redirections that failed", "failed"),
            ("releases that were forced", "forced"),
            ("entries that others had removed", "restored"),
        ] {
            row!(table, name, self.change(change));
        }
        let result =
            |result: &str| self.counter(&format!("thalweg_redirected_packets_total{{result=\"{result}\"}}"));
        row!(table, "packets of expired redirections", result("expired"));
        let request = |result: &str| {
            self.counter(&format!("thalweg_redirection_requests_total{{result=\"{result}\"}}"))
        };
        row!(table, "flows refused or lost", request("refused") + request("lost"));
        table
    }
}

fn measure(options: &IsolationOptions, folder: &Path) -> anyhow::Result<Measured> {
    let trace = folder.join("flows.pcap");
    // Until all are redirected, and a reserve.
    let seconds = options.seconds + 60;
    write_trace(&trace, options.flows, seconds)
        .with_context(|| format!("cannot write {}", trace.display()))?;
    let network = Network::create()?;
    let daemon = Daemon::start(options, folder, &network)?;
    let pps = options.flows.to_string();
    let mut replay = network.at_hosts("tcpreplay");
    replay.args(["--preload-pcap", "--quiet", "--pps", &pps, "--intf1", "left"]).arg(&trace);
    let _replay =
        Running::start(&mut replay).context("cannot run tcpreplay: install the package tcpreplay")?;
    let wanted = options.flows as f64;
    daemon.wait("all flows are redirected", |metrics| active(metrics) >= wanted)?;
    // The crowd of the start is over, and flows end as often as they begin.
    sleep(Duration::from_secs(5));
    let (before, processor, started) = (daemon.metrics()?, daemon.processor_times()?, Instant::now());
    let start = realtime();
    let mut fewest = f64::INFINITY;
    while started.elapsed() < Duration::from_secs(options.seconds) {
        sleep(Duration::from_secs(1));
        fewest = fewest.min(active(&daemon.metrics()?));
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = daemon.metrics()?;
    let differences =
        after.iter().map(|(name, value)| (name.clone(), value - before.get(name).unwrap_or(&0.0)));
    let used = daemon.processor_times()?;
    let used = used.into_iter().map(|(name, time)| {
        let before = processor.get(&name).copied().unwrap_or_default();
        (name, time - before)
    });
    let (counters, processor) = (differences.collect(), used.collect());
    Ok(Measured { seconds, active: fewest, counters, processor, delays: daemon.delays(start)? })
}

/// Active redirections: flows whose packets the program redirects.
fn active(metrics: &BTreeMap<String, f64>) -> f64 {
    let phase = |phase: &str| metrics.get(&format!("thalweg_redirections{{phase=\"{phase}\"}}")).copied();
    ["redirected", "confirmed", "draining"].into_iter().filter_map(phase).sum()
}

/// Writes a pcap file (draft-ietf-opsawg-pcap) with a packet per flow and second, in order of time. In each second, one flow in
/// [`LIFE`] is replaced by another.
fn write_trace(path: &Path, flows: u64, seconds: u64) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0xffff, 1] {
        file.write_all(&word.to_ne_bytes())?;
    }
    let frame_length = 14 + u32::from(LENGTH);
    for second in 0..seconds {
        for slot in 0..flows {
            let generation = (second + slot % LIFE) / LIFE;
            let micros = (slot * 1_000_000 / flows) as u32;
            for word in [second as u32, micros, frame_length, frame_length] {
                file.write_all(&word.to_ne_bytes())?;
            }
            file.write_all(&frame(slot as u32, generation as u16))?;
        }
    }
    Ok(file.flush()?)
}

/// An Ethernet frame of a flow: source address 10.128.0.0 + slot, source port 1,024 + generation.
fn frame(slot: u32, generation: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(14 + usize::from(LENGTH));
    frame.extend(ROUTER_ADDRESS);
    frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    let mut header = [0_u8; 20];
    (header[0], header[8], header[9]) = (0x45, 64, 17);
    header[2..4].copy_from_slice(&LENGTH.to_be_bytes());
    header[12..16].copy_from_slice(&(0x0a80_0000 + slot).to_be_bytes());
    header[16..20].copy_from_slice(&[192, 0, 2, 2]);
    let words = header.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend(header);
    frame.extend((1_024 + generation).to_be_bytes());
    frame.extend(9_000_u16.to_be_bytes());
    frame.extend((LENGTH - 20).to_be_bytes());
    frame.resize(14 + usize::from(LENGTH), 0);
    frame
}

/// The router, and the namespace of sender and receiver. Both are deleted on drop.
struct Network {
    router: Namespace,
    hosts: Namespace,
}

impl Network {
    fn create() -> anyhow::Result<Network> {
        let name = |end: &str| format!("tb-{}-{end}", std::process::id());
        let router = Namespace::create(name("router")).context("needs root")?;
        let network = Network { router, hosts: Namespace::create(name("hosts"))? };
        let (router, hosts) = (network.router.name(), network.hosts.name());
        let address = ROUTER_ADDRESS.map(|byte| format!("{byte:02x}")).join(":");
        for command in [
            format!("link add in netns {router} address {address} type veth peer name left netns {hosts}"),
            format!(
                "link add out netns {router} type veth peer name right netns {hosts} address {RECEIVER_ADDRESS}"
            ),
            format!("-n {router} address add 10.1.0.1/24 dev in"),
            format!("-n {router} address add 192.0.2.1/24 dev out"),
            format!("-n {router} neighbour add {DESTINATION} lladdr {RECEIVER_ADDRESS} dev out"),
            format!("-n {router} link set in up"),
            format!("-n {router} link set out up"),
            format!("-n {hosts} link set left up"),
            format!("-n {hosts} link set right up"),
        ] {
            let output = Command::new("ip").args(command.split(' ')).output().context("cannot run ip")?;
            ensure!(
                output.status.success(),
                "ip {command}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        network.router.within(|| {
            fs::write("/proc/sys/net/ipv4/conf/in/rp_filter", "0")?;
            fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0")?;
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        })??;
        Ok(network)
    }

    fn at_hosts(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.hosts.name(), program]);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.router.delete();
        let _ = self.hosts.delete();
    }
}

/// A running program, killed on drop.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> std::io::Result<Running> {
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `thalweg serve`, stopped on drop.
struct Daemon {
    program: Running,
    client: Client,
}

impl Daemon {
    fn start(options: &IsolationOptions, folder: &Path, network: &Network) -> anyhow::Result<Daemon> {
        let router = network.router.name();
        let most = options.flows + options.flows / 2;
        let text = format!(
            "[api]\nlisten = \"127.0.0.1:{API_PORT}\"\n\n\
             [[collector]]\nname = \"wan\"\ninterface = \"in\"\nnamespace = \"{router}\"\nway = \"in\"\nbackend = \"af_packet\"\n\
             keep_samples = false\nflow_capacity = {0}\ntracks = {0}\nidle_timeout = \"3s\"\n\
             flight_duration = \"100ms\"\nrate_threshold = \"1kbps\"\n\n\
             [isolation]\nactuator = \"tc\"\ninterface = \"out\"\nnamespace = \"{router}\"\nlink_rate = \"10gbps\"\n\
             max_redirections = {1}\nchanges_per_second = 20000\nquiet = \"2s\"\n",
            2 * most,
            most.min(262_144),
        );
        let file = folder.join("thalweg.toml");
        fs::write(&file, text)?;
        let log = File::create(folder.join("log"))?;
        let mut command = Command::new(&options.thalweg);
        command.arg("serve").arg("-c").arg(&file).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot run {}", options.thalweg.display()))?;
        let client = Client::new(&ClientOptions::at(format!("http://127.0.0.1:{API_PORT}")))?;
        let mut daemon = Daemon { program: Running(child), client };
        let until = Instant::now() + PATIENCE;
        while daemon.metrics().is_err() {
            if daemon.program.0.try_wait()?.is_some() || Instant::now() > until {
                bail!("the daemon does not start: {}", fs::read_to_string(folder.join("log"))?.trim());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// Returns the metrics by name and labels.
    fn metrics(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let text = self.client.text("/metrics")?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.filter_map(|line| line.rsplit_once(' ')).filter_map(parse_metric).collect())
    }

    /// Returns the times from packet to redirection of active redirections that were requested since `start`.
    fn delays(&self, start: Timestamp) -> anyhow::Result<Vec<f64>> {
        let (mut delays, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/v1/redirections?active={PAGE}&limit=1&after={after}");
            let page: Redirections = self.client.get(&path)?;
            let Some(last) = page.active.last() else { break };
            after = last.id;
            for it in page.active.iter().filter(|it| it.requested.0 >= start) {
                if let (Some(detected), Some(redirected)) = (it.detected, it.redirected) {
                    delays.push(redirected.0.since(detected.0).as_secs_f64() * 1e3);
                }
            }
        }
        delays.sort_by(f64::total_cmp);
        Ok(delays)
    }

    fn wait(&self, what: &str, holds: impl Fn(&BTreeMap<String, f64>) -> bool) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let metrics = self.metrics()?;
            if holds(&metrics) {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "not within {} s: {what}; {} are",
                PATIENCE.as_secs(),
                active(&metrics)
            );
            sleep(Duration::from_millis(100));
        }
    }

    /// Returns the processor time of each thread by name, in seconds.
    fn processor_times(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let mut times = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.program.0.id()))? {
            let stat = fs::read_to_string(task?.path().join("stat"))?;
            let (name, rest) =
                stat.split_once('(').and_then(|(_, it)| it.rsplit_once(") ")).context("malformed stat")?;
            // utime and stime are fields 14 and 15, in hundredths of a second.
            let ticks: f64 = rest.split(' ').skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum();
            *times.entry(name.to_owned()).or_default() += ticks / 100.0;
        }
        Ok(times)
    }
}

fn parse_metric((name, value): (&str, &str)) -> Option<(String, f64)> {
    Some((name.to_owned(), value.parse().ok()?))
}
