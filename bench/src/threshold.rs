//! The speed of the simulation that finds a rate threshold, compared with a plain Python model of the same.
//!
//! Traffic of the dissertation (Table 4.1: 200 Mbit/s at 1 Gbit/s, 15 bursts per second) is replayed with 18 rates and two
//! round-trip times in one pass. The sample of a quick simulation is one stretch of 1/360 in fifteen.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use thalweg_emulator::bottleneck::SECOND_PS;
use thalweg_emulator::bottleneck::lane::PortFlow;
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::bottleneck::setup::{LossTable, Setup, SetupConfig};
use thalweg_emulator::bottleneck::tcp_flow::TcpFlow;
use thalweg_emulator::workloads::burst_process::{Arrival, BurstPackets, BurstProcess, Rounding};
use thalweg_wire::{BitRate, Nanos};

use crate::clock::Stopwatch;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;

/// The rate of the port, and the mean rate of the traffic.
const PORT: BitRate = BitRate(1_000_000_000);
const MEAN: BitRate = BitRate(200_000_000);
const LAMBDA: f64 = 15.0;

/// Packets that all lanes process before the next ones are made.
const GROUP: usize = 1_024;

/// Stretches of the traffic, and the part of them that a quick simulation replays.
const STRETCHES: u64 = 360;
const QUICK_PART: u64 = 15;

/// The flow of the comparison with Python, which runs it for [`PYTHON_SECONDS`].
const PYTHON_FLOW: (u64, u64) = (700, 100);
const PYTHON_SECONDS: f64 = 20.0;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct ThresholdOptions {
    /// Seconds of traffic
    #[arg(long, default_value_t = 3_600)]
    pub seconds: u64,
    /// Python interpreter of the comparison
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// A simulation.
struct Ran {
    flow: &'static str,
    is_quick: bool,
    /// Packets of all lanes.
    packets: u64,
    nanos: f64,
    table: LossTable,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If Python cannot be run or the results cannot be written.
pub fn run(options: &ThresholdOptions) -> anyhow::Result<()> {
    let rounds = |rate, round_trip| RoundFlow::new(rate, round_trip, PORT);
    let ran = [
        simulate("rounds", false, options.seconds, rounds)?,
        simulate("rounds", true, options.seconds, rounds)?,
        simulate("TCP", false, options.seconds, TcpFlow::new)?,
        simulate("TCP", true, options.seconds, TcpFlow::new)?,
    ];
    let python = python(options)?;
    let command = format!("thalweg-bench threshold --seconds {}", options.seconds);
    let mut page = Page::new("Simulation of a rate threshold", &command);
    page.paragraph(format!(
        "{} s of traffic of 200 Mbit/s at 1 Gbit/s, {LAMBDA} bursts per second, replayed with 18 rates and round trips of 10 and 100 ms, on \
         one core. A plain Python model of one lane computes {} packets per second.",
        options.seconds,
        grouped(python as u64)
    ));
    let mut table = Table::new([
        "flow",
        "replayed",
        "packets of all lanes",
        "seconds",
        "million packets/s",
        "over Python",
        "largest deviation, standard errors",
    ]);
    for it in &ran {
        let speed = it.packets as f64 / it.nanos * 1e9;
        let whole = ran.iter().find(|other| other.flow == it.flow && !other.is_quick);
        let deviation = whole.filter(|_| it.is_quick).and_then(|whole| deviation(&it.table, &whole.table));
        row!(
            table,
            it.flow,
            if it.is_quick { "a fifteenth" } else { "all" },
            grouped(it.packets),
            format!("{:.1}", it.nanos / 1e9),
            format!("{:.1}", speed / 1e6),
            format!("{:.0}", speed / python),
            deviation.map_or("-".to_owned(), |deviation| format!("{deviation:.1}")),
        );
    }
    page.table(&table);
    save_page(&options.output, "threshold", &page)?;
    save_rows(&options.output, "threshold", &table)
}

fn simulate<F: PortFlow>(
    name: &'static str,
    is_quick: bool,
    seconds: u64,
    flow: impl Fn(BitRate, Nanos) -> F,
) -> anyhow::Result<Ran> {
    eprintln!("{name}, {}", if is_quick { "a fifteenth" } else { "all" });
    let config = SetupConfig {
        port_rate: PORT,
        buffer: 5_000_000,
        rates: (1..=18).map(|step| BitRate(50_000_000 * step)).collect(),
        round_trips: [10, 100].map(Nanos::from_millis).to_vec(),
        window: Nanos::from_millis(100),
    };
    let until_ps = seconds * SECOND_PS;
    let length_ps = (until_ps / STRETCHES).max(1);
    let process = BurstProcess::of_dissertation(LAMBDA, MEAN);
    let packets = BurstPackets::new(&process, 1, Rounding::Up)?.take_while(|packet| packet.at_ps < until_ps);
    let mut setup = Setup::new(&config, flow)?;
    let (mut group, mut stretch) = (Vec::with_capacity(GROUP), 0);
    let watch = Stopwatch::start();
    for packet in packets {
        let number = packet.at_ps / length_ps;
        if number != stretch {
            setup.replay(&group)?;
            group.clear();
            if is_quick && stretch % QUICK_PART == QUICK_PART / 2 {
                setup.end_stretch();
            }
            stretch = number;
        }
        if is_quick && stretch % QUICK_PART != QUICK_PART / 2 {
            continue;
        }
        let at_ps = match is_quick {
            true => stretch / QUICK_PART * length_ps + packet.at_ps % length_ps,
            false => packet.at_ps,
        };
        group.push(Arrival { at_ps, ..packet });
        if group.len() == GROUP {
            setup.replay(&group)?;
            group.clear();
        }
    }
    setup.replay(&group)?;
    let nanos = watch.nanos();
    let share = if is_quick { 1.0 / QUICK_PART as f64 } else { 1.0 };
    let table = setup.table(share);
    let packets = setup.packets();
    Ok(Ran { flow: name, is_quick, packets, nanos, table })
}

/// By how many standard errors a quick simulation is off at most, where it found a loss.
fn deviation(quick: &LossTable, whole: &LossTable) -> Option<f64> {
    let rows = quick.rows.iter().zip(&whole.rows).filter(|(quick, _)| quick.error > 0.0);
    rows.map(|(quick, whole)| (quick.loss() - whole.loss()).abs() / quick.error).max_by(f64::total_cmp)
}

/// Returns the packets per second of the Python model.
fn python(options: &ThresholdOptions) -> anyhow::Result<f64> {
    eprintln!("Python");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers/threshold_model.py");
    let seconds = PYTHON_SECONDS.min(options.seconds as f64);
    let arguments = [seconds.to_string(), PYTHON_FLOW.0.to_string(), PYTHON_FLOW.1.to_string()];
    let output = Command::new(&options.python).arg(script).args(arguments).output();
    let output = output.with_context(|| format!("cannot run {}", options.python.display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [packets, .., time] = numbers[..] else { anyhow::bail!("unexpected output of the model: {text}") };
    Ok(packets / time)
}
