//! Figures 4 and 7: completion times of web search requests by load.

use std::path::Path;

use thalweg_experiment::results::{SweepRun, size_class};
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;

use super::{Contender, Keep, Study, Trends, digits, flows_of, mean, quantile, sweep};
use crate::experiments::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;

const DROP_TAIL: &str = "DropTail";
const DCTCP: &str = "DCTCP";
const HULL: &str = "HULL";
/// As in Flexplane: CUBIC at the endpoints.
const P_FABRIC: &str = "pFabric, CUBIC";

const CONTENDERS: [Contender; 6] = [
    Contender::new(DROP_TAIL, &[("scheme", "droptail")]),
    Contender::new(DCTCP, &[("scheme", "dctcp")]),
    Contender::new(HULL, &[("scheme", "hull")]),
    Contender::new(P_FABRIC, &[("scheme", "pfabric"), ("transport", "cubic")]),
    Contender::new("pFabric, its own transport", &[("scheme", "pfabric")]),
    Contender::new(
        "DropTail, timeouts of 200 ms",
        &[("scheme", "droptail"), ("min_rto", "200ms"), ("initial_rto", "200ms")],
    ),
];

/// Loads of the clients' links in percent.
const LOADS: [u32; 8] = [10, 20, 30, 40, 50, 60, 70, 80];

/// One contender at one load: slowdowns of the flows of all seeds.
struct Point {
    name: &'static str,
    load: u32,
    small: Vec<f64>,
    large: Vec<f64>,
}

/// A statistic of a point.
type Measure = fn(&Point) -> f64;

/// The three panels of figure 7.
const MEASURES: [(&str, Measure); 3] = [
    ("small flows, mean", |point| mean(&point.small)),
    ("small flows, 99th percentile", |point| quantile(&point.small, 0.99)),
    ("large flows, mean", |point| mean(&point.large)),
];

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let experiment = study.experiment("experiment.toml")?;
    let loads: Vec<String> = LOADS.iter().map(|load| format!("{}", f64::from(*load) / 100.0)).collect();
    let mut raw = Table::new([
        "contender",
        "load %",
        "seed",
        "small",
        "small mean",
        "small p99",
        "large",
        "large mean",
        "unfinished",
        "goodput bit/s",
        "dropped",
        "marked",
        "timeouts",
    ]);
    let mut points = Vec::new();
    for contender in CONTENDERS {
        let axes = [("load", loads.clone()), ("seed", study.seeds())];
        let runs = sweep(contender.name, &contender.of(&experiment)?, &axes, Keep::Summary)?;
        for (&load, runs) in LOADS.iter().zip(runs.chunks(study.seeds as usize)) {
            runs.iter().for_each(|run| note(run, contender.name, load, &mut raw));
            points.push(point(contender.name, load, runs));
        }
    }
    let mut page = Page::new("Flow completion times of a web search workload", study.command);
    describe(&mut page, study);
    for (title, measure) in MEASURES {
        page.section(&format!("Slowdown: {title}")).table(&pivot(&points, |point| digits(measure(point))));
    }
    page.section("Flows that began after the warm-up and were completed, small and large")
        .table(&pivot(&points, |point| {
            format!("{} + {}", grouped(point.small.len() as u64), grouped(point.large.len() as u64))
        }));
    page.section("Trends").table(&trends(&points).0);
    draw(study.plot, &points)?;
    Ok(Outcome { page, table: raw })
}

fn point(name: &'static str, load: u32, runs: &[SweepRun]) -> Point {
    let of_class = |class| {
        let flows = runs.iter().flat_map(|run| flows_of(&run.results));
        flows.filter(|flow| size_class(flow.bytes) == class).map(|flow| flow.slowdown).collect()
    };
    Point { name, load, small: of_class(0), large: of_class(2) }
}

fn note(run: &SweepRun, name: &'static str, load: u32, raw: &mut Table) {
    let Point { small, large, .. } = point(name, load, std::slice::from_ref(run));
    let summary = &run.results.summary;
    row!(
        raw,
        name,
        load,
        run.results.seed,
        small.len(),
        digits(mean(&small)),
        digits(quantile(&small, 0.99)),
        large.len(),
        digits(mean(&large)),
        summary.flows.unfinished,
        format!("{:.0}", summary.goodput_bps),
        summary.packets.dropped,
        summary.packets.marked,
        summary.flows.timeouts,
    );
}

fn describe(page: &mut Page, study: &Study<'_>) {
    page.paragraph(format!(
                "Four clients request from 32 servers in one rack of 10 Gbit/s, Poisson arrivals, web-search sizes; flows of {} \
                 seeds together. Slowdown is the completion time divided by that of the same flow alone in the same network. Small \
                 flows have up to 100 kB, large ones from 10 MB. Settings are in [experiment.toml](experiment.toml); DCTCP and HULL \
                 use DCTCP at the endpoints, DropTail CUBIC.",
        study.seeds
    ));
}

fn find<'p>(points: &'p [Point], name: &str, load: u32) -> &'p Point {
    let found = points.iter().find(|point| (point.name, point.load) == (name, load));
    found.expect("each contender is measured at each load")
}

fn pivot(points: &[Point], shown: impl Fn(&Point) -> String) -> Table {
    let names = CONTENDERS.iter().map(|contender| contender.name);
    let mut table =
        Table::with_header(std::iter::once("load").chain(names.clone()).map(str::to_owned).collect());
    for load in LOADS {
        let cells = names.clone().map(|name| shown(find(points, name, load)));
        table.push(std::iter::once(format!("{load} %")).chain(cells).collect());
    }
    table
}

fn trends(points: &[Point]) -> Trends {
    let [(_, small_mean), (_, small_tail), (_, large_mean)] = MEASURES;
    let at = |name: &str, load: u32, measure: Measure| measure(find(points, name, load));
    let told = |names: &[&str], load, measure: Measure| {
        let each: Vec<String> =
            names.iter().map(|name| format!("{name} {}", digits(at(name, load, measure)))).collect();
        format!("{load} %: {}", each.join(", "))
    };
    let at_loads = |loads: &[u32], names: &[&str], measure: Measure| {
        loads.iter().map(|load| told(names, *load, measure)).collect::<Vec<_>>().join("; ")
    };
    let figure_7 = [DROP_TAIL, DCTCP, HULL, P_FABRIC];
    let mut trends = Trends::new();
    let others = &figure_7[1..];
    let worst = |measure: Measure| {
        let is_worst = |load: &&u32| {
            others.iter().all(|name| at(name, **load, measure) < at(DROP_TAIL, **load, measure))
        };
        LOADS.iter().filter(is_worst).count()
    };
    trends.check(
        "small flows: DropTail is worst, at the mean",
        worst(small_mean) == LOADS.len(),
        &format!(
            "at {} of {} loads; {}",
            worst(small_mean),
            LOADS.len(),
            at_loads(&[80], &figure_7, small_mean)
        ),
    );
    trends.check(
        "small flows: DropTail is worst, at the 99th percentile",
        worst(small_tail) == LOADS.len(),
        &format!(
            "at {} of {} loads; {}",
            worst(small_tail),
            LOADS.len(),
            at_loads(&[80], &figure_7, small_tail)
        ),
    );
    trends.check(
        "small flows: DropTail degrades significantly under the highest loads: 80 % against 10 %, twice or more",
        at(DROP_TAIL, 80, small_mean) >= 2.0 * at(DROP_TAIL, 10, small_mean),
        &at_loads(&[10, 80], &[DROP_TAIL], small_mean),
    );
    let rivals = &figure_7[..3];
    trends.check(
        "small flows: pFabric is best at the 99th percentile from 60 % on",
        [60, 70, 80].iter().all(|load| {
            rivals.iter().all(|name| at(P_FABRIC, *load, small_tail) < at(name, *load, small_tail))
        }),
        &at_loads(&[60, 70, 80], &figure_7, small_tail),
    );
    trends.check(
        "small flows: pFabric stays good under high load: 99th percentile at 80 % less than twice that at 10 %",
        at(P_FABRIC, 80, small_tail) < 2.0 * at(P_FABRIC, 10, small_tail),
        &at_loads(&[10, 80], &[P_FABRIC], small_tail),
    );
    for worse in [HULL, P_FABRIC] {
        trends.check(
            &format!("large flows: {worse} is worse than DCTCP and DropTail at 70 % and 80 %"),
            [70, 80].iter().all(|load| {
                [DCTCP, DROP_TAIL]
                    .iter()
                    .all(|name| at(name, *load, large_mean) < at(worse, *load, large_mean))
            }),
            &at_loads(&[70, 80], &[worse, DCTCP, DROP_TAIL], large_mean),
        );
    }
    trends.check(
        "small flows: the mean is about 2.5 even at 10 %, for real hosts' kernels; an emulated host has none of that, so \
         that it is expected to fail",
        figure_7.iter().all(|name| (2.0..3.0).contains(&at(name, 10, small_mean))),
        &at_loads(&[10], &figure_7, small_mean),
    );
    trends
}

fn draw(path: &Path, points: &[Point]) -> anyhow::Result<()> {
    let line = |name: &'static str, measure: Measure| {
        LOADS.iter().map(|load| measure(find(points, name, *load))).collect()
    };
    let loads = LOADS.map(|load| (f64::from(load), load.to_string()));
    let panels = MEASURES.map(|(title, measure)| {
        let lines: Vec<Vec<f64>> = CONTENDERS.iter().map(|contender| line(contender.name, measure)).collect();
        let title = format!("{title} (slowdown)");
        Panel::over_numbers(title, "load (percent)", &loads, Scale::LOGARITHMIC, &lines)
    });
    let legend = Legend::of(&CONTENDERS.map(|contender| contender.name));
    let heading = Heading::new("Web search: slowdown by load", "");
    save(path, &figure::draw(&heading, &legend, SEVERAL, &panels)?)
}
