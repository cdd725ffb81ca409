//! Figure 4.5: loss of background traffic by the rate of a cheetah flow, and the threshold that follows.

use std::path::Path;

use thalweg_control::threshold::loss_curve::{LossCurve, LossPoint};
use thalweg_control::threshold::tag::Tag;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_wire::BitRate;

use super::model::{self, Case, Model, Ran};
use super::neighbours::{self, Line, Seeds};
use super::runs::{finish, run_all};
use super::{BACKGROUND, ROUND_TRIPS, Size, line_name, loss, loss_panel, significant, steps, within};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{half_interval, mean};

/// Emulated seconds per run by default.
const SECONDS: f64 = 100.0;

/// Bursts per second: the published case file of the figure.
const LAMBDA: f64 = 15.0;
/// Rates of the flow, in Mbit/s.
const RATES: [u64; 18] =
    [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750, 800, 850, 900];
/// The acceptable loss of the dissertation's example.
const ACCEPTABLE: f64 = 0.0006e-2;

/// The runs of a model: by round-trip time and rate, by seed.
struct Measured {
    model: Model,
    runs: Vec<Vec<Vec<Ran>>>,
}

impl Measured {
    fn of(model: Model, by_seed: &[Vec<Ran>]) -> Measured {
        let runs_of = |index: usize| by_seed.iter().map(|cases| cases[index]).collect::<Vec<Ran>>();
        let by_rate = |time: usize| (0..RATES.len()).map(|rate| runs_of(time * RATES.len() + rate)).collect();
        Measured { model, runs: (0..ROUND_TRIPS.len()).map(by_rate).collect() }
    }

    fn losses(&self, time: usize, rate: usize) -> Vec<f64> {
        self.runs[time][rate].iter().map(Ran::loss).collect()
    }

    /// The mean loss at a rate of [`RATES`].
    fn loss_at(&self, time: usize, mbps: u64) -> f64 {
        let place = RATES.iter().position(|rate| *rate == mbps).expect("a rate that was run");
        mean(&self.losses(time, place))
    }

    fn ratio(&self, mbps: u64) -> f64 {
        self.loss_at(1, mbps) / self.loss_at(0, mbps)
    }

    /// The rate threshold, as a setup of all runs together gives it: by the longest round trip.
    fn threshold(&self, acceptable: f64) -> Option<BitRate> {
        let longest = self.runs.last().map_or(&[][..], Vec::as_slice);
        let point = |(mbps, runs): (&u64, &Vec<Ran>)| {
            let sum = |of: fn(&Ran) -> u64| runs.iter().map(of).sum::<u64>();
            let loss = sum(|run| run.dropped) as f64 / sum(|run| run.offered).max(1) as f64;
            LossPoint { rate: BitRate(mbps * 1_000_000), loss, error: 0.0 }
        };
        let points = RATES.iter().zip(longest).map(point).collect();
        let tag = Tag { mean_rate: BACKGROUND, burstiness: f64::NAN };
        let threshold = LossCurve { tag, points, seconds: f64::NAN }.threshold(acceptable);
        threshold.is_acceptable.then_some(threshold.rate)
    }
}

fn cases() -> Vec<Case> {
    let rates = |time| RATES.map(move |mbps| Case::in_primary(BitRate(mbps * 1_000_000), time));
    ROUND_TRIPS.into_iter().flat_map(rates).collect()
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let (size, cases) = (Size::of(study, SECONDS), cases());
    let runs = run_all(
        &size,
        &Model::ALL,
        |model| model.name().to_owned(),
        |&model, seed| model::run(model, LAMBDA, seed, size.until_ps(), &cases),
    )?;
    let all: Vec<Measured> =
        Model::ALL.iter().zip(&runs).map(|(&model, runs)| Measured::of(model, runs)).collect();
    let mut page = Page::new("Loss of background traffic by the rate of a cheetah flow", study.command);
    page.paragraph(format!(
        "200 Mbit/s of background traffic, {LAMBDA} bursts per second, and an H-TCP flow in one queue of 5 MB at 1 Gbit/s. {}",
        size.describe()
    ));
    page.section("Loss of the background traffic, percent").table(&summary(&all));
    page.section("Ratio of 100 ms to 10 ms").table(&ratios(&all));
    page.section("Neighbouring rates").table(&told_apart(&all));
    page.section("Rate threshold by acceptable loss").table(&thresholds(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    finish(&size)?;
    Ok(Outcome { page, table: raw(&all) })
}

fn summary(all: &[Measured]) -> Table {
    let columns = all.iter().flat_map(|measured| [0, 1].map(|time| line_name(measured.model, time)));
    let mut table = Table::with_header(std::iter::once("flow, Mbit/s".to_owned()).chain(columns).collect());
    for (place, rate) in RATES.iter().enumerate() {
        let cells = all.iter().flat_map(|measured| [0, 1].map(|time| loss(&measured.losses(time, place))));
        table.push(std::iter::once(rate.to_string()).chain(cells).collect());
    }
    table
}

fn ratios(all: &[Measured]) -> Table {
    let names = all.iter().map(|measured| measured.model.name().to_owned());
    let mut table = Table::with_header(std::iter::once("flow, Mbit/s".to_owned()).chain(names).collect());
    for rate in RATES {
        let cells = all.iter().map(|measured| significant(measured.ratio(rate)));
        table.push(std::iter::once(rate.to_string()).chain(cells).collect());
    }
    table
}

fn told_apart(all: &[Measured]) -> Table {
    let line = |measured: &Measured, time| Line {
        name: line_name(measured.model, time),
        losses: (0..RATES.len()).map(|rate| measured.losses(time, rate)).collect(),
    };
    let lines: Vec<Line> = all.iter().flat_map(|measured| [0, 1].map(|time| line(measured, time))).collect();
    neighbours::table(Seeds::Same, &RATES.map(|rate| rate.to_string()), &lines)
}

fn thresholds(all: &[Measured]) -> Table {
    let names = all.iter().map(|measured| measured.model.name().to_owned());
    let mut table = Table::with_header(std::iter::once("acceptable loss".to_owned()).chain(names).collect());
    for percent in [0.0001, 0.0006, 0.001, 0.01, 0.1, 1.0] {
        let cells = all.iter().map(|measured| threshold_name(measured.threshold(percent / 100.0)));
        table.push(std::iter::once(format!("{percent} %")).chain(cells).collect());
    }
    table
}

fn threshold_name(threshold: Option<BitRate>) -> String {
    threshold.map_or("below 50 Mbit/s".to_owned(), |rate| format!("{} Mbit/s", rate.0 / 1_000_000))
}

fn raw(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "model",
        "rtt ms",
        "flow mbit/s",
        "background packets",
        "background lost",
        "loss mean",
        "loss half of the 95 % interval",
        "flow packets",
        "flow lost",
    ]);
    for measured in all {
        for (time, by_rate) in ROUND_TRIPS.iter().zip(&measured.runs) {
            for (rate, runs) in RATES.iter().zip(by_rate) {
                let losses: Vec<f64> = runs.iter().map(Ran::loss).collect();
                let sum = |of: fn(&Ran) -> u64| runs.iter().map(of).sum::<u64>();
                row!(
                    table,
                    measured.model.name(),
                    time.0 / 1_000_000,
                    rate,
                    sum(|run| run.offered),
                    sum(|run| run.dropped),
                    mean(&losses),
                    half_interval(&losses),
                    sum(|run| run.flow_offered),
                    sum(|run| run.flow_dropped),
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
            let means: Vec<f64> = RATES[5..].iter().map(|&rate| measured.loss_at(time, rate)).collect();
            let down = steps(&means, |before, after| after < before);
            let says = format!("{name}: loss rises from 300 to 900 Mbit/s, {millis} ms: 0 to 1 steps down");
            trends.check(&says, down <= 1, &format!("{down} steps down"));
        }
        let mut check = |says: &str, value: f64, bounds: (f64, f64), unit: &str| {
            let says = format!("{name}: {says}: {} to {}{unit}", bounds.0, bounds.1);
            trends.check(&says, within(value, bounds), &format!("{}{unit}", significant(value)));
        };
        let percent = |time, rate| 100.0 * measured.loss_at(time, rate);
        check("0.0005 % at 300 Mbit/s, 10 ms", percent(0, 300), (0.00005, 0.005), " %");
        check("0.0006 % at 300 Mbit/s, 100 ms", percent(1, 300), (0.00006, 0.006), " %");
        check("about 0.2 % at 700 Mbit/s, 100 ms", percent(1, 700), (0.07, 0.6), " %");
        let rise = |from, to| percent(1, to) - percent(1, from);
        check("sharp rise at 800 Mbit/s, 100 ms", rise(750, 850) / rise(650, 750), (1.2, 6.0), "");
        check("ratio 0.54 at 200 Mbit/s", measured.ratio(200), (0.1, 1.5), "");
        check("ratio 1.9 at 800 Mbit/s", measured.ratio(800), (1.3, 2.5), "");
        check("ratio 1.2 at 900 Mbit/s", measured.ratio(900), (1.0, 1.5), "");
        let threshold = measured.threshold(ACCEPTABLE);
        let holds = threshold.is_some_and(|rate| (200_000_000..=400_000_000).contains(&rate.0));
        let says = format!("{name}: 0.0006 % acceptable: threshold 300 Mbit/s: 200 to 400");
        trends.check(&says, holds, &threshold_name(threshold));
    }
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let places = RATES.map(|rate| (rate as f64, rate.to_string()));
    let panels = [0, 1].map(|time| {
        let of_model = |measured: &Measured| {
            (0..places.len()).map(|place| measured.losses(time, place)).collect::<Vec<_>>()
        };
        loss_panel(time, "flow (Mbit/s)", &places, &all.iter().map(of_model).collect::<Vec<_>>())
    });
    let names: Vec<&str> = all.iter().map(|measured| measured.model.name()).collect();
    let heading = Heading::new("Loss by the rate of a cheetah flow", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), SEVERAL, &panels)?)
}
