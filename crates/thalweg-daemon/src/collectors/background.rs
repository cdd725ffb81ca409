//! Background packets of a collector, for the adaptation of the rate threshold. Passed on without ever blocking a live source.
//!
//! Background traffic is what the collector has not attributed to a cheetah flow when the packet arrives (dissertation, section
//! 3.2.2). So the packets with which a flow becomes a cheetah flow belong to it: they are in the primary queue, too.

use std::collections::HashSet;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use thalweg_measure::detect::Finding;
use thalweg_records::recording::RecordedPacket;
use thalweg_wire::{FlowKey, Nanos, Packet, Timestamp};

/// Packets per block.
const BLOCK: usize = 4_096;

/// Capacity of the queue, in blocks: a second at a million packets per second.
const QUEUE_CAPACITY: usize = 256;

/// Maximum age of a block's first packet.
const MAX_AGE: Nanos = Nanos::from_millis(100);

/// Maximum time that a source that is not live waits for the recorder.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Packets longer than this were merged by the kernel or a network card. The link carries them as packets of [`MTU`] bytes.
const LONGEST: u32 = 9_216;

/// The length of the parts of a merged packet.
const MTU: u32 = 1_500;

/// Consecutive background packets, and what happened since the block before.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Packets in the order of arrival.
    pub(crate) packets: Vec<RecordedPacket>,
    /// Packet time at the end of the block.
    pub(crate) now: Timestamp,
    /// Packets that were dropped before they were read.
    pub(crate) dropped: u64,
    /// Packets that found the queue to the recorder full.
    pub(crate) lost: u64,
    /// Whether the source was opened anew.
    pub(crate) is_reopened: bool,
}

/// Creates the tap of one collector.
#[derive(Clone, Debug)]
pub(crate) struct TapSender {
    collector: String,
    sender: Sender<Block>,
}

impl TapSender {
    /// Creates the queue to the recorder.
    pub(crate) fn new(collector: &str) -> (TapSender, Receiver<Block>) {
        let (sender, receiver) = bounded(QUEUE_CAPACITY);
        (TapSender { collector: collector.to_owned(), sender }, receiver)
    }

    /// Returns a tap for this collector, if its packets are recorded.
    pub(crate) fn tap(&self, collector: &str, is_live: bool) -> Option<BackgroundTap> {
        (collector == self.collector).then(|| BackgroundTap {
            sender: self.sender.clone(),
            is_live,
            cheetahs: HashSet::new(),
            block: Block { is_reopened: true, ..Block::default() },
            began: Timestamp::default(),
            kernel_drops: 0,
        })
    }
}

/// The tap of a collector.
#[derive(Debug)]
pub(crate) struct BackgroundTap {
    sender: Sender<Block>,
    is_live: bool,
    /// Directions of flows that are cheetah flows now.
    cheetahs: HashSet<FlowKey>,
    block: Block,
    /// When the block began.
    began: Timestamp,
    /// As last reported by the open source.
    kernel_drops: u64,
}

impl BackgroundTap {
    /// Passes on packets. `findings` are those of the same packets.
    #[inline]
    pub(crate) fn packets(&mut self, packets: &[Packet], findings: &[Finding]) {
        for finding in findings {
            match finding {
                Finding::Began(cheetah) => self.cheetahs.insert(cheetah.key),
                Finding::Ended(end) => self.cheetahs.remove(&end.key),
            };
        }
        for packet in packets {
            if self.cheetahs.is_empty() || !self.cheetahs.contains(&packet.key) {
                self.add(packet);
            }
        }
        if let Some(packet) = packets.last() {
            self.advance(packet.time);
        }
    }

    #[inline]
    fn add(&mut self, packet: &Packet) {
        let time = packet.time;
        let mut rest = packet.ip_length;
        while rest > LONGEST {
            self.block.packets.push(RecordedPacket { time, length: MTU as u16 });
            rest -= MTU;
        }
        self.block.packets.push(RecordedPacket { time, length: rest as u16 });
    }

    /// Advances the time. Sends what is old enough.
    #[inline]
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.block.now = now;
        if self.block.packets.len() >= BLOCK || now - self.began >= MAX_AGE || now < self.began {
            self.send(now);
        }
    }

    /// Notes the counter of the open source.
    pub(crate) fn count_drops(&mut self, kernel_drops: u64) {
        self.block.dropped += kernel_drops.saturating_sub(self.kernel_drops);
        self.kernel_drops = kernel_drops;
    }

    /// Notes that the source was closed, and that packets may be missing.
    pub(crate) fn reopen(&mut self) {
        self.block.is_reopened = true;
        self.kernel_drops = 0;
    }

    /// Forgets cheetah flows: another detector finds them again.
    pub(crate) fn forget_cheetahs(&mut self) {
        self.cheetahs.clear();
    }

    #[cold]
    fn send(&mut self, now: Timestamp) {
        self.began = now;
        let next = Block { packets: Vec::with_capacity(BLOCK), now, ..Block::default() };
        let block = std::mem::replace(&mut self.block, next);
        let unsent = match self.is_live {
            true => match self.sender.try_send(block) {
                Err(TrySendError::Full(block)) => block,
                _ => return,
            },
            false => match self.sender.send_timeout(block, MAX_WAIT) {
                Err(error) if error.is_timeout() => error.into_inner(),
                _ => return,
            },
        };
        self.block.dropped = unsent.dropped;
        self.block.lost = unsent.lost + unsent.packets.len() as u64;
        self.block.is_reopened = unsent.is_reopened;
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::detect::{Cheetah, CheetahEnd};
    use thalweg_wire::{BitRate, Bytes};

    use super::*;

    fn packet(ms: u64, flow: &str, ip_length: u32) -> Packet {
        let key = flow.parse().unwrap();
        Packet {
            time: Timestamp(1_000_000 * ms),
            key,
            ethernet: Default::default(),
            ip_length,
            payload_length: 0,
            identification: 0,
            tcp_sequence: 0,
            tcp_flags: Default::default(),
            fragment: Default::default(),
            notes: Default::default(),
        }
    }

    const A: &str = "tcp 10.0.0.1:1 > 10.0.0.2:2";
    const B: &str = "tcp 10.0.0.3:1 > 10.0.0.2:2";

    fn lengths(receiver: &Receiver<Block>) -> Vec<u16> {
        receiver.try_iter().flat_map(|block| block.packets).map(|packet| packet.length).collect()
    }

    #[test]
    fn packets_of_cheetah_flows_are_left_out_while_they_last() {
        let (sender, receiver) = TapSender::new("a");
        assert!(sender.tap("b", true).is_none());
        let mut tap = sender.tap("a", true).unwrap();
        tap.packets(&[packet(0, A, 100), packet(1, B, 200)], &[]);
        let (time, bytes) = (Timestamp(0), Bytes(1));
        let key = A.parse().unwrap();
        let began = Cheetah { key, detected: time, first: time, rate: BitRate(1), bytes };
        tap.packets(&[packet(2, A, 101), packet(3, B, 201)], &[Finding::Began(began)]);
        let end = CheetahEnd { key, first: time, last: time, packets: 1, bytes };
        tap.packets(&[packet(4, A, 102), packet(5, B, 202)], &[Finding::Ended(end)]);
        tap.advance(Timestamp(200_000_000));
        assert_eq!(lengths(&receiver), [100, 200, 201, 102, 202]);
    }

    #[test]
    fn merged_packets_are_recorded_as_the_link_carries_them() {
        let (sender, receiver) = TapSender::new("a");
        let mut tap = sender.tap("a", true).unwrap();
        tap.packets(&[packet(0, A, 9_000), packet(200, A, 10_300)], &[]);
        tap.advance(Timestamp(400_000_000));
        assert_eq!(lengths(&receiver), [9_000, 1_500, 8_800]);
    }

    #[test]
    fn what_finds_the_queue_full_is_counted_in_the_next_block() {
        let (sender, receiver) = TapSender::new("a");
        let mut tap = sender.tap("a", true).unwrap();
        tap.count_drops(7);
        for block in 0..QUEUE_CAPACITY as u64 + 2 {
            tap.packets(&[packet(1_000 * (block + 1), A, 100)], &[]);
            tap.count_drops(7 + block);
        }
        let mut blocks: Vec<Block> = receiver.try_iter().collect();
        tap.packets(&[packet(1_000_000, A, 100)], &[]);
        blocks.extend(receiver.try_iter());
        let sum = |of: fn(&Block) -> u64| blocks.iter().map(of).sum::<u64>();
        let (sent, lost) = (sum(|block| block.packets.len() as u64), sum(|block| block.lost));
        assert_eq!((sent, lost), (QUEUE_CAPACITY as u64 + 1, 2));
        assert_eq!(sum(|block| block.dropped), 7 + QUEUE_CAPACITY as u64 + 1);
        assert_eq!(blocks.iter().filter(|block| block.is_reopened).count(), 1);
    }
}
