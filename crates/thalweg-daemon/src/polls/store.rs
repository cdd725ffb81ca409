//! Stores interface counters as Parquet, in the dataset `interface-counters` that `thalweg collect` writes of sFlow.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_linux::clock::realtime;
use thalweg_poll::{Counter, InterfaceReading};
use thalweg_records::store::{Statistics, Store, StoreError, StoreOptions};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Address, CounterBatch, CounterRecord};

use crate::lifecycle::Lifecycle;

/// Interval of ticks of the store.
const TICK: Duration = Duration::from_millis(100);

/// Capacity of the queue to the store: rows of all polls for some intervals.
const QUEUE_CAPACITY: usize = 1_024;

/// The value of sFlow for a counter that is not maintained.
const NOT_MAINTAINED: u32 = u32::MAX;

/// The store of interface counters.
pub(super) struct CounterStore {
    store: Store<CounterBatch>,
    rows: Receiver<CounterRecord>,
    statistics: Arc<Mutex<Option<Statistics>>>,
}

impl CounterStore {
    /// Opens the store. Also returns the sender of rows.
    ///
    /// # Errors
    /// If the directory cannot be used.
    pub(super) fn open(
        options: &StoreOptions,
        statistics: Arc<Mutex<Option<Statistics>>>,
    ) -> Result<(CounterStore, Sender<CounterRecord>), StoreError> {
        let options = StoreOptions { queue_rows: 1 << 16, ..options.clone() };
        let (store, _) = Store::open(options, realtime())?;
        let (sender, rows) = bounded(QUEUE_CAPACITY);
        Ok((CounterStore { store, rows, statistics }, sender))
    }

    /// Stores rows until the daemon stops.
    pub(super) fn run(mut self, lifecycle: &Lifecycle) {
        while !lifecycle.is_stopping() {
            self.append(self.rows.recv_timeout(TICK).ok());
            self.store.tick(realtime());
            self.set_statistics(self.store.statistics());
        }
        while let Ok(row) = self.rows.try_recv() {
            self.append(Some(row));
        }
        let statistics = self.store.finish(realtime());
        let (written, lost, in_spool) = (statistics.written, statistics.lost.total(), statistics.in_spool);
        match lost + in_spool {
            0 => tracing::info!(written, "interface counters stored"),
            _ => tracing::warn!(written, lost, in_spool, "storage of interface counters incomplete"),
        }
        self.set_statistics(statistics);
    }

    fn append(&mut self, row: Option<CounterRecord>) {
        if let Some(row) = row {
            let mut batch = CounterBatch::default();
            batch.push(&row);
            self.store.append(&batch, realtime());
        }
    }

    fn set_statistics(&self, statistics: Statistics) {
        *self.statistics.lock().unwrap_or_else(PoisonError::into_inner) = Some(statistics);
    }
}

/// Returns the row of a reading. Packets of all kinds are in the columns of unicast packets; like all packet columns of the
/// dataset they wrap at 2^32.
pub(super) fn row(reading: &InterfaceReading, now: Timestamp) -> CounterRecord {
    let optional = |counter: Option<Counter>| counter.map_or(NOT_MAINTAINED, |counter| counter.value as u32);
    let up = u8::from(reading.is_up);
    CounterRecord {
        received_us: (now.0 / 1_000) as i64,
        exporter: reading.agent.map_or(Address::NONE, Address::from),
        interface: reading.index,
        speed_bps: reading.speed.map_or(0, |speed| speed.0),
        administratively_up: up,
        operationally_up: up,
        in_octets: reading.input.bytes.value,
        in_unicast_packets: reading.input.packets.value as u32,
        in_multicast_packets: NOT_MAINTAINED,
        in_broadcast_packets: NOT_MAINTAINED,
        in_discards: optional(reading.input.discards),
        in_errors: optional(reading.input.errors),
        in_unknown_protocols: NOT_MAINTAINED,
        out_octets: reading.output.bytes.value,
        out_unicast_packets: reading.output.packets.value as u32,
        out_multicast_packets: NOT_MAINTAINED,
        out_broadcast_packets: NOT_MAINTAINED,
        out_discards: optional(reading.output.discards),
        out_errors: optional(reading.output.errors),
        ..CounterRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_poll::{PortCounters, Scope};

    use super::super::state::tests::reading;
    use super::*;

    #[test]
    fn a_row_has_the_agent_and_says_what_is_not_counted() {
        let port = PortCounters {
            packets: Counter::bits64((1 << 32) + 7),
            bytes: Counter::bits64(9_000),
            errors: None,
            discards: Some(Counter::bits64(3)),
        };
        let agent = Some("192.0.2.1".parse().unwrap());
        let reading =
            InterfaceReading { agent, input: port, output: port, ..reading(0, 0, 0, Scope::AllQueues) };
        let row = row(&reading, Timestamp(5_000_000));
        let agent: std::net::IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!((row.exporter, row.interface, row.received_us), (Address::from(agent), 3, 5_000));
        assert_eq!((row.out_unicast_packets, row.out_octets), (7, 9_000), "packets wrap at 2^32");
        assert_eq!((row.out_discards, row.out_errors), (3, u32::MAX));
        assert_eq!(
            super::row(&InterfaceReading { agent: None, ..reading }, Timestamp(0)).exporter,
            Address::NONE
        );
    }
}
