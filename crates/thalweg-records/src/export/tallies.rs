//! What became of rows: read by whoever shows it, while others count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::encode::{Contents, Encoded};

/// Why records were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue was full: the exporter did not keep up.
    QueueFull,
    /// There was no session with the collector, and no more room for rows to wait for one.
    NoSession,
    /// The system, or the collector, did not take the message.
    SendFailed,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 3] = [Reason::QueueFull, Reason::NoSession, Reason::SendFailed];

    /// Name in metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::QueueFull => "queue_full",
            Reason::NoSession => "no_session",
            Reason::SendFailed => "send_failed",
        }
    }
}

/// Counts of one exporter since it began, whatever sessions it had. None of them ever falls.
#[derive(Debug, Default)]
pub struct Tallies {
    messages: AtomicU64,
    flow_records: AtomicU64,
    octets: AtomicU64,
    not_sent: [Lost; Reason::ALL.len()],
    sessions: AtomicU64,
    failed_sessions: AtomicU64,
    is_in_session: AtomicBool,
    ignored_packets: AtomicU64,
    ignored_octets: AtomicU64,
    trouble: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Lost {
    flow_records: AtomicU64,
    packets: AtomicU64,
    octets: AtomicU64,
}

impl Tallies {
    /// What was handed to the system.
    pub fn sent(&self) -> Encoded {
        Encoded {
            messages: self.messages.load(Relaxed),
            octets: self.octets.load(Relaxed),
            flow_records: self.flow_records.load(Relaxed),
        }
    }

    /// What was not, for one reason.
    pub fn not_sent(&self, reason: Reason) -> Contents {
        let Lost { flow_records, packets, octets } = &self.not_sent[reason as usize];
        Contents {
            flow_records: flow_records.load(Relaxed),
            packets: packets.load(Relaxed),
            octets: octets.load(Relaxed),
        }
    }

    /// What was not, for any reason.
    pub fn not_sent_in_all(&self) -> Contents {
        let all = Reason::ALL.map(|reason| self.not_sent(reason));
        all.into_iter().fold(Contents::default(), |sum, lost| Contents {
            flow_records: sum.flow_records + lost.flow_records,
            packets: sum.packets.wrapping_add(lost.packets),
            octets: sum.octets.wrapping_add(lost.octets),
        })
    }

    /// Sessions that came about, and attempts that failed.
    pub fn sessions(&self) -> (u64, u64) {
        (self.sessions.load(Relaxed), self.failed_sessions.load(Relaxed))
    }

    /// Whether there is a session now.
    pub fn is_in_session(&self) -> bool {
        self.is_in_session.load(Relaxed)
    }

    /// What went wrong last, if nothing has gone well since.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells how many packets the meters have left out of all flows so far, and their bytes: what IPFIX calls ignored.
    pub fn note_ignored(&self, packets: u64, octets: u64) {
        self.ignored_packets.fetch_max(packets, Relaxed);
        self.ignored_octets.fetch_max(octets, Relaxed);
    }

    pub(super) fn ignored(&self) -> (u64, u64) {
        (self.ignored_packets.load(Relaxed), self.ignored_octets.load(Relaxed))
    }

    pub(super) fn note_sent(&self, bytes: usize, contents: Contents) {
        self.messages.fetch_add(1, Relaxed);
        self.octets.fetch_add(bytes as u64, Relaxed);
        self.flow_records.fetch_add(contents.flow_records, Relaxed);
    }

    pub(super) fn note_not_sent(&self, reason: Reason, contents: Contents) {
        let lost = &self.not_sent[reason as usize];
        lost.flow_records.fetch_add(contents.flow_records, Relaxed);
        lost.packets.fetch_add(contents.packets, Relaxed);
        lost.octets.fetch_add(contents.octets, Relaxed);
    }

    pub(super) fn note_session(&self) {
        self.sessions.fetch_add(1, Relaxed);
        self.is_in_session.store(true, Relaxed);
        self.note_trouble(None);
    }

    pub(super) fn note_failed_session(&self, error: String) {
        self.failed_sessions.fetch_add(1, Relaxed);
        self.note_trouble(Some(error));
    }

    pub(super) fn note_end_of_session(&self) {
        self.is_in_session.store(false, Relaxed);
    }

    pub(super) fn note_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// What rows tell: a flow both ways, which is two rows, as one record.
pub(super) fn contents(rows: &RecordBatch) -> Contents {
    /// `biflowDirection` of the second row.
    const REVERSE_INITIATOR: u8 = 2;
    let add = |sum: u64, value: &u64| sum.wrapping_add(*value);
    Contents {
        flow_records: rows.biflow_direction.iter().filter(|way| **way != REVERSE_INITIATOR).count() as u64,
        packets: rows.packets.iter().fold(0, add),
        octets: rows.octets.iter().fold(0, add),
    }
}
