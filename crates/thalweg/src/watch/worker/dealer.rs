//! From one reading thread to several metering ones.

use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use thalweg_wire::{HashSeed, Packet, Timestamp};

use super::{Done, Message, ReadingView, Target, VIEW_INTERVAL, View, tell};

/// Packets dealt out to one metering thread, and the time up to which there are no others.
#[derive(Debug)]
pub(in crate::watch) struct Dealt {
    pub(super) packets: Vec<Packet>,
    pub(super) now: Timestamp,
}

/// Deals packets out to metering threads, by a hash that both directions of a flow share.
#[derive(Debug)]
pub(in crate::watch) struct Dealer {
    worker: usize,
    seed: HashSeed,
    /// What each metering thread is dealt next.
    hands: Vec<Vec<Packet>>,
    meters: Vec<Sender<Dealt>>,
    sender: Sender<Message>,
    views: bool,
    next_view: Instant,
    /// When everybody was dealt what there was.
    dealt_all: Instant,
}

/// Packets dealt out to a thread at a time, if so many come within [`PATIENCE`].
const HAND: usize = 1024;

/// How long packets wait for others.
const PATIENCE: Duration = Duration::from_millis(20);

impl Target for Dealer {
    fn packets(&mut self, packets: &[Packet]) {
        let workers = self.meters.len() as u64;
        for packet in packets {
            let hash = packet.key.symmetric_hash(&self.seed) >> 32;
            self.hands[((hash * workers) >> 32) as usize].push(*packet);
        }
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        for number in 0..self.meters.len() {
            if self.hands[number].len() >= HAND {
                self.deal(number, now);
            }
        }
        if self.dealt_all.elapsed() >= PATIENCE {
            for number in 0..self.meters.len() {
                self.deal(number, now);
            }
            self.dealt_all = Instant::now();
        }
        if self.views && Instant::now() >= self.next_view {
            let view = View { worker: self.worker, reading: Some(reading.clone()), metering: None };
            tell(&self.sender, Message::View(Box::new(view)));
            self.next_view = Instant::now() + VIEW_INTERVAL;
        }
    }

    fn finish(mut self) -> Done {
        for number in 0..self.meters.len() {
            self.deal(number, Timestamp::default());
        }
        Done::default()
    }
}

impl Dealer {
    pub(in crate::watch) fn new(
        worker: usize,
        seed: HashSeed,
        meters: Vec<Sender<Dealt>>,
        sender: Sender<Message>,
        views: bool,
    ) -> Dealer {
        let hands = meters.iter().map(|_| Vec::with_capacity(2 * HAND)).collect();
        let now = Instant::now();
        Dealer { worker, seed, hands, meters, sender, views, next_view: now, dealt_all: now }
    }

    fn deal(&mut self, number: usize, now: Timestamp) {
        let packets = std::mem::replace(&mut self.hands[number], Vec::with_capacity(2 * HAND));
        // A metering thread that is gone has panicked; the main thread will notice.
        let _ = self.meters[number].send(Dealt { packets, now });
    }
}
