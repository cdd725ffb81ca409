//! The speed of the simulation that finds a rate threshold, compared with a plain Python model of the same.
//!
//! Traffic of the dissertation (Table 4.1: 200 Mbit/s at 1 Gbit/s, 15 bursts per second) is replayed with 18 rates and two
//! round-trip times in one pass, all of it and as a quick simulation does ([`Sample`]).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use thalweg_emulator::bottleneck::SECOND_PS;
use thalweg_emulator::bottleneck::lane::PortFlow;
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::bottleneck::sample::Sample;
use thalweg_emulator::bottleneck::setup::{LossRow, LossTable, Setup, SetupConfig};
use thalweg_emulator::bottleneck::tcp_flow::TcpFlow;
use thalweg_emulator::workloads::burst_process::{BurstPackets, BurstProcess, Rounding};
use thalweg_wire::{BitRate, Nanos};

use crate::clock::Stopwatch;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;

/// The rate of the port, and the mean rate of the traffic.
const PORT: BitRate = BitRate(1_000_000_000);
const MEAN: BitRate = BitRate(200_000_000);
const LAMBDA: f64 = 15.0;

/// The traffic that targets are for, in seconds.
const HOUR: u64 = 3_600;

/// How long simulations of an hour may take on one core, in seconds: of all its packets, and of a sample.
const TARGETS: (f64, f64) = (1_800.0, 120.0);

/// The flow of the comparison with Python, which runs it for [`PYTHON_SECONDS`].
const PYTHON_FLOW: (u64, u64) = (700, 100);
const PYTHON_SECONDS: f64 = 20.0;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct ThresholdOptions {
    /// Seconds of traffic
    #[arg(long, default_value_t = HOUR)]
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
         one core. A plain Python model of one lane, with a flow in rounds, computes {} packets per second: the target is 100 times its speed, for \
         rounds. It has no TCP, whose segments and acknowledgements are more work.",
        options.seconds,
        grouped(python as u64)
    ));
    page.paragraph(format!(
        "The target for {} s of traffic on one core is {:.0} minutes for all packets and {:.0} minutes for a quick simulation, which replays a \
         quarter of them.{} A quick simulation states the standard error of each loss: the largest, in percentage points of loss, by how many \
         standard errors it differs from the simulation of all packets at most, and for how many of the rates by at most two.",
        grouped(HOUR),
        TARGETS.0 / 60.0,
        TARGETS.1 / 60.0,
        match options.seconds == HOUR {
            true => "",
            false => " Seconds for it are scaled from this run.",
        },
    ));
    let mut table = Table::new([
        "flow",
        "replayed",
        "packets of all lanes",
        "seconds",
        "seconds for 3,600 s of traffic",
        "target, seconds",
        "million packets/s",
        "over Python",
        "largest standard error of loss, points",
        "largest deviation, standard errors",
        "rates within two",
    ]);
    for it in &ran {
        let speed = it.packets as f64 / it.nanos * 1e9;
        let whole = ran.iter().find(|other| other.flow == it.flow && !other.is_quick);
        let deviations = whole.filter(|_| it.is_quick).map(|whole| deviations(&it.table, &whole.table));
        let largest = deviations.iter().flatten().copied().max_by(f64::total_cmp);
        let within = deviations.map(|all| {
            format!("{} of {}", all.iter().filter(|deviation| **deviation <= 2.0).count(), all.len())
        });
        row!(
            table,
            it.flow,
            if it.is_quick { "a quarter" } else { "all" },
            grouped(it.packets),
            format!("{:.1}", it.nanos / 1e9),
            format!("{:.1}", it.nanos / 1e9 * HOUR as f64 / options.seconds as f64),
            grouped(if it.is_quick { TARGETS.1 } else { TARGETS.0 } as u64),
            format!("{:.1}", speed / 1e6),
            format!("{:.0}", speed / python),
            if it.is_quick { format!("{:.3}", largest_error(&it.table)) } else { "-".to_owned() },
            largest.map_or("-".to_owned(), |deviation| format!("{deviation:.1}")),
            within.unwrap_or_else(|| "-".to_owned()),
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
    eprintln!("{name}, {}", if is_quick { "a quarter" } else { "all" });
    let config = SetupConfig {
        port_rate: PORT,
        buffer: 5_000_000,
        rates: (1..=18).map(|step| BitRate(50_000_000 * step)).collect(),
        round_trips: [10, 100].map(Nanos::from_millis).to_vec(),
        window: Nanos::from_millis(100),
    };
    let until_ps = seconds * SECOND_PS;
    let process = BurstProcess::of_dissertation(LAMBDA, MEAN);
    let packets = BurstPackets::new(&process, 1, Rounding::Up)?.take_while(|packet| packet.at_ps < until_ps);
    let mut setup = Setup::new(&config, flow)?;
    let mut sample = match is_quick {
        true => Sample::quick(Nanos::from_secs(seconds)),
        false => Sample::all(),
    };
    let watch = Stopwatch::start();
    for packet in packets {
        sample.add(packet, &mut setup)?;
    }
    let table = sample.finish(&mut setup)?;
    Ok(Ran { flow: name, is_quick, packets: setup.packets(), nanos: watch.nanos(), table })
}

/// The largest standard error that a quick simulation states, in percentage points of loss.
fn largest_error(table: &LossTable) -> f64 {
    100.0 * table.rows.iter().map(|row| row.error).fold(0.0, f64::max)
}

/// By how many standard errors a quick simulation is off, by rate and round-trip time. Where neither finds a loss, it is not off.
fn deviations(quick: &LossTable, whole: &LossTable) -> Vec<f64> {
    let deviation = |(quick, whole): (&LossRow, &LossRow)| match (quick.loss() - whole.loss()).abs() {
        0.0 => 0.0,
        difference => difference / quick.error,
    };
    quick.rows.iter().zip(&whole.rows).map(deviation).collect()
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
