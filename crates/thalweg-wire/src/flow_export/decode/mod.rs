//! Export messages to rows: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011, RFC 5103), sFlow v5 (sflow.org).
//!
//! ```text
//! message ─► header ─► session ─► domain ─► sets ─┬─► templates, compiled ─┐
//!                                                 ├─► options: sampling    │
//!                                                 └─► data ─► plan ◄───────┘─► columns
//! ```
//!
//! A session is an exporter's address and port, and how it sends; a domain is what the format calls observation
//! domain, source, engine or sub-agent. Nothing that one says changes how another is read, so who forges a source
//! address harms that source only.
//!
//! | module | what it has |
//! |---|---|
//! | `sets`, `netflow5`, `sflow` | headers and how messages are cut |
//! | `template`, `element`, `plan`, `matrix` | a template, compiled once to a plan: from which bytes of a record each column comes. A set is a matrix of bytes that is read column by column; records of variable length are made rows of one length first |
//! | `session`, `domain`, `held` | what is remembered, within [`Limits`], and data that came before their template |
//! | `clock` | absolute times |
//! | `sequence` | losses |
//! | `sampling` | what options records say |
//!
//! **Times.** NetFlow v5 and v9 count from the exporter's start: the header says what its clock and that count were
//! when the message was sent. A flow's count is at most a minute ahead of the header's, otherwise it lies in the past,
//! across the counter's wrap after 49.7 days if need be. IPFIX has absolute times, differences from the export time, and
//! up-times that count from `systemInitTimeMilliseconds`, in the record or in an options record. Of several the finest
//! is taken. A record without a time has that of its message, and is counted. A sample of sFlow has the time of its
//! reception: agents tell no other.
//!
//! **Losses** are counted by session and domain, in the unit of the format ([`Counts::lost`]). What was overtaken on
//! the way is not lost, a restart is not a loss. After a message with data whose template is not known yet, IPFIX's count
//! begins anew: nobody knows how many records these are.
//!
//! **Faults.** A message that breaks its format gives no row, as RFC 7011 section 9.1 asks, and a [`DecodeError`] with the
//! offset. Tolerated, because exporters do it: zeros that fill up a message, counts of records in NetFlow v9 that
//! count something else, fields of no length, lengths that an element cannot have (it says nothing then).
//!
//! **Memory** is bounded by [`Limits`]: about 100 bytes a template field, the held bytes, a few kilobytes a domain. A
//! message gives at most two rows for each of its bytes, and for each byte that waited for a template in it.

mod clock;
mod domain;
mod element;
mod error;
mod field;
mod held;
mod limits;
mod matrix;
mod netflow5;
mod plan;
mod reader;
mod sample_sequences;
mod sampling;
mod sequence;
mod session;
mod sets;
mod sflow;
mod statistics;
mod template;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

pub use error::{DecodeError, Fault};
pub use limits::Limits;
pub use statistics::{Counts, SourceStatistics, Totals, Transport};

use held::Budget;
use reader::Reader;
use session::{Loan, Session};
use template::{Scratch, Template};

use super::{Address, CounterBatch, RecordBatch};
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

    fn rows(&self) -> usize {
        self.flows.len() + self.counters.len()
    }
}

/// Reads the export messages of many exporters.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    sampling: BTreeMap<IpAddr, u32>,
    sessions: HashMap<(SocketAddr, Transport), Session>,
    budget: Budget,
    scratch: Scratch,
    netflow5: Template,
    /// Messages so far.
    number: u64,
    totals: Totals,
}

/// A message of which the header has been read.
enum Message<'a> {
    NetFlow5(netflow5::Message<'a>),
    Sets(sets::Message<'a>),
    Sflow(sflow::Datagram<'a>),
}

impl Decoder {
    /// A decoder that knows no exporter yet.
    pub fn new(limits: Limits) -> Decoder {
        Decoder {
            limits,
            sampling: BTreeMap::new(),
            sessions: HashMap::new(),
            budget: Budget { used: 0, limit: limits.held_bytes_in_all },
            scratch: Scratch::default(),
            netflow5: netflow5::template(),
            number: 0,
            totals: Totals::default(),
        }
    }

    /// What it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// One packet in `interval` is counted by `exporter`, where it does not say so itself. 0 takes that back.
    pub fn set_sampling(&mut self, exporter: IpAddr, interval: u32) {
        match interval {
            0 => self.sampling.remove(&exporter.to_canonical()),
            _ => self.sampling.insert(exporter.to_canonical(), interval),
        };
    }

    /// Reads one UDP payload of any format; its rows are added to `into`, and those of earlier data that waited for
    /// a template in it. Of a biflow the row of the other direction follows at once, if that had packets or octets.
    ///
    /// # Errors
    /// [`DecodeError`] if it breaks its format; it is counted, and nothing is added.
    pub fn datagram(
        &mut self,
        from: SocketAddr,
        received: Timestamp,
        bytes: &[u8],
        into: &mut Decoded,
    ) -> Result<(), DecodeError> {
        let message = read(from, bytes);
        self.decode(from, Transport::Datagram, received, message, into)
            .map_err(|fault| DecodeError { from, fault })
    }

    /// Reads one whole IPFIX message of a connection.
    ///
    /// # Errors
    /// [`DecodeError`] if it breaks its format; it is counted, and nothing is added. The connection should be closed
    /// then, for nobody knows where the next message begins.
    pub fn message(
        &mut self,
        from: SocketAddr,
        received: Timestamp,
        bytes: &[u8],
        into: &mut Decoded,
    ) -> Result<(), DecodeError> {
        let message = match bytes {
            [0, 10, ..] => sets::Message::ipfix(bytes, from.ip().to_canonical().into()).map(Message::Sets),
            _ => Err(not_ipfix(bytes)),
        };
        self.decode(from, Transport::Stream, received, message, into)
            .map_err(|fault| DecodeError { from, fault })
    }

    fn decode(
        &mut self,
        from: SocketAddr,
        transport: Transport,
        received: Timestamp,
        message: Result<Message<'_>, Fault>,
        into: &mut Decoded,
    ) -> Result<(), Fault> {
        let message = message.inspect_err(|_| self.totals.dropped_unreadable += 1)?;
        self.number += 1;
        if self.sessions.len() >= self.limits.sessions && !self.sessions.contains_key(&(from, transport)) {
            self.evict_session();
        }
        let session = self.sessions.entry((from, transport)).or_insert_with(|| Session::new(transport));
        session.last_received = received;
        session.last_used = self.number;
        let configured = self.sampling.get(&from.ip().to_canonical()).copied();
        let mut loan = Loan {
            limits: &self.limits,
            budget: &mut self.budget,
            scratch: &mut self.scratch,
            netflow5: &self.netflow5,
            received,
            number: self.number,
            sampling_interval: configured.unwrap_or(self.limits.default_sampling),
        };
        let rows = into.rows();
        let decoded = match message {
            Message::NetFlow5(message) => session.netflow5(message, &mut loan, into),
            Message::Sets(message) => session.sets(message, &mut loan, into),
            Message::Sflow(datagram) => session.sflow(datagram, &mut loan, into),
        };
        session.has_given_rows |= rows < into.rows();
        decoded.inspect_err(|fault| {
            let too_many = matches!(fault, Fault::TooManyDomains { .. });
            self.totals.dropped_too_many_domains += u64::from(too_many);
        })
    }

    /// Makes room for a session: that which has been silent for longest goes. Forged sources, which are many, go before
    /// exporters that have told something, and before connections, which would not send their templates again.
    fn evict_session(&mut self) {
        let worth = |session: &Session| (session.transport, session.has_given_rows, session.last_used);
        let oldest = self.sessions.iter().min_by_key(|(_, session)| worth(session));
        let Some((&key, _)) = oldest else { return };
        self.forget(key);
        self.totals.sessions_evicted += 1;
    }

    fn forget(&mut self, key: (SocketAddr, Transport)) {
        if let Some(session) = self.sessions.remove(&key) {
            self.totals.gone += session.end(&mut self.budget);
        }
    }

    /// Forgets a connection that was closed, with its templates; its counts go to [`Totals::gone`].
    pub fn end_session(&mut self, from: SocketAddr) {
        self.forget((from, Transport::Stream));
    }

    /// Forgets what has waited or been silent for too long. To be called every few seconds or so.
    pub fn expire(&mut self, now: Timestamp) {
        for session in self.sessions.values_mut() {
            session.expire(now, &self.limits, &mut self.budget);
        }
        let lifetime = self.limits.session_lifetime;
        let silent = |session: &Session| now.since(session.last_received) > lifetime;
        let mut gone: Vec<_> =
            self.sessions.iter().filter(|(_, session)| silent(session)).map(|(&key, _)| key).collect();
        gone.sort_unstable();
        self.totals.sessions_expired += gone.len() as u64;
        gone.into_iter().for_each(|key| self.forget(key));
    }

    /// Every observation domain of every session, in order of address, transport, format and domain.
    pub fn sources(&self) -> Vec<SourceStatistics> {
        let mut sessions: Vec<_> = self.sessions.iter().collect();
        sessions.sort_unstable_by_key(|&(key, _)| key);
        let domains = sessions.into_iter().flat_map(|(&(from, transport), session)| {
            session.domains.iter().map(move |(&key, domain)| SourceStatistics {
                from,
                transport,
                format: key.format,
                observation_domain_id: key.observation_domain_id,
                exporter: key.exporter,
                sampling_interval: domain.sampling.interval(domain.sampling_interval),
                templates: domain.templates.len() as u64,
                held_bytes: session.held.bytes_of(key) as u64,
                last_received: domain.last_received,
                counts: domain.counts,
            })
        });
        domains.collect()
    }

    /// What concerns no domain of [`Decoder::sources`].
    pub fn totals(&self) -> Totals {
        Totals { sessions: self.sessions.len() as u64, held_bytes: self.budget.used as u64, ..self.totals }
    }
}

/// Reads the header of a datagram, whatever its format.
fn read(from: SocketAddr, bytes: &[u8]) -> Result<Message<'_>, Fault> {
    let exporter = Address::from(from.ip().to_canonical());
    match *bytes {
        [0, 5, ..] => netflow5::Message::read(bytes, exporter).map(Message::NetFlow5),
        [0, 9, ..] => sets::Message::netflow9(bytes, exporter).map(Message::Sets),
        [0, 10, ..] => sets::Message::ipfix(bytes, exporter).map(Message::Sets),
        [0, 0, 0, 5, ..] => sflow::Datagram::read(bytes).map(Message::Sflow),
        [high, low, ..] => Err(Fault::Version { found: u16::from_be_bytes([high, low]) }),
        _ => Reader::new("export message", bytes).whole(2).and(Err(Fault::Version { found: 0 })),
    }
}

/// What is wrong with a message of a connection that does not begin like IPFIX.
fn not_ipfix(bytes: &[u8]) -> Fault {
    let mut reader = Reader::new("header of an IPFIX message", bytes);
    match reader.u16() {
        Ok(found) => {
            let structure = "version of an IPFIX message";
            Fault::Number { structure, offset: 0, found: found.into(), expected: "10" }
        }
        Err(fault) => fault,
    }
}
