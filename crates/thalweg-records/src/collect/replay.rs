//! Collects export messages from captures. Time is that of the capture. Reading waits for the store, so no record is
//! dropped.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_wire::Timestamp;
use thalweg_wire::packet::Fragment;
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;

use super::exporters::Exporters;
use super::intake::{Intake, Snapshot};
use super::outlet::{Shared, lock};
use super::process::Stores;
use super::{CollectError, CollectOptions, Report, Tap};
use crate::geo::GeoDatabases;
use crate::kafka::Kafka;
use crate::store::Recovered;

/// Rows decoded per flush.
const CHUNK_ROWS: usize = 4096;

/// Interval between checks for room in the store and in Kafka.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Counters of the frames read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Frames read.
    pub frames: u64,
    /// UDP datagrams passed to the decoder.
    pub messages: u64,
    /// Other traffic: not UDP, other ports, or payloads that do not look like an export message.
    pub other: u64,
    /// Fragments, which are not reassembled: those to one of the ports or that look like an export message. Later fragments
    /// of all UDP datagrams are included, because they carry no ports.
    pub fragments: u64,
    /// Truncated datagrams (snap length).
    pub truncated: u64,
    /// Malformed frames.
    pub unparsed: u64,
}

/// Decodes export messages from captures into the store.
pub struct Replay {
    intake: Intake,
    snapshot: Arc<Mutex<Snapshot>>,
    outlet: Shared,
    stores: Stores,
    /// Reading waits while this many rows are queued: half the queue, so that a page always has room.
    max_queued: u64,
    /// UDP ports of export messages; empty: all payloads that look like one.
    ports: BTreeSet<u16>,
    counts: ReplayCounts,
    geo: Option<Arc<GeoDatabases>>,
    time: Timestamp,
}

impl Replay {
    /// Opens the store. Reads datagrams to `ports`, or, if empty, those that look like an export message.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn new(
        options: &CollectOptions,
        ports: BTreeSet<u16>,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<Replay, CollectError> {
        let stores = Stores::open(options, tap, (options.clock)())?;
        let (outlet, snapshot) = (stores.outlet(), Arc::<Mutex<Snapshot>>::default());
        let intake = Intake::new(options, outlet.clone(), snapshot.clone());
        let max_queued = (options.store.queue_rows as u64 / 2).max(1);
        let (counts, time) = (ReplayCounts::default(), Timestamp::default());
        let geo = options.geo.clone();
        Ok(Replay { intake, snapshot, outlet, stores, max_queued, ports, counts, geo, time })
    }

    /// Processes a frame; waits for the disk and Kafka if they are behind.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.counts.frames += 1;
        let datagram = match (Parser { decapsulate: false }).udp(frame) {
            Ok(Some(datagram)) => datagram,
            Ok(None) => return self.counts.other += 1,
            Err(_) => return self.counts.unparsed += 1,
        };
        let port = datagram.destination.port();
        match datagram.fragment {
            Fragment::Later { .. } => return self.counts.fragments += 1,
            _ if !self.is_selected(port, datagram.payload) => return self.counts.other += 1,
            Fragment::First { .. } => return self.counts.fragments += 1,
            Fragment::Whole => {}
        }
        if datagram.payload.len() < datagram.payload_length as usize {
            return self.counts.truncated += 1;
        }
        self.counts.messages += 1;
        self.time = self.time.max(frame.time);
        self.intake.datagram(datagram.source, frame.time, datagram.payload);
        if self.intake.pending() >= CHUNK_ROWS {
            self.flush();
        }
    }

    /// Returns the counters of the frames read.
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// Returns what was recovered from the spool of flow records at the start.
    pub fn recovered(&self) -> Recovered {
        self.stores.recovered.clone()
    }

    /// Returns the current report, which has no sockets.
    pub fn report(&self) -> Report {
        let mut exporters = Exporters::default();
        exporters.add(&lock(&self.snapshot), usize::MAX);
        Report {
            totals: exporters.totals,
            last_fault: exporters.last_fault,
            exporters: exporters.rows(),
            flows: self.stores.flows.statistics(),
            counters: self.stores.counters.statistics(),
            kafka: self.stores.kafka.as_ref().map(Kafka::statistics),
            geo: self.geo.as_ref().map(|geo| geo.statistics()),
            ..Report::default()
        }
    }

    /// Writes all records and returns the final report.
    pub fn finish(mut self) -> Report {
        self.flush();
        self.intake.finish(self.time);
        let report = self.report();
        let Replay { intake, outlet, mut stores, time, .. } = self;
        drop((intake, outlet));
        Report {
            flows: stores.flows.finish(time),
            counters: stores.counters.finish(time),
            kafka: stores.kafka.as_mut().map(Kafka::finish),
            ..report
        }
    }

    fn is_selected(&self, port: u16, payload: &[u8]) -> bool {
        if self.ports.is_empty() { looks_like_export_message(payload) } else { self.ports.contains(&port) }
    }

    fn flush(&mut self) {
        let has_room = |kafka: &Option<Kafka>| kafka.as_ref().is_none_or(Kafka::has_room);
        while self.stores.flows.statistics().queued >= self.max_queued || !has_room(&self.stores.kafka) {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.intake.flush(self.time);
        self.intake.tick(self.time);
        lock(&self.outlet).tick(self.time);
    }
}

/// Returns whether a payload starts like an export message and has the length that its header states, if it states one.
/// DNS, VXLAN, RTP and QUIC do not match.
fn looks_like_export_message(payload: &[u8]) -> bool {
    let Some(&[v0, v1, n0, n1]) = payload.first_chunk() else { return false };
    let number = u16::from_be_bytes([n0, n1]);
    match u16::from_be_bytes([v0, v1]) {
        // NetFlow v5: a 24-byte header and at most 30 records of 48 bytes.
        5 => (1..=30).contains(&number) && payload.len() == 24 + 48 * usize::from(number),
        // RFC 3954 section 5.1: a 20-byte header, then flow sets with lengths.
        9 => number > 0 && is_set_list(payload, 20),
        // RFC 7011 section 3.1.
        10 => usize::from(number) == payload.len() && is_set_list(payload, 16),
        // sFlow v5 section 5: the version has 32 bits, and the agent's address is IPv4 or IPv6.
        0 => number == 5 && payload.len() >= 28 && matches!(payload[4..8], [0, 0, 0, 1 | 2]),
        _ => false,
    }
}

/// Returns whether consecutive sets fill the message from `offset` to its end.
fn is_set_list(message: &[u8], mut offset: usize) -> bool {
    while offset + 4 <= message.len() {
        let length = usize::from(u16::from_be_bytes([message[offset + 2], message[offset + 3]]));
        if length < 4 {
            return false;
        }
        offset += length;
    }
    // Up to three bytes of padding may follow the last set.
    (message.len().saturating_sub(3)..=message.len()).contains(&offset) && offset > 0
}
