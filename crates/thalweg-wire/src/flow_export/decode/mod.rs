//! Export messages to rows.

mod error;
mod limits;
mod statistics;

use std::net::{IpAddr, SocketAddr};

pub use error::{DecodeError, Fault};
pub use limits::Limits;
pub use statistics::{Counts, SourceStatistics, Totals, Transport};

use super::{CounterBatch, RecordBatch};
use crate::time::Timestamp;

/// What messages told. Rows are added; the caller clears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Flow records.
    pub flows: RecordBatch,
    /// Interface counters (sFlow).
    pub counters: CounterBatch,
}

impl Decoded {
    /// Drops all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.counters.clear();
    }
}

/// Reads the export messages of many exporters.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
}

impl Decoder {
    /// A decoder that knows no exporter yet.
    pub fn new(limits: Limits) -> Decoder {
        Decoder { limits }
    }

    /// What it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// One packet in `interval` is counted by `exporter`, where it does not say so itself. 0 takes that back.
    pub fn set_sampling(&mut self, _exporter: IpAddr, _interval: u32) {
        todo!()
    }

    /// Reads one UDP payload of any format; its rows are added to `into`, and those of earlier data that waited for
    /// a template in it.
    ///
    /// # Errors
    /// [`DecodeError`] if it breaks its format; it is counted, and nothing is added.
    pub fn datagram(
        &mut self,
        _from: SocketAddr,
        _received: Timestamp,
        _bytes: &[u8],
        _into: &mut Decoded,
    ) -> Result<(), DecodeError> {
        todo!()
    }

    /// Reads one whole IPFIX message of a connection.
    ///
    /// # Errors
    /// [`DecodeError`] if it breaks its format; it is counted, and nothing is added. RFC 7011 section 10.4 has the
    /// connection closed then.
    pub fn message(
        &mut self,
        _from: SocketAddr,
        _received: Timestamp,
        _bytes: &[u8],
        _into: &mut Decoded,
    ) -> Result<(), DecodeError> {
        todo!()
    }

    /// Forgets a connection that was closed, with its templates; its counts go to [`Totals::gone`].
    pub fn end_session(&mut self, _from: SocketAddr) {
        todo!()
    }

    /// Forgets what has waited or been silent for too long. To be called every few seconds or so.
    pub fn expire(&mut self, _now: Timestamp) {
        todo!()
    }

    /// Every observation domain of every session, in order of address, transport, format and domain.
    pub fn sources(&self) -> Vec<SourceStatistics> {
        todo!()
    }

    /// What concerns no domain of [`Decoder::sources`].
    pub fn totals(&self) -> Totals {
        todo!()
    }
}
