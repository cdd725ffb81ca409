//! The exporting process itself. It reads no clock and starts no thread.

use std::sync::Arc;

use rustls::ClientConfig;
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::encode::ipfix::{self, Encoder, Exporting, Metering, Statistics};
use thalweg_wire::flow_export::encode::{Messages, OptionsError};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::destination::{Destination, Transport};
use super::session::Session;
use super::tallies::{Reason, Tallies, contents};
use super::tls::{TlsError, TlsFiles, client_config};

/// Rows that are sent without waiting for more.
const ROWS_TOGETHER: usize = 1_024;

/// How long to wait after a session could not be had, or has failed: the first time, and at most.
const BACK_OFF: (Nanos, Nanos) = (Nanos::from_millis(500), Nanos::from_secs(30));

/// What an exporter is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The collector.
    pub destination: Destination,
    /// For TLS: whom to trust, and who we are.
    pub tls: Option<TlsFiles>,
    /// Domain, times, length of messages, how often templates are sent again (over UDP).
    pub ipfix: ipfix::Options,
    /// How long a row waits for others at most.
    pub longest_wait: Nanos,
    /// How often the exporter's own statistics are told.
    pub statistics_interval: Nanos,
    /// Rows that wait for a session at most; about 150 bytes each.
    pub held_rows: usize,
}

impl ExportOptions {
    /// To `destination`: a row waits for a second at most, statistics every minute, 65,536 rows wait for a session.
    pub fn new(destination: Destination) -> ExportOptions {
        ExportOptions {
            destination,
            tls: None,
            ipfix: ipfix::Options::default(),
            longest_wait: Nanos::from_secs(1),
            statistics_interval: Nanos::from_secs(60),
            held_rows: 1 << 16,
        }
    }
}

/// Why there can be no exporter of these options.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// Messages would be too short.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Certificates are missing, or cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Rows to one collector.
pub struct Exporter {
    options: ExportOptions,
    tls: Option<Arc<ClientConfig>>,
    session: Option<(Session, Encoder)>,
    /// When a session may be tried next, and how long to wait after that.
    next_attempt: Timestamp,
    back_off: Nanos,
    /// Rows that wait, and since when.
    pending: RecordBatch,
    pending_since: Option<Timestamp>,
    messages: Messages,
    tallies: Arc<Tallies>,
    /// When statistics were told, or the exporter began.
    statistics_told: Timestamp,
    lost: Growth,
    ignored: Growth,
}

/// A count that should not grow, and between which times it did.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    count: u64,
    /// When the count was looked at last.
    looked: Timestamp,
    from: Timestamp,
    until: Timestamp,
}

impl Growth {
    fn look(&mut self, count: u64, now: Timestamp) {
        if count > self.count {
            if self.count == 0 {
                self.from = self.looked;
            }
            self.until = now;
        }
        (self.count, self.looked) = (count, now);
    }
}

impl Exporter {
    /// An exporter that has sent nothing; the session is begun with the first row or [`tick`](Self::tick).
    ///
    /// # Errors
    /// If messages are to be shorter than templates need, or certificates cannot be used.
    pub fn new(
        options: ExportOptions,
        tallies: Arc<Tallies>,
        now: Timestamp,
    ) -> Result<Exporter, ExportError> {
        // The same is made for each session.
        Encoder::new(options.ipfix)?;
        let tls = match (options.destination.transport, &options.tls) {
            (Transport::Tls, None) => return Err(TlsError::NoAuthority.into()),
            (Transport::Tls, Some(files)) => Some(client_config(files)?),
            _ => None,
        };
        let growth = Growth { looked: now, from: now, until: now, ..Growth::default() };
        Ok(Exporter {
            options,
            tls,
            session: None,
            next_attempt: Timestamp::default(),
            back_off: BACK_OFF.0,
            pending: RecordBatch::with_capacity(ROWS_TOGETHER),
            pending_since: None,
            messages: Messages::new(),
            tallies,
            statistics_told: now,
            lost: growth,
            ignored: growth,
        })
    }

    /// Takes rows, and sends what has gathered if it is enough.
    pub fn add(&mut self, rows: &RecordBatch, now: Timestamp) {
        let room = self.options.held_rows.max(ROWS_TOGETHER);
        if self.pending.len() + rows.len() > room {
            self.send_pending(now);
        }
        if !self.pending.is_empty() && self.pending.len() + rows.len() > room {
            self.tallies.note_not_sent(Reason::NoSession, contents(rows));
        } else if !rows.is_empty() {
            self.pending.append(rows);
            self.pending_since.get_or_insert(now);
        }
        self.tick(now);
    }

    /// Lets time pass: sends what has waited long enough, tells statistics, tries for a session.
    pub fn tick(&mut self, now: Timestamp) {
        self.lost.look(self.tallies.not_sent_in_all().flow_records, now);
        self.ignored.look(self.tallies.ignored().0, now);
        self.leave_ended_session(now);
        let has_waited =
            self.pending_since.is_some_and(|since| now.since(since) >= self.options.longest_wait);
        if has_waited || self.pending.len() >= ROWS_TOGETHER {
            self.send_pending(now);
        }
        if self.enter_session(now) && now.since(self.statistics_told) >= self.options.statistics_interval {
            self.tell_statistics(now);
        }
    }

    /// Sends what is left and the last statistics, and ends the session.
    pub fn finish(mut self, now: Timestamp) {
        self.next_attempt = now;
        self.send_pending(now);
        self.tallies.note_not_sent(Reason::NoSession, contents(&self.pending));
        self.lost.look(self.tallies.not_sent_in_all().flow_records, now);
        self.ignored.look(self.tallies.ignored().0, now);
        self.tell_statistics(now);
        self.tallies.note_end_of_session();
        if let Some((session, _)) = self.session.take()
            && let Err(error) = session.close()
        {
            self.tallies.note_trouble(Some(error.to_string()));
        }
    }

    /// Puts all rows that wait into messages and sends them, if there is a session, or one can be had.
    fn send_pending(&mut self, now: Timestamp) {
        if self.pending.is_empty() || !self.enter_session(now) {
            return;
        }
        if let Some((_, encoder)) = &mut self.session {
            encoder.encode(&self.pending, now, &mut self.messages);
        }
        self.pending.clear();
        self.pending_since = None;
        self.send_messages(now);
    }

    fn tell_statistics(&mut self, now: Timestamp) {
        let Some((_, encoder)) = &mut self.session else { return };
        let (sent, not_sent) = (self.tallies.sent(), self.tallies.not_sent_in_all());
        let (ignored_packets, ignored_octets) = self.tallies.ignored();
        let (ignored, lost) = (&self.ignored, &self.lost);
        let statistics = Statistics {
            metering: Metering { ignored_packets, ignored_octets, from: ignored.from, until: ignored.until },
            exporting: Exporting {
                messages: sent.messages,
                flow_records: sent.flow_records,
                octets: sent.octets,
                not_sent_flow_records: not_sent.flow_records,
                not_sent_packets: not_sent.packets,
                not_sent_octets: not_sent.octets,
                from: lost.from,
                until: lost.until,
            },
        };
        encoder.encode_statistics(&statistics, now, &mut self.messages);
        self.statistics_told = now;
        self.send_messages(now);
    }

    /// Sends all messages; each is counted, as sent or as not.
    fn send_messages(&mut self, now: Timestamp) {
        let Some((session, _)) = &mut self.session else { return };
        let mut failure = None;
        for (number, message) in self.messages.iter().enumerate() {
            let contents = self.messages.contents(number);
            let result = match &failure {
                Some(_) if session.is_stream() => None,
                _ => Some(session.send(message)),
            };
            match result {
                Some(Ok(())) => self.tallies.note_sent(message.len(), contents),
                Some(Err(error)) => {
                    self.tallies.note_not_sent(Reason::SendFailed, contents);
                    failure = Some(error);
                }
                None => self.tallies.note_not_sent(Reason::SendFailed, contents),
            }
        }
        self.messages.clear();
        let result = failure.map_or_else(|| session.flush(), Err);
        let is_over = result.is_err() && session.is_stream();
        self.tallies.note_trouble(result.err().map(|error| error.to_string()));
        if is_over {
            self.leave_session(now);
        }
    }

    /// Whether there is a session, after trying for one if it is time to.
    fn enter_session(&mut self, now: Timestamp) -> bool {
        if self.session.is_some() || now < self.next_attempt {
            return self.session.is_some();
        }
        let options = match self.options.destination.transport {
            Transport::Udp => self.options.ipfix,
            Transport::Tcp | Transport::Tls => self.options.ipfix.over_stream(),
        };
        let opened = Session::open(&self.options.destination, self.tls.as_ref());
        match (opened, Encoder::new(options)) {
            (Ok(session), Ok(encoder)) => {
                self.session = Some((session, encoder));
                self.back_off = BACK_OFF.0;
                self.tallies.note_session();
            }
            (Err(error), _) => {
                self.tallies.note_failed_session(error.to_string());
                self.wait_for_next_attempt(now);
            }
            (_, Err(error)) => unreachable!("options that were checked: {error}"),
        }
        self.session.is_some()
    }

    fn leave_ended_session(&mut self, now: Timestamp) {
        if self.session.as_ref().is_some_and(|(session, _)| session.has_ended()) {
            self.tallies.note_trouble(Some("the collector has closed the connection".to_owned()));
            self.leave_session(now);
        }
    }

    fn leave_session(&mut self, now: Timestamp) {
        self.session = None;
        self.tallies.note_end_of_session();
        self.wait_for_next_attempt(now);
    }

    fn wait_for_next_attempt(&mut self, now: Timestamp) {
        self.next_attempt = now + self.back_off;
        self.back_off = Nanos(2 * self.back_off.0).min(BACK_OFF.1);
    }
}
