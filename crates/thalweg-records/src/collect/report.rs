//! The report of a collecting process: exporters, sockets, losses by place.

use std::net::SocketAddr;

use thalweg_wire::flow_export::DecodeError;
use thalweg_wire::flow_export::decode::{Counts, Totals};

use super::exporters::ExporterReport;
use super::listen::Listen;
use super::stream::StreamReport;
use super::templates::TemplateFileReport;
use crate::geo::GeoStatistics;
use crate::{kafka, store};

/// Counters of a collecting process.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Exporters, ordered by address, format, transport and domain.
    pub exporters: Vec<ExporterReport>,
    /// Counters of all decoders that belong to no exporter, or to exporters that were evicted.
    pub totals: Totals,
    /// UDP sockets.
    pub sockets: Vec<SocketReport>,
    /// TCP and TLS listeners.
    pub streams: Vec<StreamReport>,
    /// The store of flow records.
    pub flows: store::Statistics,
    /// The store of interface counters.
    pub counters: store::Statistics,
    /// Kafka, if enabled.
    pub kafka: Option<kafka::Statistics>,
    /// The last decoding error.
    pub last_fault: Option<DecodeError>,
    /// The file of templates.
    pub templates: TemplateFileReport,
    /// The databases of countries and AS numbers, if any.
    pub geo: Option<GeoStatistics>,
}

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketReport {
    /// The listen address from the options.
    pub listen: Listen,
    /// The address it is bound to.
    pub address: SocketAddr,
    /// Requested size of the receive buffer in bytes.
    pub receive_buffer_requested: usize,
    /// Actual size of the receive buffer in bytes.
    pub receive_buffer: usize,
    /// Number of datagrams received.
    pub datagrams: u64,
    /// UDP payload bytes received.
    pub bytes: u64,
    /// Datagrams dropped by the kernel because the buffer was full.
    pub kernel_drops: u64,
    /// Number of socket errors.
    pub errors: u64,
}

/// Losses by place, each counted in its own unit: datagrams, messages, records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Datagrams dropped by the kernel.
    pub kernel_datagrams: u64,
    /// Gaps in sequence numbers: flows of NetFlow v5, messages of v9, data records of IPFIX, datagrams of sFlow. They
    /// include datagrams dropped by the kernel if more arrived afterwards.
    pub sequence_gaps: u64,
    /// Malformed datagrams and messages.
    pub unreadable_messages: u64,
    /// Data sets dropped because their template was late or never arrived, or the buffer for such sets was full.
    pub sets_without_template: u64,
    /// Records dropped by the store.
    pub stored_records: u64,
    /// Flow records not delivered to Kafka; the store still has them.
    pub kafka_records: u64,
    /// Connections refused because too many were open.
    pub connections_refused: u64,
}

impl Losses {
    /// Returns whether nothing was lost.
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}

impl Report {
    /// Returns the sum over all exporters, including evicted ones.
    pub fn counts(&self) -> Counts {
        let mut all = self.totals.gone;
        self.exporters.iter().for_each(|exporter| all += exporter.counts);
        all
    }

    /// Returns the number of decoded flow records.
    pub fn records(&self) -> u64 {
        self.counts().records
    }

    /// Returns the number of datagrams received.
    pub fn datagrams(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.datagrams).sum()
    }

    /// Returns the losses by place.
    pub fn losses(&self) -> Losses {
        let counts = self.counts();
        Losses {
            kernel_datagrams: self.sockets.iter().map(|socket| socket.kernel_drops).sum(),
            sequence_gaps: counts.lost,
            unreadable_messages: counts.dropped_malformed
                + self.totals.dropped_unreadable
                + self.totals.dropped_too_many_domains,
            sets_without_template: counts.dropped_template_late + counts.dropped_held_full,
            stored_records: self.flows.lost.total() + self.counters.lost.total(),
            kafka_records: self.kafka.as_ref().map_or(0, |kafka| kafka.lost.total()),
            connections_refused: self.streams.iter().map(|stream| stream.refused).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Timestamp;
    use thalweg_wire::flow_export::decode::{SourceStatistics, Transport};
    use thalweg_wire::flow_export::{Address, Format};

    use super::*;
    use crate::collect::exporters::Exporters;
    use crate::collect::intake::Snapshot;

    fn source(port: u16, domain: u32, records: u64) -> SourceStatistics {
        SourceStatistics {
            from: SocketAddr::from(([10, 0, 0, 1], port)),
            transport: Transport::Datagram,
            format: Format::Ipfix,
            observation_domain_id: domain,
            exporter: Address::v4(0x0A00_0001),
            sampling_interval: u32::from(port),
            templates: 2,
            held_bytes: 0,
            last_received: Timestamp::new(u64::from(port), 0),
            counts: Counts { records, ..Counts::default() },
        }
    }

    #[test]
    fn sessions_of_an_exporter_are_merged_and_domains_are_not() {
        let mut exporters = Exporters::default();
        let snapshot = |sources: &[_]| Snapshot { sources: sources.to_vec(), ..Snapshot::default() };
        exporters.add(&snapshot(&[source(3000, 1, 5), source(3000, 2, 7)]), 2);
        exporters.add(&snapshot(&[source(2000, 1, 50)]), 2);
        exporters.add(&snapshot(&[source(2000, 3, 100)]), 2);
        let report = Report { totals: exporters.totals, exporters: exporters.rows(), ..Report::default() };
        let rows: Vec<_> = report
            .exporters
            .iter()
            .map(|row| (row.observation_domain_id, row.sessions, row.counts.records, row.sampling_interval))
            .collect();
        assert_eq!(rows, [(1, 2, 55, 3000), (2, 1, 7, 3000)], "the latest sampling interval counts");
        assert_eq!(report.records(), 162, "exporters beyond the limit count in the totals");
    }
}
