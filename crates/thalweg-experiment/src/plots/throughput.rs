//! `throughput.svg`: rates of the busiest links over time.

use std::collections::BTreeMap;

use thalweg_plot::DrawError;
use thalweg_plot::page::{Heading, blank_page};
use thalweg_plot::quantity::number;
use thalweg_plot::strips::{MOST, Strip, strips};

use super::{Times, busiest};
use crate::results::LinkRow;

/// The traffic of one link direction.
#[derive(Default)]
struct Carried {
    /// Bytes after the warm-up, and their duration in nanoseconds.
    bytes: u64,
    nanoseconds: u64,
    /// Sum of utilisation times nanoseconds.
    busy: f64,
    dropped: u64,
    /// Gbit/s at the start and end of each interval.
    rates: Vec<(f64, f64)>,
}

impl Carried {
    fn take(&mut self, row: &LinkRow, warm_up_ns: u64) {
        // Bits per nanosecond are Gbit per second.
        let rate = row.bytes as f64 * 8.0 / row.interval_ns.max(1) as f64;
        let end_ns = row.time_ns.saturating_add(row.interval_ns);
        self.rates.extend([(row.time_ns as f64, rate), (end_ns as f64, rate)]);
        if row.time_ns >= warm_up_ns {
            self.bytes += row.bytes;
            self.nanoseconds += row.interval_ns;
            self.busy += row.utilisation * row.interval_ns as f64;
            self.dropped += row.dropped_packets;
        }
    }

    fn strip(self, (from, to): (&str, &str)) -> Strip {
        let time = self.nanoseconds.max(1) as f64;
        let mean = self.bytes as f64 * 8.0 / time;
        let notes = vec![
            format!("mean {} Gbit/s", number(mean)),
            format!("utilised to {} %", number(100.0 * self.busy / time)),
            format!("{} packets dropped", number(self.dropped as f64)),
        ];
        Strip::of_one(format!("{from} \u{2192} {to}"), notes, self.rates)
    }
}

pub(super) fn draw(title: &str, rows: &[LinkRow], times: Times) -> Result<String, DrawError> {
    let mut links: BTreeMap<(&str, &str), Carried> = BTreeMap::new();
    for row in rows {
        links.entry((&row.from, &row.to)).or_default().take(row, times.warm_up_ns);
    }
    let count = links.len();
    let title = format!("Throughput: {title}");
    if count == 0 {
        return blank_page(&Heading { title, subtitle: "No link was read.".to_owned() });
    }
    let drawn = busiest(links.into_iter().collect(), |(_, carried)| carried.bytes as f64);
    let drawn: Vec<Strip> = drawn.into_iter().map(|(link, carried)| carried.strip(link)).collect();
    let which = match count {
        ..=MOST => format!("{count} of {count} links"),
        _ => format!("the busiest {MOST} of {} links", number(count as f64)),
    };
    let subtitle = format!("Gbit/s carried by {which}, framing included{}", times.shading());
    strips(&Heading { title, subtitle }, times.duration_ns, times.warm_up_ns, &drawn, number)
}
