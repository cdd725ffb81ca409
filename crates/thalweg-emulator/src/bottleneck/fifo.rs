//! A port of which only the primary queue is used: a packet's departure is known when it arrives.
//!
//! Packets leave in the order of their arrival, each as soon as the one before has left, so that a departure is
//! max(arrival, departure before) + length / C. Nothing has to be done when packets leave.
//!
//! Whether a packet finds room depends on the bytes that are queued, without the packet being sent. The time for which
//! the port is busy bounds them: a packet of n bytes takes at least n floor(8 / C). Only if this bound does not show
//! that there is room, the packets that have started meanwhile are subtracted, each once. The queue at the start of a
//! flow's round is found in the same way.
//!
//! **Guarantee.** Decisions, departures and tallies are those of a [`Port`] with an empty scavenger
//! queue, to the picosecond: a test compares them packet by packet.
//!
//! **Cost.** O(1) amortised per packet; 4 bytes per packet of a busy period, at most twice what the buffer can hold,
//! in packets of full size; shorter ones make it grow.

use super::port::{Origin, Port, Spans, Tally};

/// The port.
#[derive(Clone, Debug)]
pub(super) struct FifoPort {
    spans: Spans,
    buffer: u64,
    /// If all packets have left this long after an arrival, they find room.
    room_ps: u64,
    /// When the last packet will have left.
    end_ps: u64,
    /// The current busy period: its start, and its packets, `count` of them. Some that have started are left out.
    busy_from_ps: u64,
    packets: Vec<Packet>,
    count: usize,
    started: Started,
    offered: [u64; 2],
    dropped: [u64; 2],
}

/// Length and origin of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Packet(u32);

impl Packet {
    #[inline]
    fn new(length: u16, origin: Origin) -> Packet {
        Packet(u32::from(length) << 1 | origin as u32)
    }

    #[inline]
    fn length(self) -> u16 {
        (self.0 >> 1) as u16
    }

    fn is_of(self, origin: Origin) -> bool {
        self.0 & 1 == origin as u32
    }
}

/// What the port has started to send at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Started {
    /// The busy period, by its start.
    busy_from_ps: u64,
    /// The first packet that has not started, and when it will.
    first: usize,
    at_ps: u64,
    /// Bytes of the packets from `first` to `counted`.
    counted: usize,
    bytes: u64,
}

impl FifoPort {
    /// `port` with its primary queue alone. `None` if packets have arrived there, or if a byte takes less than a
    /// picosecond, so that time does not bound bytes.
    pub(super) fn of(port: &Port) -> Option<FifoPort> {
        let (spans, buffer) = port.as_new()?;
        let packets = vec![Packet::default(); 2 * (buffer / 1_500 + 2) as usize];
        (spans.byte_ps() > 0).then(|| FifoPort {
            spans,
            buffer,
            room_ps: buffer.saturating_mul(spans.byte_ps()),
            end_ps: 0,
            busy_from_ps: 0,
            packets,
            count: 0,
            started: Started::default(),
            offered: [0; 2],
            dropped: [0; 2],
        })
    }

    /// A packet arrives at `at_ps`, after all earlier ones. Returns when it will have left; `None` if it finds no room.
    #[inline(always)]
    pub(super) fn arrive(&mut self, at_ps: u64, origin: Origin, length: u16) -> Option<u64> {
        let is_idle = self.end_ps < at_ps;
        let start_ps = if is_idle { at_ps } else { self.end_ps };
        self.busy_from_ps = if is_idle { at_ps } else { self.busy_from_ps };
        self.count = if is_idle { 0 } else { self.count };
        self.offered[origin as usize] += 1;
        let end_ps = start_ps + self.spans.of(length);
        if end_ps - at_ps > self.room_ps && !self.has_room(at_ps, length) {
            self.dropped[origin as usize] += 1;
            return None;
        }
        match self.packets.get_mut(self.count) {
            Some(place) => *place = Packet::new(length, origin),
            None => self.make_place(at_ps, Packet::new(length, origin)),
        }
        self.count += 1;
        self.end_ps = end_ps;
        Some(end_ps)
    }

    #[inline(never)]
    fn has_room(&mut self, at_ps: u64, length: u16) -> bool {
        self.bytes(at_ps) + u64::from(length) <= self.buffer
    }

    /// Bytes queued at `at_ps`, not before the last arrival, without the packet being sent.
    pub(super) fn bytes(&mut self, at_ps: u64) -> u64 {
        self.started = self.started_by(at_ps);
        self.started.bytes
    }

    /// What has started before `at_ps`: a packet that arrives at a time is queued before the port chooses its next.
    fn started_by(&self, at_ps: u64) -> Started {
        let mut started = match self.started.busy_from_ps == self.busy_from_ps {
            true => self.started,
            false => {
                Started { busy_from_ps: self.busy_from_ps, at_ps: self.busy_from_ps, ..Started::default() }
            }
        };
        for packet in &self.packets[started.counted..self.count] {
            started.bytes += u64::from(packet.length());
        }
        started.counted = self.count;
        for packet in &self.packets[started.first..self.count] {
            if started.at_ps >= at_ps {
                break;
            }
            started.first += 1;
            started.bytes -= u64::from(packet.length());
            started.at_ps += self.spans.of(packet.length());
        }
        started
    }

    /// Forgets what has started, or doubles the places if most packets are queued, and adds a packet.
    #[cold]
    fn make_place(&mut self, at_ps: u64, packet: Packet) {
        self.started = self.started_by(at_ps);
        self.packets.copy_within(self.started.first..self.count, 0);
        self.count -= self.started.first;
        (self.started.first, self.started.counted) = (0, self.count);
        if self.count > self.packets.len() / 2 {
            self.packets.resize(2 * self.packets.len(), Packet::default());
        }
        self.packets[self.count] = packet;
    }

    /// The number of queued packets of an origin at `at_ps`.
    fn queued(&self, at_ps: u64, origin: Origin) -> u64 {
        let queued = &self.packets[self.started_by(at_ps).first..self.count];
        queued.iter().filter(|packet| packet.is_of(origin)).count() as u64
    }

    /// The packets of an origin by `at_ps`, not before the last arrival.
    pub(super) fn tally(&self, at_ps: u64, origin: Origin) -> Tally {
        let (offered, dropped) = (self.offered[origin as usize], self.dropped[origin as usize]);
        Tally { offered, dropped, sent: offered - dropped - self.queued(at_ps, origin) }
    }

    /// Checks at `at_ps` that the queued packets fill the time until the last departure, and fit the buffer.
    ///
    /// # Panics
    /// If not.
    pub(super) fn check_invariants(&self, at_ps: u64) {
        let started = self.started_by(at_ps);
        let queued = &self.packets[started.first..self.count];
        let bytes: u64 = queued.iter().map(|packet| u64::from(packet.length())).sum();
        assert_eq!(bytes, started.bytes, "bytes of the queued packets");
        assert!(bytes <= self.buffer, "within the buffer");
        let spans: u64 = queued.iter().map(|packet| self.spans.of(packet.length())).sum();
        assert!(self.count == 0 || started.at_ps + spans == self.end_ps, "back to back");
        for origin in [Origin::Background, Origin::Flow] {
            let arrived = self.offered[origin as usize] - self.dropped[origin as usize];
            assert!(self.queued(at_ps, origin) <= arrived, "offered = dropped + sent + queued");
        }
    }
}
