//! Table 3.3 and figures 3.9 to 3.12: an H-TCP flow and bursty background traffic into one host through a switch.

use std::path::Path;

use serde::{Deserialize, Serialize};
use thalweg_emulator::bottleneck::SECOND_PS;
use thalweg_emulator::bottleneck::lane::Lane;
use thalweg_emulator::bottleneck::port::{Origin, Port, Queue};
use thalweg_emulator::bottleneck::tcp_flow::TcpFlow;
use thalweg_emulator::hosts::{Algorithm, TcpConfig};
use thalweg_emulator::schemes::scavenger::ScavengerConfig;
use thalweg_emulator::workloads::burst_process::{Arrival, BurstPackets, BurstProcess, Rounding};
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Nanos};

use super::runs::{finish, run_all};
use super::{Size, within};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::mean;

/// Emulated seconds per run by default: the trace.
const SECONDS: f64 = 60.0;

/// Bursts per second of the background traffic.
const LAMBDA: f64 = 60.0;

/// Packets that are made at once.
const GROUP: usize = 1_024;

/// A testbed.
#[derive(Debug)]
struct Testbed {
    name: &'static str,
    port: BitRate,
    /// The buffer of the switch, in bytes.
    buffer: u64,
    background: BitRate,
    cases: [Case; 5],
}

/// A case of table 3.3.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The TCP buffer, in bytes.
    tcp_buffer: u64,
    round_trip: Nanos,
    rate: BitRate,
    /// Whether the dissertation saw losses.
    loses: bool,
}

const fn case(tcp_buffer: u64, round_trip_us: u64, mbps: u64, loses: bool) -> Case {
    let round_trip = Nanos::from_micros(round_trip_us);
    Case { tcp_buffer, round_trip, rate: BitRate(mbps * 1_000_000), loses }
}

static TESTBEDS: [Testbed; 2] = [
    Testbed {
        name: "1 Gbit/s",
        port: BitRate(1_000_000_000),
        buffer: 2_000_000,
        background: BitRate(350_000_000),
        cases: [
            case(160_000, 348, 800, false),
            case(2_000_000, 348, 800, true),
            case(10_000_000, 348, 100, false),
            case(40_000_000, 100_000, 800, true),
            case(40_000_000, 100_000, 100, false),
        ],
    },
    Testbed {
        name: "10 Gbit/s",
        port: BitRate(10_000_000_000),
        buffer: 5_000_000,
        background: BitRate(3_200_000_000),
        cases: [
            case(1_200_000, 237, 8_000, true),
            case(10_000_000, 237, 8_000, true),
            case(20_000_000, 237, 1_000, false),
            case(400_000_000, 100_000, 8_000, true),
            case(400_000_000, 100_000, 1_000, false),
        ],
    },
];

/// A second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Second {
    /// Payload of the flow that arrived, in Mbit/s.
    mbps: f64,
    /// Packets of the flow and of the background traffic that were dropped.
    lost: u64,
    background_lost: u64,
    /// The congestion window at the end, in bytes.
    cwnd: u64,
}

fn run_once(testbed: &Testbed, case: &Case, seed: u64, seconds: u64) -> anyhow::Result<Vec<Second>> {
    let queues = ScavengerConfig { primary_buffer: testbed.buffer, ..ScavengerConfig::default() };
    let config = TcpConfig::with(Algorithm::HTcp);
    let flow = TcpFlow::with_window(config, case.rate, case.round_trip, case.tcp_buffer);
    let mut lane = Lane::new(Port::new(testbed.port, &queues)?, flow, Queue::Primary);
    let process = BurstProcess::of_dissertation(LAMBDA, testbed.background);
    let mut packets = BurstPackets::new(&process, seed, Rounding::Up)?.peekable();
    let mut group: Vec<Arrival> = Vec::with_capacity(GROUP);
    let (mut all, mut before) = (Vec::new(), (0, 0, 0));
    for second in 1..=seconds {
        let end_ps = second * SECOND_PS;
        loop {
            group.clear();
            while group.len() < GROUP
                && let Some(packet) = packets.next_if(|packet| packet.at_ps < end_ps)
            {
                group.push(packet);
            }
            lane.run(&group);
            if group.len() < GROUP {
                break;
            }
        }
        lane.run_until(end_ps);
        let lost = (lane.tally(Origin::Flow).dropped, lane.tally(Origin::Background).dropped);
        let delivered = lane.flow().delivered();
        all.push(Second {
            mbps: 8.0 * (delivered - before.0) as f64 / 1e6,
            lost: lost.0 - before.1,
            background_lost: lost.1 - before.2,
            cwnd: lane.flow().sender().window().cwnd,
        });
        before = (delivered, lost.0, lost.1);
    }
    lane.check_invariants();
    Ok(all)
}

/// The runs of a case.
struct Measured<'a> {
    testbed: &'a Testbed,
    number: usize,
    case: &'a Case,
    runs: Vec<Vec<Second>>,
}

impl Measured<'_> {
    fn name(&self) -> String {
        format!("{}, case {}", self.testbed.name, self.number + 1)
    }

    /// The share of runs in which anything was lost.
    fn lossy(&self) -> f64 {
        let loses = |run: &&Vec<Second>| run.iter().any(|second| second.lost + second.background_lost > 0);
        self.runs.iter().filter(loses).count() as f64 / self.runs.len().max(1) as f64
    }

    fn mean_of(&self, value: impl Fn(&Second) -> f64) -> f64 {
        mean(&self.runs.iter().flatten().map(value).collect::<Vec<f64>>())
    }
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let size = Size::of(study, SECONDS);
    let tasks: Vec<(&Testbed, usize)> = TESTBEDS
        .iter()
        .flat_map(|testbed| (0..testbed.cases.len()).map(move |case| (testbed, case)))
        .collect();
    let seconds = size.seconds.max(1.0) as u64;
    let runs = run_all(
        &size,
        &tasks,
        |(testbed, case)| format!("{} case {case}", testbed.name),
        |(testbed, case), seed| run_once(testbed, &testbed.cases[*case], seed, seconds),
    )?;
    let all: Vec<Measured<'_>> = tasks
        .iter()
        .zip(runs)
        .map(|(&(testbed, number), runs)| Measured { testbed, number, case: &testbed.cases[number], runs })
        .collect();
    let mut page = Page::new("Loss by TCP buffer, rate and round trip", study.command);
    page.paragraph(format!(
        "An H-TCP flow and background traffic of 350 Mbit/s (3.2 Gbit/s), {LAMBDA} bursts per second, through one queue of 2 MB (5 MB) at \
         1 Gbit/s (10 Gbit/s). {} runs of {seconds} s per case.",
        size.seeds
    ));
    page.section("Cases").table(&summary(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    finish(&size)?;
    Ok(Outcome { page, table: raw(&all) })
}

fn summary(all: &[Measured<'_>]) -> Table {
    let mut table = Table::new([
        "case",
        "TCP buffer, MB",
        "round trip, ms",
        "flow at most, Mbit/s",
        "flow, Mbit/s",
        "runs with losses",
        "flow packets lost per s",
        "background packets lost per s",
        "losses in the dissertation",
    ]);
    for it in all {
        row!(
            table,
            it.name(),
            it.case.tcp_buffer as f64 / 1e6,
            it.case.round_trip.0 as f64 / 1e6,
            it.case.rate.0 / 1_000_000,
            format!("{:.0}", it.mean_of(|second| second.mbps)),
            format!("{:.0} %", 100.0 * it.lossy()),
            format!("{:.1}", it.mean_of(|second| second.lost as f64)),
            format!("{:.1}", it.mean_of(|second| second.background_lost as f64)),
            if it.case.loses { "yes" } else { "no" },
        );
    }
    table
}

fn raw(all: &[Measured<'_>]) -> Table {
    let mut table =
        Table::new(["case", "second", "flow mbit/s", "flow lost", "background lost", "cwnd bytes"]);
    for it in all {
        for (second, seen) in it.runs.first().into_iter().flatten().enumerate() {
            row!(table, it.name(), second, seen.mbps, seen.lost, seen.background_lost, seen.cwnd);
        }
    }
    table
}

fn trends(all: &[Measured<'_>]) -> Trends {
    let mut trends = Trends::new();
    for it in all {
        let (says, bounds) = match it.case.loses {
            true => ("losses", (0.9, 1.0)),
            false => ("no losses", (0.0, 0.1)),
        };
        let says = format!("{}: {says}: in {} to {} of the runs", it.name(), bounds.0, bounds.1);
        trends.check(&says, within(it.lossy(), bounds), &format!("{:.2}", it.lossy()));
    }
    if let Some(first) = all.first() {
        let mbps = first.mean_of(|second| second.mbps);
        let says = "1 Gbit/s, case 1: about 500 Mbit/s: 400 to 650 Mbit/s";
        trends.check(says, within(mbps, (400.0, 650.0)), &format!("{mbps:.0} Mbit/s"));
    }
    trends
}

/// Throughput, losses and window of the first run by second, of the cases with figures.
fn draw(path: &Path, all: &[Measured<'_>]) -> anyhow::Result<()> {
    let shown: Vec<&Measured<'_>> = all
        .iter()
        .filter(|it| [0, 1, 3].contains(&it.number) && it.testbed.port.0 == 1_000_000_000)
        .collect();
    let curve = |it: &Measured<'_>, value: &dyn Fn(&Second) -> f64| -> Vec<(f64, f64)> {
        let seconds = it.runs.first().map_or(&[][..], Vec::as_slice);
        seconds.iter().enumerate().map(|(second, seen)| (second as f64 + 1.0, value(seen))).collect()
    };
    let panel = |title: &str, value: &dyn Fn(&Second) -> f64| {
        Panel::curves(title, "time (s)", Scale::LINEAR, shown.iter().map(|it| curve(it, value)).collect())
    };
    let panels = [
        panel("throughput (Mbit/s)", &|second| second.mbps),
        panel("congestion window (MB)", &|second| second.cwnd as f64 / 1e6),
        panel("packets lost per second", &|second| (second.lost + second.background_lost) as f64),
    ];
    let names: Vec<String> = shown.iter().map(|it| it.name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let heading = Heading::new("H-TCP by TCP buffer and round trip", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), SEVERAL, &panels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_buffer_loses_nothing_and_a_large_one_does() {
        let [small, large, ..] = &TESTBEDS[0].cases;
        let lost = |case: &Case| -> u64 {
            run_once(&TESTBEDS[0], case, 1, 10).unwrap().iter().map(|second| second.lost).sum()
        };
        assert_eq!(lost(small), 0);
        assert!(lost(large) > 0);
    }
}
