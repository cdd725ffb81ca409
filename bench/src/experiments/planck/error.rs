//! Figure 11: error of rates by oversubscription, compared with samplers that have as many samples.

use std::path::Path;

use thalweg_emulator::workloads::random::Random;
use thalweg_measure::rates::Basis;
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::STARTED;
use super::estimates::{Estimates, RateReport};
use super::rack::{Constant, Control, FULL, Pair, Rack, Run};
use super::truth::Truth;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends, digits, mean, quantile};
use crate::results::{Page, Table, save};
use crate::row;

const DURATION: Nanos = Nanos::from_millis(20);
/// Duration with losses: until they are repaired, and as long again.
const LONG: Nanos = Nanos::from_millis(60);
/// Oversubscriptions.
const FACTORS: [u16; 10] = [1, 2, 3, 4, 5, 6, 8, 10, 13, 16];
/// Samples per second of sFlow on the paper's switch (section 2.1).
const SFLOW: f64 = 300.0;

/// UDP in addition to TCP: full-sized packets at half and at a tenth of the links' rate, and packets of 338 bytes.
const UDP: [Constant; 3] = [
    Constant { rate: BitRate(5_000_000_000), length: FULL },
    Constant { rate: BitRate(1_000_000_000), length: FULL },
    Constant { rate: BitRate(1_000_000_000), length: 338 },
];

/// The traffic of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Each flow between its own two hosts.
    Disjoint,
    /// Two flows per receiver.
    Congested,
    /// TCP and UDP flows, each between its own two hosts.
    Mixed,
}

impl Traffic {
    pub(super) const ALL: [Traffic; 3] = [Traffic::Disjoint, Traffic::Congested, Traffic::Mixed];

    const fn name(self) -> &'static str {
        match self {
            Traffic::Disjoint => "own links",
            Traffic::Congested => "two per receiver",
            Traffic::Mixed => "with UDP",
        }
    }
}

/// Errors over all seeds, as shares of the truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Errors {
    /// TCP, spans that started in the first 5 ms.
    pub(super) starting: Vec<f64>,
    /// TCP, spans that started in the second half of the run.
    pub(super) steady: Vec<f64>,
    /// The same, compared with the last millisecond.
    pub(super) of_late: Vec<f64>,
    /// UDP, after the first 5 ms.
    pub(super) udp: Vec<f64>,
    /// Links with at least 20 % utilisation, smoothed, in the second half, compared with the last millisecond.
    pub(super) links: Vec<f64>,
    /// The same without smoothing.
    pub(super) sums: Vec<f64>,
    /// All other links, as shares of the capacity.
    pub(super) other_links: Vec<f64>,
    /// A packet sampler, over the spans of `steady`, with as many samples as the monitor port gave.
    pub(super) sampler: Vec<f64>,
    /// The same with 300 samples per second.
    pub(super) sflow: Vec<f64>,
    /// Whether bounds held, for estimates with a bound; TCP and UDP.
    pub(super) held: [Vec<f64>; 2],
    /// Retransmitted segments.
    pub(super) sent_again: u64,
    /// Offered load divided by the monitor port's rate.
    pub(super) oversubscription: Vec<f64>,
}

impl Errors {
    /// Runs the traffic with each seed.
    pub(super) fn measure(
        study: Traffic,
        control: Control,
        factor: u16,
        seeds: u64,
        duration: Nanos,
    ) -> anyhow::Result<Errors> {
        let mut errors = Errors::default();
        for seed in 1..=seeds {
            let rack = Rack {
                control,
                receivers: factor,
                senders: if study == Traffic::Congested { 2 } else { 1 },
                constant: if study == Traffic::Mixed { UDP.to_vec() } else { Vec::new() },
                duration,
                seed,
                ..Rack::default()
            };
            let run = rack.run()?;
            errors.add(&rack, &run, &Estimates::of(&rack, &run)?);
        }
        Ok(errors)
    }

    fn add(&mut self, rack: &Rack, run: &Run, estimates: &Estimates) {
        let steady = Timestamp(rack.duration.0 / 2);
        let monitor = run.monitor;
        let all = (monitor.sent.packets + monitor.dropped.packets) as f64;
        let offered = 8.0 * (monitor.sent.bytes + monitor.dropped.bytes) as f64 / rack.duration.as_secs_f64();
        self.sent_again += run.totals.retransmissions;
        self.oversubscription.push(offered / rack.rate.0 as f64);
        let sampler = |share: f64, stream| run.truth.sampled(share, &mut Random::new(rack.seed, stream, 0));
        let as_many = sampler(monitor.sent.packets as f64 / all, "sampler");
        let sflow = sampler(SFLOW * rack.duration.as_secs_f64() / all, "sflow");
        let (tcp, udp) = (rack.data(), rack.constant_pairs());
        let of = |pairs: &'_ [Pair]| -> Vec<&RateReport> {
            estimates
                .flows
                .iter()
                .filter(|report| pairs.contains(&report.pair) && report.truth > 0.0)
                .collect()
        };
        for report in of(&tcp) {
            self.held[0].extend(held(report));
            let began = report.began;
            if began < STARTED {
                self.starting.push(report.error());
            }
            if began >= steady {
                self.steady.push(report.error());
                self.of_late.push(report.error_of_late());
                self.sampler.push(off(&as_many, report));
                self.sflow.push(off(&sflow, report));
            }
        }
        for report in of(&udp) {
            if report.began >= STARTED && report.basis == Basis::SamplingRatio {
                self.held[1].extend(held(report));
                self.udp.push(report.error());
            }
        }
        for link in estimates.links.iter().filter(|link| link.passed >= steady) {
            let off = |value: f64| (value - link.truth).abs();
            if link.truth >= 0.2 * link.capacity {
                self.links.push(off(link.smoothed) / link.truth);
                self.sums.push(off(link.sum) / link.truth);
            } else {
                self.other_links.push(off(link.smoothed) / link.capacity);
            }
        }
    }
}

/// Returns 1 if the bound held, else 0; `None` without a bound.
fn held(report: &RateReport) -> Option<f64> {
    report.rate.contains(report.truth).map(|holds| f64::from(u8::from(holds)))
}

/// Returns the error of a sampler over the span of an estimate.
fn off(sampled: &Truth, report: &RateReport) -> f64 {
    let estimate = sampled.of(report.pair).map_or(0.0, |passed| passed.rate(report.began, report.passed));
    (estimate - report.truth).abs() / report.truth
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new([
        "traffic",
        "control",
        "oversubscription",
        "sent again",
        "estimates",
        "steady mean",
        "steady p99",
        "of late mean",
        "starting mean",
        "starting p99",
        "udp mean",
        "udp p99",
        "links mean",
        "links p99",
        "link sums mean",
        "other links mean of capacity",
        "sampler mean",
        "sflow mean",
        "tcp bounds held",
        "udp bounds held",
    ]);
    let mut all = Vec::new();
    for traffic in Traffic::ALL {
        for control in Control::ALL {
            for factor in FACTORS {
                let duration = study.duration(if traffic == Traffic::Congested { LONG } else { DURATION });
                let errors = Errors::measure(traffic, control, factor, study.seeds, duration)?;
                note(traffic, control, &errors, &mut raw);
                all.push((traffic, control, errors));
            }
        }
    }
    let mut page = Page::new("Error over oversubscription", study.command);
    page.paragraph(format!(
                "1 to 16 flows at 10 Gbit/s, mirrored to one port of 10 Gbit/s with the smallest buffer; round trips of 190 us, \
                 {} seeds of {} ms ({} with two flows per receiver). Steady spans started in the second half of a run, starting \
                 spans in the first 5 ms. An error is the relative difference between a rate and the traffic that passed the \
                 switch between the two samples of its span; \"of late\" compares with the last millisecond, as for links, whose \
                 utilisation is smoothed with a time constant of 1 ms. The sampler takes each packet with the same probability, \
                 as many as the monitor port, and counts over the same spans; sFlow likewise, with 300 samples per second of the \
                 whole switch.",
        study.seeds,
        study.duration(DURATION).0 / 1_000_000,
        study.duration(LONG).0 / 1_000_000
    ));
    page.table(&summary(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

/// Formats a statistic of a sample in percent.
fn percent(sample: &[f64], of: impl Fn(&[f64]) -> f64) -> String {
    match sample.is_empty() {
        true => "-".to_owned(),
        false => format!("{:.2}", 100.0 * of(sample)),
    }
}

fn p99(sample: &[f64]) -> f64 {
    quantile(sample, 0.99)
}

fn note(traffic: Traffic, control: Control, errors: &Errors, raw: &mut Table) {
    row!(
        raw,
        traffic.name(),
        control.name(),
        format!("{:.2}", mean(&errors.oversubscription)),
        errors.sent_again,
        errors.steady.len() + errors.starting.len(),
        percent(&errors.steady, mean),
        percent(&errors.steady, p99),
        percent(&errors.of_late, mean),
        percent(&errors.starting, mean),
        percent(&errors.starting, p99),
        percent(&errors.udp, mean),
        percent(&errors.udp, p99),
        percent(&errors.links, mean),
        percent(&errors.links, p99),
        percent(&errors.sums, mean),
        percent(&errors.other_links, mean),
        percent(&errors.sampler, mean),
        percent(&errors.sflow, mean),
        percent(&errors.held[0], mean),
        percent(&errors.held[1], mean),
    );
}

type Measured = [(Traffic, Control, Errors)];

/// Returns the range of mean errors over all oversubscriptions, in percent.
fn summary(all: &Measured) -> Table {
    let mut table = Table::new([
        "mean error, percent: min to max over 1 to 16",
        "steady",
        "of late",
        "starting",
        "UDP",
        "links",
        "links, not smoothed",
        "sampler",
        "sFlow",
    ]);
    for traffic in Traffic::ALL {
        for control in Control::ALL {
            let of = |errors: fn(&Errors) -> &Vec<f64>| {
                let (least, most) = range(all, |t, c| (t, c) == (traffic, control), errors);
                let shown = |value: f64| digits(100.0 * value);
                if least <= most { format!("{} to {}", shown(least), shown(most)) } else { "-".to_owned() }
            };
            row!(
                table,
                format!("{}, {}", traffic.name(), control.name()),
                of(|errors| &errors.steady),
                of(|errors| &errors.of_late),
                of(|errors| &errors.starting),
                of(|errors| &errors.udp),
                of(|errors| &errors.links),
                of(|errors| &errors.sums),
                of(|errors| &errors.sampler),
                of(|errors| &errors.sflow),
            );
        }
    }
    table
}

/// Returns the minimum and maximum mean over all oversubscriptions.
fn range(
    all: &Measured,
    concerns: impl Fn(Traffic, Control) -> bool,
    of: fn(&Errors) -> &Vec<f64>,
) -> (f64, f64) {
    let concerned = all.iter().filter(|(traffic, control, _)| concerns(*traffic, *control));
    let means = concerned.map(|(_, _, errors)| mean(of(errors))).filter(|mean| mean.is_finite());
    means.fold((f64::INFINITY, 0.0), |(least, most), mean| (least.min(mean), most.max(mean)))
}

fn trends(all: &Measured) -> Trends {
    let mut trends = Trends::new();
    let mut check = |says: &str, traffic: Option<Traffic>, of: fn(&Errors) -> &Vec<f64>, aim: f64| {
        let (least, most) = range(all, |other, _| traffic.is_none_or(|traffic| traffic == other), of);
        let numbers = format!("{} to {} %", digits(100.0 * least), digits(100.0 * most));
        trends.check(says, most <= aim, &numbers);
    };
    let disjoint = Some(Traffic::Disjoint);
    check("roughly 3 % at any oversubscription: here at most 3 %", disjoint, |errors| &errors.steady, 0.03);
    check("our target: at most 3 % while flows start", disjoint, |errors| &errors.starting, 0.03);
    check(
        "our target: at most 3 % for competing flows",
        Some(Traffic::Congested),
        |errors| &errors.steady,
        0.03,
    );
    check(
        "our target: at most 3 % for competing flows while they start",
        Some(Traffic::Congested),
        |errors| &errors.starting,
        0.03,
    );
    check("our target: busy links within 3 %", None, |errors| &errors.links, 0.03);
    check("our target: UDP within 10 %", Some(Traffic::Mixed), |errors| &errors.udp, 0.1);
    trends
}

fn draw(path: &Path, all: &Measured) -> anyhow::Result<()> {
    let curve = |traffic, control, of: fn(&Errors) -> &Vec<f64>| -> Vec<(f64, f64)> {
        let concerned = all.iter().filter(|(t, c, _)| (*t, *c) == (traffic, control));
        concerned.map(|(_, _, errors)| (mean(&errors.oversubscription), 100.0 * mean(of(errors)))).collect()
    };
    let panel = |title: &str, scale, curves| {
        Panel::curves(format!("{title} (mean error, %)"), "oversubscription", scale, curves)
    };
    let (cubic, dctcp) = (Control::Cubic, Control::Dctcp);
    let panels = [
        panel(
            "steady flows on links of their own",
            Scale::LOGARITHMIC,
            vec![
                curve(Traffic::Disjoint, cubic, |errors| &errors.steady),
                curve(Traffic::Disjoint, dctcp, |errors| &errors.steady),
                curve(Traffic::Disjoint, cubic, |errors| &errors.sampler),
                curve(Traffic::Disjoint, cubic, |errors| &errors.sflow),
            ],
        ),
        panel(
            "flows that start",
            Scale::LOGARITHMIC,
            vec![
                curve(Traffic::Disjoint, cubic, |errors| &errors.starting),
                curve(Traffic::Disjoint, dctcp, |errors| &errors.starting),
            ],
        ),
        panel(
            "two flows per receiver, starting",
            Scale::LOGARITHMIC,
            vec![
                curve(Traffic::Congested, cubic, |errors| &errors.starting),
                curve(Traffic::Congested, dctcp, |errors| &errors.starting),
            ],
        ),
        panel(
            "UDP next to TCP",
            Scale::LINEAR,
            vec![
                curve(Traffic::Mixed, cubic, |errors| &errors.udp),
                curve(Traffic::Mixed, dctcp, |errors| &errors.udp),
            ],
        ),
    ];
    let legend = Legend::of(&["CUBIC", "DCTCP", "sampler with as many samples", "sFlow, 300 samples/s"]);
    save(path, &figure::draw(&Heading::new("Error of rates", ""), &legend, SEVERAL, &panels)?)
}
