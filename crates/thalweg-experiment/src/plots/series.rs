//! `cwnd.svg` and `rtt.svg`: time series of the flows that sent most.
//!
//! The table is read again, twice: it may be larger than memory. What is drawn of it is kept.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_plot::DrawError;
use thalweg_plot::page::{Heading, blank_page};
use thalweg_plot::quantity::{duration, number, size};
use thalweg_plot::strips::{MOST, Strip, strips};

use super::{Times, busiest};
use crate::files::Row;
use crate::files::read::{Cell, TableError, TableLimits, read_rows, table};
use crate::results::Spread;
use crate::results::series_rows::FlowSeriesRow;

/// A plot to be saved under its name.
pub(super) type NamedPlot = (&'static str, Result<String, DrawError>);

/// A flow, what it sent, and its values over time.
struct Flow {
    number: u64,
    name: String,
    acked: u64,
    windows: Vec<(f64, f64)>,
    round_trips: Vec<(f64, f64)>,
}

/// Draws windows and round-trip times of the flows in the table of `folder`.
pub(super) fn flows(folder: &Path, title: &str, times: Times) -> Result<Vec<NamedPlot>, TableError> {
    let mut acked: BTreeMap<u64, u64> = BTreeMap::new();
    read::<FlowSeriesRow>(folder, &["flow", "acked_bytes"], &mut |cells| {
        *acked.entry(cells[0].count()).or_default() += cells[1].count();
    })?;
    let count = acked.len();
    let flow = |(number, acked)| Flow {
        number,
        name: String::new(),
        acked,
        windows: Vec::new(),
        round_trips: Vec::new(),
    };
    let mut drawn = busiest(acked.into_iter().map(flow).collect(), |flow| flow.acked as f64);
    let columns = ["flow", "time_ns", "cwnd_packets", "rtt_ns", "src", "dst"];
    read::<FlowSeriesRow>(folder, &columns, &mut |cells| {
        let Some(flow) = drawn.iter_mut().find(|flow| flow.number == cells[0].count()) else { return };
        let time = cells[1].count() as f64;
        flow.windows.push((time, cells[2].ratio()));
        if let Cell::Count(rtt) = cells[3] {
            flow.round_trips.push((time, rtt as f64));
        }
        if flow.name.is_empty() {
            flow.name = format!("{} \u{2192} {}", cells[4].name(), cells[5].name());
        }
    })?;
    let which = match count {
        ..=MOST => format!("{count} of {count} flows"),
        _ => format!("{MOST} of {} flows, those that sent most", number(count as f64)),
    };
    let windows = drawn.iter().map(|flow| flow.strip(&flow.windows, number, times)).collect();
    let round_trips = drawn.iter().map(|flow| flow.strip(&flow.round_trips, duration, times)).collect();
    let cwnd = Heading {
        title: format!("Congestion windows: {title}"),
        subtitle: format!("Segments in the window of {which}{}", times.shading()),
    };
    let rtt = Heading {
        title: format!("Round-trip times: {title}"),
        subtitle: format!("Latest measurement of {which}{}", times.shading()),
    };
    Ok(vec![
        ("cwnd.svg", page_of(cwnd, windows, times, number)),
        ("rtt.svg", page_of(rtt, round_trips, times, duration)),
    ])
}

impl Flow {
    fn strip(&self, points: &[(f64, f64)], label: fn(f64) -> String, times: Times) -> Strip {
        let Flow { number, name, acked, .. } = self;
        let mut notes = spread(points, label, times);
        notes.push(format!("flow {number}, {} sent", size(*acked as f64)));
        Strip::of_one(name.clone(), notes, points.to_vec())
    }
}

/// The spread of the values after the warm-up.
pub(super) fn spread_after_warm_up(points: &[(f64, f64)], times: Times) -> Spread {
    let counted = points.iter().filter(|(time, _)| *time >= times.warm_up_ns as f64);
    Spread::of(&mut counted.map(|(_, value)| *value).collect::<Vec<_>>())
}

/// Mean and highest of the values after the warm-up.
pub(super) fn spread(points: &[(f64, f64)], label: fn(f64) -> String, times: Times) -> Vec<String> {
    let spread = spread_after_warm_up(points, times);
    vec![
        format!("mean {}, median {}", label(spread.mean), label(spread.p50)),
        format!("p99 {}, max {}", label(spread.p99), label(spread.max)),
    ]
}

pub(super) fn page_of(
    heading: Heading,
    drawn: Vec<Strip>,
    times: Times,
    label: fn(f64) -> String,
) -> Result<String, DrawError> {
    let lines = drawn.iter().flat_map(|strip| &strip.lines);
    let last = lines.filter_map(|line| line.points.last()).map(|point| point.0 as u64).max();
    match last {
        // Flows may last longer than the duration.
        Some(last) => strips(&heading, times.duration_ns.max(last), times.warm_up_ns, &drawn, label),
        None => blank_page(&Heading { subtitle: "Nothing was sampled.".to_owned(), ..heading }),
    }
}

/// Reads columns of a table, row by row.
pub(super) fn read<R: Row>(
    folder: &Path,
    columns: &[&str],
    each: &mut dyn FnMut(&[Cell<'_>]),
) -> Result<(), TableError> {
    let missing = || TableError { path: folder.join(R::FILE), problem: "there is no such table".to_owned() };
    let (path, format) = table::<R>(folder).ok_or_else(missing)?;
    // Tables of this program's own run.
    let limits = TableLimits { bytes: u64::MAX, rows: u64::MAX };
    read_rows::<R>((&path, format), columns, limits, each)
}
