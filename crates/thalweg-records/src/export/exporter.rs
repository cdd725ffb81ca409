//! The exporting process. It reads no clock and starts no thread.

use std::sync::Arc;

use rustls::ClientConfig;
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::encode::ipfix::{self, Encoder, Exporting, Metering, Statistics};
use thalweg_wire::flow_export::encode::{Messages, OptionsError};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::counters::{ExportCounters, Reason, contents};
use super::destination::{Destination, Transport};
use super::session::Session;
use super::tls::{TlsError, TlsFiles, client_config};

/// Number of pending rows that are sent at once.
const BATCH_ROWS: usize = 1_024;

/// Delay after a failed session: the first, and the maximum.
const BACKOFF: (Nanos, Nanos) = (Nanos::from_millis(500), Nanos::from_secs(30));

/// Options of an exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The collector.
    pub destination: Destination,
    /// For TLS: the trusted authority, and our certificate.
    pub tls: Option<TlsFiles>,
    /// Observation domain, time format, message length, and template interval (UDP).
    pub ipfix: ipfix::Options,
    /// Maximum time that a row waits for others.
    pub max_delay: Nanos,
    /// Interval between reports of the exporter's own statistics.
    pub statistics_interval: Nanos,
    /// Maximum number of rows that wait for a session, about 150 bytes each.
    pub max_pending_rows: usize,
}

impl ExportOptions {
    /// Returns the default options: rows wait at most 1 s, statistics every 60 s, at most 65,536 rows wait for a session.
    pub fn new(destination: Destination) -> ExportOptions {
        ExportOptions {
            destination,
            tls: None,
            ipfix: ipfix::Options::default(),
            max_delay: Nanos::from_secs(1),
            statistics_interval: Nanos::from_secs(60),
            max_pending_rows: 1 << 16,
        }
    }
}

/// Why an exporter cannot be created.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// The message length is too short.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Certificates are missing or invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Exports rows to one collector.
pub struct Exporter {
    options: ExportOptions,
    tls: Option<Arc<ClientConfig>>,
    session: Option<(Session, Encoder)>,
    /// Earliest time of the next attempt, and the delay after that.
    next_attempt: Timestamp,
    backoff: Nanos,
    /// Rows that wait, and the time of the first.
    pending: RecordBatch,
    pending_since: Option<Timestamp>,
    messages: Messages,
    counters: Arc<ExportCounters>,
    /// Time of the last statistics, or of the start.
    statistics_sent: Timestamp,
    lost: Growth,
    ignored: Growth,
}

/// A counter of losses, and the period in which it grew.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    count: u64,
    /// Time of the last check.
    checked: Timestamp,
    from: Timestamp,
    until: Timestamp,
}

impl Growth {
    fn update(&mut self, count: u64, now: Timestamp) {
        if count > self.count {
            if self.count == 0 {
                self.from = self.checked;
            }
            self.until = now;
        }
        (self.count, self.checked) = (count, now);
    }
}

impl Exporter {
    /// Creates an exporter. The session starts with the first row or [`tick`](Self::tick).
    ///
    /// # Errors
    /// If messages are too short for templates, or certificates are invalid.
    pub fn new(
        options: ExportOptions,
        counters: Arc<ExportCounters>,
        now: Timestamp,
    ) -> Result<Exporter, ExportError> {
        // Checks the options; each session creates its own encoder.
        Encoder::new(options.ipfix)?;
        let tls = match (options.destination.transport, &options.tls) {
            (Transport::Tls, None) => return Err(TlsError::NoAuthority.into()),
            (Transport::Tls, Some(files)) => Some(client_config(files)?),
            _ => None,
        };
        let growth = Growth { checked: now, from: now, until: now, ..Growth::default() };
        Ok(Exporter {
            options,
            tls,
            session: None,
            next_attempt: Timestamp::default(),
            backoff: BACKOFF.0,
            pending: RecordBatch::with_capacity(BATCH_ROWS),
            pending_since: None,
            messages: Messages::new(),
            counters,
            statistics_sent: now,
            lost: growth,
            ignored: growth,
        })
    }

    /// Adds rows, and sends all pending rows if there are enough.
    pub fn add(&mut self, rows: &RecordBatch, now: Timestamp) {
        let room = self.options.max_pending_rows.max(BATCH_ROWS);
        if self.pending.len() + rows.len() > room {
            self.send_pending(now);
        }
        if !self.pending.is_empty() && self.pending.len() + rows.len() > room {
            self.counters.count_not_sent(Reason::NoSession, contents(rows));
        } else if !rows.is_empty() {
            self.pending.append(rows);
            self.pending_since.get_or_insert(now);
        }
        self.tick(now);
    }

    /// Does periodic work: sends rows that are due, sends statistics, and opens a session if there is none.
    pub fn tick(&mut self, now: Timestamp) {
        self.lost.update(self.counters.total_not_sent().flow_records, now);
        self.ignored.update(self.counters.ignored().0, now);
        self.close_ended_session(now);
        let is_due = self.pending_since.is_some_and(|since| now.since(since) >= self.options.max_delay);
        if is_due || self.pending.len() >= BATCH_ROWS {
            self.send_pending(now);
        }
        if self.ensure_session(now) && now.since(self.statistics_sent) >= self.options.statistics_interval {
            self.send_statistics(now);
        }
    }

    /// Sends the remaining rows and the final statistics, and closes the session.
    pub fn finish(mut self, now: Timestamp) {
        self.next_attempt = now;
        self.send_pending(now);
        self.counters.count_not_sent(Reason::NoSession, contents(&self.pending));
        self.lost.update(self.counters.total_not_sent().flow_records, now);
        self.ignored.update(self.counters.ignored().0, now);
        self.send_statistics(now);
        self.counters.end_session();
        if let Some((session, _)) = self.session.take()
            && let Err(error) = session.close()
        {
            self.counters.set_last_error(Some(error.to_string()));
        }
    }

    /// Encodes and sends all pending rows if there is a session or one can be opened.
    fn send_pending(&mut self, now: Timestamp) {
        if self.pending.is_empty() || !self.ensure_session(now) {
            return;
        }
        if let Some((_, encoder)) = &mut self.session {
            encoder.encode(&self.pending, now, &mut self.messages);
        }
        self.pending.clear();
        self.pending_since = None;
        self.send_messages(now);
    }

    fn send_statistics(&mut self, now: Timestamp) {
        let Some((_, encoder)) = &mut self.session else { return };
        let (sent, not_sent) = (self.counters.sent(), self.counters.total_not_sent());
        let (ignored_packets, ignored_octets) = self.counters.ignored();
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
        self.statistics_sent = now;
        self.send_messages(now);
    }

    /// Sends all messages and counts each as sent or not sent.
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
                Some(Ok(())) => self.counters.count_sent(message.len(), contents),
                Some(Err(error)) => {
                    self.counters.count_not_sent(Reason::SendFailed, contents);
                    failure = Some(error);
                }
                None => self.counters.count_not_sent(Reason::SendFailed, contents),
            }
        }
        self.messages.clear();
        let result = failure.map_or_else(|| session.flush(), Err);
        let is_broken = result.is_err() && session.is_stream();
        self.counters.set_last_error(result.err().map(|error| error.to_string()));
        if is_broken {
            self.close_session(now);
        }
    }

    /// Returns whether there is a session, after an attempt to open one if it is due.
    fn ensure_session(&mut self, now: Timestamp) -> bool {
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
                self.backoff = BACKOFF.0;
                self.counters.count_session();
            }
            (Err(error), _) => {
                self.counters.count_failed_session(error.to_string());
                self.schedule_retry(now);
            }
            (_, Err(error)) => unreachable!("options were checked: {error}"),
        }
        self.session.is_some()
    }

    fn close_ended_session(&mut self, now: Timestamp) {
        if self.session.as_ref().is_some_and(|(session, _)| session.has_ended()) {
            self.counters.set_last_error(Some("the collector closed the connection".to_owned()));
            self.close_session(now);
        }
    }

    fn close_session(&mut self, now: Timestamp) {
        self.session = None;
        self.counters.end_session();
        self.schedule_retry(now);
    }

    fn schedule_retry(&mut self, now: Timestamp) {
        self.next_attempt = now + self.backoff;
        self.backoff = Nanos(2 * self.backoff.0).min(BACKOFF.1);
    }
}
