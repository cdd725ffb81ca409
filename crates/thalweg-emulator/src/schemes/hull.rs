//! HULL's phantom queues (Alizadeh et al., "Less is more: trading a little bandwidth for ultra-low latency in the data
//! center", NSDI 2012, section 3.1).
//!
//! Each port simulates a queue: its length if the link drained at only gamma of its rate. Packets that leave while the
//! length is above a threshold are marked, so that senders keep the real queue empty. The length excludes the packet
//! itself. Packets without ECN pass unmarked.
//!
//! The length has a resolution of 2^-20 bytes, so it drains at gamma of the link's rate to within 1 part in 10^9 for
//! slots of an MTU. It drains in whole slots, so packets shorter than a slot find up to a slot's bytes too many. As in
//! Flexplane (section 4), endpoints do not pace.

use thalweg_network::PortIndex;
use thalweg_wire::BitRate;

use super::drop_tail::DropWhenFull;
use super::error::{SchemeError, Settings};
use crate::packet::Packet;
use crate::queues::fifos::Fifos;
use crate::router::context::Context;
use crate::router::{OneQueue, Pattern, Plain, RouterPorts, Schedule};
use crate::slot::Slot;

/// Resolution of lengths: 2^-20 bytes.
const FRACTION_BITS: u32 = 20;

/// A simulated queue: only its length.
#[derive(Clone, Copy, Debug)]
pub struct Phantom {
    /// The length at `since`, in 2^-20 bytes.
    length: u64,
    since: Slot,
    /// Drained per slot, in 2^-20 bytes.
    drain: u64,
}

impl Phantom {
    /// An empty queue that drains `drain` bytes per slot.
    pub fn new(drain: f64) -> Self {
        Phantom { length: 0, since: Slot(0), drain: (drain * f64::from(1 << FRACTION_BITS)).round() as u64 }
    }

    /// Adds `bytes`, and returns the length before, in 2^-20 bytes.
    #[inline]
    pub fn add(&mut self, bytes: u16, now: Slot) -> u64 {
        let drained = (now.0 - self.since.0).saturating_mul(self.drain);
        let found = self.length.saturating_sub(drained);
        *self = Phantom { length: found + (u64::from(bytes) << FRACTION_BITS), since: now, ..*self };
        found
    }
}

/// Sends in order, and marks packets that find a long phantom queue.
#[derive(Clone, Debug)]
pub struct PhantomQueues {
    phantoms: Box<[Phantom]>,
    /// In 2^-20 bytes.
    threshold: u64,
}

impl<C: Copy + Default> Schedule<C, Fifos<Packet<C>>> for PhantomQueues {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut Fifos<Packet<C>>,
        context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let mut packet = store.pop(port)?;
        let found = self.phantoms[port.index()].add(packet.length(), context.now);
        if found > self.threshold {
            let _marked = context.try_mark(&mut packet, port);
        }
        Some(packet)
    }
}

/// Settings of HULL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HullConfig {
    /// The fraction of the link's rate at which phantom queues drain: gamma. 0.95 (HULL, section 6; Flexplane, section
    /// 5.2).
    pub gamma: f64,
    /// The length of a phantom queue in bytes above which packets are marked. 15,000 at 10 Gbit/s (Flexplane, section
    /// 5.2). HULL has 1,000 at 1 Gbit/s, and 3,000 to 5,000 at 10 Gbit/s.
    pub threshold: u32,
    /// The buffer of a port in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for HullConfig {
    fn default() -> Self {
        HullConfig { gamma: 0.95, threshold: 15_000, buffer: 1_024 }
    }
}

impl HullConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("hull");
        settings.expect(
            "gamma",
            self.gamma,
            self.gamma > 0.0 && self.gamma <= 1.0,
            "more than 0, at most 1",
        )?;
        settings.expect_buffer(self.buffer)
    }
}

/// A router with phantom queues.
pub type Hull<R> = Pattern<R, OneQueue, DropWhenFull, PhantomQueues, Fifos<Packet>>;

/// Builds a router with phantom queues.
///
/// # Panics
/// If the settings are not [valid](HullConfig::validate).
pub fn hull<R>(route: R, ports: RouterPorts<'_>, config: &HullConfig) -> Hull<R> {
    let bytes_per_slot = |rate: &BitRate| rate.0 as f64 / 8.0 * ports.clock.seconds();
    let phantoms = ports.rates.iter().map(|rate| Phantom::new(config.gamma * bytes_per_slot(rate))).collect();
    let schedule = PhantomQueues { phantoms, threshold: u64::from(config.threshold) << FRACTION_BITS };
    let store = Fifos::new(ports.ports(), config.buffer);
    Pattern { route, classify: OneQueue, enqueue: DropWhenFull, schedule, store, headers: Plain }
}

#[cfg(test)]
mod tests;
