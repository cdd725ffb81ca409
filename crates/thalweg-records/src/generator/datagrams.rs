//! Records to the NetFlow v9 datagrams of their exporters: a session each, as routers have.

use std::collections::BTreeMap;
use std::io;

use thalweg_wire::flow_export::encode::{Messages, netflow9};
use thalweg_wire::flow_export::{Address, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

/// Rows of an exporter that are put into datagrams at once, if they come within a second: some eight datagrams.
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
    /// Exporters of which none has sent anything; records begin at `start` or later.
    pub fn new(start: Timestamp) -> Datagrams {
        let boot = Timestamp(start.0.saturating_sub(UPTIME.0));
        Datagrams { boot, exporters: BTreeMap::new(), messages: Messages::new(), now_us: 0, sent: 0 }
    }

    /// Takes rows in order of reception, and delivers what is full or a second old.
    ///
    /// # Errors
    /// What delivering says.
    pub fn push(&mut self, rows: &RecordBatch, to: &mut impl Deliver) -> io::Result<()> {
        for row in 0..rows.len() {
            let received_us = rows.received_us[row];
            if received_us.div_euclid(1_000_000) != self.now_us.div_euclid(1_000_000) {
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
