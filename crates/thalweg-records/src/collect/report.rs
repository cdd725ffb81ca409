//! What became of everything: exporters, sockets, losses by place.

use std::net::SocketAddr;

use thalweg_wire::flow_export::DecodeError;
use thalweg_wire::flow_export::decode::{Counts, Totals};

use super::exporters::ExporterReport;
use super::listen::Listen;
use super::stream::StreamReport;
use crate::{kafka, store};

/// What became of everything so far.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Exporters, in order of address, format, transport and domain.
    pub exporters: Vec<ExporterReport>,
    /// What concerns no exporter, or exporters that are forgotten; of all decoders.
    pub totals: Totals,
    /// UDP sockets.
    pub sockets: Vec<SocketReport>,
    /// Listeners of TCP and TLS.
    pub streams: Vec<StreamReport>,
    /// The store of flow records.
    pub flows: store::Statistics,
    /// The store of interface counters.
    pub counters: store::Statistics,
    /// Kafka, if it is fed.
    pub kafka: Option<kafka::Statistics>,
    /// What was last wrong with a message.
    pub last_fault: Option<DecodeError>,
}

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketReport {
    /// What was asked for.
    pub listen: Listen,
    /// Where it listens.
    pub address: SocketAddr,
    /// Bytes of the receive buffer that were asked for.
    pub receive_buffer_asked: usize,
    /// Bytes of the receive buffer.
    pub receive_buffer: usize,
    /// Datagrams received.
    pub datagrams: u64,
    /// Bytes of UDP payload received.
    pub bytes: u64,
    /// Datagrams that the kernel dropped: they found the buffer full.
    pub kernel_drops: u64,
    /// Errors of the socket.
    pub errors: u64,
}

/// What was lost, by place. The places count what they see: datagrams, messages, records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Datagrams dropped by the kernel.
    pub kernel_datagrams: u64,
    /// By sequence numbers: flows of NetFlow v5, messages of v9, data records of IPFIX, datagrams of sFlow. What the kernel
    /// dropped is among them, if more came after it.
    pub on_the_way: u64,
    /// Datagrams and messages that could not be read.
    pub unreadable_messages: u64,
    /// Sets whose template did not come in time, or that had no room to wait for it.
    pub sets_without_template: u64,
    /// Records lost in the store.
    pub stored_records: u64,
    /// Flow records lost on their way to Kafka; the store has them all the same.
    pub kafka_records: u64,
    /// Connections refused for want of room.
    pub connections_refused: u64,
}

impl Losses {
    /// Whether nothing was lost.
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}

impl Report {
    /// Counts of all exporters, those forgotten among them.
    pub fn counts(&self) -> Counts {
        let mut all = self.totals.gone;
        self.exporters.iter().for_each(|exporter| all += exporter.counts);
        all
    }

    /// Flow records decoded.
    pub fn records(&self) -> u64 {
        self.counts().records
    }

    /// Datagrams received.
    pub fn datagrams(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.datagrams).sum()
    }

    /// What was lost, by place.
    pub fn losses(&self) -> Losses {
        let counts = self.counts();
        Losses {
            kernel_datagrams: self.sockets.iter().map(|socket| socket.kernel_drops).sum(),
            on_the_way: counts.lost,
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
    use crate::collect::intake::Published;

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
    fn sessions_of_an_exporter_are_added_up_and_its_domains_are_not() {
        let mut exporters = Exporters::default();
        let published = |sources: &[_]| Published { sources: sources.to_vec(), ..Published::default() };
        exporters.add(&published(&[source(3000, 1, 5), source(3000, 2, 7)]), 2);
        exporters.add(&published(&[source(2000, 1, 50)]), 2);
        exporters.add(&published(&[source(2000, 3, 100)]), 2);
        let report = Report { totals: exporters.totals, exporters: exporters.rows(), ..Report::default() };
        let rows: Vec<_> = report
            .exporters
            .iter()
            .map(|row| (row.observation_domain_id, row.sessions, row.counts.records, row.sampling_interval))
            .collect();
        assert_eq!(rows, [(1, 2, 55, 3000), (2, 1, 7, 3000)], "the latest says how it samples");
        assert_eq!(report.records(), 162, "those that have no row of their own are counted too");
    }
}
