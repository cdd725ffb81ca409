//! Racks that send packets in a shard.

use super::PacketWorkload;
use crate::core::parallel::Driver;
use crate::core::shard::Shard;
use crate::outcome::{Dropped, Request};
use crate::ports::tally::Traffic;
use crate::router::Router;

/// The senders of all racks of a shard, and the outcomes of their packets.
#[derive(Debug)]
pub struct Racks<W> {
    senders: Vec<W>,
    requests: Vec<Request>,
    losses: Vec<Dropped>,
    /// Packets sent.
    pub sent: u64,
    /// Traffic that arrived in this shard from anywhere.
    pub delivered: Traffic,
    /// Packets dropped in this shard.
    pub dropped: u64,
}

impl<W> Racks<W> {
    /// One sender for each rack of a shard.
    pub fn new(senders: Vec<W>) -> Self {
        Racks {
            senders,
            requests: Vec::new(),
            losses: Vec::new(),
            sent: 0,
            delivered: Traffic::default(),
            dropped: 0,
        }
    }
}

impl<R: Router, W: PacketWorkload> Driver<R> for Racks<W> {
    #[inline]
    fn slot(&mut self, shard: &mut Shard<R>) {
        for batch in shard.delivered() {
            self.delivered.packets += batch.len() as u64;
            self.delivered.bytes += batch.iter().map(|packet| u64::from(packet.length())).sum::<u64>();
        }
        shard.take_dropped(&mut self.losses);
        self.dropped += self.losses.len() as u64;
        self.losses.clear();
        let now = shard.now();
        for senders in &mut self.senders {
            self.requests.clear();
            senders.slot(now, &mut self.requests);
            self.sent += self.requests.len() as u64;
            shard.inject(self.requests.iter().copied());
        }
    }
}
