//! From one reading thread to several metering ones.

use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use thalweg_wire::{HashSeed, Nanos, Packet, Timestamp};

use super::{Target, VIEW_INTERVAL};
use crate::clock::Clock;
use crate::message::{Done, Message, ReadingView, View, tell};

/// Packets dealt out to one metering thread, and the time up to which there are no others.
#[derive(Debug)]
pub(crate) struct DistributedBatch {
    pub(crate) packets: Vec<Packet>,
    pub(crate) now: Timestamp,
    /// The latest time of all packets, whoever got them: windows end for everybody.
    pub(crate) latest: Timestamp,
}

/// Deals packets out to metering threads, by a hash that both directions of a flow share.
#[derive(Debug)]
pub(crate) struct FlowDistributor {
    worker: usize,
    seed: HashSeed,
    /// What each metering thread is dealt next.
    hands: Vec<Vec<Packet>>,
    meters: Vec<Sender<DistributedBatch>>,
    sender: Sender<Message>,
    clock: Clock,
    views: bool,
    next_view: Instant,
    /// When everybody was dealt what there was.
    dealt_all: Instant,
    latest: Timestamp,
    /// Length of the windows of measurement tasks, if there are any, and which one `latest` was in when everybody
    /// was dealt what there was.
    window: Option<Nanos>,
    window_dealt: u64,
}

/// Packets dealt out to a thread at a time, if so many come within [`PATIENCE`].
const HAND: usize = 1024;

/// How long packets wait for others.
const PATIENCE: Duration = Duration::from_millis(20);

impl Target for FlowDistributor {
    fn packets(&mut self, packets: &[Packet]) {
        let workers = self.meters.len() as u64;
        for packet in packets {
            self.latest = self.latest.max(packet.time);
            let hash = packet.key.symmetric_hash(&self.seed) >> 32;
            self.hands[((hash * workers) >> 32) as usize].push(*packet);
        }
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.latest = self.latest.max(now);
        // A thread may wait at the end of a window until the others have ended the one before: before anybody gets
        // packets of the next one, everybody is to know that this one is over.
        let window = self.window.map_or(0, |window| self.latest.0 / window.0);
        if window != self.window_dealt {
            self.deal_all(now);
            self.window_dealt = window;
        }
        for number in 0..self.meters.len() {
            if self.hands[number].len() >= HAND {
                self.deal(number, now);
            }
        }
        if self.clock.since(self.dealt_all) >= PATIENCE {
            self.deal_all(now);
        }
        if self.views && self.clock.now() >= self.next_view {
            let view = View { worker: self.worker, reading: Some(reading.clone()), metering: None };
            tell(&self.sender, Message::View(Box::new(view)));
            self.next_view = self.clock.now() + VIEW_INTERVAL;
        }
    }

    fn finish(mut self) -> Done {
        self.deal_all(Timestamp::default());
        Done::default()
    }
}

impl FlowDistributor {
    pub(crate) fn new(
        worker: usize,
        seed: HashSeed,
        meters: Vec<Sender<DistributedBatch>>,
        sender: Sender<Message>,
        clock: Clock,
        views: bool,
        window: Option<Nanos>,
    ) -> FlowDistributor {
        let hands = meters.iter().map(|_| Vec::with_capacity(2 * HAND)).collect();
        let now = clock.now();
        let (latest, window_dealt) = Default::default();
        let (next_view, dealt_all) = (now, now);
        FlowDistributor {
            worker,
            seed,
            hands,
            meters,
            sender,
            clock,
            views,
            next_view,
            dealt_all,
            latest,
            window,
            window_dealt,
        }
    }

    fn deal_all(&mut self, now: Timestamp) {
        for number in 0..self.meters.len() {
            self.deal(number, now);
        }
        self.dealt_all = self.clock.now();
    }

    fn deal(&mut self, number: usize, now: Timestamp) {
        let packets = std::mem::replace(&mut self.hands[number], Vec::with_capacity(2 * HAND));
        // A metering thread that is gone has panicked; the main thread will notice.
        let _ = self.meters[number].send(DistributedBatch { packets, now, latest: self.latest });
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;
    use thalweg_wire::{FlowKey, Fragment, PacketNotes, Protocol, TcpFlags};

    use super::*;

    #[test]
    fn everybody_is_told_of_the_end_of_a_window_whoever_its_packets_are_dealt_to() {
        let (hands, dealt): (Vec<_>, Vec<_>) = (0..2).map(|_| unbounded()).unzip();
        let (sender, _told) = unbounded();
        let window = Some(Nanos::from_secs(1));
        let clock = Clock { wall: Timestamp::default, steady: Instant::now };
        let mut distributor = FlowDistributor::new(2, HashSeed::new(1), hands, sender, clock, false, window);
        // Long before it would lose its patience.
        for tenths in 10..40 {
            let packet = Packet {
                time: Timestamp(tenths * 100_000_000),
                key: FlowKey::v4(1, 2, 3, 4, Protocol::UDP),
                ip_length: 100,
                payload_length: 72,
                tcp_sequence: 0,
                ethernet: Default::default(),
                tcp_flags: TcpFlags::default(),
                fragment: Fragment::Whole,
                notes: PacketNotes::default(),
            };
            distributor.dealt_all = Instant::now();
            distributor.packets(&[packet]);
            distributor.advance(packet.time, &ReadingView::default());
        }
        for dealt in dealt {
            let seconds: Vec<u64> = dealt.try_iter().map(|dealt| dealt.latest.seconds()).collect();
            assert_eq!(seconds, [1, 2, 3]);
        }
    }
}
