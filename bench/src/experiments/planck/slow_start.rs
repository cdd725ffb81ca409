//! Figure 10: the rate of a starting flow, by a rolling average over 200 us and by bursts.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{Nanos, Timestamp};

use super::estimates::Estimates;
use super::rack::{Control, Pair, Rack, Run};
use super::us;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends, digits};
use crate::results::{Page, Table, save};
use crate::row;

const DURATION: Nanos = Nanos::from_millis(5);
/// Length of the rolling average (section 5.4).
const ROLLING: Nanos = Nanos::from_micros(200);
/// Bytes on the wire per byte of payload, in full-sized segments: both rates are on the wire.
const WIRE: f64 = 1_538.0 / 1_448.0;
/// Interval of the rolling average.
const STEP: Nanos = Nanos::from_micros(10);
/// Delays of a host: round trips are twice that plus 10 us. The paper's are 180 to 250 us.
const STACK_DELAYS: [Nanos; 4] =
    [Nanos::from_micros(10), Nanos::from_micros(70), Nanos::from_micros(90), Nanos::from_micros(120)];

/// Rates over time, in Gbit/s over microseconds since the flow's first packet was sampled.
type Curve = Vec<(f64, f64)>;

/// A starting flow.
struct Start {
    control: Control,
    stack_delay: Nanos,
    rolling: Curve,
    bursts: Curve,
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new(["control", "host us", "estimator", "time us", "Gbit/s"]);
    let mut table = Table::new([
        "flow",
        "round trip, us",
        "rolling: falls by a tenth",
        "bursts: falls by a tenth",
        "rolling: deepest fall",
        "bursts: deepest fall",
        "bursts: estimates",
        "bursts: 9 Gbit/s for good, us",
    ]);
    let mut all = Vec::new();
    for control in Control::ALL {
        for stack_delay in STACK_DELAYS {
            let start = start(study, control, stack_delay)?;
            start.note(&mut raw);
            start.tell(&mut table);
            all.push(start);
        }
    }
    let mut page = Page::new("A flow that starts", study.command);
    page.paragraph(format!(
                "One flow at 10 Gbit/s, initial window of 10 segments, one seed (only its start is random). The rolling average is \
                 the advance of sequence numbers within the last 200 us, every 10 us; bursts are the collector's estimates. A \
                 starting flow does not slow down: an estimate that falls is wrong. {} ms.",
        study.duration(DURATION).0 / 1_000_000
    ));
    page.table(&table);
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

fn start(study: &Study<'_>, control: Control, stack_delay: Nanos) -> anyhow::Result<Start> {
    let rack = Rack { control, stack_delay, duration: study.duration(DURATION), ..Rack::default() };
    let run = rack.run()?;
    let pair = rack.data()[0];
    let first = run.samples.iter().find(|sample| sample.pair == pair).map(|sample| sample.packet.time);
    let first = first.unwrap_or_default();
    let point = |at: Timestamp, rate: f64| (us(at.since(first)), rate / 1e9);
    let estimates = Estimates::of(&rack, &run)?;
    let report = estimates.flows.iter().filter(|report| report.pair == pair);
    // No rate before the first estimate; each estimate lasts until the next.
    let mut bursts = Vec::new();
    for report in report {
        let before = bursts.last().map(|(_, rate)| *rate);
        bursts.extend(before.map(|rate| (us(report.at.since(first)), rate)));
        bursts.push(point(report.at, report.rate.value));
    }
    Ok(Start { control, stack_delay, rolling: rolling(&run, pair, first), bursts })
}

/// Returns the rate of sequence numbers over the last 200 us, at each step.
fn rolling(run: &Run, pair: Pair, first: Timestamp) -> Curve {
    let samples: Vec<_> = run.samples.iter().filter(|sample| sample.pair == pair).collect();
    let reached = |time: Timestamp| {
        let count = samples.partition_point(|sample| sample.packet.time <= time);
        let before = count.checked_sub(1).map(|last| &samples[last].packet);
        before.map_or(0, |packet| u64::from(packet.tcp_sequence) + u64::from(packet.payload_length))
    };
    let last = samples.last().map_or(first, |sample| sample.packet.time);
    let steps = (1..).map(|step| first + Nanos(step * STEP.0)).take_while(|time| *time <= last);
    let rate = |time: Timestamp| {
        let advance = reached(time) - reached(time.saturating_sub(ROLLING));
        (us(time.since(first)), 8.0 * WIRE * advance as f64 / ROLLING.0 as f64)
    };
    steps.map(rate).collect()
}

impl Start {
    /// Returns the idle round trip in microseconds, through links and hosts.
    fn round_trip(&self) -> f64 {
        2.0 * us(self.stack_delay) + 10.0
    }

    fn note(&self, raw: &mut Table) {
        for (name, curve) in [("rolling", &self.rolling), ("bursts", &self.bursts)] {
            for (time, rate) in curve {
                row!(
                    raw,
                    self.control.name(),
                    us(self.stack_delay),
                    name,
                    format!("{time:.1}"),
                    format!("{rate:.4}")
                );
            }
        }
    }

    fn tell(&self, table: &mut Table) {
        let ([often, seldom], [deep, shallow]) = self.falls();
        row!(
            table,
            self.control.name(),
            digits(self.round_trip()),
            often,
            seldom,
            format!("{:.0} %", 100.0 * deep),
            format!("{:.0} %", 100.0 * shallow),
            self.bursts.len().div_ceil(2),
            digits(self.arrives()),
        );
    }

    /// Returns the number of falls by a tenth or more, and the deepest; rolling average first.
    fn falls(&self) -> ([usize; 2], [f64; 2]) {
        let curves = [&self.rolling, &self.bursts];
        let falls = curves.map(falls);
        (falls.each_ref().map(|falls| falls.len()), falls.map(|falls| falls.into_iter().fold(0.0, f64::max)))
    }

    /// Returns the time after which all estimates are above 9 Gbit/s.
    fn arrives(&self) -> f64 {
        let below = self.bursts.iter().rposition(|(_, rate)| *rate < 9.0).map_or(0, |place| place + 1);
        self.bursts.get(below).map_or(f64::NAN, |(time, _)| *time)
    }
}

/// Returns the falls by more than a tenth from a peak to the following minimum, as shares of the peak.
fn falls(curve: &Curve) -> Vec<f64> {
    let (mut falls, mut peak, mut bottom) = (Vec::new(), 0.0f64, 0.0f64);
    let mut end = |peak: f64, bottom: f64| {
        if bottom < 0.9 * peak {
            falls.push(1.0 - bottom / peak);
        }
    };
    for &(_, rate) in curve {
        if rate > bottom {
            end(peak, bottom);
            (peak, bottom) = (rate, rate);
        } else {
            bottom = bottom.min(rate);
        }
    }
    end(peak, bottom);
    falls
}

fn trends(all: &[Start]) -> Trends {
    let mut trends = Trends::new();
    // With a round trip as long as the window it always contains one burst; the paper's round trip varies.
    let like_paper =
        |start: &&Start| (start.round_trip() - us(ROLLING)).abs() >= 40.0 && start.round_trip() > 100.0;
    let count = |of: usize| -> Vec<String> {
        all.iter().filter(like_paper).map(|start| start.falls().0[of].to_string()).collect()
    };
    trends.check(
        "the rolling average varies much as it takes in no burst, one or two",
        all.iter().filter(like_paper).all(|start| start.falls().0[0] >= 2),
        &format!("falls by a tenth: {}", count(0).join(", ")),
    );
    trends.check(
        "estimates by bursts are stable: at most one such fall here",
        all.iter().all(|start| start.falls().0[1] <= 1),
        &format!("falls by a tenth: {}", count(1).join(", ")),
    );
    trends
}

fn draw(path: &Path, all: &[Start]) -> anyhow::Result<()> {
    let cubic = all.iter().filter(|start| start.control == Control::Cubic);
    let panel = |start: &Start| {
        let title = format!("CUBIC, round trip of {:.0} us (Gbit/s)", start.round_trip());
        let curves = vec![start.rolling.clone(), start.bursts.clone()];
        Panel::curves(title, "time since the first packet (us)", Scale::LINEAR, curves)
    };
    let panels: Vec<Panel> = cubic.map(panel).collect();
    let legend = Legend::of(&["rolling average over 200 us", "bursts"]);
    save(path, &figure::draw(&Heading::new("Rate of a flow that starts", ""), &legend, SEVERAL, &panels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fall_is_from_a_peak_to_the_next_minimum() {
        let curve = |rates: &[f64]| rates.iter().map(|rate| (0.0, *rate)).collect::<Curve>();
        assert_eq!(falls(&curve(&[1.0, 2.0, 1.5, 1.0, 4.0, 3.9, 5.0])), [0.5]);
        assert_eq!(falls(&curve(&[1.0, 2.0, 1.0])), [0.5], "the last counts as well");
        assert!(falls(&curve(&[1.0, 2.0, 3.0])).is_empty());
    }
}
