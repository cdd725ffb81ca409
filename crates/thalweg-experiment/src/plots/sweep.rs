//! `sweep-*.svg`: results over the swept key, with a line for each value of the other keys.

use thalweg_plot::DrawError;
use thalweg_plot::axis::Axis;
use thalweg_plot::figure::{self, Legend};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::{Line, Panel};
use thalweg_plot::quantity::{number, percent};

use super::flows::sizes_of_class;
use super::grid::Grid;
use crate::results::{QueueUse, Results, SIZE_CLASSES, Spread, SweepResults};

/// The size of one plot; wider if its horizontal axis has many names.
const PANEL: (u32, u32) = (430, 320);
/// A vertical axis is logarithmic if its values spread by more than this.
const LINEAR_SPREAD: f64 = 20.0;

/// The files and their contents.
pub(super) fn draw(results: &SweepResults) -> Vec<(&'static str, Result<String, DrawError>)> {
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
        let legend = Legend { title: grid.line_keys.clone(), names: grid.lines.clone() };
        (!panels.is_empty()).then(|| (file, figure::draw(&heading, &legend, PANEL, &panels)))
    });
    drawn.collect()
}

/// A number of a run; NaN if the run has none.
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
        Metric { label: percent, ..self }
    }
}

/// Mean and 99th percentile of each size class, as in figure 7 of Flexplane, and the number of flows that are missing.
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
        share(flows.unfinished, flows.started.saturating_sub(flows.unbounded))
    });
    classes.chain([unfinished.share()]).collect()
}

fn throughputs() -> Vec<Metric> {
    vec![
        Metric::new("Throughput, framing included (Gbit/s)", |run| run.summary.throughput_bps / 1e9),
        Metric::new("Goodput of applications (Gbit/s)", |run| some(run.summary.goodput_bps / 1e9)),
        Metric::new("Packets dropped", |run| share(run.summary.packets.dropped, run.summary.packets.sent))
            .share(),
        Metric::new("Packets marked", |run| {
            some(share(run.summary.packets.marked, run.summary.packets.sent))
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

/// NaN for zero: a quantity that such runs do not have.
fn some(value: f64) -> f64 {
    if value > 0.0 { value } else { f64::NAN }
}

/// The panel of a metric; `None` if no run has it.
fn panel(grid: &Grid, results: &SweepResults, metric: &Metric) -> Option<Panel> {
    let values: Vec<f64> = results.runs.iter().map(|run| (metric.value)(&run.results)).collect();
    if !values.iter().any(|value| value.is_finite()) {
        return None;
    }
    let mut lines: Vec<Line> = (0..grid.lines.len()).map(|line| grid.line(line, &values)).collect();
    // No metric is negative.
    let least = values.iter().copied().filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
    let floor = if metric.may_be_logarithmic && least.is_finite() { least } else { 0.0 };
    for bar in lines.iter_mut().flat_map(|line| &mut line.bars) {
        bar.1 = bar.1.max(floor);
    }
    let bars = lines.iter().flat_map(|line| &line.bars).flat_map(|&(_, low, high)| [low, high]);
    let shown = || values.iter().copied().chain(bars.clone());
    let y = match metric.may_be_logarithmic {
        true => Axis::fitting(shown(), LINEAR_SPREAD, 5, metric.label),
        false => Axis::from_zero(shown().fold(0.0, f64::max), 5, metric.label),
    };
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
