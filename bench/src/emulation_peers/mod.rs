//! Real-time emulation beside Mininet and ns-3: the same senders, receiver, rates and queue in each.
//!
//! | module | contents |
//! |---|---|
//! | [`peer`] | the emulations, and what differs between them |
//! | [`network`] | what the benchmark needs of each |
//! | `thalweg`, `mininet`, `ns3` | how each is started, and what it records |
//! | [`traffic`] | iperf3 and ping |
//! | [`processors`] | processor time |
//! | [`measured`] | figures of a run, and the verdict |
//! | [`report`] | claims, and the page of results |

pub mod measured;
mod mininet;
pub mod network;
mod ns3;
pub mod peer;
pub mod processors;
pub mod report;
mod thalweg;
pub mod traffic;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::results::{save_page, save_rows};
use measured::Measured;
use peer::Peer;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct EmulationPeersOptions {
    /// The emulations to measure
    #[arg(long, value_delimiter = ',', default_values = Peer::ALL.map(Peer::id), value_parser = parse_peer)]
    pub peers: Vec<Peer>,
    /// Rates of all links in Mbit/s
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [100, 200, 300, 500, 700, 1_000, 1_500],
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub rates: Vec<u32>,
    /// Seconds to measure, after 2 s of slow start
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(3..=600))]
    pub seconds: u64,
    /// Runs of each case
    #[arg(long, default_value_t = 1)]
    pub runs: usize,
    /// Seconds to wait, at most and for each case, until other programs leave the processors idle
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
    /// Hosts: senders, and one receiver
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [6],
        value_parser = clap::value_parser!(u32).range(2..=64)
    )]
    pub hosts: Vec<u32>,
    /// TCP connections to the receiver [default: one per sender]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub flows: Vec<u32>,
    /// Subject of the results, which is part of their names
    #[arg(long, default_value = "emulation-peers")]
    pub subject: String,
    /// The program
    #[arg(long, default_value = "target/release/thalweg")]
    pub thalweg: PathBuf,
    /// Build folder of the ns-3 programs
    #[arg(long, default_value = "target/bench-peers/ns3")]
    pub build: PathBuf,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The scenario of a run.
pub struct Setting<'a> {
    /// Hosts: senders, and one receiver.
    pub hosts: u32,
    /// TCP connections to the receiver.
    pub flows: u32,
    /// Rate of all links in Mbit/s.
    pub mbps: u32,
    /// Queue of the switch in packets.
    pub queue: u32,
    /// A folder for files.
    pub folder: &'a Path,
    /// The program of Thalweg.
    pub thalweg: &'a Path,
    /// Build folder of the ns-3 programs.
    pub build: &'a Path,
}

/// Packets that the queue to the receiver holds.
const QUEUE: u32 = 1_024;

fn parse_peer(text: &str) -> Result<Peer, String> {
    Peer::with_id(text).ok_or_else(|| {
        let known = Peer::ALL.map(Peer::id).join(", ");
        format!("unknown emulation {text:?}: expected one of {known}")
    })
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// Without root or iperf3, or if results cannot be written. An emulation that is not installed is skipped; a run that fails is a row.
pub fn run(options: &EmulationPeersOptions) -> anyhow::Result<()> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    ensure!(is_root, "network namespaces need root");
    traffic::check()?;
    let folder = std::env::temp_dir().join(format!("thalweg-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(options, &folder);
    let _ = fs::remove_dir_all(&folder);
    let (runs, notes) = result?;
    let page = report::page(options, &runs, &notes);
    save_page(&options.output, &options.subject, &page)?;
    save_rows(&options.output, &options.subject, &measured::rows(&runs))
}

/// Measures all cases. Returns them and notes about what was skipped.
fn measure(options: &EmulationPeersOptions, folder: &Path) -> anyhow::Result<(Vec<Measured>, Vec<String>)> {
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for &peer in &options.peers {
        if let Err(error) = peer.check(&options.thalweg, &options.build) {
            eprintln!("skipped: {}: {error:#}", peer.name());
            notes.push(format!("{} skipped: {error:#}.", peer.name()));
            continue;
        }
        if peer == Peer::Mininet {
            notes.push(report::mininet_note(&mininet::probe()?));
        }
        for (hosts, flows, mbps, run) in cases(options) {
            let setting = Setting {
                hosts,
                flows,
                mbps,
                queue: QUEUE,
                folder,
                thalweg: &options.thalweg,
                build: &options.build,
            };
            let measured = measure_undisturbed(peer, &setting, options, run)?;
            eprintln!("{}", measured.line());
            runs.push(measured);
        }
    }
    Ok((runs, notes))
}

/// Returns all cases: hosts, flows, rate in Mbit/s, number of the run.
fn cases(options: &EmulationPeersOptions) -> Vec<(u32, u32, u32, usize)> {
    let mut cases = Vec::new();
    for &hosts in &options.hosts {
        let per_sender = [hosts - 1];
        let flows = if options.flows.is_empty() { &per_sender[..] } else { &options.flows };
        for &flows in flows {
            for &mbps in &options.rates {
                cases.extend((0..options.runs).map(|run| (hosts, flows, mbps, run)));
            }
        }
    }
    cases
}

/// The least idle share of the machine before and after a run.
const IDLE: f64 = 0.8;

/// Measures one case, again if other programs used the processors before or after it.
fn measure_undisturbed(
    peer: Peer,
    setting: &Setting<'_>,
    options: &EmulationPeersOptions,
    run: usize,
) -> anyhow::Result<Measured> {
    let end = Instant::now() + Duration::from_secs(options.patience);
    let mut repetitions = 0;
    loop {
        while processors::idle_share()? < IDLE && Instant::now() < end {}
        let started = Instant::now();
        let mut measured = measure_one(peer, setting, options.seconds, run);
        // A run that was stopped takes longer.
        let is_long = started.elapsed() > Duration::from_secs(2 * options.seconds + 20);
        measured.is_disturbed = is_long || processors::idle_share()? < IDLE;
        measured.repetitions = repetitions;
        if !measured.is_disturbed || Instant::now() >= end {
            return Ok(measured);
        }
        eprintln!("disturbed, again: {}", measured.line());
        repetitions += 1;
    }
}

/// Measures one case. A failure is a result: the network may not carry the rate.
fn measure_one(peer: Peer, setting: &Setting<'_>, seconds: u64, run: usize) -> Measured {
    let measured = || {
        let network = peer.up(setting)?;
        let traffic = traffic::run(&*network, setting.flows, seconds)?;
        Ok((traffic, network.finish()?))
    };
    Measured::new(peer, setting, run, measured())
}
