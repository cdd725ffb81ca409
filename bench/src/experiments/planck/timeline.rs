//! Figure 12 and table 1: time from a flow's first packet to a stable estimate.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

use super::estimates::{Estimates, RateReport};
use super::rack::{Control, MIN_BUFFER, PAPER_BUFFER, Rack};
use super::us;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends, digits, mean};
use crate::results::{Page, Table, save};
use crate::row;

/// The measured flow starts in the middle.
const DURATION: Nanos = Nanos::from_millis(40);
/// Oversubscription after it has started.
const FACTORS: [u16; 6] = [1, 2, 3, 4, 8, 16];
/// With this oversubscription the flow causes it itself. While the monitor port's buffer fills, samples are
/// increasingly delayed, and time appears stretched to the collector.
const SELF_CAUSED: u16 = 2;
/// An estimate is stable if it and the following ones, `IN_A_ROW` in total, are within this share of the flow's steady
/// rate.
const STABLE: f64 = 0.1;
const IN_A_ROW: usize = 5;
/// Large enough that the flow sends at line rate at once: this measures the collector, not slow start.
const WINDOW: u32 = 200;
/// The paper's result for its own switch at 10 Gbit/s, called 1x (table 1).
const PLANCK_US: f64 = 4_200.0;

/// A type of switch.
struct Port {
    name: &'static str,
    rate: BitRate,
    buffer: Bytes,
    /// The paper's times for such a switch, in microseconds.
    paper: &'static str,
    most_us: f64,
}

const PORTS: [Port; 4] = [
    Port {
        name: "10 Gbit/s, smallest buffer",
        rate: BitRate(10_000_000_000),
        buffer: MIN_BUFFER,
        paper: "275-850 us",
        most_us: 850.0,
    },
    Port {
        name: "1 Gbit/s, smallest buffer",
        rate: BitRate(1_000_000_000),
        buffer: MIN_BUFFER,
        paper: "280-1150 us",
        most_us: 1_150.0,
    },
    Port {
        name: "10 Gbit/s, 3.5 ms of buffer",
        rate: BitRate(10_000_000_000),
        buffer: PAPER_BUFFER,
        paper: "< 4.2 ms",
        most_us: 4_200.0,
    },
    Port {
        name: "1 Gbit/s, 6.2 ms of buffer",
        rate: BitRate(1_000_000_000),
        buffer: Bytes(775_000),
        paper: "< 7.2 ms",
        most_us: 7_200.0,
    },
];

/// The other rows of table 1, with their sources.
const OTHERS: [(&str, &str, &str); 5] = [
    ("Helios", "77.4 ms", "18x"),
    ("sFlow/OpenSample", "100 ms", "24x"),
    ("Mahout polling (implementing Hedera)", "190 ms", "45x"),
    ("DevoFlow polling", "500 ms to 15 s", "119 to 3570x"),
    ("Hedera", "5 s", "1190x"),
];

/// The times of a flow, in microseconds since its first packet was handed to the network interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    /// Its first packet passed the switch.
    pub(super) passed: f64,
    /// The collector saw its first sample.
    pub(super) sampled: f64,
    /// The collector reported its first estimate.
    pub(super) report: f64,
    /// The collector reported the first stable estimate.
    pub(super) stable: f64,
    /// Mirror delay of the sample that caused it.
    pub(super) delay: f64,
}

impl Timeline {
    /// Returns the time of the estimator alone: from the first packet at the switch to the packet that caused the
    /// stable estimate.
    pub(super) fn estimation(&self) -> f64 {
        self.stable - self.delay - self.passed
    }

    /// Measures the last flow of a rack, which joins the others.
    pub(super) fn of(rack: &Rack) -> anyhow::Result<Option<Timeline>> {
        let run = rack.run()?;
        let estimates = Estimates::of(rack, &run)?;
        let (Some(&pair), Some(&start)) = (rack.data().last(), rack.starts().last()) else { return Ok(None) };
        let Some(passed) = run.truth.of(pair) else { return Ok(None) };
        let end = Timestamp(rack.duration.0);
        let steady = passed.rate(end.saturating_sub(Nanos(rack.duration.0 / 4)), end);
        let report: Vec<&RateReport> = estimates.flows.iter().filter(|report| report.pair == pair).collect();
        let stays = |report: &&RateReport| (report.rate.value - steady).abs() <= STABLE * steady;
        let stable = report.windows(IN_A_ROW).find(|row| row.iter().all(stays)).map(|row| row[0]);
        let sampled = run.samples.iter().find(|sample| sample.pair == pair);
        let since = |time: Timestamp| us(time.since(start));
        Ok((stable.zip(sampled)).map(|(stable, sampled)| Timeline {
            passed: since(passed.times()[0]),
            sampled: since(sampled.packet.time),
            report: since(report[0].at),
            stable: since(stable.at),
            delay: us(stable.at.since(stable.passed)),
        }))
    }
}

/// A run of one of [`PORTS`].
#[derive(Clone, Copy, Debug)]
struct Run {
    place: usize,
    factor: u16,
    line: Timeline,
}

impl Run {
    /// Whether the monitor port's buffer fills while the flow is measured.
    fn fills(&self) -> bool {
        self.factor == SELF_CAUSED && PORTS[self.place].buffer > MIN_BUFFER
    }
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new([
        "switch",
        "control",
        "oversubscription",
        "seed",
        "first packet passed us",
        "first sample us",
        "first estimate us",
        "stable estimate us",
        "mirror delay us",
        "estimation us",
    ]);
    let mut all: Vec<Run> = Vec::new();
    for (place, port) in PORTS.iter().enumerate() {
        for (control, factor) in
            Control::ALL.into_iter().flat_map(|control| FACTORS.map(|factor| (control, factor)))
        {
            for seed in 1..=study.seeds {
                let rack = joining(port.rate, port.buffer, control, factor, seed, study.duration(DURATION));
                let Some(line) = Timeline::of(&rack)? else { continue };
                note(port, control, factor, seed, &line, &mut raw);
                all.push(Run { place, factor, line });
            }
        }
    }
    let mut page = Page::new("From a packet to an estimate", study.command);
    page.paragraph(format!(
                "A flow joins others, each between its own two hosts, with the oversubscription in the table once it has started; {} \
                 seeds, CUBIC and DCTCP. Its initial window is {WINDOW} segments, so that it sends at line rate at once. Times are \
                 since its first packet was handed to the network interface. Stable is the first estimate that is, together with \
                 the four after it, within 10 % of the flow's final rate. With two flows the joining flow causes the \
                 oversubscription: while the buffer fills, samples are increasingly delayed and rates read low; such runs have \
                 their own row. The time of the collector and its host is not emulated.",
        study.seeds
    ));
    page.section("Figure 12").table(&figure(&all));
    page.section("Table 1").table(&compare_with_others(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

/// Returns a rack of flows, the last of which starts in the middle of the run.
pub(super) fn joining(
    rate: BitRate,
    buffer: Bytes,
    control: Control,
    factor: u16,
    seed: u64,
    duration: Nanos,
) -> Rack {
    let joins = Some(Timestamp(duration.0 / 2));
    Rack {
        control,
        receivers: factor,
        joins,
        initial_window: WINDOW,
        rate,
        buffer,
        duration,
        seed,
        ..Rack::default()
    }
}

fn note(port: &Port, control: Control, factor: u16, seed: u64, line: &Timeline, raw: &mut Table) {
    let one = |value: f64| format!("{value:.1}");
    row!(
        raw,
        port.name,
        control.name(),
        factor,
        seed,
        one(line.passed),
        one(line.sampled),
        one(line.report),
        one(line.stable),
        one(line.delay),
        one(line.estimation()),
    );
}

/// Returns the minimum and maximum of a time over the runs of a switch: those in which its buffer fills, or all others.
fn range(all: &[Run], place: usize, fills: bool, of: impl Fn(&Timeline) -> f64) -> (f64, f64) {
    let values = all.iter().filter(|run| run.place == place && run.fills() == fills).map(|run| of(&run.line));
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

fn shown((least, most): (f64, f64)) -> String {
    if least <= most { format!("{} to {}", digits(least), digits(most)) } else { "-".to_owned() }
}

fn figure(all: &[Run]) -> Table {
    let mut table = Table::new([
        "switch, us",
        "first packet passed",
        "first sample",
        "first estimate",
        "stable estimate",
        "of which the mirror",
        "of which estimation",
    ]);
    for (place, fills) in (0..PORTS.len()).flat_map(|place| [(place, false), (place, true)]) {
        let of = |value: fn(&Timeline) -> f64| shown(range(all, place, fills, value));
        let name = match fills {
            false => PORTS[place].name.to_owned(),
            true if PORTS[place].buffer > MIN_BUFFER => format!("{}, which fills", PORTS[place].name),
            true => continue,
        };
        row!(
            table,
            name,
            of(|line| line.passed),
            of(|line| line.sampled),
            of(|line| line.report),
            of(|line| line.stable),
            of(|line| line.delay),
            of(Timeline::estimation),
        );
    }
    table
}

fn compare_with_others(all: &[Run]) -> Table {
    let mut table = Table::new(["system", "speed", "slowdown against Planck at 10 Gbit/s"]);
    let times = |value: f64| {
        if value < PLANCK_US {
            format!("1/{:.1}x", PLANCK_US / value)
        } else {
            format!("{:.1}x", value / PLANCK_US)
        }
    };
    for (place, port) in PORTS.iter().enumerate() {
        let (least, most) = range(all, place, false, |line| line.stable);
        row!(
            table,
            format!("**Thalweg**, {}", port.name),
            format!("{} us", shown((least, most))),
            if least <= most { format!("{} to {}", times(least), times(most)) } else { "-".to_owned() },
        );
    }
    let slowdowns = ["1/15 to 1/5x", "1/15 to 1/4x", "1x", "1.7x"];
    for (port, slowdown) in PORTS.iter().zip(slowdowns) {
        row!(table, format!("Planck, {}", port.name), port.paper, slowdown);
    }
    for (name, speed, slowdown) in OTHERS {
        row!(table, name, speed, slowdown);
    }
    table
}

fn trends(all: &[Run]) -> Trends {
    let mut trends = Trends::new();
    for (place, port) in PORTS.iter().enumerate() {
        let (least, most) = range(all, place, false, |line| line.stable);
        let says = format!("{}: {}, here at most that", port.name, port.paper);
        trends.check(&says, most <= port.most_us, &format!("{} us", shown((least, most))));
    }
    let (least, most) = range(all, 0, false, Timeline::estimation);
    trends.check(
        "200 to 700 us of it are estimation, at 10 Gbit/s",
        most <= 700.0,
        &format!("{} us", shown((least, most))),
    );
    trends
}

fn draw(path: &Path, all: &[Run]) -> anyhow::Result<()> {
    let panel = |(place, port): (usize, &Port)| {
        let curve = |of: fn(&Timeline) -> f64| -> Vec<(f64, f64)> {
            let at = |factor: u16| {
                let lines = all.iter().filter(|run| (run.place, run.factor) == (place, factor));
                mean(&lines.map(|run| of(&run.line) / 1e3).collect::<Vec<f64>>())
            };
            FACTORS.iter().map(|&factor| (f64::from(factor), at(factor))).collect()
        };
        let curves = vec![curve(|line| line.sampled), curve(|line| line.report), curve(|line| line.stable)];
        let title = format!("{} (ms since the first packet)", port.name);
        Panel::curves(title, "oversubscription", Scale::LINEAR, curves)
    };
    let panels: Vec<Panel> = PORTS.iter().enumerate().map(panel).collect();
    let legend = Legend::of(&["first sample", "first estimate", "stable estimate"]);
    save(path, &figure::draw(&Heading::new("From a packet to an estimate", ""), &legend, SEVERAL, &panels)?)
}
