//! Counters of an exporter, readable from other threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::encode::{Contents, Encoded};

/// Why records were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue was full: the exporter was too slow.
    QueueFull,
    /// There was no session, and no more room for pending rows.
    NoSession,
    /// The operating system or the collector rejected the message.
    SendFailed,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 3] = [Reason::QueueFull, Reason::NoSession, Reason::SendFailed];

    /// Returns the name in metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::QueueFull => "queue_full",
            Reason::NoSession => "no_session",
            Reason::SendFailed => "send_failed",
        }
    }
}

/// Counters of an exporter since its start, over all sessions. They never decrease.
#[derive(Debug, Default)]
pub struct ExportCounters {
    messages: AtomicU64,
    flow_records: AtomicU64,
    octets: AtomicU64,
    not_sent: [Lost; Reason::ALL.len()],
    sessions: AtomicU64,
    failed_sessions: AtomicU64,
    has_session: AtomicBool,
    ignored_packets: AtomicU64,
    ignored_octets: AtomicU64,
    last_error: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Lost {
    flow_records: AtomicU64,
    packets: AtomicU64,
    octets: AtomicU64,
}

impl ExportCounters {
    /// Returns the number of messages, bytes and records sent.
    pub fn sent(&self) -> Encoded {
        Encoded {
            messages: self.messages.load(Relaxed),
            octets: self.octets.load(Relaxed),
            flow_records: self.flow_records.load(Relaxed),
        }
    }

    /// Returns the records not sent for one reason.
    pub fn not_sent(&self, reason: Reason) -> Contents {
        let Lost { flow_records, packets, octets } = &self.not_sent[reason as usize];
        Contents {
            flow_records: flow_records.load(Relaxed),
            packets: packets.load(Relaxed),
            octets: octets.load(Relaxed),
        }
    }

    /// Returns the records not sent for any reason.
    pub fn total_not_sent(&self) -> Contents {
        let all = Reason::ALL.map(|reason| self.not_sent(reason));
        all.into_iter().fold(Contents::default(), |sum, lost| Contents {
            flow_records: sum.flow_records + lost.flow_records,
            packets: sum.packets.wrapping_add(lost.packets),
            octets: sum.octets.wrapping_add(lost.octets),
        })
    }

    /// Returns the number of sessions opened, and of failed attempts.
    pub fn sessions(&self) -> (u64, u64) {
        (self.sessions.load(Relaxed), self.failed_sessions.load(Relaxed))
    }

    /// Returns whether there is a session.
    pub fn has_session(&self) -> bool {
        self.has_session.load(Relaxed)
    }

    /// Returns the last error, unless an operation has succeeded since.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the totals of packets and bytes that the meters ignored (`ignoredPacketTotalCount` of IPFIX).
    pub fn set_ignored(&self, packets: u64, bytes: u64) {
        self.ignored_packets.fetch_max(packets, Relaxed);
        self.ignored_octets.fetch_max(bytes, Relaxed);
    }

    pub(super) fn ignored(&self) -> (u64, u64) {
        (self.ignored_packets.load(Relaxed), self.ignored_octets.load(Relaxed))
    }

    pub(super) fn count_sent(&self, bytes: usize, contents: Contents) {
        self.messages.fetch_add(1, Relaxed);
        self.octets.fetch_add(bytes as u64, Relaxed);
        self.flow_records.fetch_add(contents.flow_records, Relaxed);
    }

    pub(super) fn count_not_sent(&self, reason: Reason, contents: Contents) {
        let lost = &self.not_sent[reason as usize];
        lost.flow_records.fetch_add(contents.flow_records, Relaxed);
        lost.packets.fetch_add(contents.packets, Relaxed);
        lost.octets.fetch_add(contents.octets, Relaxed);
    }

    pub(super) fn count_session(&self) {
        self.sessions.fetch_add(1, Relaxed);
        self.has_session.store(true, Relaxed);
        self.set_last_error(None);
    }

    pub(super) fn count_failed_session(&self, error: String) {
        self.failed_sessions.fetch_add(1, Relaxed);
        self.set_last_error(Some(error));
    }

    pub(super) fn end_session(&self) {
        self.has_session.store(false, Relaxed);
    }

    pub(super) fn set_last_error(&self, last_error: Option<String>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = last_error;
    }
}

/// Returns the contents of rows. The two rows of a bidirectional flow are one record.
pub(super) fn contents(rows: &RecordBatch) -> Contents {
    /// `biflowDirection` of the second row.
    const REVERSE_INITIATOR: u8 = 2;
    let add = |sum: u64, value: &u64| sum.wrapping_add(*value);
    Contents {
        flow_records: rows
            .biflow_direction
            .iter()
            .filter(|direction| **direction != REVERSE_INITIATOR)
            .count() as u64,
        packets: rows.packets.iter().fold(0, add),
        octets: rows.octets.iter().fold(0, add),
    }
}
