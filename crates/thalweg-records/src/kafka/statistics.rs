//! What became of the rows.

/// What became of the rows so far: `records` = `queued` + `delivered` + all of `lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows that were to be sent.
    pub records: u64,
    /// Rows in memory, or sent and not acknowledged yet.
    pub queued: u64,
    /// Rows that brokers have acknowledged.
    pub delivered: u64,
    /// Messages with these rows.
    pub messages: u64,
    /// Bytes of these messages before compression, without keys.
    pub bytes: u64,
    /// Rows lost, by reason.
    pub lost: Lost,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Errors so far: of messages, and of connections.
    pub errors: u64,
}

/// Rows lost for Kafka, by reason. The store has them, if it has not counted them as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Brokers were slower than the records came, or away: the queue was full.
    pub queue_full: u64,
    /// Not acknowledged within `message.timeout.ms`.
    pub timed_out: u64,
    /// A broker, or the client, did not take the message: `last_error` says why.
    pub refused: u64,
    /// Without an answer when the collector ended, or when the client had to begin anew.
    pub unanswered: u64,
}

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.queue_full + self.timed_out + self.refused + self.unanswered
    }
}
