//! `sweep-*.svg`: what runs come to against the key that was swept, a line for each value of the other keys.

use thalweg_plot::axis::Axis;
use thalweg_plot::page::{Area, Fault, GREY, HPos, Heading, INK, TEXT, page, sample, write};
use thalweg_plot::panel::{BESIDE, Panel};
use thalweg_plot::quantity::number;

use super::flows::sizes_of_class;
use super::grid::{Grid, shown};
use crate::emulate::results::{QueueUse, Results, SIZE_CLASSES, Spread, SweepResults};

/// Of one plot; wider if its horizontal axis has many names.
const PANEL: (u32, u32) = (430, 320);
/// About what a character takes.
const CHARACTER: u32 = 8;
/// Plots that are wider stand one below the other.
const WIDE: u32 = 640;
/// Of an entry of the key.
const ENTRY: i32 = 24;
/// A vertical axis becomes logarithmic if its values lie further apart than this.
const LINEAR_SPREAD: f64 = 20.0;

/// Files by name, and what is to be in them.
pub(super) fn draw(results: &SweepResults) -> Vec<(&'static str, Result<String, Fault>)> {
    let Some(grid) = Grid::of(results) else { return Vec::new() };
    let pages = [
        ("sweep-slowdown.svg", "Slowdown", slowdowns()),
        ("sweep-throughput.svg", "Throughput", throughputs()),
        ("sweep-queues.svg", "The longest queue", queues()),
    ];
    let drawn = pages.into_iter().filter_map(|(file, what, metrics)| {
        let panels: Vec<Panel> = metrics.iter().filter_map(|metric| panel(&grid, results, metric)).collect();
        let title = format!("{what} by {}: {}", grid.x_name, results.experiment);
        let heading = Heading { title, subtitle: grid.subtitle(results) };
        (!panels.is_empty()).then(|| (file, draw_panels(&grid, &heading, &panels)))
    });
    drawn.collect()
}

/// A number that a run comes to; one that is no number if the run has none.
struct Metric {
    title: String,
    value: Box<dyn Fn(&Results) -> f64>,
    /// Whether its axis may be logarithmic.
    may_be_logarithmic: bool,
    label: fn(f64) -> String,
}

impl Metric {
    fn new(title: impl Into<String>, value: impl Fn(&Results) -> f64 + 'static) -> Metric {
        Metric { title: title.into(), value: Box::new(value), may_be_logarithmic: false, label: number }
    }

    fn logarithmic(self) -> Metric {
        Metric { may_be_logarithmic: true, ..self }
    }

    fn share(self) -> Metric {
        Metric { label: |share| format!("{} %", number(100.0 * share)), ..self }
    }
}

/// Mean and 99th percentile for each size class, as in figure 7 of Flexplane, and how many flows are not in them.
fn slowdowns() -> Vec<Metric> {
    let classes = SIZE_CLASSES.iter().enumerate().flat_map(|(index, &(class, _))| {
        let flows = format!("{class} flows ({})", sizes_of_class(index));
        let of_class = move |value: fn(&Spread) -> f64| {
            move |run: &Results| {
                let row = run.summary.sizes.iter().find(|row| row.class == class);
                row.filter(|row| row.completed > 0).map_or(f64::NAN, |row| value(&row.slowdown))
            }
        };
        [
            Metric::new(format!("Mean slowdown, {flows}"), of_class(|spread| spread.mean)).logarithmic(),
            Metric::new(format!("p99 slowdown, {flows}"), of_class(|spread| spread.p99)).logarithmic(),
        ]
    });
    let unfinished = Metric::new("Flows unfinished at the end", |run: &Results| {
        let flows = run.summary.flows;
        share(flows.unfinished, flows.started.saturating_sub(flows.endless))
    });
    classes.chain([unfinished.share()]).collect()
}

fn throughputs() -> Vec<Metric> {
    vec![
        Metric::new("Throughput, framing included (Gbit/s)", |run| run.summary.throughput_bps / 1e9),
        Metric::new("Goodput of applications (Gbit/s)", |run| some(run.summary.goodput_bps / 1e9)),
        Metric::new("Packets dropped", |run| {
            share(run.summary.packets.dropped, run.summary.packets.injected)
        })
        .share(),
        Metric::new("Packets marked", |run| {
            some(share(run.summary.packets.marked, run.summary.packets.injected))
        })
        .share(),
    ]
}

fn queues() -> Vec<Metric> {
    let of_longest = |value: fn(&QueueUse) -> f64| {
        move |run: &Results| run.summary.longest_queues.first().map_or(f64::NAN, value)
    };
    vec![
        Metric::new("Mean queue at its port (packets)", of_longest(|port| port.packets.mean)).logarithmic(),
        Metric::new("p99 queue at its port (packets)", of_longest(|port| port.packets.p99)).logarithmic(),
    ]
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { f64::NAN } else { part as f64 / whole as f64 }
}

/// Nothing if it is zero: a quantity that no run of such a sort has.
fn some(value: f64) -> f64 {
    if value > 0.0 { value } else { f64::NAN }
}

/// Nothing if no run has such a number.
fn panel(grid: &Grid, results: &SweepResults, metric: &Metric) -> Option<Panel> {
    let values: Vec<f64> = results.runs.iter().map(|run| (metric.value)(&run.results)).collect();
    if !values.iter().any(|value| value.is_finite()) {
        return None;
    }
    let y = match metric.may_be_logarithmic {
        true => Axis::fitting(values.iter().copied(), LINEAR_SPREAD, 5, metric.label),
        false => Axis::from_zero(values.iter().copied().fold(0.0, f64::max), 5, metric.label),
    };
    let lines = (0..grid.lines.len()).map(|line| grid.line(line, &values)).collect();
    Some(Panel {
        title: metric.title.clone(),
        x_title: grid.x_name.clone(),
        x: grid.x.clone(),
        y,
        lines,
        is_marked: true,
        is_joined: grid.is_numeric,
    })
}

/// Two plots a row, one if they are wide, and the key to the lines of all beside them, if there are several.
fn draw_panels(grid: &Grid, heading: &Heading, panels: &[Panel]) -> Result<String, Fault> {
    let names_width = match grid.is_numeric {
        true => 0,
        false => grid.x.tick_count() * (CHARACTER * grid.x.longest_label() + 10),
    };
    let panel = (PANEL.0.max(BESIDE + names_width), PANEL.1);
    let count = panels.len() as u32;
    let columns = if panel.0 > WIDE { 1 } else { count.min(2) };
    let longest = grid.lines.iter().chain([&grid.line_keys]).map(|name| shown(name).chars().count()).max();
    let has_key = grid.lines.len() > 1;
    let key_width = if has_key { 60 + CHARACTER * longest.unwrap_or(0) as u32 } else { 0 };
    let height = (count.div_ceil(columns) * panel.1).max(ENTRY as u32 * (grid.lines.len() as u32 + 2));
    page(heading, (columns * panel.0 + key_width, height), |body| {
        let (plots, key) = body.split_horizontally(columns * panel.0);
        for (index, drawn) in (0..).zip(panels) {
            let (left, top) = (index % columns * panel.0, index / columns * panel.1);
            let (row, _) = plots.split_vertically(top).1.split_vertically(panel.1);
            let (area, _) = row.split_horizontally(left).1.split_horizontally(panel.0);
            drawn.draw(&area)?;
        }
        if has_key { write_key(&key, &grid.lines, &grid.line_keys) } else { Ok(()) }
    })
}

fn write_key(area: &Area<'_>, lines: &[String], keys: &str) -> Result<(), Fault> {
    write(area, (8, 16), &shown(keys), TEXT, GREY, HPos::Left)?;
    for (line, name) in lines.iter().enumerate() {
        let y = 16 + ENTRY * (line as i32 + 1);
        sample(area, (8, y), line, true)?;
        write(area, (36, y), &shown(name), TEXT, INK, HPos::Left)?;
    }
    Ok(())
}
