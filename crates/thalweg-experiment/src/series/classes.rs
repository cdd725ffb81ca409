//! `classes` of `queue_series`: the classes of a port's scheduler over intervals.

use thalweg_emulator::Network;
use thalweg_emulator::router::classes::ClassCounts;
use thalweg_network::{PortIndex, RouterId};

use super::output::Rows;
use crate::files::{Output, WriteError};
use crate::results::SeriesUse;
use crate::results::series_rows::{ClassSeriesRow, QueueSeriesRow};

/// Samples classes.
pub(super) struct ClassSeries {
    rows: Rows<ClassSeriesRow>,
    /// Without classes there are no rows.
    has_classes: bool,
    /// Those of one port.
    counts: Vec<ClassCounts>,
}

impl ClassSeries {
    pub(super) fn create(has_classes: bool, output: Output<'_>) -> Result<ClassSeries, WriteError> {
        Ok(ClassSeries { rows: Rows::create(output)?, has_classes, counts: Vec::new() })
    }

    /// Ends the interval of a port, whose row is `port`.
    pub(super) fn sample(&mut self, port: &QueueSeriesRow, router: RouterId, network: &mut dyn Network) {
        self.counts.clear();
        network.take_classes(router, PortIndex(port.port), &mut self.counts);
        self.counts.iter().for_each(|counts| self.rows.push(row(port, Some(counts.class), counts)));
        let dropped: u64 = self.counts.iter().map(|counts| counts.dropped).sum();
        if self.has_classes && port.dropped_packets > dropped {
            let dropped = port.dropped_packets - dropped;
            self.rows.push(row(port, None, &ClassCounts { dropped, ..ClassCounts::default() }));
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.rows.has_failed()
    }

    pub(super) fn finish(self) -> Result<SeriesUse, WriteError> {
        self.rows.finish(0)
    }
}

fn row(port: &QueueSeriesRow, class: Option<u16>, counts: &ClassCounts) -> ClassSeriesRow {
    let ClassCounts { queue, span, sent, marked, dropped, .. } = *counts;
    ClassSeriesRow {
        time_ns: port.time_ns,
        interval_ns: port.interval_ns,
        router: port.router.clone(),
        port: port.port,
        to: port.to.clone(),
        class,
        packets: queue.packets,
        packets_mean: span.mean_packets(),
        packets_max: span.max_packets,
        bytes: queue.bytes,
        bytes_mean: span.mean_bytes(),
        bytes_max: span.max_bytes,
        sent_packets: sent.packets,
        sent_bytes: sent.bytes,
        marked_packets: marked,
        dropped_packets: dropped,
    }
}
