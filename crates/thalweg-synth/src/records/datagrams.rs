//! Records to the NetFlow v9 datagrams of their exporters: a session each, as routers have.

use std::collections::BTreeMap;
use std::io;

use thalweg_wire::flow_export::encode::{Messages, netflow9};
use thalweg_wire::flow_export::{Address, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

/// Rows of an exporter that are put into datagrams at once: some eight datagrams.
const ROWS: usize = 160;

/// Routers were started so long before the first record.
const UPTIME: Nanos = Nanos::from_secs(3_600);

/// Takes datagrams: who sent one, when, and its bytes.
pub trait Deliver {
    /// Takes one.
    ///
    /// # Errors
    /// If it cannot be written or sent.
    fn deliver(&mut self, exporter: Address, time: Timestamp, datagram: &[u8]) -> io::Result<()>;
}

/// Exporters by address and observation domain.
#[derive(Debug)]
pub struct Datagrams {
    boot: Timestamp,
    exporters: BTreeMap<(Address, u32), Exporter>,
    messages: Messages,
    /// Whether rows wait until there are enough, however long that takes.
    waits: bool,
    /// When the newest record was received.
    now_us: i64,
    sent: u64,
}

#[derive(Debug)]
struct Exporter {
    encoder: netflow9::Encoder,
    rows: RecordBatch,
}

impl Datagrams {
    /// Exporters of which none has sent anything; records begin at `start` or later. They send at least every second of
    /// the records' time, as routers do: where there are few records, datagrams are short.
    pub fn new(start: Timestamp) -> Datagrams {
        let boot = Timestamp(start.0.saturating_sub(UPTIME.0));
        let (exporters, messages) = (BTreeMap::new(), Messages::new());
        Datagrams { boot, exporters, messages, waits: false, now_us: 0, sent: 0 }
    }

    /// The same, but for sending at another pace than the records': datagrams are full.
    pub fn full(start: Timestamp) -> Datagrams {
        Datagrams { waits: true, ..Datagrams::new(start) }
    }

    /// Takes rows in order of reception, and delivers what is due.
    ///
    /// # Errors
    /// What delivering says.
    pub fn push(&mut self, rows: &RecordBatch, to: &mut impl Deliver) -> io::Result<()> {
        for row in 0..rows.len() {
            let received_us = rows.received_us[row];
            let is_next_second = received_us.div_euclid(1_000_000) != self.now_us.div_euclid(1_000_000);
            if is_next_second && !self.waits {
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

    /// Delivers all that waits.
    ///
    /// # Errors
    /// What delivering says.
    pub fn finish(&mut self, to: &mut impl Deliver) -> io::Result<()> {
        let waiting = self.exporters.iter().filter(|(_, exporter)| !exporter.rows.is_empty());
        let waiting: Vec<_> = waiting.map(|(&exporter, _)| exporter).collect();
        waiting.into_iter().try_for_each(|exporter| self.flush(exporter, to))
    }

    /// Datagrams delivered.
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

    /// A collector that decodes what it is given.
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

    /// What a row tells, without when it was received.
    fn told(rows: &RecordBatch) -> Vec<impl Ord + std::fmt::Debug> {
        let row = |row: usize| {
            let record = rows.record(row);
            let addresses = (record.exporter, record.source_address, record.destination_address);
            let ports = (record.source_port, record.destination_port, record.protocol, record.tcp_flags);
            let times = (record.flow_start_us, record.flow_end_us);
            let counts = (record.octets, record.packets, record.sampling_interval);
            let route = (record.observation_domain_id, record.ingress_interface, record.source_as);
            (addresses, ports, times, counts, route)
        };
        let mut told: Vec<_> = (0..rows.len()).map(row).collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn a_collector_decodes_the_rows_that_were_made() {
        let options = Options { records: 20_000, duration: Nanos::from_secs(1_200), ..Options::default() };
        for is_full in [false, true] {
            let mut generator = Generator::new(options.clone(), 1).unwrap();
            let start = generator.start();
            let mut datagrams = if is_full { Datagrams::full(start) } else { Datagrams::new(start) };
            let (mut collector, mut made) = (Collector::new(), RecordBatch::default());
            generator.fill(&mut made, 20_000);
            datagrams.push(&made, &mut collector).unwrap();
            datagrams.finish(&mut collector).unwrap();
            assert!(told(&collector.decoded.flows) == told(&made));
            assert_eq!(collector.datagrams, datagrams.sent());
            // Full datagrams have some 20 records.
            assert_eq!(datagrams.sent() < 20_000 / 15, is_full, "{}", datagrams.sent());
        }
    }
}
