//! Figures 8 and 9: latency of samples at an oversubscribed monitor port.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::rack::{Constant, FULL, MIN_BUFFER, PAPER_BUFFER, Rack};
use super::{distribution, us};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends, digits, mean, quantile};
use crate::results::{Page, Table, save};
use crate::row;

/// Long enough that the buffer fills in the first half, even with a small oversubscription.
const DURATION: Nanos = Nanos::from_millis(80);

/// Offered load in tenths of the monitor port's rate.
const TENTHS: [u16; 16] = [5, 8, 9, 10, 11, 12, 13, 15, 17, 20, 25, 30, 40, 60, 80, 160];

/// A switch: the rate of its ports, and the buffer of its monitor port.
struct Port {
    name: &'static str,
    rate: BitRate,
    buffer: Bytes,
}

/// Buffers fitted to the median latencies of the paper's switches, 3.5 ms at 10 Gbit/s and just over 6 ms at 1 Gbit/s
/// (figure 8), and the smallest buffers.
const PORTS: [Port; 4] = [
    Port { name: "10 Gbit/s, 3.5 ms of buffer", rate: BitRate(10_000_000_000), buffer: PAPER_BUFFER },
    Port { name: "1 Gbit/s, 6.2 ms of buffer", rate: BitRate(1_000_000_000), buffer: Bytes(775_000) },
    Port { name: "10 Gbit/s, smallest buffer", rate: BitRate(10_000_000_000), buffer: MIN_BUFFER },
    Port { name: "1 Gbit/s, smallest buffer", rate: BitRate(1_000_000_000), buffer: MIN_BUFFER },
];

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new([
        "monitor port",
        "oversubscription",
        "samples",
        "mean us",
        "p1 us",
        "median us",
        "p99 us",
    ]);
    let mut note = |port: &Port, factor: f64, sample: &[f64]| {
        row!(
            raw,
            port.name,
            format!("{factor:.1}"),
            sample.len(),
            digits(mean(sample)),
            digits(quantile(sample, 0.01)),
            digits(quantile(sample, 0.5)),
            digits(quantile(sample, 0.99)),
        );
    };
    let mut three = Vec::new();
    for port in &PORTS {
        let sample = latencies(study, port, 30)?;
        note(port, 3.0, &sample);
        three.push(sample);
    }
    let mut means = [Vec::new(), Vec::new()];
    for (port, means) in [&PORTS[0], &PORTS[2]].into_iter().zip(&mut means) {
        for tenths in TENTHS {
            let sample = latencies(study, port, tenths)?;
            note(port, f64::from(tenths) / 10.0, &sample);
            means.push((f64::from(tenths) / 10.0, mean(&sample)));
        }
    }
    let mut page = Page::new("Latency of samples", study.command);
    page.paragraph(format!(
                "Time from handing a packet to a host's network interface until its copy has left the monitor port; the \
                 collector's interrupt and network stack are not emulated. Full-sized packets: CUBIC flows at line rate, each \
                 between its own two hosts, and constant traffic for the remaining load. {} seeds of {} ms, without the first half.",
        study.seeds,
        study.duration(DURATION).0 / 1_000_000
    ));
    page.table(&raw);
    page.section("Trends").table(&trends(&three, &means[0]).0);
    draw(study.plot, three, means)?;
    Ok(Outcome { page, table: raw })
}

/// Returns the latencies of samples in microseconds, without acknowledgements.
fn latencies(study: &Study<'_>, port: &Port, tenths: u16) -> anyhow::Result<Vec<f64>> {
    let mut sample = Vec::new();
    for seed in 1..=study.seeds {
        let (flows, part) = (tenths / 10, tenths % 10);
        let rate = |tenths: u16| BitRate(port.rate.0 / 10 * u64::from(tenths));
        let constant = |tenths| (tenths > 0).then(|| Constant { rate: rate(tenths), length: FULL });
        let rack = Rack {
            receivers: flows,
            constant: constant(part).into_iter().collect(),
            rate: port.rate,
            buffer: port.buffer,
            duration: study.duration(DURATION),
            seed,
            ..Rack::default()
        };
        let run = rack.run()?;
        let pairs = [rack.data(), rack.constant_pairs()].concat();
        let later = run.samples.iter().filter(|sample| sample.passed.0 >= rack.duration.0 / 2);
        let wanted = later.filter(|sample| pairs.contains(&sample.pair));
        sample.extend(wanted.map(|sample| us(sample.packet.time.since(sample.sent))));
    }
    Ok(sample)
}

fn trends(three: &[Vec<f64>], means: &[(f64, f64)]) -> Trends {
    let mut trends = Trends::new();
    let medians: Vec<f64> = three.iter().map(|sample| quantile(sample, 0.5)).collect();
    let near = |value: f64, aim: f64| (value / aim - 1.0).abs() <= 0.05;
    trends.check(
        "three flows: a median of roughly 3.5 ms at 10 Gbit/s and of just over 6 ms at 1 Gbit/s (the buffers are chosen so)",
        near(medians[0], 3_500.0) && near(medians[1], 6_200.0),
        &format!("{} us, {} us", digits(medians[0]), digits(medians[1])),
    );
    let over = means.iter().filter(|(factor, _)| *factor >= 1.5).map(|(_, mean)| *mean);
    let (least, most) = { over }.fold((f64::INFINITY, 0.0f64), |(a, b), mean| (a.min(mean), b.max(mean)));
    trends.check(
        "the mean hardly depends on the oversubscription, from 1.5 on",
        most / least <= 1.05,
        &format!("{} to {} us", digits(least), digits(most)),
    );
    trends.check(
        "with the smallest buffer samples take 75 to 150 us at 10 Gbit/s, hosts included, and 80 to 450 us at 1 Gbit/s: here at most that",
        medians[2] <= 150.0 && medians[3] <= 450.0,
        &format!("{} us, {} us", digits(medians[2]), digits(medians[3])),
    );
    trends
}

fn draw(path: &Path, three: Vec<Vec<f64>>, means: [Vec<(f64, f64)>; 2]) -> anyhow::Result<()> {
    let milliseconds =
        |curve: Vec<(f64, f64)>| curve.into_iter().map(|(x, share)| (x / 1e3, share)).collect();
    let curves: Vec<Vec<(f64, f64)>> =
        three.into_iter().map(|sample| milliseconds(distribution(sample))).collect();
    let [paper, least] = means.map(|means| means.into_iter().map(|(x, mean)| (x, mean / 1e3)).collect());
    let panels = [
        Panel::curves(
            "Figure 8: three flows (share at most as late)",
            "latency (ms)",
            Scale::LINEAR.in_percent(),
            curves,
        ),
        Panel::curves(
            "Figure 9: over oversubscription (mean latency, ms)",
            "offered load, times the port's rate",
            Scale::LINEAR,
            vec![paper, Vec::new(), least, Vec::new()],
        ),
    ];
    let legend = Legend::of(&PORTS.each_ref().map(|port| port.name));
    save(path, &figure::draw(&Heading::new("Latency of samples", ""), &legend, SEVERAL, &panels)?)
}
