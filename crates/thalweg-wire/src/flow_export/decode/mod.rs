//! Decodes export messages to rows: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011, RFC 5103), sFlow v5
//! (sflow.org).
//!
//! ```text
//! message ─► header ─► session ─► domain ─► sets ─┬─► templates, compiled ─┐
//!                                                 ├─► options: sampling    │
//!                                                 └─► data ─► plan ◄───────┘─► columns
//! ```
//!
//! A session is the address, port and transport of an exporter. A domain is what the format calls observation domain,
//! source, engine or sub-agent. Domains are independent, so a forged source address can only harm that source.
//!
//! | module | contents |
//! |---|---|
//! | `sets`, `netflow5`, `sflow` | message headers and structure |
//! | `template`, `element`, `plan`, `place`, `matrix` | templates, each compiled once to a plan: the bytes of a record for each column. A set is a matrix of bytes that is read column by column; variable-length records are first copied to rows of equal length |
//! | `sparse_columns` | columns that most exporters do not send |
//! | `layers` | records with the headers of a tunnel and of the packet in it |
//! | `packet_header`, `packet_section` | sampled packets: of sFlow, and in IPFIX elements |
//! | `session`, `domain`, `held` | state within [`Limits`], and data that arrived before their template |
//! | `clock` | absolute times |
//! | `sequence` | losses |
//! | `sampling` | sampling intervals from options records |
//! | `names` | names of interfaces, VRFs and exporters from options records |
//! | `saved` | templates, sampling intervals and names that outlive the collector |
//!
//! **Times.** NetFlow v5 and v9 use the uptime of the exporter: the header contains its clock and its uptime at the
//! time of sending. The uptime of a flow is at most a minute ahead of the header's; otherwise it is in the past,
//! possibly before the last counter wrap (every 49.7 days). IPFIX has absolute times, differences from the export time,
//! and uptimes since `systemInitTimeMilliseconds`, which is in the record or in an options record. Of several times the
//! finest is used. A record without a time gets that of its message, and is counted. An sFlow sample gets the time of
//! its reception, because agents send none.
//!
//! **Losses** are counted per session and domain, in the unit of the format ([`Counts::lost`]). Reordered messages and
//! restarts are not losses. After an IPFIX message with data of an unknown template, counting restarts, because the
//! number of records is unknown.
//!
//! **Errors.** An invalid message gives no rows, as RFC 7011 section 9.1 requires, and a [`DecodeError`] with the
//! offset. Tolerated, because exporters do it: zero padding at the end of a message, wrong record counts in NetFlow v9
//! headers, fields of length zero, and invalid lengths of an element (the value is then ignored).
//!
//! **Memory** is bounded by [`Limits`]: about 100 bytes per template field, the held bytes, a few kilobytes per domain.
//! A message gives at most two rows for each of its bytes, and for each held byte that its templates release.

mod clock;
mod domain;
mod element;
mod error;
mod field;
mod held;
mod layers;
mod limits;
mod matrix;
mod names;
mod netflow5;
mod packet_header;
mod packet_section;
mod place;
mod plan;
mod reader;
mod sample_sequences;
mod sampling;
mod saved;
mod sequence;
mod session;
mod sets;
mod sflow;
mod sparse_columns;
mod statistics;
mod template;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

pub use error::{DecodeError, DecodeErrorKind};
pub use limits::Limits;
pub use saved::{SavedNames, SavedSession};
pub use statistics::{Counts, SourceStatistics, Totals, Transport};

use held::Budget;
use reader::Reader;
use session::{Context, Session};
use template::{Scratch, Template};

use super::{Address, CounterBatch, RecordBatch};
use crate::time::Timestamp;

/// Decoded rows. The decoder appends, the caller clears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Flow records.
    pub flows: RecordBatch,
    /// Interface counters (sFlow).
    pub counters: CounterBatch,
}

impl Decoded {
    /// Removes all rows, and keeps the capacity.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.counters.clear();
    }

    fn rows(&self) -> usize {
        self.flows.len() + self.counters.len()
    }
}

/// Decodes the export messages of many exporters.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    sampling: BTreeMap<IpAddr, u32>,
    decapsulate: bool,
    sessions: HashMap<(SocketAddr, Transport), Session>,
    budget: Budget,
    name_budget: Budget,
    scratch: Scratch,
    netflow5: Template,
    /// The number of messages so far.
    number: u64,
    totals: Totals,
    /// Changes of saved state in sessions that have ended.
    ended_changes: u64,
}

/// A message with a decoded header.
enum Message<'a> {
    NetFlow5(netflow5::Message<'a>),
    Sets(sets::Message<'a>),
    Sflow(sflow::Datagram<'a>),
}

impl Decoder {
    /// Creates a decoder without exporters.
    pub fn new(limits: Limits) -> Decoder {
        Decoder {
            limits,
            sampling: BTreeMap::new(),
            decapsulate: false,
            sessions: HashMap::new(),
            budget: Budget { used: 0, limit: limits.total_held_bytes },
            name_budget: Budget { used: 0, limit: limits.names },
            scratch: Scratch::default(),
            netflow5: netflow5::template(),
            number: 0,
            totals: Totals::default(),
            ended_changes: 0,
        }
    }

    /// The limits of the decoder.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets the sampling interval of an exporter, whatever it reports. 0 removes the setting.
    pub fn set_sampling(&mut self, exporter: IpAddr, interval: u32) {
        match interval {
            0 => self.sampling.remove(&exporter.to_canonical()),
            _ => self.sampling.insert(exporter.to_canonical(), interval),
        };
    }

    /// Sets whether rows describe the packet in a tunnel instead of the tunnel's, where exporters send both headers.
    pub fn set_decapsulate(&mut self, decapsulate: bool) {
        self.decapsulate = decapsulate;
    }

    /// Decodes a UDP payload of any format. Appends its rows to `into`, and the rows of held data whose template it
    /// contains. The reverse row of a biflow follows the forward row, if it has packets or octets.
    ///
    /// # Errors
    /// [`DecodeError`] if the message is invalid; it is counted, and nothing is appended.
    pub fn datagram(
        &mut self,
        from: SocketAddr,
        received: Timestamp,
        bytes: &[u8],
        into: &mut Decoded,
    ) -> Result<(), DecodeError> {
        let message = read(from, bytes);
        self.decode(from, Transport::Datagram, received, message, into)
            .map_err(|kind| DecodeError { from, kind })
    }

    /// Decodes one complete IPFIX message of a connection.
    ///
    /// # Errors
    /// [`DecodeError`] if the message is invalid; it is counted, and nothing is appended. Close the connection then,
    /// because the start of the next message is unknown.
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
            .map_err(|kind| DecodeError { from, kind })
    }

    fn decode(
        &mut self,
        from: SocketAddr,
        transport: Transport,
        received: Timestamp,
        message: Result<Message<'_>, DecodeErrorKind>,
        into: &mut Decoded,
    ) -> Result<(), DecodeErrorKind> {
        let message = message.inspect_err(|_| self.totals.dropped_unreadable += 1)?;
        self.number += 1;
        if self.sessions.len() >= self.limits.sessions && !self.sessions.contains_key(&(from, transport)) {
            self.evict_session();
        }
        let session = self.sessions.entry((from, transport)).or_insert_with(|| Session::new(transport));
        session.last_received = received;
        session.last_used = self.number;
        let configured = self.sampling.get(&from.ip().to_canonical()).copied();
        let mut context = Context {
            limits: &self.limits,
            budget: &mut self.budget,
            name_budget: &mut self.name_budget,
            scratch: &mut self.scratch,
            netflow5: &self.netflow5,
            received,
            number: self.number,
            sampling_interval: self.limits.default_sampling,
            decapsulate: self.decapsulate,
        };
        let (rows, first_flow) = (into.rows(), into.flows.len());
        let decoded = match message {
            Message::NetFlow5(message) => session.netflow5(message, &mut context, into),
            Message::Sets(message) => session.sets(message, &mut context, into),
            Message::Sflow(datagram) => session.sflow(datagram, &mut context, into),
        };
        session.has_given_rows |= rows < into.rows();
        if self.decapsulate {
            into.flows.decapsulate(first_flow);
        }
        if let Some(interval) = configured {
            into.flows.sampling_interval[first_flow..].fill(interval);
        }
        decoded.inspect_err(|kind| {
            let too_many = matches!(kind, DecodeErrorKind::TooManyDomains { .. });
            self.totals.dropped_too_many_domains += u64::from(too_many);
        })
    }

    /// Evicts the session that has been idle for longest. Sessions without rows, such as forged sources, are evicted
    /// first, connections last, because they would not resend their templates.
    fn evict_session(&mut self) {
        let priority = |session: &Session| (session.transport, session.has_given_rows, session.last_used);
        let oldest = self.sessions.iter().min_by_key(|(_, session)| priority(session));
        let Some((&key, _)) = oldest else { return };
        self.drop_session(key);
        self.totals.sessions_evicted += 1;
    }

    fn drop_session(&mut self, key: (SocketAddr, Transport)) {
        if let Some(session) = self.sessions.remove(&key) {
            self.ended_changes += session.changes() + 1;
            self.totals.gone += session.end(&mut self.budget, &mut self.name_budget);
        }
    }

    /// Drops a closed connection and its templates; its counts move to [`Totals::gone`].
    pub fn end_session(&mut self, from: SocketAddr) {
        self.drop_session((from, Transport::Stream));
    }

    /// Drops expired held data, templates and sessions. Call it every few seconds.
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
        gone.into_iter().for_each(|key| self.drop_session(key));
    }

    /// Drops all held data, counted, because the collector ends before their templates arrive.
    pub fn finish(&mut self) {
        self.sessions.values_mut().for_each(|session| session.drop_held(&mut self.budget));
    }

    /// Whether messages of a sender over UDP have arrived, or its session was restored.
    pub fn has_session(&self, from: SocketAddr) -> bool {
        self.sessions.contains_key(&(from, Transport::Datagram))
    }

    /// Returns a number that changes whenever templates, sampling intervals or names of sessions over UDP change, except by a
    /// refresh.
    pub fn saved_version(&self) -> u64 {
        let datagrams = self.sessions.iter().filter(|((_, transport), _)| *transport == Transport::Datagram);
        self.ended_changes + datagrams.map(|(_, session)| session.changes()).sum::<u64>()
    }

    /// Returns the sessions over UDP that have templates, sampling intervals or names, the last heard first.
    pub fn saved(&self) -> Vec<SavedSession> {
        let datagrams = self.sessions.iter().filter(|((_, transport), _)| *transport == Transport::Datagram);
        let saved = datagrams.map(|(&(from, _), session)| SavedSession {
            from,
            received: session.last_received,
            domains: session.saved(),
        });
        let mut saved: Vec<_> = saved.filter(|session| !session.domains.is_empty()).collect();
        saved.sort_by_key(|session| (std::cmp::Reverse(session.received), session.from));
        saved
    }

    /// Restores a session that an earlier decoder [saved](Decoder::saved), unless the sender has a session already. Expired
    /// templates, and those beyond the limits, are left out.
    pub fn restore(&mut self, saved: SavedSession, now: Timestamp) {
        if self.has_session(saved.from) {
            return;
        }
        if self.sessions.len() >= self.limits.sessions {
            self.evict_session();
        }
        let mut session = Session::new(Transport::Datagram);
        session.last_received = saved.received;
        session.last_used = self.number;
        let (limits, names) = (&self.limits, &mut self.name_budget);
        saved.domains.into_iter().for_each(|domain| session.restore(domain, limits, now, names));
        self.sessions.insert((saved.from, Transport::Datagram), session);
    }

    /// Returns the statistics of all observation domains, by address, transport, format and domain.
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
                sampling_interval: match self.sampling.get(&from.ip().to_canonical()) {
                    Some(&configured) => configured,
                    None => domain.sampling.interval(domain.sampling_interval),
                },
                templates: domain.templates.len() as u64,
                held_bytes: session.held.bytes_of(key) as u64,
                last_received: domain.last_received,
                counts: domain.counts,
            })
        });
        domains.collect()
    }

    /// Returns the statistics that belong to no domain of [`Decoder::sources`].
    pub fn totals(&self) -> Totals {
        Totals { sessions: self.sessions.len() as u64, held_bytes: self.budget.used as u64, ..self.totals }
    }
}

/// Decodes the header of a datagram of any format.
fn read(from: SocketAddr, bytes: &[u8]) -> Result<Message<'_>, DecodeErrorKind> {
    let exporter = Address::from(from.ip().to_canonical());
    match *bytes {
        [0, 5, ..] => netflow5::Message::read(bytes, exporter).map(Message::NetFlow5),
        [0, 9, ..] => sets::Message::netflow9(bytes, exporter).map(Message::Sets),
        [0, 10, ..] => sets::Message::ipfix(bytes, exporter).map(Message::Sets),
        [0, 0, 0, 5, ..] => sflow::Datagram::read(bytes).map(Message::Sflow),
        [high, low, ..] => Err(DecodeErrorKind::Version { found: u16::from_be_bytes([high, low]) }),
        _ => Reader::new("export message", bytes).whole(2).and(Err(DecodeErrorKind::Version { found: 0 })),
    }
}

/// Returns the error for a message of a connection that is not IPFIX.
fn not_ipfix(bytes: &[u8]) -> DecodeErrorKind {
    let mut reader = Reader::new("header of an IPFIX message", bytes);
    match reader.u16() {
        Ok(found) => {
            let structure = "version of an IPFIX message";
            DecodeErrorKind::Number { structure, offset: 0, found: found.into(), expected: "10" }
        }
        Err(kind) => kind,
    }
}
