//! `queues.svg`: queue lengths of the busiest ports over time.

use std::collections::BTreeMap;

use thalweg_plot::DrawError;
use thalweg_plot::page::{Heading, blank_page};
use thalweg_plot::quantity::number;
use thalweg_plot::strips::{MOST, Strip, strips};

use super::{Times, busiest};
use crate::results::{QueueRow, Spread};

/// Router, port number, and the node that the port leads to.
type Port<'a> = (&'a str, u16, &'a str);

/// The queue of one port.
struct Queue<'a> {
    port: Port<'a>,
    /// After the warm-up.
    spread: Spread,
    /// Packets over time.
    samples: Vec<(f64, f64)>,
}

impl Queue<'_> {
    fn strip(self) -> Strip {
        let ((router, port, to), spread) = (self.port, self.spread);
        let notes = vec![
            format!("mean {}, median {}", number(spread.mean), number(spread.p50)),
            format!("p99 {}, max {}", number(spread.p99), number(spread.max)),
            format!("port {port}"),
        ];
        Strip::of_one(format!("{router} \u{2192} {to}"), notes, self.samples)
    }
}

pub(super) fn draw(title: &str, rows: &[QueueRow], times: Times) -> Result<String, DrawError> {
    let mut ports: BTreeMap<Port<'_>, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let samples = ports.entry((&row.router, row.port, &row.to)).or_default();
        samples.push((row.time_ns as f64, f64::from(row.packets)));
    }
    let count = ports.len();
    let queues = ports.into_iter().map(|(port, samples)| Queue {
        port,
        spread: spread_after(times.warm_up_ns, &samples),
        samples,
    });
    let queues: Vec<Queue<'_>> = queues.filter(|queue| queue.spread.max > 0.0).collect();
    let title = format!("Queues: {title}");
    if queues.is_empty() {
        return blank_page(&Heading {
            title,
            subtitle: "No packet was found waiting at any port.".to_owned(),
        });
    }
    let which = match queues.len() {
        few @ ..=MOST => format!("{few} of {} ports, all that had a queue", number(count as f64)),
        _ => format!("{MOST} of {} ports, those with the longest mean queue", number(count as f64)),
    };
    let subtitle = format!("Packets waiting at {which}{}", times.shading());
    let drawn: Vec<Strip> =
        busiest(queues, |queue| queue.spread.mean).into_iter().map(Queue::strip).collect();
    strips(&Heading { title, subtitle }, times.duration_ns, times.warm_up_ns, &drawn, number)
}

fn spread_after(warm_up_ns: u64, samples: &[(f64, f64)]) -> Spread {
    let counted = samples.iter().filter(|(time, _)| *time >= warm_up_ns as f64);
    Spread::of(&mut counted.map(|(_, packets)| *packets).collect::<Vec<_>>())
}
