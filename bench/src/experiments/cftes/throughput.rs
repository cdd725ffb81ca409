//! Figure 4.7: throughput of a cheetah flow in a scavenger queue, as a share of that in the primary queue.

use std::path::Path;

use thalweg_emulator::bottleneck::port::Queue;
use thalweg_emulator::schemes::scavenger::ScavengerConfig;
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;

use super::model::{self, Case, Model, Ran};
use super::runs::{finish, run_all};
use super::{FLOW, ROUND_TRIPS, Size, lambda_name, loss, within};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{half_interval, mean};

/// Emulated seconds per run by default.
const SECONDS: f64 = 100.0;

/// Bursts per second.
const LAMBDAS: [f64; 10] = [6.1, 7.4, 8.4, 10.0, 13.0, 15.0, 20.0, 30.0, 50.0, 100.0];

/// The port of a flow that is moved to the scavenger queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scheduler {
    name: &'static str,
    port: ScavengerConfig,
    /// Whether the dissertation's figure may be of this one.
    is_checked: bool,
}

const SCHEDULERS: [Scheduler; 3] = [
    Scheduler {
        name: "strict, 5 + 5 MB",
        port: ScavengerConfig {
            primary_buffer: 5_000_000,
            scavenger_buffer: 5_000_000,
            scavenger_share: 0.0,
        },
        is_checked: true,
    },
    Scheduler {
        name: "strict, 2.5 + 2.5 MB",
        port: ScavengerConfig {
            primary_buffer: 2_500_000,
            scavenger_buffer: 2_500_000,
            scavenger_share: 0.0,
        },
        is_checked: true,
    },
    Scheduler {
        name: "borrowing halves, 5 + 5 MB",
        port: ScavengerConfig {
            primary_buffer: 5_000_000,
            scavenger_buffer: 5_000_000,
            scavenger_share: 0.5,
        },
        is_checked: false,
    },
];

/// The runs of a model: by lambda and seed, the cases by round-trip time and then by queue: primary, and the scavenger
/// queue of each scheduler.
struct Measured {
    model: Model,
    runs: Vec<Vec<Vec<Ran>>>,
}

/// The number of a case in a run.
fn case_of(time: usize, scheduler: Option<usize>) -> usize {
    time * (1 + SCHEDULERS.len()) + scheduler.map_or(0, |scheduler| scheduler + 1)
}

fn cases() -> Vec<Case> {
    let of_time = |time| {
        let in_scavenger = SCHEDULERS.map(|scheduler| Case {
            queue: Queue::Scavenger,
            port: scheduler.port,
            ..Case::in_primary(FLOW, time)
        });
        std::iter::once(Case::in_primary(FLOW, time)).chain(in_scavenger)
    };
    ROUND_TRIPS.into_iter().flat_map(of_time).collect()
}

impl Measured {
    fn of(&self, place: usize, case: usize, value: impl Fn(&Ran) -> f64) -> Vec<f64> {
        self.runs[place].iter().map(|cases| value(&cases[case])).collect()
    }

    fn bytes(&self, place: usize, case: usize) -> Vec<f64> {
        self.of(place, case, |run| run.flow_bytes)
    }

    /// The ratios of single runs, for their interval.
    fn ratios(&self, place: usize, time: usize, scheduler: usize) -> Vec<f64> {
        let scavenger = self.bytes(place, case_of(time, Some(scheduler)));
        let primary = self.bytes(place, case_of(time, None));
        scavenger.iter().zip(primary).map(|(scavenger, primary)| scavenger / primary).collect()
    }

    /// The mean throughput in the scavenger queue over that in the primary queue, over all runs of these lambdas.
    fn ratio(&self, lambdas: &[f64], time: usize, scheduler: usize) -> f64 {
        let places: Vec<usize> =
            (0..LAMBDAS.len()).filter(|&place| lambdas.contains(&LAMBDAS[place])).collect();
        let sum = |case| -> f64 { places.iter().flat_map(|&place| self.bytes(place, case)).sum() };
        sum(case_of(time, Some(scheduler))) / sum(case_of(time, None))
    }
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let (size, cases) = (Size::of(study, SECONDS), cases());
    let tasks: Vec<(Model, f64)> =
        Model::ALL.iter().flat_map(|&model| LAMBDAS.map(|lambda| (model, lambda))).collect();
    let runs = run_all(
        &size,
        &tasks,
        |(model, lambda)| format!("{} lambda {lambda}", model.name()),
        |&(model, lambda), seed| model::run(model, lambda, seed, size.until_ps(), &cases),
    )?;
    let by_model = Model::ALL.iter().zip(runs.chunks(LAMBDAS.len()));
    let all: Vec<Measured> = by_model.map(|(&model, runs)| Measured { model, runs: runs.to_vec() }).collect();
    let mut page = Page::new("Throughput of a cheetah flow in a scavenger queue", study.command);
    page.paragraph(format!(
        "200 Mbit/s of background traffic, and an H-TCP flow of 700 Mbit/s, at 1 Gbit/s. {}",
        size.describe()
    ));
    for measured in &all {
        let name = measured.model.name();
        page.section(&format!("Throughput, scavenger over primary: {name}")).table(&summary(measured));
        page.section(&format!("Loss of the background traffic, percent: {name}, 100 ms"))
            .table(&losses(measured));
    }
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    finish(&size)?;
    Ok(Outcome { page, table: raw(&all, &size) })
}

fn summary(measured: &Measured) -> Table {
    let columns = SCHEDULERS.iter().flat_map(|scheduler| {
        ROUND_TRIPS.map(|time| format!("{}, {} ms", scheduler.name, time.0 / 1_000_000))
    });
    let mut table =
        Table::with_header(std::iter::once("lambda, bursts/s".to_owned()).chain(columns).collect());
    for (place, lambda) in LAMBDAS.into_iter().enumerate() {
        let cells = (0..SCHEDULERS.len()).flat_map(|scheduler| {
            [0, 1].map(|time| {
                let interval = half_interval(&measured.ratios(place, time, scheduler));
                format!("{:.2} ± {interval:.2}", measured.ratio(&[lambda], time, scheduler))
            })
        });
        table.push(std::iter::once(lambda_name(lambda)).chain(cells).collect());
    }
    table
}

fn losses(measured: &Measured) -> Table {
    let columns = SCHEDULERS.iter().map(|scheduler| scheduler.name.to_owned());
    let first = ["lambda, bursts/s", "same queue, 5 MB"].map(str::to_owned);
    let mut table = Table::with_header(first.into_iter().chain(columns).collect());
    for (place, lambda) in LAMBDAS.into_iter().enumerate() {
        let schedulers = std::iter::once(None).chain((0..SCHEDULERS.len()).map(Some));
        let cells = schedulers.map(|scheduler| loss(&measured.of(place, case_of(1, scheduler), Ran::loss)));
        table.push(std::iter::once(lambda_name(lambda)).chain(cells).collect());
    }
    table
}

fn raw(all: &[Measured], size: &Size) -> Table {
    let mut table = Table::new([
        "model",
        "rtt ms",
        "lambda",
        "queue",
        "flow bit/s mean",
        "flow bit/s half of the 95 % interval",
        "ratio to primary",
        "background loss mean",
    ]);
    for measured in all {
        for (time, round_trip) in ROUND_TRIPS.iter().enumerate() {
            for (place, lambda) in LAMBDAS.into_iter().enumerate() {
                for scheduler in std::iter::once(None).chain((0..SCHEDULERS.len()).map(Some)) {
                    let case = case_of(time, scheduler);
                    let bps = measured.of(place, case, |run| 8.0 * run.flow_bytes / size.seconds);
                    row!(
                        table,
                        measured.model.name(),
                        round_trip.0 / 1_000_000,
                        lambda,
                        scheduler.map_or("primary", |scheduler| SCHEDULERS[scheduler].name),
                        format!("{:.0}", mean(&bps)),
                        format!("{:.0}", half_interval(&bps)),
                        scheduler.map_or(1.0, |scheduler| measured.ratio(&[lambda], time, scheduler)),
                        mean(&measured.of(place, case, Ran::loss)),
                    );
                }
            }
        }
    }
    table
}

fn trends(all: &[Measured]) -> Trends {
    let mut trends = Trends::new();
    for measured in all.iter().filter(|measured| measured.model != Model::Rounds) {
        for (number, scheduler) in SCHEDULERS.iter().enumerate().filter(|(_, scheduler)| scheduler.is_checked)
        {
            let name = format!("{}, {}", measured.model.name(), scheduler.name);
            let mut check = |says: &str, value: f64, bounds: (f64, f64)| {
                let says = format!("{name}: {says}: {} to {}", bounds.0, bounds.1);
                trends.check(&says, within(value, bounds), &format!("{value:.2}"));
            };
            let ratio = |lambdas: &[f64], time| measured.ratio(lambdas, time, number);
            check("30 % less at b = 1, lambda 15 and 20, 100 ms", ratio(&[15.0, 20.0], 1), (0.6, 0.8));
            let growth = ratio(&[8.4], 1) - ratio(&[100.0], 1);
            check("reduction grows with burstiness, lambda 8.4 minus 100, 100 ms", growth, (-0.6, -0.05));
            let longer = ratio(&[15.0], 1) - ratio(&[15.0], 0);
            check("larger for 100 ms than for 10 ms, lambda 15", longer, (-0.5, -0.02));
            check("small at lambda 100, 10 ms", ratio(&[100.0], 0), (0.9, 1.05));
            check("small at lambda 100, 100 ms", ratio(&[100.0], 1), (0.9, 1.05));
        }
    }
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let places = LAMBDAS.map(|lambda| (lambda, lambda_name(lambda)));
    let panels: Vec<Panel> = all
        .iter()
        .flat_map(|measured| {
            [0, 1].map(|time| {
                let line =
                    |scheduler| LAMBDAS.map(|lambda| measured.ratio(&[lambda], time, scheduler)).to_vec();
                let lines: Vec<Vec<f64>> = (0..SCHEDULERS.len()).map(line).collect();
                let millis = ROUND_TRIPS[time].0 / 1_000_000;
                let title =
                    format!("{}: throughput, scavenger over primary, {millis} ms", measured.model.name());
                Panel::over_numbers(title, "bursts per second", &places, Scale::LINEAR, &lines)
            })
        })
        .collect();
    let names = SCHEDULERS.map(|scheduler| scheduler.name);
    let heading = Heading::new("Throughput of a flow of 700 Mbit/s in a scavenger queue", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), SEVERAL, &panels)?)
}
