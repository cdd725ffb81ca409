//! Counters of the Kafka producer.

/// Counters of rows: `records` = `queued` + `delivered` + all of `lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows to send.
    pub records: u64,
    /// Rows in memory or not acknowledged yet.
    pub queued: u64,
    /// Rows acknowledged by brokers.
    pub delivered: u64,
    /// Acknowledged messages.
    pub messages: u64,
    /// Bytes of these messages before compression, without keys.
    pub bytes: u64,
    /// Rows lost, by reason.
    pub lost: Lost,
    /// The last error.
    pub last_error: Option<String>,
    /// Number of errors of messages and connections.
    pub errors: u64,
}

/// Rows lost for Kafka, by reason. The store has them, unless it lost them too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The queue was full: brokers were slow or unreachable.
    pub queue_full: u64,
    /// Not acknowledged within `message.timeout.ms`.
    pub timed_out: u64,
    /// Rejected by a broker or the client; see `last_error`.
    pub refused: u64,
    /// Unanswered at shutdown, or when the client restarted after a fatal error.
    pub unanswered: u64,
}

impl Lost {
    /// Returns the sum of all reasons.
    pub fn total(&self) -> u64 {
        self.queue_full + self.timed_out + self.refused + self.unanswered
    }
}
