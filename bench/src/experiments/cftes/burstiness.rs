//! Figure 4.3: burstiness by the number of bursts per second, by definition and by the published routine.

use std::path::Path;

use serde::{Deserialize, Serialize};
use thalweg_emulator::workloads::burst_process::{
    BurstPackets, Rounding, SegmentPackets, Segments, published_burstiness,
};
use thalweg_emulator::workloads::burstiness::of_bursts;
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;

use super::model::{burstiness, process};
use super::runs::{finish, run_all};
use super::{LAMBDAS, PORT, Size, WINDOW_PS, lambda_name, steps, within};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{half_interval, mean, with_interval};

/// Emulated seconds per run by default.
const SECONDS: f64 = 100.0;

/// Burstiness of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ran {
    /// Of the packets of bursts, by definition.
    definition: f64,
    /// Of the packets of the published program, by definition.
    as_sent: f64,
    /// By the published routine.
    published: f64,
}

/// The runs of a lambda.
struct Measured {
    lambda: f64,
    definition: Vec<f64>,
    as_sent: Vec<f64>,
    published: Vec<f64>,
}

impl Measured {
    fn closed_form(&self) -> f64 {
        of_bursts(&process(self.lambda), WINDOW_PS as f64 / 1e12)
    }
}

fn run_once(lambda: f64, seed: u64, until_ps: u64) -> anyhow::Result<Ran> {
    let process = process(lambda);
    Ok(Ran {
        definition: burstiness(BurstPackets::new(&process, seed, Rounding::Up)?, until_ps),
        as_sent: burstiness(SegmentPackets::new(&process, seed, PORT)?, until_ps),
        published: published_burstiness(Segments::new(&process, seed)?, WINDOW_PS, until_ps),
    })
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let size = Size::of(study, SECONDS);
    let runs = run_all(
        &size,
        &LAMBDAS,
        |lambda| lambda_name(*lambda),
        |&lambda, seed| run_once(lambda, seed, size.until_ps()),
    )?;
    let measured = LAMBDAS.iter().zip(&runs).map(|(&lambda, runs)| Measured {
        lambda,
        definition: runs.iter().map(|run| run.definition).collect(),
        as_sent: runs.iter().map(|run| run.as_sent).collect(),
        published: runs.iter().map(|run| run.published).collect(),
    });
    let all: Vec<Measured> = measured.collect();
    let mut page = Page::new("Burstiness by bursts per second", study.command);
    page.paragraph(size.describe());
    page.table(&summary(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    finish(&size)?;
    Ok(Outcome { page, table: raw(&all) })
}

fn summary(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "lambda, bursts/s",
        "closed form",
        "by definition",
        "packets of the published program, by definition",
        "published routine",
    ]);
    for measured in all {
        row!(
            table,
            lambda_name(measured.lambda),
            format!("{:.2}", measured.closed_form()),
            with_interval(&measured.definition),
            with_interval(&measured.as_sent),
            with_interval(&measured.published),
        );
    }
    table
}

fn raw(all: &[Measured]) -> Table {
    let mut table = Table::new(["lambda", "measure", "mean", "half of the 95 % interval"]);
    for measured in all {
        let Measured { lambda, definition, as_sent, published } = measured;
        row!(table, lambda, "closed form", measured.closed_form(), 0);
        for (name, sample) in [
            ("definition", definition),
            ("packets of the published program", as_sent),
            ("published routine", published),
        ] {
            row!(table, lambda, name, mean(sample), half_interval(sample));
        }
    }
    table
}

fn trends(all: &[Measured]) -> Trends {
    let at = |lambda: f64, of: fn(&Measured) -> &Vec<f64>| {
        all.iter().find(|measured| measured.lambda == lambda).map_or(f64::NAN, |measured| mean(of(measured)))
    };
    let definition: fn(&Measured) -> &Vec<f64> = |measured| &measured.definition;
    let published: fn(&Measured) -> &Vec<f64> = |measured| &measured.published;
    let mut trends = Trends::new();
    for (name, of) in [("definition", definition), ("published routine", published)] {
        let means: Vec<f64> = all.iter().map(|measured| mean(of(measured))).collect();
        let up = steps(&means, |before, after| after > before);
        trends.check(&format!("b falls with lambda, {name}: no step up"), up == 0, &format!("{up} steps up"));
    }
    let mut check = |says: &str, value: f64, bounds: (f64, f64)| {
        let says = format!("{says}: {} to {}", bounds.0, bounds.1);
        trends.check(&says, within(value, bounds), &format!("{value:.2}"));
    };
    let ratio = |of| at(10.0, of) / at(100.0, of);
    check("falls steeply, b at lambda 10 over 100, definition", ratio(definition), (2.5, 4.0));
    check("falls steeply, b at lambda 10 over 100, published routine", ratio(published), (3.5, 8.0));
    check("approaches zero at lambda 600, definition", at(600.0, definition), (0.05, 0.2));
    check("2.09 at lambda 10, published routine", at(10.0, published), (1.9, 2.3));
    check("1.23 in figure 4.5, lambda 15, published routine", at(15.0, published), (1.0, 1.4));
    check("0.33 at lambda 600, published routine", at(600.0, published), (0.28, 0.40));
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let places: Vec<(f64, String)> =
        all.iter().map(|measured| (measured.lambda, lambda_name(measured.lambda))).collect();
    let of = |of: fn(&Measured) -> f64| all.iter().map(of).collect::<Vec<f64>>();
    let lines = [
        of(Measured::closed_form),
        of(|measured| mean(&measured.definition)),
        of(|measured| mean(&measured.as_sent)),
        of(|measured| mean(&measured.published)),
    ];
    let panel = Panel::over_numbers("burstiness b", "bursts per second", &places, Scale::LINEAR, &lines);
    let names = ["closed form", "by definition", "published program's packets", "published routine"];
    let heading = Heading::new("Burstiness of 200 Mbit/s of Poisson Pareto bursts", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), ALONE, &[panel])?)
}
