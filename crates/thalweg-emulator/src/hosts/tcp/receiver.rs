//! The receiving end: what has arrived, and when and how it is acknowledged.

use thalweg_wire::{Nanos, Timestamp};

use super::reassembly::{Arrival, Reassembly};
use crate::hosts::segment::{Ack, Data, SackBlock, SackBlocks};

/// When acknowledgements may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Full-size segments that one acknowledgement answers. Default 2, the most that RFC 5681, section 4.2, allows.
    pub every: u32,
    /// How long one may wait. Default 40 ms, the least that Linux waits; RFC 5681 allows 500 ms.
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
    /// On every acknowledgement until the sender says that it has reduced its window (RFC 3168, section 6.1.3).
    UntilReduced,
    /// As exactly as delayed acknowledgements allow (RFC 8257, section 3.2).
    Exact,
}

/// What a data segment was to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// It brought nothing new: sent again without need.
    pub is_duplicate: bool,
    /// With it all bytes of the flow have arrived.
    pub completes: bool,
}

/// No timer runs.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// A receiver's state.
#[derive(Clone, Debug)]
pub struct Receiver {
    reassembly: Reassembly,
    sack: SackBlocks,
    bytes: u64,
    policy: AckPolicy,
    echo: Echo,
    /// Segments that no acknowledgement has answered yet, and until when they may wait.
    waiting: u32,
    deadline: Timestamp,
    /// TS.Recent and Last.ACK.sent (RFC 7323, section 4.3).
    ts_recent: Timestamp,
    last_ack_sent: u64,
    last_arrival: Option<Timestamp>,
    /// What the next acknowledgement echoes; of the exact echo: DCTCP.CE.
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

    /// The same for another flow, with the memory of this one.
    pub fn reset(&mut self, bytes: u64) {
        let mut reassembly = std::mem::take(&mut self.reassembly);
        reassembly.reset();
        *self = Receiver { reassembly, ..Receiver::new(bytes, self.policy, self.echo) };
    }

    /// Bytes that the application has: all below this offset.
    pub fn delivered(&self) -> u64 {
        self.reassembly.next()
    }

    /// When [`on_timer`](Self::on_timer) is due; the end of time if it is not.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Takes a segment, which came with or without a mark, and gives the acknowledgements that it calls for.
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
        // RFC 5681, section 4.2: at once what is out of order or fills a gap, else every second segment. At once too
        // the last segment, as its FIN would be, and the first after a silence: its sender, whose window may be one
        // segment, has just timed out (Linux does so).
        let at_once = arrival != Arrival::InOrder || completes || was_idle;
        if at_once || self.waiting >= self.policy.every {
            send(self.acknowledge());
        } else if self.deadline == NEVER {
            self.deadline = now + self.policy.timeout;
        }
        Received { is_duplicate: arrival == Arrival::Duplicate, completes }
    }

    /// The timer of [`deadline`](Self::deadline) has run out: gives the acknowledgement that has waited.
    pub fn on_timer(&mut self, now: Timestamp) -> Option<Ack> {
        (self.deadline <= now).then(|| self.acknowledge())
    }

    #[inline]
    fn take_mark(&mut self, data: &Data, marked: bool, send: &mut impl FnMut(Ack)) {
        match self.echo {
            Echo::Never => {}
            Echo::UntilReduced => self.ece = marked || (self.ece && !data.cwr),
            Echo::Exact => {
                // RFC 8257, figure 1: what waits is acknowledged with the old state.
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
