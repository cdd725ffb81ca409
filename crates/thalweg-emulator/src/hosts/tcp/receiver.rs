//! The receiver: which bytes have arrived, and when and how it acknowledges them.

use thalweg_wire::{Nanos, Timestamp};

use super::reassembly::{Arrival, Reassembly};
use crate::hosts::segment::{Ack, Data, SackBlock, SackBlocks};

/// Delayed acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Full-size segments per acknowledgement. Default 2, the maximum of RFC 5681, section 4.2.
    pub every: u32,
    /// The longest delay of an acknowledgement. Default 40 ms, the minimum of Linux; RFC 5681 allows 500 ms.
    pub timeout: Nanos,
}

impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy { every: 2, timeout: Nanos::from_millis(40) }
    }
}

/// How marks are echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Not at all.
    Never,
    /// On every acknowledgement until the sender confirms that it has reduced its window (RFC 3168, section 6.1.3).
    UntilReduced,
    /// As exactly as delayed acknowledgements allow (RFC 8257, section 3.2).
    Exact,
}

/// The effect of a data segment at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The segment had no new bytes: a needless retransmission.
    pub is_duplicate: bool,
    /// All bytes of the flow have now arrived.
    pub completes: bool,
}

/// No timer runs.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// The state of a receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    reassembly: Reassembly,
    sack: SackBlocks,
    bytes: u64,
    policy: AckPolicy,
    echo: Echo,
    /// Segments that are not acknowledged yet, and the deadline of their acknowledgement.
    waiting: u32,
    deadline: Timestamp,
    /// TS.Recent and Last.ACK.sent (RFC 7323, section 4.3).
    ts_recent: Timestamp,
    last_ack_sent: u64,
    last_arrival: Option<Timestamp>,
    /// Whether the next acknowledgement echoes a mark. With the exact echo: DCTCP.CE.
    ece: bool,
}

impl Receiver {
    /// The receiver of a flow of `bytes` bytes.
    pub fn new(bytes: u64, policy: AckPolicy, echo: Echo) -> Receiver {
        Receiver {
            reassembly: Reassembly::default(),
            sack: SackBlocks::default(),
            bytes,
            policy,
            echo,
            waiting: 0,
            deadline: NEVER,
            ts_recent: Timestamp(0),
            last_ack_sent: 0,
            last_arrival: None,
            ece: false,
        }
    }

    /// Reuses the memory for another flow.
    pub fn reset(&mut self, bytes: u64) {
        let mut reassembly = std::mem::take(&mut self.reassembly);
        reassembly.reset();
        *self = Receiver { reassembly, ..Receiver::new(bytes, self.policy, self.echo) };
    }

    /// The application has all bytes below this offset.
    pub fn delivered(&self) -> u64 {
        self.reassembly.next()
    }

    /// When [`on_timer`](Self::on_timer) is due; the end of time if no timer runs.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Processes a segment with or without a mark, and returns the acknowledgements to send.
    #[inline]
    pub fn on_data(
        &mut self,
        data: &Data,
        marked: bool,
        now: Timestamp,
        mut send: impl FnMut(Ack),
    ) -> Received {
        self.take_mark(data, marked, &mut send);
        let was_idle = self.last_arrival.is_none_or(|last| now.since(last) >= self.policy.timeout);
        self.last_arrival = Some(now);
        if data.sequence <= self.last_ack_sent {
            self.ts_recent = data.sent_at;
        }
        if data.length == 0 {
            send(self.acknowledge());
            return Received::default();
        }
        let was_whole = self.reassembly.next() == self.bytes;
        let arrival = self.reassembly.insert(SackBlock { start: data.sequence, end: data.end() });
        let completes = !was_whole && self.reassembly.next() == self.bytes;
        self.waiting += 1;
        match arrival {
            Arrival::InOrder => {}
            Arrival::Ahead(block) => self.sack.put_first(block),
            Arrival::FillsGap => self.sack.forget_below(self.reassembly.next()),
            Arrival::Duplicate => {}
        }
        // RFC 5681, section 4.2: acknowledge at once what is out of order or fills a gap, otherwise every second
        // segment. Also at once: the last segment, as its FIN would be, and the first one after a silence, because its
        // sender, whose window may be one segment, has just timed out (as Linux does).
        let at_once = arrival != Arrival::InOrder || completes || was_idle;
        if at_once || self.waiting >= self.policy.every {
            send(self.acknowledge());
        } else if self.deadline == NEVER {
            self.deadline = now + self.policy.timeout;
        }
        Received { is_duplicate: arrival == Arrival::Duplicate, completes }
    }

    /// Handles the expiry of the timer of [`deadline`](Self::deadline): returns the delayed acknowledgement.
    pub fn on_timer(&mut self, now: Timestamp) -> Option<Ack> {
        (self.deadline <= now).then(|| self.acknowledge())
    }

    #[inline]
    fn take_mark(&mut self, data: &Data, marked: bool, send: &mut impl FnMut(Ack)) {
        match self.echo {
            Echo::Never => {}
            Echo::UntilReduced => self.ece = marked || (self.ece && !data.cwr),
            Echo::Exact => {
                // RFC 8257, figure 1: acknowledge pending segments with the old state.
                if marked != self.ece && self.waiting > 0 {
                    send(self.acknowledge());
                }
                self.ece = marked;
            }
        }
    }

    #[inline]
    fn acknowledge(&mut self) -> Ack {
        if self.reassembly.has_no_gap() {
            self.sack.clear();
        }
        self.waiting = 0;
        self.deadline = NEVER;
        self.last_ack_sent = self.reassembly.next();
        Ack {
            acknowledgement: self.last_ack_sent,
            echo: self.ts_recent,
            sent_at: Timestamp(0),
            ece: self.ece,
            sack: self.sack,
        }
    }
}

#[cfg(test)]
mod tests;
