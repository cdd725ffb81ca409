//! Figures 5, 6 and 7: lengths of a flow's bursts at the monitor port, and the number of other packets in between.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{Nanos, Timestamp};

use super::rack::{FULL, Pair, Rack, Run};
use super::{STARTED, distribution};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends, digits, mean, quantile};
use crate::results::{Page, Table, save};
use crate::row;

/// Maximum number of flows: the number of port pairs of the paper's switch.
const FLOWS: u16 = 13;
const DURATION: Nanos = Nanos::from_millis(40);

/// Measurements with a number of flows, over all seeds. Lengths are in full-sized packets.
struct Measured {
    flows: u16,
    bursts: Vec<f64>,
    between: Vec<f64>,
    /// Pauses of a sender between two packets.
    pauses: Vec<f64>,
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new([
        "flows",
        "bursts",
        "burst mean",
        "of one packet",
        "between mean",
        "between deviation",
        "between p85",
        "between p99",
        "longest between",
        "longest pause of a sender",
    ]);
    let mut all = Vec::new();
    for flows in 1..=FLOWS {
        let measured = measure(study, flows)?;
        note(&measured, &mut raw);
        all.push(measured);
    }
    let mut page = Page::new("Bursts of samples", study.command);
    page.paragraph(format!(
                "1 to {FLOWS} CUBIC flows at 10 Gbit/s, each between its own two hosts, all mirrored to one port of 10 Gbit/s \
                 with the smallest buffer; {} seeds of {} ms, without the first 5 ms. Lengths are in full-sized packets; \
                 acknowledgements, which are also mirrored, count by their bytes.",
        study.seeds,
        study.duration(DURATION).0 / 1_000_000
    ));
    page.table(&raw);
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

fn measure(study: &Study<'_>, flows: u16) -> anyhow::Result<Measured> {
    let mut measured = Measured { flows, bursts: Vec::new(), between: Vec::new(), pauses: Vec::new() };
    for seed in 1..=study.seeds {
        let rack = Rack { receivers: flows, duration: study.duration(DURATION), seed, ..Rack::default() };
        let run = rack.run()?;
        for pair in rack.data() {
            measured.see(&run, pair);
        }
    }
    Ok(measured)
}

impl Measured {
    /// Adds the measurements of one flow.
    fn see(&mut self, run: &Run, pair: Pair) {
        let packets = |bytes: u64| bytes as f64 / f64::from(FULL);
        let (mut burst, mut between) = (0, 0);
        for sample in run.samples.iter().filter(|sample| sample.passed >= STARTED) {
            if sample.pair != pair {
                between += u64::from(sample.length);
                continue;
            }
            if between > 0 && burst > 0 {
                self.bursts.push(packets(burst));
                self.between.push(packets(between));
                burst = 0;
            }
            between = 0;
            burst += u64::from(sample.length);
        }
        let times = run.truth.of(pair).map_or(&[][..], |passed| passed.times());
        let slot = run.clock.seconds() * 1e9;
        let steady = times.windows(2).filter(|two| two[0] >= STARTED);
        let pause = |two: &[Timestamp]| two[1].since(two[0]).0 as f64 / slot - 1.0;
        self.pauses.extend(steady.map(pause));
    }
}

fn note(measured: &Measured, raw: &mut Table) {
    let Measured { flows, bursts, between, pauses } = measured;
    row!(
        raw,
        flows,
        bursts.len(),
        digits(mean(bursts)),
        format!("{:.1} %", 100.0 * at_most(bursts, 1.0)),
        digits(mean(between)),
        digits(deviation(between)),
        digits(quantile(between, 0.85)),
        digits(quantile(between, 0.99)),
        digits(quantile(between, 1.0)),
        digits(quantile(pauses, 1.0)),
    );
}

fn at_most(sample: &[f64], value: f64) -> f64 {
    sample.iter().filter(|length| **length <= value + 1e-9).count() as f64 / sample.len() as f64
}

fn deviation(sample: &[f64]) -> f64 {
    let mean = mean(sample);
    self::mean(&sample.iter().map(|value| (value - mean).powi(2)).collect::<Vec<f64>>()).sqrt()
}

fn trends(all: &[Measured]) -> Trends {
    let mut trends = Trends::new();
    let Some(most) = all.last() else { return trends };
    let single = at_most(&most.bursts, 1.0);
    trends.check(
        "13 flows: over 96 % of the bursts are of one packet (90 % or more here: drawn at random it is 12 of 13)",
        single >= 0.9,
        &format!("{:.1} %", 100.0 * single),
    );
    let off = |measured: &Measured| {
        let expected = f64::from(measured.flows);
        (mean(&measured.between) - expected).abs() / expected
    };
    let worst = all.iter().filter(|measured| measured.flows > 4).map(off).fold(0.0, f64::max);
    trends.check(
        "beyond 4 flows the packets between grow linearly with the number of flows: within 10 % of it (n - 1 if in turn, n if drawn \
         at random)",
        worst <= 0.1,
        &format!("{:.1} % off at most", 100.0 * worst),
    );
    let near = at_most(&most.between, 13.0);
    trends.check(
        "13 flows: in over 85 % there are 13 packets or fewer between (60 % here: 65 % if drawn at random)",
        near >= 0.6,
        &format!("{:.1} %", 100.0 * near),
    );
    trends.check(
        "and a long tail: the longest is beyond three times 13",
        quantile(&most.between, 1.0) > 39.0,
        &digits(quantile(&most.between, 1.0)),
    );
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let Some(most) = all.last() else { return Ok(()) };
    let means = all.iter().map(|measured| (f64::from(measured.flows), mean(&measured.between)));
    let ideal = all.iter().map(|measured| (f64::from(measured.flows), f64::from(measured.flows - 1)));
    let chance =
        (0..=60).map(|packets| (f64::from(packets), 1.0 - (1.0 - 1.0 / f64::from(FLOWS)).powi(packets)));
    let panels = [
        Panel::curves(
            "Figure 5: bursts, 13 flows (share at most as long)",
            "packets in a row",
            Scale::LINEAR.in_percent(),
            vec![distribution(most.bursts.clone())],
        ),
        Panel::curves(
            "Figure 6: packets of others between (mean)",
            "flows",
            Scale::LINEAR,
            vec![means.collect(), ideal.collect()],
        ),
        Panel::curves(
            "Figure 7: packets of others between, 13 flows (share at most as many)",
            "packets",
            Scale::LINEAR.in_percent(),
            vec![distribution(most.between.clone()), Vec::new(), chance.collect()],
        ),
    ];
    let legend = Legend::of(&["measured", "one packet each in turn", "drawn at random"]);
    let heading = Heading::new("Bursts of a flow at the monitor port", "");
    save(path, &figure::draw(&heading, &legend, SEVERAL, &panels)?)
}
