//! The samples of a run as the collector understands them, and how far off it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_measure::collector::{Collector, CollectorOptions, MonitorPort, Output, PortDirection};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::rates::Basis;
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, Versions};
use thalweg_sketch::Estimate;
use thalweg_wire::{Nanos, Timestamp};

use super::rack::{Pair, Rack, Run, SWITCH, Sample};

/// How often links are asked for.
const LINKS_EVERY: Nanos = Nanos::from_micros(100);

/// Of links: flows that share one trade places faster than their spans are long, and a sum adds spans of different ages.
pub(super) const SMOOTHING: Nanos = Nanos::from_millis(1);

/// Windows of the truth that links, and flows for comparison, are held against.
pub(super) const WINDOW: Nanos = Nanos::from_millis(1);

/// A rate that the collector has told of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) pair: Pair,
    /// Packet time at which it was told.
    pub(super) at: Timestamp,
    /// When the sample had passed the switch that its span begins with.
    pub(super) began: Timestamp,
    /// When that had passed that its span ends with.
    pub(super) passed: Timestamp,
    pub(super) rate: Estimate,
    pub(super) basis: Basis,
    /// What passed the switch in that span, as it was there.
    pub(super) truth: f64,
    /// What passed the switch in the last [`WINDOW`].
    pub(super) of_late: f64,
}

impl Told {
    /// How far off it is, as a share of the truth.
    pub(super) fn error(&self) -> f64 {
        (self.rate.value - self.truth).abs() / self.truth
    }

    /// How far off the last [`WINDOW`]'s mean it is.
    pub(super) fn error_of_late(&self) -> f64 {
        (self.rate.value - self.of_late).abs() / self.of_late
    }
}

/// How much a link was said to carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkTold {
    /// When the newest sample had passed the switch.
    pub(super) passed: Timestamp,
    pub(super) capacity: f64,
    /// Sum of the rates of its flows.
    pub(super) sum: f64,
    /// The same, smoothed with a time constant of [`SMOOTHING`].
    pub(super) smoothed: f64,
    /// What it carried in the last [`WINDOW`] before.
    pub(super) truth: f64,
}

/// All that the collector has told.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimates {
    pub(super) flows: Vec<Told>,
    pub(super) links: Vec<LinkTold>,
}

/// The collector of a rack.
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
    /// Shows the collector all samples of a run, one by one.
    pub(super) fn of(rack: &Rack, run: &Run) -> anyhow::Result<Estimates> {
        let mut collector = collector(rack, run)?;
        let mut output = Output::default();
        let mut estimates = Estimates::default();
        let mut last = BTreeMap::new();
        let seen = Seen::new(&run.samples);
        let mut links_at = Timestamp(WINDOW.0);
        for sample in &run.samples {
            collector.update(std::slice::from_ref(&sample.packet), &mut output);
            let told = collector.flow(&sample.packet.key).and_then(|flow| flow.rate);
            if let Some(rate) = told
                && last.insert(sample.pair, rate.span) != Some(rate.span)
                && let Some(passed) = run.truth.of(sample.pair)
            {
                let [from, to] = [rate.span.0, rate.span.1].map(|time| seen.passed(sample.pair, time));
                estimates.flows.push(Told {
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
                links_at = sample.packet.time + LINKS_EVERY;
                estimates.ask_links(&collector, run, sample);
            }
        }
        Ok(estimates)
    }

    fn ask_links(&mut self, collector: &Collector, run: &Run, sample: &Sample) {
        let now = sample.passed;
        for report in collector.links() {
            // Port and host of a rack have the same number.
            let host = EndpointId(report.side.port.0);
            let concerns = |pair: Pair| match report.side.direction {
                PortDirection::Input => pair.from == host,
                PortDirection::Output => pair.to == host,
            };
            self.links.push(LinkTold {
                passed: now,
                capacity: report.capacity.0 as f64,
                sum: report.rate.value,
                smoothed: report.smoothed,
                truth: run.truth.sum(concerns, now.saturating_sub(WINDOW), now),
            });
        }
    }
}

/// When samples had passed the switch, by direction and by when they were seen.
struct Seen(BTreeMap<Pair, Vec<(Timestamp, Timestamp)>>);

impl Seen {
    fn new(samples: &[Sample]) -> Seen {
        let mut seen: BTreeMap<Pair, Vec<_>> = BTreeMap::new();
        for sample in samples {
            seen.entry(sample.pair).or_default().push((sample.packet.time, sample.passed));
        }
        Seen(seen)
    }

    /// When the sample that was seen at this time had passed.
    fn passed(&self, pair: Pair, seen: Timestamp) -> Timestamp {
        let times = self.0.get(&pair).map_or(&[][..], Vec::as_slice);
        let place = times.partition_point(|(at, _)| *at < seen);
        times.get(place).map_or(seen, |(_, passed)| *passed)
    }
}
