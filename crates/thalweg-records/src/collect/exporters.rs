//! Merges the counters of all decoders by exporter.

use std::collections::BTreeMap;
use std::net::IpAddr;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::decode::{Counts, SourceStatistics, Totals, Transport};
use thalweg_wire::flow_export::{Address, DecodeError, Format};

use super::intake::Snapshot;

/// One observation domain of an exporter. Counts are sums over its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExporterReport {
    /// Source address of its messages.
    pub from: IpAddr,
    /// Exporter as recorded: for sFlow, the agent.
    pub exporter: Address,
    /// Export format.
    pub format: Format,
    /// Transport.
    pub transport: Transport,
    /// IPFIX `observationDomainId`, or its equivalent in other formats.
    pub observation_domain_id: u32,
    /// Number of sessions.
    pub sessions: u64,
    /// Last reported sampling interval (one in this many packets is counted); 0 if unknown.
    pub sampling_interval: u32,
    /// Templates currently known.
    pub templates: u64,
    /// Time of the last message.
    pub last_received: Timestamp,
    /// Counters.
    pub counts: Counts,
}

/// Exporters by key, merged from several decoders.
#[derive(Clone, Debug, Default)]
pub(super) struct Exporters {
    rows: BTreeMap<(IpAddr, Address, Format, Transport, u32), ExporterReport>,
    pub(super) totals: Totals,
    pub(super) last_fault: Option<DecodeError>,
}

impl Exporters {
    /// Adds the counters of a decoder. Exporters beyond `limit` are only added to the totals.
    pub(super) fn add(&mut self, snapshot: &Snapshot, limit: usize) {
        for source in &snapshot.sources {
            self.add_row(ExporterReport::from(source), limit);
        }
        self.add_totals(&snapshot.totals);
        self.last_fault = snapshot.last_fault.or(self.last_fault);
    }

    /// Adds exporters merged elsewhere.
    pub(super) fn add_all(&mut self, others: &Exporters) {
        others.rows.values().for_each(|row| self.add_row(*row, usize::MAX));
        self.add_totals(&others.totals);
        self.last_fault = others.last_fault.or(self.last_fault);
    }

    /// Returns all exporters in order.
    pub(super) fn rows(self) -> Vec<ExporterReport> {
        self.rows.into_values().collect()
    }

    fn add_row(&mut self, row: ExporterReport, limit: usize) {
        let key = (row.from, row.exporter, row.format, row.transport, row.observation_domain_id);
        let has_room = self.rows.len() < limit;
        match self.rows.get_mut(&key) {
            Some(sum) => sum.add(&row),
            None if has_room => drop(self.rows.insert(key, row)),
            None => self.totals.gone += row.counts,
        }
    }

    fn add_totals(&mut self, totals: &Totals) {
        let sum = &mut self.totals;
        sum.sessions += totals.sessions;
        sum.sessions_evicted += totals.sessions_evicted;
        sum.sessions_expired += totals.sessions_expired;
        sum.dropped_unreadable += totals.dropped_unreadable;
        sum.dropped_too_many_domains += totals.dropped_too_many_domains;
        sum.held_bytes += totals.held_bytes;
        sum.gone += totals.gone;
    }
}

impl ExporterReport {
    fn add(&mut self, other: &ExporterReport) {
        self.sessions += other.sessions;
        self.templates += other.templates;
        self.counts += other.counts;
        if other.last_received >= self.last_received {
            self.last_received = other.last_received;
            self.sampling_interval = other.sampling_interval;
        }
    }
}

impl From<&SourceStatistics> for ExporterReport {
    fn from(source: &SourceStatistics) -> ExporterReport {
        ExporterReport {
            from: source.from.ip(),
            exporter: source.exporter,
            format: source.format,
            transport: source.transport,
            observation_domain_id: source.observation_domain_id,
            sessions: 1,
            sampling_interval: source.sampling_interval,
            templates: source.templates,
            last_received: source.last_received,
            counts: source.counts,
        }
    }
}
