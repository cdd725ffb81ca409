//! Export messages out of captures, into the store: time passes as the captures have it, and nothing is lost for want of
//! room.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_wire::Timestamp;
use thalweg_wire::packet::Fragment;
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;

use super::exporters::Exporters;
use super::intake::{Intake, Published};
use super::outlet::{Shared, lock};
use super::process::Stores;
use super::{CollectError, CollectOptions, Report, Tap};
use crate::kafka::Kafka;
use crate::store::Recovered;

/// Rows decoded before they are handed on.
const CHUNK_ROWS: usize = 4096;

/// How long to wait for the disk, or for Kafka, before looking again.
const PAUSE: Duration = Duration::from_millis(1);

/// Frames of a capture, and what they gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Frames seen.
    pub frames: u64,
    /// UDP datagrams handed to the decoder.
    pub messages: u64,
    /// Frames of other traffic: no UDP, other ports, or nothing that begins like an export message.
    pub other: u64,
    /// Fragments of datagrams to one of the ports, or that begin like an export message: they are not put together. Later
    /// fragments of all UDP are counted here, for they have no ports.
    pub fragments: u64,
    /// Datagrams that were not captured whole.
    pub cut_short: u64,
    /// Frames that break their format.
    pub unparsed: u64,
}

/// Messages of captures on their way to the store.
pub struct Replay {
    intake: Intake,
    published: Arc<Mutex<Published>>,
    outlet: Shared,
    stores: Stores,
    /// With so many rows in the store's queue the capture waits: half of it, so that a whole page always has room.
    most_queued: u64,
    /// UDP ports of export messages; empty: whatever looks like one.
    ports: BTreeSet<u16>,
    counts: ReplayCounts,
    time: Timestamp,
}

impl Replay {
    /// Opens the store. Datagrams to `ports` are read; if there are none, those that begin like an export message.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn new(
        options: &CollectOptions,
        ports: BTreeSet<u16>,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<Replay, CollectError> {
        let stores = Stores::open(options, tap, (options.clock)())?;
        let (outlet, published) = (stores.outlet(), Arc::<Mutex<Published>>::default());
        let intake = Intake::new(options, outlet.clone(), published.clone());
        let most_queued = (options.store.queue_rows as u64 / 2).max(1);
        let (counts, time) = (ReplayCounts::default(), Timestamp::default());
        Ok(Replay { intake, published, outlet, stores, most_queued, ports, counts, time })
    }

    /// Takes a frame; waits if the disk is behind, or Kafka.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.counts.frames += 1;
        let datagram = match (Parser { peel_tunnels: false }).udp(frame) {
            Ok(Some(datagram)) => datagram,
            Ok(None) => return self.counts.other += 1,
            Err(_) => return self.counts.unparsed += 1,
        };
        let port = datagram.destination.port();
        match datagram.fragment {
            Fragment::Later { .. } => return self.counts.fragments += 1,
            _ if !self.is_wanted(port, datagram.payload) => return self.counts.other += 1,
            Fragment::First { .. } => return self.counts.fragments += 1,
            Fragment::Whole => {}
        }
        if datagram.payload.len() < datagram.payload_length as usize {
            return self.counts.cut_short += 1;
        }
        self.counts.messages += 1;
        self.time = self.time.max(frame.time);
        self.intake.datagram(datagram.source, frame.time, datagram.payload);
        if self.intake.waiting() >= CHUNK_ROWS {
            self.hand_on();
        }
    }

    /// What frames gave so far.
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// What an earlier run had left in the spool of flow records.
    pub fn recovered(&self) -> Recovered {
        self.stores.recovered
    }

    /// What became of everything so far; there are no sockets.
    pub fn report(&self) -> Report {
        let mut exporters = Exporters::default();
        exporters.add(&lock(&self.published), usize::MAX);
        Report {
            totals: exporters.totals,
            last_fault: exporters.last_fault,
            exporters: exporters.rows(),
            flows: self.stores.flows.statistics(),
            counters: self.stores.counters.statistics(),
            kafka: self.stores.kafka.as_ref().map(Kafka::statistics),
            ..Report::default()
        }
    }

    /// Everything is written. Says what became of it.
    pub fn finish(mut self) -> Report {
        self.hand_on();
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

    fn is_wanted(&self, port: u16, payload: &[u8]) -> bool {
        if self.ports.is_empty() { begins_like_a_message(payload) } else { self.ports.contains(&port) }
    }

    fn hand_on(&mut self) {
        let has_room = |kafka: &Option<Kafka>| kafka.as_ref().is_none_or(Kafka::has_room);
        while self.stores.flows.statistics().queued >= self.most_queued || !has_room(&self.stores.kafka) {
            std::thread::sleep(PAUSE);
        }
        self.intake.hand_on(self.time);
        self.intake.tick(self.time);
        lock(&self.outlet).tick(self.time);
    }
}

/// Whether a payload begins like an export message and is as long as it says, as far as it says so: DNS, VXLAN, RTP,
/// QUIC and their like do not.
fn begins_like_a_message(payload: &[u8]) -> bool {
    let Some(&[v0, v1, n0, n1]) = payload.first_chunk() else { return false };
    let number = u16::from_be_bytes([n0, n1]);
    match u16::from_be_bytes([v0, v1]) {
        // NetFlow v5: 30 records at most, 48 bytes each after 24 of header.
        5 => (1..=30).contains(&number) && payload.len() == 24 + 48 * usize::from(number),
        // RFC 3954 section 5.1: 20 bytes of header, then flow sets with their lengths.
        9 => number > 0 && is_set_list(payload, 20),
        // RFC 7011 section 3.1.
        10 => usize::from(number) == payload.len() && is_set_list(payload, 16),
        // sFlow v5 section 5: the version has 32 bits; the agent's address is of IPv4 or IPv6.
        0 => number == 5 && payload.len() >= 28 && matches!(payload[4..8], [0, 0, 0, 1 | 2]),
        _ => false,
    }
}

/// Whether sets follow each other from `offset` to the end.
fn is_set_list(message: &[u8], mut offset: usize) -> bool {
    while offset + 4 <= message.len() {
        let length = usize::from(u16::from_be_bytes([message[offset + 2], message[offset + 3]]));
        if length < 4 {
            return false;
        }
        offset += length;
    }
    // Padding of less than four bytes at the end is nobody's.
    (message.len().saturating_sub(3)..=message.len()).contains(&offset) && offset > 0
}
