//! Encodes records as the NetFlow v9 datagrams of their exporters, one session per exporter, like real routers.

use std::collections::BTreeMap;
use std::io;

use thalweg_wire::flow_export::encode::{Messages, netflow9};
use thalweg_wire::flow_export::{Address, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

/// Rows of an exporter encoded at once: about eight datagrams.
const ROWS: usize = 160;

/// Time between the routers' start and the first record.
const UPTIME: Nanos = Nanos::from_secs(3_600);

/// A destination of datagrams.
pub trait Deliver {
    /// Delivers one datagram of `exporter`, sent at `time`.
    ///
    /// # Errors
    /// If it cannot be written or sent.
    fn deliver(&mut self, exporter: Address, time: Timestamp, datagram: &[u8]) -> io::Result<()>;
}

/// Encodes datagrams for exporters, which are identified by address and observation domain.
#[derive(Debug)]
pub struct Datagrams {
    boot: Timestamp,
    exporters: BTreeMap<(Address, u32), Exporter>,
    messages: Messages,
    /// Whether to wait for full datagrams, however long that takes.
    is_full: bool,
    /// Reception time of the newest record.
    now_us: i64,
    sent: u64,
}

#[derive(Debug)]
struct Exporter {
    encoder: netflow9::Encoder,
    rows: RecordBatch,
}

impl Datagrams {
    /// Returns an encoder for records from `start` on. Exporters send at least once a second of the records' time, like
    /// real routers, so datagrams are short where records are few.
    pub fn new(start: Timestamp) -> Datagrams {
        let boot = Timestamp(start.0.saturating_sub(UPTIME.0));
        let (exporters, messages) = (BTreeMap::new(), Messages::new());
        Datagrams { boot, exporters, messages, is_full: false, now_us: 0, sent: 0 }
    }

    /// Returns an encoder of full datagrams, for a sending rate other than that of the records.
    pub fn full(start: Timestamp) -> Datagrams {
        Datagrams { is_full: true, ..Datagrams::new(start) }
    }

    /// Adds rows in order of reception, and delivers the datagrams that are due.
    ///
    /// # Errors
    /// Errors of the delivery.
    pub fn push(&mut self, rows: &RecordBatch, to: &mut impl Deliver) -> io::Result<()> {
        for row in 0..rows.len() {
            let received_us = rows.received_us[row];
            let is_next_second = received_us.div_euclid(1_000_000) != self.now_us.div_euclid(1_000_000);
            if is_next_second && !self.is_full {
                self.finish(to)?;
            }
            self.now_us = received_us;
            let domain = rows.observation_domain_id[row];
            let exporter = self.exporter(rows.exporter[row], domain)?;
            exporter.rows.push(&rows.record(row));
            if exporter.rows.len() >= ROWS {
                self.flush((rows.exporter[row], domain), to)?;
            }
        }
        Ok(())
    }

    /// Delivers all pending rows.
    ///
    /// # Errors
    /// Errors of the delivery.
    pub fn finish(&mut self, to: &mut impl Deliver) -> io::Result<()> {
        let pending = self.exporters.iter().filter(|(_, exporter)| !exporter.rows.is_empty());
        let pending: Vec<_> = pending.map(|(&exporter, _)| exporter).collect();
        pending.into_iter().try_for_each(|exporter| self.flush(exporter, to))
    }

    /// Returns the number of delivered datagrams.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn exporter(&mut self, address: Address, source_id: u32) -> io::Result<&mut Exporter> {
        use std::collections::btree_map::Entry;
        match self.exporters.entry((address, source_id)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let options = netflow9::Options { source_id, ..netflow9::Options::new(self.boot) };
                let encoder = netflow9::Encoder::new(options).map_err(io::Error::other)?;
                Ok(entry.insert(Exporter { encoder, rows: RecordBatch::with_capacity(ROWS) }))
            }
        }
    }

    fn flush(&mut self, of: (Address, u32), to: &mut impl Deliver) -> io::Result<()> {
        let Some(exporter) = self.exporters.get_mut(&of) else { return Ok(()) };
        let time = Timestamp(self.now_us.max(0) as u64 * 1_000);
        self.messages.clear();
        exporter.encoder.encode(&exporter.rows, time, &mut self.messages);
        exporter.rows.clear();
        for message in self.messages.iter() {
            self.sent += 1;
            to.deliver(of.0, time, message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use thalweg_wire::flow_export::{Decoded, Decoder, Limits};

    use super::super::{Generator, Options};
    use super::*;

    /// A collector that decodes each datagram.
    struct Collector {
        decoder: Decoder,
        decoded: Decoded,
        datagrams: u64,
    }

    impl Collector {
        fn new() -> Collector {
            Collector { decoder: Decoder::new(Limits::default()), decoded: Decoded::default(), datagrams: 0 }
        }
    }

    impl Deliver for Collector {
        fn deliver(&mut self, exporter: Address, time: Timestamp, datagram: &[u8]) -> io::Result<()> {
            let from = SocketAddr::new(exporter.ip().unwrap(), 2_055);
            self.datagrams += 1;
            self.decoder.datagram(from, time, datagram, &mut self.decoded).map_err(io::Error::other)
        }
    }

    /// Returns the fields of each row, except the reception time, in sorted order.
    fn fields(rows: &RecordBatch) -> Vec<impl Ord + std::fmt::Debug> {
        let row = |row: usize| {
            let record = rows.record(row);
            let addresses = (record.exporter, record.source_address, record.destination_address);
            let ports = (record.source_port, record.destination_port, record.protocol, record.tcp_flags);
            let times = (record.flow_start_us, record.flow_end_us);
            let counts = (record.octets, record.packets, record.sampling_interval);
            let route = (record.observation_domain_id, record.ingress_interface, record.source_as);
            (addresses, ports, times, counts, route)
        };
        let mut fields: Vec<_> = (0..rows.len()).map(row).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_collector_decodes_the_generated_rows() {
        let options = Options { records: 20_000, duration: Nanos::from_secs(1_200), ..Options::default() };
        for is_full in [false, true] {
            let mut generator = Generator::new(options.clone(), 1).unwrap();
            let start = generator.start();
            let mut datagrams = if is_full { Datagrams::full(start) } else { Datagrams::new(start) };
            let (mut collector, mut generated) = (Collector::new(), RecordBatch::default());
            generator.fill(&mut generated, 20_000);
            datagrams.push(&generated, &mut collector).unwrap();
            datagrams.finish(&mut collector).unwrap();
            assert!(fields(&collector.decoded.flows) == fields(&generated));
            assert_eq!(collector.datagrams, datagrams.sent());
            // Full datagrams hold about 20 records.
            assert_eq!(datagrams.sent() < 20_000 / 15, is_full, "{}", datagrams.sent());
        }
    }
}
