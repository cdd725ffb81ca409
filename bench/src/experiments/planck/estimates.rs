//! The collector's estimates from the samples of a run, and their errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_measure::collector::{Collector, CollectorOptions, MonitorPort, Output, PortDirection};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::rates::Basis;
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, Versions};
use thalweg_sketch::Estimate;
use thalweg_wire::{Nanos, Timestamp};

use super::rack::{Pair, Rack, Run, SWITCH, Sample};

/// Interval at which link utilisation is read.
const LINK_INTERVAL: Nanos = Nanos::from_micros(100);

/// Smoothing of links: flows that share one change within their spans, and a sum adds spans of different ages.
pub(super) const SMOOTHING: Nanos = Nanos::from_millis(1);

/// Window of the truth for links, and for flows as a comparison.
pub(super) const WINDOW: Nanos = Nanos::from_millis(1);

/// A rate that the collector reported for a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateReport {
    pub(super) pair: Pair,
    /// Packet time of the report.
    pub(super) at: Timestamp,
    /// When the first sample of its span passed the switch.
    pub(super) began: Timestamp,
    /// When the last sample of its span passed the switch.
    pub(super) passed: Timestamp,
    pub(super) rate: Estimate,
    pub(super) basis: Basis,
    /// The true rate in that span.
    pub(super) truth: f64,
    /// The true rate in the last [`WINDOW`].
    pub(super) of_late: f64,
}

impl RateReport {
    /// Returns the relative error.
    pub(super) fn error(&self) -> f64 {
        (self.rate.value - self.truth).abs() / self.truth
    }

    /// Returns the relative error to the last [`WINDOW`]'s mean.
    pub(super) fn error_of_late(&self) -> f64 {
        (self.rate.value - self.of_late).abs() / self.of_late
    }
}

/// The reported rate of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkReport {
    /// When the newest sample passed the switch.
    pub(super) passed: Timestamp,
    pub(super) capacity: f64,
    /// Sum of the rates of its flows.
    pub(super) sum: f64,
    /// The same, smoothed with a time constant of [`SMOOTHING`].
    pub(super) smoothed: f64,
    /// The true rate in the last [`WINDOW`].
    pub(super) truth: f64,
}

/// All estimates of the collector.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimates {
    pub(super) flows: Vec<RateReport>,
    pub(super) links: Vec<LinkReport>,
}

/// Creates the collector of a rack.
pub(super) fn collector(rack: &Rack, run: &Run) -> anyhow::Result<Collector> {
    let links = LinkState::new(&run.topology);
    let state = NetworkState::new(run.topology.clone(), links, Forwarding::ecmp(rack.seed))?;
    let options = CollectorOptions {
        router: SWITCH,
        flow_table: FlowTableOptions { capacity: 1 << 10, ..FlowTableOptions::default() },
        threshold: None,
        tracks: 1,
        smoothing: SMOOTHING,
        monitor: Some(MonitorPort { rate: rack.rate, buffer: rack.buffer }),
        seed: rack.seed,
        ..CollectorOptions::default()
    };
    Ok(Collector::new(options, Some(Arc::new(Versions::new(state))))?)
}

impl Estimates {
    /// Runs the collector over all samples of a run.
    pub(super) fn of(rack: &Rack, run: &Run) -> anyhow::Result<Estimates> {
        let mut collector = collector(rack, run)?;
        let mut output = Output::default();
        let mut estimates = Estimates::default();
        let mut last = BTreeMap::new();
        let seen = Seen::new(&run.samples);
        let mut links_at = Timestamp(WINDOW.0);
        for sample in &run.samples {
            collector.update(std::slice::from_ref(&sample.packet), &mut output);
            let report = collector.flow(&sample.packet.key).and_then(|flow| flow.rate);
            if let Some(rate) = report
                && last.insert(sample.pair, rate.span) != Some(rate.span)
                && let Some(passed) = run.truth.of(sample.pair)
            {
                let [from, to] = [rate.span.0, rate.span.1].map(|time| seen.passed(sample.pair, time));
                estimates.flows.push(RateReport {
                    pair: sample.pair,
                    at: sample.packet.time,
                    began: from,
                    passed: to,
                    rate: rate.rate,
                    basis: rate.basis,
                    truth: passed.rate(from, to),
                    of_late: passed.rate(to.saturating_sub(WINDOW), to),
                });
            }
            if sample.packet.time >= links_at {
                links_at = sample.packet.time + LINK_INTERVAL;
                estimates.read_links(&collector, run, sample);
            }
        }
        Ok(estimates)
    }

    fn read_links(&mut self, collector: &Collector, run: &Run, sample: &Sample) {
        let now = sample.passed;
        for report in collector.links() {
            // Ports and hosts of a rack have the same numbers.
            let host = EndpointId(report.side.port.0);
            let concerns = |pair: Pair| match report.side.direction {
                PortDirection::Input => pair.from == host,
                PortDirection::Output => pair.to == host,
            };
            self.links.push(LinkReport {
                passed: now,
                capacity: report.capacity.0 as f64,
                sum: report.rate.value,
                smoothed: report.smoothed,
                truth: run.truth.sum(concerns, now.saturating_sub(WINDOW), now),
            });
        }
    }
}

/// The times at which samples passed the switch, by direction and arrival time.
struct Seen(BTreeMap<Pair, Vec<(Timestamp, Timestamp)>>);

impl Seen {
    fn new(samples: &[Sample]) -> Seen {
        let mut seen: BTreeMap<Pair, Vec<_>> = BTreeMap::new();
        for sample in samples {
            seen.entry(sample.pair).or_default().push((sample.packet.time, sample.passed));
        }
        Seen(seen)
    }

    /// Returns when the sample that arrived at this time passed the switch.
    fn passed(&self, pair: Pair, seen: Timestamp) -> Timestamp {
        let times = self.0.get(&pair).map_or(&[][..], Vec::as_slice);
        let place = times.partition_point(|(at, _)| *at < seen);
        times.get(place).map_or(seen, |(_, passed)| *passed)
    }
}
