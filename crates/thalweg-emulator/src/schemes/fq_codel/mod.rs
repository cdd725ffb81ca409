//! FQ-CoDel (RFC 8290): spreads flows over many queues, which take turns by [deficit round robin](super::drr), recently
//! empty ones first. [CoDel](codel) controls each. A full port drops half of its longest queue, at most 64 packets,
//! from the head at once (section 4.1), which amortises the search for it.
//!
//! With ECN, packets are marked instead of dropped by CoDel; a full port always drops. The limit is per port.

pub mod codel;
pub mod flow_queues;

use thalweg_network::PortIndex;
use thalweg_wire::{BitRate, Nanos};

use self::codel::Timing;
use self::flow_queues::{FlowQueues, Turns};
use super::error::{SchemeError, Settings};
use super::flow_hash::FlowHash;
use super::stamped::Stamped;
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::router::context::Context;
use crate::router::{Enqueue, Pattern, Plain, RouterPorts, Schedule};

/// The largest number of packets dropped at once from the longest queue (RFC 8290, section 4.1).
const DROP_BATCH: u32 = 64;

/// Drops from the longest queue of a full port.
#[derive(Clone, Copy, Debug)]
pub struct DropFromLongest {
    /// Bytes per turn.
    quantum: u32,
}

impl<C: Copy + Default> Enqueue<C, FlowQueues<C>> for DropFromLongest {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet<C>,
        port: PortIndex,
        flow: usize,
        store: &mut FlowQueues<C>,
        context: &mut Context<'_>,
    ) {
        store.push(port, flow, Stamped { packet, at: context.now });
        if !store.is_listed(port, flow) {
            store.list(port, flow, Turns::New);
            *store.credits(port, flow) = self.quantum as i32;
        }
        if store.waiting(port) > store.limit() {
            drop_from_longest(port, store, context);
        }
    }
}

/// Makes room at a port.
#[cold]
fn drop_from_longest<C: Copy + Default>(
    port: PortIndex,
    store: &mut FlowQueues<C>,
    context: &mut Context<'_>,
) {
    let longest = store.longest(port);
    let half = store.packets(port, longest).div_ceil(2);
    for _ in 0..half.min(DROP_BATCH) {
        if let Some((stamped, _)) = store.pop(port, longest) {
            context.drop(stamped.packet, port, Reason::Full);
        }
    }
}

/// Serves flow queues in turn, new ones first, each under CoDel.
#[derive(Clone, Copy, Debug)]
pub struct FairTurns {
    quantum: u32,
    timing: Timing,
    ecn: bool,
}

impl<C: Copy + Default> Schedule<C, FlowQueues<C>> for FairTurns {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut FlowQueues<C>,
        context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        loop {
            let (flow, turns) = store.turn(port)?;
            if *store.credits(port, flow) <= 0 {
                *store.credits(port, flow) += self.quantum as i32;
                store.unlist(port, turns);
                store.list(port, flow, Turns::Old);
                continue;
            }
            if let Some(packet) = self.dequeue(port, flow, store, context) {
                *store.credits(port, flow) -= i32::from(packet.length());
                return Some(packet);
            }
            store.unlist(port, turns);
            if turns == Turns::New {
                // Move it to the old queues for one round, so that a queue that empties and fills again does not stay
                // new forever.
                store.list(port, flow, Turns::Old);
            }
        }
    }
}

impl FairTurns {
    /// The next packet of a flow queue that CoDel passes.
    #[inline]
    fn dequeue<C: Copy + Default>(
        &self,
        port: PortIndex,
        flow: usize,
        store: &mut FlowQueues<C>,
        context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let mut codel = *store.codel(port, flow);
        let now = context.now;
        let strike = |packet: &mut Packet<C>| {
            let is_marked = self.ecn && context.try_mark(packet, port);
            if !is_marked {
                context.drop(*packet, port, Reason::Early);
            }
            is_marked
        };
        let packet = codel.dequeue(now, &self.timing, || store.pop(port, flow), strike);
        *store.codel(port, flow) = codel;
        packet
    }
}

/// Settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// Flow queues per port. 1,024 (RFC 8290, section 5.2.5).
    pub flows: u32,
    /// Bytes per turn, framing included. 1,538: a full-size frame of Ethernet with preamble and gap (RFC 8290, section
    /// 5.2.4, has the MTU).
    pub quantum: u32,
    /// Acceptable queueing delay. 5 ms (RFC 8290, section 5.2.2).
    pub target: Nanos,
    /// Time in which at least one packet must have waited for less: about the longest round trip. 100 ms (RFC 8290,
    /// section 5.2.1).
    pub interval: Nanos,
    /// Whether ECN-capable packets are marked instead of dropped by CoDel. True (RFC 8290, section 5.2.6).
    pub ecn: bool,
    /// The limit of a port in packets, over all its queues. 10,240 (RFC 8290, section 5.2.3).
    pub buffer: u32,
}

/// The RFC's settings, for the Internet.
impl Default for FqCodelConfig {
    fn default() -> Self {
        FqCodelConfig {
            flows: 1_024,
            quantum: 1_538,
            target: Nanos::from_millis(5),
            interval: Nanos::from_millis(100),
            ecn: true,
            buffer: 10_240,
        }
    }
}

impl FqCodelConfig {
    /// The settings for links of `rate`. The RFC's target and interval are for the Internet and apply up to 100 Mbit/s.
    /// Above, they shrink in proportion to the rate, down to a target of 50 us and an interval of 1 ms from 10 Gbit/s
    /// on. The RFCs have no values for data centres, where round trips take less than 1 ms. The target stays 5 % of the
    /// interval (RFC 8289, section 4.4).
    pub fn for_rate(rate: BitRate) -> Self {
        let default = FqCodelConfig::default();
        let scale = (rate.0 as f64 / 100e6).clamp(1.0, 100.0);
        let shorter = |span: Nanos| Nanos((span.0 as f64 / scale).round() as u64);
        FqCodelConfig { target: shorter(default.target), interval: shorter(default.interval), ..default }
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("fq_codel");
        let holds = (1..=65_536).contains(&self.flows);
        settings.expect("flows", self.flows, holds, "1 to 65,536")?;
        // A smaller quantum costs a round through the queues per packet. 256 is the RFC's minimum.
        let holds = (256..=1 << 20).contains(&self.quantum);
        settings.expect("quantum", self.quantum, holds, "256 to 1,048,576 bytes")?;
        settings.expect("target", self.target, self.target > Nanos::ZERO, "more than 0")?;
        settings.expect("interval", self.interval, self.interval > self.target, "more than `target`")?;
        // Bytes of a queue have 32 bits.
        let holds = (1..=32_768).contains(&self.buffer);
        settings.expect("buffer", self.buffer, holds, "1 to 32,768 packets")
    }
}

/// A router with FQ-CoDel.
pub type FqCodel<R> = Pattern<R, FlowHash, DropFromLongest, FairTurns, FlowQueues<()>>;

/// Builds a router with FQ-CoDel.
///
/// # Panics
/// If the settings are not [valid](FqCodelConfig::validate).
pub fn fq_codel<R>(route: R, ports: RouterPorts<'_>, config: &FqCodelConfig) -> FqCodel<R> {
    let FqCodelConfig { flows, quantum, ecn, buffer, .. } = *config;
    let timing = Timing {
        target: ports.clock.slots_in(config.target),
        interval: ports.clock.slots_in(config.interval),
        mtu: u32::from(ports.longest),
    };
    Pattern {
        route,
        classify: FlowHash::over(flows),
        enqueue: DropFromLongest { quantum },
        schedule: FairTurns { quantum, timing, ecn },
        store: FlowQueues::new(ports.ports(), flows as usize, buffer),
        headers: Plain,
    }
}

#[cfg(test)]
mod tests;
