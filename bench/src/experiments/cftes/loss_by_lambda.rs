//! Figure 4.6: loss of background traffic by its burstiness, held by the number of bursts per second.

use std::path::Path;

use thalweg_emulator::workloads::burst_process::{Segments, published_burstiness};
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;

use super::model::{self, Case, Model, Ran, process};
use super::neighbours::{self, Line, Seeds};
use super::runs::{finish, run_all};
use super::{
    FLOW, LAMBDAS, ROUND_TRIPS, Size, WINDOW_PS, lambda_name, line_name, loss, loss_panel, significant,
    steps, within,
};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{half_interval, mean};

/// Emulated seconds per run by default.
const SECONDS: f64 = 100.0;

/// The runs of a model: by lambda and seed, the cases by round-trip time.
struct Measured {
    model: Model,
    runs: Vec<Vec<Vec<Ran>>>,
}

impl Measured {
    fn losses(&self, time: usize, place: usize) -> Vec<f64> {
        self.runs[place].iter().map(|cases| cases[time].loss()).collect()
    }

    /// The mean loss over all runs of these lambdas.
    fn loss_at(&self, time: usize, lambdas: &[f64]) -> f64 {
        let places = (0..LAMBDAS.len()).filter(|&place| lambdas.contains(&LAMBDAS[place]));
        mean(&places.flat_map(|place| self.losses(time, place)).collect::<Vec<f64>>())
    }

    fn ratio(&self, lambdas: &[f64]) -> f64 {
        self.loss_at(1, lambdas) / self.loss_at(0, lambdas)
    }
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let size = Size::of(study, SECONDS);
    let cases = ROUND_TRIPS.map(|time| Case::in_primary(FLOW, time));
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
    let burstiness = published(&size)?;
    let mut page = Page::new("Loss of background traffic by its burstiness", study.command);
    page.paragraph(format!(
        "200 Mbit/s of background traffic, and an H-TCP flow of 700 Mbit/s in one queue of 5 MB at 1 Gbit/s. {}",
        size.describe()
    ));
    page.section("Loss of the background traffic, percent").table(&summary(&all, &burstiness));
    page.section("Ratio of 100 ms to 10 ms").table(&ratios(&all));
    page.section("Neighbouring values of lambda").table(&told_apart(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    finish(&size)?;
    Ok(Outcome { page, table: raw(&all) })
}

/// The mean burstiness by the published routine, by lambda.
fn published(size: &Size) -> anyhow::Result<Vec<f64>> {
    let of_lambda = |lambda| {
        let runs = (1..=size.seeds).map(|seed| {
            let segments = Segments::new(&process(lambda), seed)?;
            anyhow::Ok(published_burstiness(segments, WINDOW_PS, size.until_ps()))
        });
        Ok(mean(&runs.collect::<anyhow::Result<Vec<f64>>>()?))
    };
    LAMBDAS.into_iter().map(of_lambda).collect()
}

fn summary(all: &[Measured], burstiness: &[f64]) -> Table {
    let columns = all.iter().flat_map(|measured| [0, 1].map(|time| line_name(measured.model, time)));
    let first = ["lambda, bursts/s", "b by definition", "b by the published routine"].map(str::to_owned);
    let mut table = Table::with_header(first.into_iter().chain(columns).collect());
    for (place, lambda) in LAMBDAS.into_iter().enumerate() {
        let definition = thalweg_emulator::workloads::burstiness::of_bursts(&process(lambda), 0.1);
        let first = [lambda_name(lambda), format!("{definition:.2}"), format!("{:.2}", burstiness[place])];
        let cells = all.iter().flat_map(|measured| [0, 1].map(|time| loss(&measured.losses(time, place))));
        table.push(first.into_iter().chain(cells).collect());
    }
    table
}

fn ratios(all: &[Measured]) -> Table {
    let names = all.iter().map(|measured| measured.model.name().to_owned());
    let mut table = Table::with_header(std::iter::once("lambda, bursts/s".to_owned()).chain(names).collect());
    for lambda in LAMBDAS {
        let cells = all.iter().map(|measured| significant(measured.ratio(&[lambda])));
        table.push(std::iter::once(lambda_name(lambda)).chain(cells).collect());
    }
    table
}

fn told_apart(all: &[Measured]) -> Table {
    let line = |measured: &Measured, time| Line {
        name: line_name(measured.model, time),
        losses: (0..LAMBDAS.len()).map(|place| measured.losses(time, place)).collect(),
    };
    let lines: Vec<Line> = all.iter().flat_map(|measured| [0, 1].map(|time| line(measured, time))).collect();
    neighbours::table(Seeds::Independent, &LAMBDAS.map(lambda_name), &lines)
}

fn raw(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "model",
        "rtt ms",
        "lambda",
        "background packets",
        "background lost",
        "loss mean",
        "loss half of the 95 % interval",
    ]);
    for measured in all {
        for (time, round_trip) in ROUND_TRIPS.iter().enumerate() {
            for (place, lambda) in LAMBDAS.iter().enumerate() {
                let losses = measured.losses(time, place);
                let sum = |of: fn(&Ran) -> u64| -> u64 {
                    measured.runs[place].iter().map(|cases| of(&cases[time])).sum()
                };
                row!(
                    table,
                    measured.model.name(),
                    round_trip.0 / 1_000_000,
                    lambda,
                    sum(|run| run.offered),
                    sum(|run| run.dropped),
                    mean(&losses),
                    half_interval(&losses),
                );
            }
        }
    }
    table
}

fn trends(all: &[Measured]) -> Trends {
    let mut trends = Trends::new();
    for measured in all.iter().filter(|measured| measured.model != Model::Rounds) {
        let name = measured.model.name();
        for (time, millis) in [(0, 10), (1, 100)] {
            let means: Vec<f64> = LAMBDAS.iter().map(|&lambda| measured.loss_at(time, &[lambda])).collect();
            let up = steps(&means, |before, after| after > before);
            let says = format!("{name}: loss falls with lambda, {millis} ms: 0 to 2 steps up");
            trends.check(&says, up <= 2, &format!("{up} steps up"));
        }
        let mut check = |says: &str, value: f64, bounds: (f64, f64), unit: &str| {
            let says = format!("{name}: {says}: {} to {}{unit}", bounds.0, bounds.1);
            trends.check(&says, within(value, bounds), &format!("{}{unit}", significant(value)));
        };
        let percent = |time, lambdas: &[f64]| 100.0 * measured.loss_at(time, lambdas);
        check("0.0008 % at lambda 80, 100 ms", percent(1, &[80.0]), (0.00008, 0.008), " %");
        check("0.0005 % at lambda 80, 10 ms", percent(0, &[80.0]), (0.00005, 0.005), " %");
        check("no loss at lambda 600, 100 ms", percent(1, &[600.0]), (0.0, 0.0), " %");
        check("no loss at lambda 600, 10 ms", percent(0, &[600.0]), (0.0, 0.0), " %");
        check("0.2 % at b = 1.2, lambda 13 and 15, 100 ms", percent(1, &[13.0, 15.0]), (0.07, 0.6), " %");
        check("ratio 1.5 at low burstiness, lambda 50 and 60", measured.ratio(&[50.0, 60.0]), (1.0, 2.5), "");
        check("ratio almost 2 at b = 2.09, lambda 8.4", measured.ratio(&[8.4]), (1.5, 2.3), "");
    }
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let places = LAMBDAS.map(|lambda| (lambda, lambda_name(lambda)));
    let panels = [0, 1].map(|time| {
        let of_model = |measured: &Measured| {
            (0..places.len()).map(|place| measured.losses(time, place)).collect::<Vec<_>>()
        };
        loss_panel(time, "bursts per second", &places, &all.iter().map(of_model).collect::<Vec<_>>())
    });
    let names: Vec<&str> = all.iter().map(|measured| measured.model.name()).collect();
    let heading = Heading::new("Loss by bursts per second, with a flow of 700 Mbit/s", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), SEVERAL, &panels)?)
}
