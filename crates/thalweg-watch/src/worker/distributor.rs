//! Distributes packets from one reading thread to several metering threads.

use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use thalweg_wire::{HashSeed, Nanos, Packet, Timestamp};

use super::{PacketSink, VIEW_INTERVAL};
use crate::clock::Clock;
use crate::message::{Done, Message, ReadingView, View, send_message};

/// Packets for one metering thread. No packet earlier than `now` will follow.
#[derive(Debug)]
pub(crate) struct DistributedBatch {
    pub(crate) packets: Vec<Packet>,
    pub(crate) now: Timestamp,
    /// The latest time of all packets, whichever thread received them: windows end for all threads.
    pub(crate) latest: Timestamp,
}

/// Distributes packets over metering threads by a symmetric hash of their flow key.
#[derive(Debug)]
pub(crate) struct FlowDistributor {
    worker: usize,
    seed: HashSeed,
    /// Packets not yet sent to each metering thread.
    pending: Vec<Vec<Packet>>,
    meters: Vec<Sender<DistributedBatch>>,
    sender: Sender<Message>,
    clock: Clock,
    views: bool,
    next_view: Instant,
    /// When all pending packets were last sent.
    flushed_at: Instant,
    latest: Timestamp,
    /// Window length of the measurement tasks, if any.
    window: Option<Nanos>,
    /// Index of the window of `latest` at the last flush.
    flushed_window: u64,
}

/// Packets per batch, unless [`MAX_DELAY`] passes first.
const BATCH_PACKETS: usize = 1024;

/// Maximum time that packets are pending.
const MAX_DELAY: Duration = Duration::from_millis(20);

impl PacketSink for FlowDistributor {
    fn packets(&mut self, packets: &[Packet]) {
        let workers = self.meters.len() as u64;
        for packet in packets {
            self.latest = self.latest.max(packet.time);
            let hash = packet.key.symmetric_hash(&self.seed) >> 32;
            self.pending[((hash * workers) >> 32) as usize].push(*packet);
        }
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.latest = self.latest.max(now);
        // A thread may wait at the end of a window until the others have ended the previous one. So all threads must learn of
        // the end of this window before any thread receives packets of the next.
        let window = self.window.map_or(0, |window| self.latest.0 / window.0);
        if window != self.flushed_window {
            self.flush(now);
            self.flushed_window = window;
        }
        for number in 0..self.meters.len() {
            if self.pending[number].len() >= BATCH_PACKETS {
                self.send_batch(number, now);
            }
        }
        if self.clock.since(self.flushed_at) >= MAX_DELAY {
            self.flush(now);
        }
        if self.views && self.clock.now() >= self.next_view {
            let view = View { worker: self.worker, reading: Some(reading.clone()), metering: None };
            send_message(&self.sender, Message::View(Box::new(view)));
            self.next_view = self.clock.now() + VIEW_INTERVAL;
        }
    }

    fn finish(mut self) -> Done {
        self.flush(Timestamp::default());
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
        let pending = meters.iter().map(|_| Vec::with_capacity(2 * BATCH_PACKETS)).collect();
        let now = clock.now();
        let (latest, flushed_window) = Default::default();
        let (next_view, flushed_at) = (now, now);
        FlowDistributor {
            worker,
            seed,
            pending,
            meters,
            sender,
            clock,
            views,
            next_view,
            flushed_at,
            latest,
            window,
            flushed_window,
        }
    }

    fn flush(&mut self, now: Timestamp) {
        for number in 0..self.meters.len() {
            self.send_batch(number, now);
        }
        self.flushed_at = self.clock.now();
    }

    fn send_batch(&mut self, number: usize, now: Timestamp) {
        let packets = std::mem::replace(&mut self.pending[number], Vec::with_capacity(2 * BATCH_PACKETS));
        // A closed channel means that the metering thread panicked; the main thread reports it.
        let _ = self.meters[number].send(DistributedBatch { packets, now, latest: self.latest });
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;
    use thalweg_wire::{FlowKey, Fragment, PacketNotes, Protocol, TcpFlags};

    use super::*;

    #[test]
    fn all_threads_learn_of_the_end_of_a_window() {
        let (meters, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| unbounded()).unzip();
        let (sender, _messages) = unbounded();
        let window = Some(Nanos::from_secs(1));
        let clock = Clock { wall: Timestamp::default, steady: Instant::now };
        let mut distributor = FlowDistributor::new(2, HashSeed::new(1), meters, sender, clock, false, window);
        // Well within the maximum delay.
        for tenths in 10..40 {
            let packet = Packet {
                time: Timestamp(tenths * 100_000_000),
                key: FlowKey::v4(1, 2, 3, 4, Protocol::UDP),
                ip_length: 100,
                payload_length: 72,
                identification: 0,
                tcp_sequence: 0,
                ethernet: Default::default(),
                tcp_flags: TcpFlags::default(),
                fragment: Fragment::Whole,
                notes: PacketNotes::default(),
            };
            distributor.flushed_at = Instant::now();
            distributor.packets(&[packet]);
            distributor.advance(packet.time, &ReadingView::default());
        }
        for receiver in receivers {
            let seconds: Vec<u64> = receiver.try_iter().map(|batch| batch.latest.seconds()).collect();
            assert_eq!(seconds, [1, 2, 3]);
        }
    }
}
