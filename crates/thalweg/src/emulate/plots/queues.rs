//! `queues.svg`: packets that waited at the busiest ports, over time.

use std::collections::BTreeMap;

use super::page::{Fault, Heading, blank_page};
use super::quantity::number;
use super::strips::{MOST, Strip, strips};
use super::{Times, busiest};
use crate::emulate::results::{QueueRow, Spread};

pub(super) fn draw(title: &str, rows: &[QueueRow], times: Times) -> Result<String, Fault> {
    let mut ports: BTreeMap<(&str, u16, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let samples = ports.entry((&row.router, row.port, &row.to)).or_default();
        samples.push((row.time_ns as f64, f64::from(row.packets)));
    }
    let count = ports.len();
    let title = format!("Queues: {title}");
    if count == 0 {
        return blank_page(&Heading { title, subtitle: "No queue was read.".to_owned() });
    }
    let spread_after_warm_up = |samples: &[(f64, f64)]| {
        let counted = samples.iter().filter(|(time, _)| *time >= times.warm_up_ns as f64);
        Spread::of(&mut counted.map(|(_, packets)| *packets).collect::<Vec<_>>())
    };
    let ports = ports.into_iter().map(|(port, samples)| (spread_after_warm_up(&samples), port, samples));
    let drawn = busiest(ports.collect(), |(spread, ..)| spread.mean);
    let drawn: Vec<Strip> =
        drawn.into_iter().map(|(spread, port, samples)| strip(spread, port, samples)).collect();
    let which = match count {
        1 => "the only port".to_owned(),
        2 => "both ports".to_owned(),
        3..=MOST => format!("all {count} ports"),
        _ => format!("the {} ports of {} with the longest mean queue", drawn.len(), number(count as f64)),
    };
    let subtitle = format!("Packets waiting at {which}{}", times.shading());
    strips(&Heading { title, subtitle }, times.duration_ns, times.warm_up_ns, &drawn, number)
}

fn strip(spread: Spread, (router, port, to): (&str, u16, &str), points: Vec<(f64, f64)>) -> Strip {
    let notes = vec![
        format!("mean {}, median {}", number(spread.mean), number(spread.median)),
        format!("p99 {}, max {}", number(spread.p99), number(spread.max)),
        format!("port {port}"),
    ];
    Strip { name: format!("{router} \u{2192} {to}"), notes, points }
}
