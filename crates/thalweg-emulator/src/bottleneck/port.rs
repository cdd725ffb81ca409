//! A port in exact time, with a primary and a scavenger queue.

use std::collections::VecDeque;

use thalweg_wire::BitRate;

use super::SECOND_PS;
use crate::schemes::SchemeError;
use crate::schemes::scavenger::{PRIMARY, SCAVENGER, ScavengerConfig, Sharing};

/// A queue of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// For all traffic that is not isolated.
    Primary = PRIMARY as isize,
    /// For isolated flows.
    Scavenger = SCAVENGER as isize,
}

/// The origin of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The traffic that the flow is added to.
    Background,
    /// The flow.
    Flow,
}

/// What happened to the packets of an origin. What is neither sent nor dropped is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that found no room.
    pub dropped: u64,
    /// Packets that the port has started to send.
    pub sent: u64,
}

impl Tally {
    /// The share of packets that were dropped; 0 if none arrived.
    pub fn loss(&self) -> f64 {
        self.dropped as f64 / self.offered.max(1) as f64
    }
}

/// The time that packets take at a rate, in picoseconds, rounded down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    rate: u64,
    /// Whole picoseconds of a byte, and what remains of it in picoseconds times `rate`.
    byte_ps: u64,
    rest: u64,
}

impl Spans {
    fn new(rate: BitRate) -> Spans {
        let rate = rate.0.max(1);
        Spans { rate, byte_ps: 8 * SECOND_PS / rate, rest: 8 * SECOND_PS % rate }
    }

    /// Whole picoseconds of a byte.
    pub(super) fn byte_ps(&self) -> u64 {
        self.byte_ps
    }

    /// The time of a packet. The usual rates divide 8 s in picoseconds.
    #[inline]
    pub(super) fn of(&self, length: u16) -> u64 {
        let length = u64::from(length);
        match self.rest {
            0 => self.byte_ps * length,
            rest => self.byte_ps * length + rest * length / self.rate,
        }
    }
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    length: u16,
    origin: Origin,
}

/// A first-in, first-out queue with a limit of its bytes.
#[derive(Clone, Debug)]
struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
    buffer: u64,
}

impl Fifo {
    fn new(buffer: u64) -> Fifo {
        // Full-size packets; shorter ones make it grow, up to the bytes of the buffer.
        Fifo { packets: VecDeque::with_capacity((buffer / 1_500 + 2) as usize), bytes: 0, buffer }
    }

    #[inline]
    fn first_length(&self) -> Option<u16> {
        self.packets.front().map(|packet| packet.length)
    }
}

/// A port. Packets leave back to back, and the packet being sent no longer occupies its queue.
#[derive(Clone, Debug)]
pub struct Port {
    queues: [Fifo; 2],
    sharing: Sharing,
    spans: Spans,
    /// When the packet being sent will have left.
    free_ps: u64,
    tallies: [Tally; 2],
}

impl Port {
    /// An idle port with this `rate`.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(rate: BitRate, config: &ScavengerConfig) -> Result<Port, SchemeError> {
        config.validate()?;
        Ok(Port {
            queues: [config.primary_buffer, config.scavenger_buffer].map(Fifo::new),
            sharing: Sharing::new(config.scavenger_share),
            spans: Spans::new(rate),
            free_ps: 0,
            tallies: [Tally::default(); 2],
        })
    }

    /// The time of packets, and the buffer of the primary queue, if nothing has arrived yet.
    pub(super) fn as_new(&self) -> Option<(Spans, u64)> {
        let is_new = self.free_ps == 0 && self.tallies.iter().all(|tally| tally.offered == 0);
        is_new.then(|| (self.spans, self.queues[PRIMARY].buffer))
    }

    /// Starts to send what is due before `until_ps`, and reports when packets of the flow have left. A packet that
    /// arrives at a time is queued before the port chooses its next packet at that time.
    #[inline]
    pub fn advance(&mut self, until_ps: u64, mut left: impl FnMut(u64)) {
        while self.free_ps < until_ps {
            let [primary, scavenger] = &self.queues;
            let Some(queue) = self.sharing.next(primary.first_length(), scavenger.first_length()) else {
                return;
            };
            let fifo = &mut self.queues[queue];
            let Some(packet) = fifo.packets.pop_front() else { return };
            fifo.bytes -= u64::from(packet.length);
            let is_backlogged = !self.queues[SCAVENGER].packets.is_empty();
            self.sharing.sent(queue, packet.length, is_backlogged);
            self.free_ps += self.spans.of(packet.length);
            self.tallies[packet.origin as usize].sent += 1;
            if packet.origin == Origin::Flow {
                left(self.free_ps);
            }
        }
    }

    /// A packet arrives at `at_ps`, up to which the port has [advanced](Self::advance). Returns whether it was queued.
    #[inline]
    pub fn arrive(&mut self, at_ps: u64, queue: Queue, origin: Origin, length: u16) -> bool {
        let is_idle = self.queues.iter().all(|fifo| fifo.packets.is_empty());
        if is_idle {
            self.free_ps = self.free_ps.max(at_ps);
        }
        let fifo = &mut self.queues[queue as usize];
        let tally = &mut self.tallies[origin as usize];
        tally.offered += 1;
        let with_packet = fifo.bytes + u64::from(length);
        let has_room = with_packet <= fifo.buffer;
        if has_room {
            fifo.bytes = with_packet;
            fifo.packets.push_back(Waiting { length, origin });
        } else {
            tally.dropped += 1;
        }
        has_room
    }

    /// The packets of an origin.
    pub fn tally(&self, origin: Origin) -> Tally {
        self.tallies[origin as usize]
    }

    /// Bytes in a queue, without the packet being sent.
    pub fn bytes(&self, queue: Queue) -> u64 {
        self.queues[queue as usize].bytes
    }

    /// Packets in both queues.
    pub fn queued(&self) -> u64 {
        self.queues.iter().map(|fifo| fifo.packets.len() as u64).sum()
    }

    /// Checks that every packet was sent, dropped, or is queued, and that bytes are those of the packets.
    ///
    /// # Panics
    /// If not.
    pub fn check_invariants(&self) {
        let Tally { offered, dropped, sent } =
            self.tallies.iter().fold(Tally::default(), |sum, tally| Tally {
                offered: sum.offered + tally.offered,
                dropped: sum.dropped + tally.dropped,
                sent: sum.sent + tally.sent,
            });
        assert_eq!(offered, dropped + sent + self.queued(), "offered = dropped + sent + queued");
        for fifo in &self.queues {
            let bytes: u64 = fifo.packets.iter().map(|packet| u64::from(packet.length)).sum();
            assert_eq!(bytes, fifo.bytes, "bytes of the queued packets");
            assert!(bytes <= fifo.buffer, "within the buffer");
        }
    }
}
