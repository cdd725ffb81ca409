//! Messages to rows: a decoder, and where what it gives goes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use thalweg_wire::flow_export::decode::{SourceStatistics, Totals};
use thalweg_wire::flow_export::{DecodeError, Decoded, Decoder};
use thalweg_wire::{Nanos, Timestamp};

use super::CollectOptions;
use super::outlet::{Shared, lock};

/// How often others are told what the decoder counts, and the decoder is told the time.
const PUBLISH: Nanos = Nanos::from_millis(250);

/// What others see of a decoder.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    pub(super) sources: Vec<SourceStatistics>,
    pub(super) totals: Totals,
    /// What was last wrong with a message.
    pub(super) last_fault: Option<DecodeError>,
}

/// A decoder and its outlet.
pub(super) struct Intake {
    decoder: Decoder,
    decoded: Decoded,
    outlet: Shared,
    published: Arc<Mutex<Published>>,
    last_fault: Option<DecodeError>,
    next_publication: Timestamp,
}

impl Intake {
    pub(super) fn new(options: &CollectOptions, outlet: Shared, published: Arc<Mutex<Published>>) -> Intake {
        let mut decoder = Decoder::new(options.limits);
        for (&exporter, &interval) in &options.sampling {
            decoder.set_sampling(exporter, interval);
        }
        Intake {
            decoder,
            decoded: Decoded::default(),
            outlet,
            published,
            last_fault: None,
            next_publication: Timestamp::default(),
        }
    }

    /// Decodes a datagram. What is wrong with it is counted by the decoder.
    pub(super) fn datagram(&mut self, from: SocketAddr, received: Timestamp, bytes: &[u8]) {
        let from = canonical(from);
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

    /// Records decoded and not handed on.
    pub(super) fn waiting(&self) -> usize {
        self.decoded.flows.len() + self.decoded.counters.len()
    }

    /// Hands all rows on.
    pub(super) fn hand_on(&mut self, now: Timestamp) {
        if self.waiting() > 0 {
            lock(&self.outlet).append(&self.decoded, now);
            self.decoded.clear();
        }
    }

    /// Lets time pass. To be called often: most calls only compare two times.
    pub(super) fn tick(&mut self, now: Timestamp) {
        // A clock that was set back is no reason to be silent until it is there again.
        let is_due = now >= self.next_publication || self.next_publication.since(now) > PUBLISH;
        if is_due {
            self.next_publication = now + PUBLISH;
            self.decoder.expire(now);
            self.publish();
        }
    }

    /// The end: everything is handed on and told.
    pub(super) fn finish(&mut self, now: Timestamp) {
        self.hand_on(now);
        self.publish();
    }

    /// The end of a connection: what was counted for it.
    pub(super) fn end_session(&mut self, from: SocketAddr, now: Timestamp) -> Published {
        self.hand_on(now);
        let ended = self.counted();
        self.decoder.end_session(canonical(from));
        ended
    }

    fn publish(&self) {
        *lock(&self.published) = self.counted();
    }

    fn counted(&self) -> Published {
        Published {
            sources: self.decoder.sources(),
            totals: self.decoder.totals(),
            last_fault: self.last_fault,
        }
    }
}

/// IPv4 that came to a socket of IPv6 is IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
