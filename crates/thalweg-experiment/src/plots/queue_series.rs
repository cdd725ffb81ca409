//! `queue_series.svg`: the longest queues over time, one strip per port. If a port has several classes, its strip has a line for
//! each.
//!
//! The tables are read again, twice: they may be larger than memory. What is drawn of them is kept.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_plot::page::Heading;
use thalweg_plot::quantity::number;
use thalweg_plot::strips::{MOST, Strip, StripLine};

use super::series::{NamedPlot, page_of, read, spread, spread_after_warm_up};
use super::{Times, busiest};
use crate::files::Row;
use crate::files::read::{Cell, TableError};
use crate::results::series_rows::{ClassSeriesRow, QueueSeriesRow};

/// Router, port number, and the node that the port leads to.
type Port = (String, u64, String);

/// Values over time.
type Points = Vec<(f64, f64)>;

/// A port or a class of it.
type Queue = (Port, Option<u64>);

/// What both tables have. Classes follow at the end.
const COLUMNS: [&str; 7] = ["router", "port", "to", "packets_mean", "interval_ns", "time_ns", "class"];

/// Draws mean queue lengths of the ports in the table of `folder`, with those of their classes if `has_classes`.
pub(super) fn draw(
    folder: &Path,
    title: &str,
    times: Times,
    has_classes: bool,
) -> Result<NamedPlot, TableError> {
    let ports = sums::<QueueSeriesRow>(folder, &COLUMNS[..6])?;
    let count = ports.len();
    let with_queue: Vec<(Queue, f64)> = ports.into_iter().filter(|(_, sum)| *sum > 0.0).collect();
    let which = match with_queue.len() {
        few @ ..=MOST => format!("{few} of {} ports, all that had a queue", number(count as f64)),
        _ => format!("{MOST} of {} ports, those with the longest mean queue", number(count as f64)),
    };
    let drawn: Vec<Queue> =
        busiest(with_queue, |(_, sum)| *sum).into_iter().map(|(queue, _)| queue).collect();
    let points = points::<QueueSeriesRow>(folder, &COLUMNS[..6], &drawn)?;
    let classes = if has_classes { classes(folder, &drawn)? } else { BTreeMap::new() };
    let strips: Vec<Strip> = drawn
        .iter()
        .zip(points)
        .map(|((port, _), points)| strip(port, points, classes.get(port), times))
        .collect();
    let each = if strips.iter().any(|strip| strip.lines.len() > 1) { " and class" } else { "" };
    let heading = Heading {
        title: format!("Queues: {title}"),
        subtitle: format!("Mean packets per interval{each} at {which}{}", times.shading()),
    };
    Ok(("queue_series.svg", page_of(heading, strips, times, number)))
}

/// The classes of a port.
#[derive(Default)]
struct Classes {
    /// Those with the longest mean queue.
    drawn: Vec<(u64, Points)>,
    count: usize,
}

/// Returns the classes of ports with several.
fn classes(folder: &Path, ports: &[Queue]) -> Result<BTreeMap<Port, Classes>, TableError> {
    let mut of_port: BTreeMap<Port, Vec<(u64, f64)>> = BTreeMap::new();
    for ((port, class), sum) in sums::<ClassSeriesRow>(folder, &COLUMNS)? {
        if let Some(class) = class.filter(|_| ports.iter().any(|(drawn, _)| *drawn == port)) {
            of_port.entry(port).or_default().push((class, sum));
        }
    }
    of_port.retain(|_, classes| classes.len() > 1);
    let mut found: BTreeMap<Port, Classes> = of_port
        .iter()
        .map(|(port, classes)| (port.clone(), Classes { count: classes.len(), drawn: Vec::new() }))
        .collect();
    let drawn: Vec<Queue> = of_port
        .into_iter()
        .flat_map(|(port, classes)| {
            let mut classes: Vec<u64> =
                busiest(classes, |(_, sum)| *sum).into_iter().map(|(class, _)| class).collect();
            classes.sort_unstable();
            classes.into_iter().map(move |class| (port.clone(), Some(class)))
        })
        .collect();
    let points = points::<ClassSeriesRow>(folder, &COLUMNS, &drawn)?;
    for ((port, class), points) in drawn.into_iter().zip(points) {
        found.entry(port).or_default().drawn.push((class.unwrap_or_default(), points));
    }
    Ok(found)
}

fn strip((router, port, to): &Port, points: Points, classes: Option<&Classes>, times: Times) -> Strip {
    let name = format!("{router} \u{2192} {to}");
    let mut notes = spread(&points, number, times);
    let Some(Classes { drawn: classes, count }) = classes else {
        notes.push(format!("port {port}"));
        return Strip::of_one(name, notes, points);
    };
    let line = |(class, points): &(u64, Points)| {
        let mean = number(spread_after_warm_up(points, times).mean);
        StripLine { name: format!("class {class}, mean {mean}"), points: points.clone() }
    };
    let mut notes = vec![format!("port {port}")];
    if *count > classes.len() {
        notes.push(format!("the {} longest of {count} classes", classes.len()));
    }
    Strip { name, notes, lines: classes.iter().map(line).collect() }
}

/// Sums up packets times nanoseconds of each queue.
fn sums<R: Row>(folder: &Path, columns: &[&str]) -> Result<BTreeMap<Queue, f64>, TableError> {
    let mut sums = BTreeMap::new();
    read::<R>(folder, columns, &mut |cells| {
        *sums.entry(queue(cells)).or_default() += cells[3].ratio() * cells[4].count() as f64;
    })?;
    Ok(sums)
}

/// Reads the mean lengths of some queues over time.
fn points<R: Row>(folder: &Path, columns: &[&str], queues: &[Queue]) -> Result<Vec<Points>, TableError> {
    let mut points = vec![Points::new(); queues.len()];
    read::<R>(folder, columns, &mut |cells| {
        if let Some(index) = queues.iter().position(|queue| is_of(queue, cells)) {
            points[index].push((cells[5].count() as f64, cells[3].ratio()));
        }
    })?;
    Ok(points)
}

fn queue(cells: &[Cell<'_>]) -> Queue {
    ((cells[0].name().to_owned(), cells[1].count(), cells[2].name().to_owned()), class(cells))
}

/// As [`queue`], without a copy of the names.
fn is_of(queue: &Queue, cells: &[Cell<'_>]) -> bool {
    let ((router, port, to), of_class) = queue;
    *router == cells[0].name()
        && *port == cells[1].count()
        && *to == cells[2].name()
        && *of_class == class(cells)
}

/// The class, if the table has classes and the row one.
fn class(cells: &[Cell<'_>]) -> Option<u64> {
    match cells.get(6) {
        Some(Cell::Count(class)) => Some(*class),
        _ => None,
    }
}
