//! Decodes messages and passes the rows to the outlet.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use thalweg_wire::flow_export::decode::{SourceStatistics, Totals};
use thalweg_wire::flow_export::{DecodeError, Decoded, Decoder};
use thalweg_wire::{Nanos, Timestamp};

use super::CollectOptions;
use super::outlet::{Shared, lock};
use super::templates::TemplateKeeper;
use crate::geo::GeoAnnotator;

/// Interval at which the snapshot is updated and expired state is removed.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(250);

/// A snapshot of a decoder's counters, for other threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) sources: Vec<SourceStatistics>,
    pub(super) totals: Totals,
    /// The last decoding error.
    pub(super) last_fault: Option<DecodeError>,
}

/// A decoder and its outlet.
pub(super) struct Intake {
    decoder: Decoder,
    decoded: Decoded,
    outlet: Shared,
    snapshot: Arc<Mutex<Snapshot>>,
    last_fault: Option<DecodeError>,
    next_snapshot: Timestamp,
    /// Keeps the templates of sessions over UDP.
    templates: Option<TemplateKeeper>,
    geo: Option<GeoAnnotator>,
}

impl Intake {
    pub(super) fn new(options: &CollectOptions, outlet: Shared, snapshot: Arc<Mutex<Snapshot>>) -> Intake {
        let mut decoder = Decoder::new(options.limits);
        for (&exporter, &interval) in &options.sampling {
            decoder.set_sampling(exporter, interval);
        }
        decoder.set_decapsulate(options.decapsulate);
        Intake {
            decoder,
            decoded: Decoded::default(),
            outlet,
            snapshot,
            last_fault: None,
            next_snapshot: Timestamp::default(),
            templates: None,
            geo: options.geo.clone().map(GeoAnnotator::new),
        }
    }

    /// Restores the templates of an earlier run, and saves them for the next one.
    pub(super) fn keep_templates(self, keeper: TemplateKeeper) -> Intake {
        Intake { templates: Some(keeper), ..self }
    }

    /// Decodes a datagram. The decoder counts errors.
    pub(super) fn datagram(&mut self, from: SocketAddr, received: Timestamp, bytes: &[u8]) {
        let from = canonical(from);
        if let Some(templates) = &self.templates {
            templates.restore(from, &mut self.decoder, received);
        }
        if let Err(fault) = self.decoder.datagram(from, received, bytes, &mut self.decoded) {
            self.last_fault = Some(fault);
        }
    }

    /// Decodes a message of a connection.
    pub(super) fn message(
        &mut self,
        from: SocketAddr,
        received: Timestamp,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        let result = self.decoder.message(canonical(from), received, bytes, &mut self.decoded);
        self.last_fault = result.err().or(self.last_fault);
        result
    }

    /// Returns the number of decoded records that wait for [`flush`](Intake::flush).
    pub(super) fn pending(&self) -> usize {
        self.decoded.flows.len() + self.decoded.counters.len()
    }

    /// Passes all decoded rows to the outlet.
    pub(super) fn flush(&mut self, now: Timestamp) {
        if self.pending() > 0 {
            if let Some(geo) = &mut self.geo {
                geo.annotate(&mut self.decoded.flows);
            }
            lock(&self.outlet).append(&self.decoded, now);
            self.decoded.clear();
        }
    }

    /// Does periodic work. Call it often; most calls only compare two times.
    pub(super) fn tick(&mut self, now: Timestamp) {
        // If the clock was set back, do not wait until it catches up.
        let is_due = now >= self.next_snapshot || self.next_snapshot.since(now) > SNAPSHOT_INTERVAL;
        if is_due {
            self.next_snapshot = now + SNAPSHOT_INTERVAL;
            self.decoder.expire(now);
            if let Some(templates) = &mut self.templates {
                templates.tick(&self.decoder, now);
            }
            self.update_snapshot();
        }
    }

    /// Flushes all rows, drops data that still wait for their template, and updates the snapshot.
    pub(super) fn finish(&mut self, now: Timestamp) {
        self.flush(now);
        self.decoder.finish();
        if let Some(templates) = &mut self.templates {
            templates.publish(&self.decoder, now);
        }
        self.update_snapshot();
    }

    /// Ends the session of a connection and returns its counters.
    pub(super) fn end_session(&mut self, from: SocketAddr, now: Timestamp) -> Snapshot {
        self.flush(now);
        // Before the snapshot, so that data without a template count as dropped.
        self.decoder.finish();
        let ended = self.snapshot();
        self.decoder.end_session(canonical(from));
        ended
    }

    fn update_snapshot(&self) {
        *lock(&self.snapshot) = self.snapshot();
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            sources: self.decoder.sources(),
            totals: self.decoder.totals(),
            last_fault: self.last_fault,
        }
    }
}

/// Returns an IPv4-mapped IPv6 address as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
