//! `queue_series`: the queues of ports over intervals.

use std::sync::Arc;

use thalweg_emulator::ports::tally::PortTally;
use thalweg_emulator::{Network, Slot, SlotClock};
use thalweg_network::{Node, PortIndex, RouterId};
use thalweg_wire::BitRate;

use super::classes::ClassSeries;
use super::output::Rows;
use crate::files::{Output, WriteError};
use crate::plan::{Plan, QueueSeriesPlan};
use crate::recorder::sent_between;
use crate::results::series_rows::QueueSeriesRow;
use crate::results::{SeriesUse, per_second};

/// Samples queues.
pub(super) struct QueueSeries {
    clock: SlotClock,
    interval: u64,
    began: Slot,
    ports: Vec<SampledPort>,
    rows: Rows<QueueSeriesRow>,
    classes: Option<ClassSeries>,
}

struct SampledPort {
    router: RouterId,
    port: PortIndex,
    router_name: Arc<str>,
    to: Arc<str>,
    rate: BitRate,
    /// The counters at the start of the interval.
    before: PortTally,
}

impl QueueSeries {
    pub(super) fn create(
        plan: &Plan,
        wanted: &QueueSeriesPlan,
        network: &mut dyn Network,
        output: Output<'_>,
    ) -> Result<QueueSeries, WriteError> {
        let topology = &plan.topology;
        let ports = wanted.ports.iter().map(|&(router, port)| {
            network.watch_queue(router, port);
            SampledPort {
                router,
                port,
                router_name: super::name(topology, Node::Router(router)),
                to: super::name(topology, topology.peer(router, port).node),
                rate: topology.links()[topology.link_at(router, port).index()].rate,
                before: PortTally::default(),
            }
        });
        Ok(QueueSeries {
            ports: ports.collect(),
            clock: network.clock(),
            interval: wanted.interval_slots,
            began: network.now(),
            rows: Rows::create(output)?,
            classes: (wanted.classes.then(|| ClassSeries::create(plan.scheme.has_classes(), output)))
                .transpose()?,
        })
    }

    pub(super) fn due(&self) -> Slot {
        self.began + self.interval
    }

    /// Ends the interval.
    pub(super) fn sample(&mut self, network: &mut dyn Network) {
        let now = network.now();
        let time_ns = self.clock.start_of(now).0;
        let interval_ns = time_ns - self.clock.start_of(self.began).0;
        for sampled in &mut self.ports {
            let row = sampled.row(network, time_ns, interval_ns);
            if let Some(classes) = &mut self.classes {
                classes.sample(&row, sampled.router, network);
            }
            self.rows.push(row);
        }
        self.began = now;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.rows.has_failed() || self.classes.as_ref().is_some_and(ClassSeries::has_failed)
    }

    pub(super) fn finish(mut self, network: &mut dyn Network) -> Vec<Result<SeriesUse, WriteError>> {
        if network.now() > self.began {
            self.sample(network);
        }
        let classes = self.classes.map(ClassSeries::finish);
        std::iter::once(self.rows.finish(0)).chain(classes).collect()
    }
}

impl SampledPort {
    fn row(&mut self, network: &mut dyn Network, time_ns: u64, interval_ns: u64) -> QueueSeriesRow {
        let (router, port) = (self.router, self.port);
        let (queue, span) = (network.port_backlog(router, port), network.take_queue_span(router, port));
        let after = network.port_tally(router, port);
        let sent = sent_between(&self.before, &after);
        self.before = after;
        QueueSeriesRow {
            time_ns,
            interval_ns,
            router: self.router_name.clone(),
            port: port.0,
            to: self.to.clone(),
            packets: queue.packets,
            packets_mean: span.mean_packets(),
            packets_max: span.max_packets,
            bytes: queue.bytes,
            bytes_mean: span.mean_bytes(),
            bytes_max: span.max_bytes,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            utilisation: per_second(sent.bytes, interval_ns as f64 / 1e9) / self.rate.0 as f64,
            marked_packets: sent.marked,
            dropped_packets: sent.dropped,
        }
    }
}
