//! The dashboard at its largest: a leaf-spine network of 1,000 links and 10,000 flows whose every load changes ten times a second.
//!
//! The daemon's API and its live thread are the real ones. Collectors are stand-ins that answer at once, so that the cost measured is
//! that of the dashboard: the processor time of the threads `live`, `api` and `api-worker`.
//!
//! With `--frames` one collector is real and busy: it loses frames, or not, beside viewers.
//!
//! With `--serve` it only serves, for a browser: `dashboard/tests/frames.mjs` measures the time of scripts per frame.

mod busy_collector;
mod network;
mod viewers;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use self::network::{LINKS, Network};
use self::viewers::Viewers;
use crate::results::{Page, Table, save_page, save_rows};
use crate::row;

/// Threads of the dashboard.
const THREADS: [&str; 3] = ["live", "api", "api-worker"];

/// Clock ticks per second of processor times (proc(5), `sysconf(_SC_CLK_TCK)` on Linux).
const TICKS: f64 = 100.0;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct DashboardOptions {
    /// Flows of all collectors together
    #[arg(long, default_value_t = 10_000)]
    pub flows: u32,
    /// Seconds to measure with each number of viewers
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Numbers of viewers, each with a connection of its own
    #[arg(long, value_delimiter = ',', default_value = "0,1,10,100")]
    pub viewers: Vec<usize>,
    /// Instead of processor times, measure losses of a collector that receives so many frames per second (needs root)
    #[arg(long, value_delimiter = ',')]
    pub frames: Option<Vec<u64>>,
    /// With --frames: memory for frames that wait, as `ring_size` of a collector
    #[arg(long)]
    pub ring_size: Option<String>,
    /// With --frames: how often each load is measured
    #[arg(long, default_value_t = 3)]
    pub repeat: u32,
    /// Serve at this address until killed, and measure nothing
    #[arg(long)]
    pub serve: Option<SocketAddr>,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Runs the benchmark.
///
/// # Errors
/// If the server cannot be started, or results cannot be written.
pub fn run(options: &DashboardOptions) -> anyhow::Result<()> {
    let listen = options.serve.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    if let Some(rates) = &options.frames {
        return busy_collector::run(options, rates);
    }
    let network = Network::start(listen, options.flows, None)?;
    println!("http://{}", network.server.address());
    if options.serve.is_some() {
        loop {
            thread::park();
        }
    }
    let mut rows = Vec::new();
    for &viewers in &options.viewers {
        rows.push(measure(&network, viewers, options.seconds)?);
    }
    save(options, &rows)
}

/// The cost with a number of viewers.
struct Measured {
    viewers: usize,
    /// Share of a processor that each thread took.
    processor: BTreeMap<&'static str, f64>,
    /// Received by all viewers together.
    bytes_per_s: f64,
    /// Received by each viewer.
    messages_per_s: f64,
}

fn measure(network: &Network, viewers: usize, seconds: u64) -> anyhow::Result<Measured> {
    let running = Viewers::connect(network.server.address(), viewers, None)?;
    // First messages are longer.
    sleep(Duration::from_secs(3));
    let (start, before, received_before) = (Instant::now(), processor_times()?, running.received());
    sleep(Duration::from_secs(seconds));
    let (elapsed, after, received_after) =
        (start.elapsed().as_secs_f64(), processor_times()?, running.received());
    let share = |name: &'static str| (name, (after[name] - before[name]) / elapsed);
    let per_second = |kind: usize| (received_after[kind] - received_before[kind]) / elapsed;
    Ok(Measured {
        viewers,
        processor: THREADS.map(share).into_iter().collect(),
        bytes_per_s: per_second(0),
        messages_per_s: per_second(1) / viewers.max(1) as f64,
    })
}

/// Returns the processor seconds of the dashboard's threads, by name.
fn processor_times() -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let mut times: BTreeMap<_, _> = THREADS.into_iter().map(|name| (name, 0.0)).collect();
    for task in fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(task?.path().join("stat")) else { continue };
        let (start, end) = (stat.find('(').context("stat")?, stat.rfind(')').context("stat")?);
        let fields: Vec<&str> = stat[end + 2..].split(' ').collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        if let Some(time) = times.get_mut(&stat[start + 1..end]) {
            *time += ticks / TICKS;
        }
    }
    Ok(times)
}

fn save(options: &DashboardOptions, rows: &[Measured]) -> anyhow::Result<()> {
    let mut table =
        Table::new(["viewers", "live %", "api %", "api-worker %", "all %", "MB/s", "messages/s for each"]);
    for Measured { viewers, processor, bytes_per_s, messages_per_s } in rows {
        let all: f64 = processor.values().sum();
        let percent = |share: f64| format!("{:.2}", share * 100.0);
        row![
            table,
            viewers,
            percent(processor["live"]),
            percent(processor["api"]),
            percent(processor["api-worker"]),
            percent(all),
            format!("{:.2}", bytes_per_s / 1e6),
            format!("{messages_per_s:.1}")
        ];
    }
    let command = format!("thalweg-bench dashboard --flows {} --seconds {}", options.flows, options.seconds);
    let mut page = Page::new("Cost of the live stream of the dashboard", &command);
    page.paragraph(format!(
        "{LINKS} links whose loads all change, {} flows; processor time of the daemon's threads in percent of a processor, \
         for {} s with each number of viewers.",
        options.flows, options.seconds
    ));
    page.table(&table);
    save_rows(&options.output, "dashboard", &table)?;
    save_page(&options.output, "dashboard", &page)
}
