//! Random early detection (Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM
//! Transactions on Networking 1993): drops or marks packets with a probability that grows with the average queue
//! length.
//!
//! An arrival that finds `q` packets updates `avg += w (q - avg)` with `w = 2^-weight`. One that finds an empty queue,
//! during which the link could have sent `m` packets, updates `avg *= (1 - w)^m` instead (section 4 and figure 2). Then
//!
//! > p_b = max_p (avg - min) / (max - min),   p_a = p_b / (1 - count p_b),
//!
//! where `count` is the number of arrivals since the last drop or mark, so that gaps between drops are uniform, not
//! geometric (section 7). From the upper threshold on everything is dropped, with or without ECN. In the gentle variant
//! (Floyd, "Recommendation on using the gentle variant of RED", 2000) p_b first increases from `max_p` to 1 between
//! `max` and `2 max`.
//!
//! Lengths are in packets of any size. With ECN (RFC 3168), ECN-capable packets are marked instead of dropped early.

use std::hint::select_unpredictable;

use thalweg_network::PortIndex;
use thalweg_wire::BitRate;

use super::error::{SchemeError, Settings};
use super::fifos_with::FifosWith;
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::router::context::Context;
use crate::router::{Enqueue, OneQueue, Pattern, Plain, RouterPorts, Schedule};
use crate::slot::Slot;

/// Precomputed powers of `1 - w`.
const DECAYS: usize = 64;

/// RED's state of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// Average length in packets.
    pub length: f64,
    /// Arrivals since the last drop or mark, or since the average was below the lower threshold: -1 there.
    count: i32,
    /// When the queue became empty.
    idle_since: Slot,
}

/// An empty queue.
impl Default for Average {
    fn default() -> Self {
        Average { length: 0.0, count: -1, idle_since: Slot(0) }
    }
}

/// Drops or marks early.
#[derive(Clone, Debug)]
pub struct EarlyDetection {
    config: RedConfig,
    /// w.
    gain: f64,
    /// `(1 - w)^m` at m.
    decays: [f64; DECAYS],
    /// Full-size packets that each port sends in a slot, in 2^-16.
    paces: Box<[u64]>,
}

impl EarlyDetection {
    fn new(ports: RouterPorts<'_>, config: &RedConfig) -> Self {
        let gain = libm::ldexp(1.0, -i32::from(config.weight));
        let decays = std::array::from_fn(|m| libm::pow(1.0 - gain, m as f64));
        let pace = |rate: &BitRate| ((u128::from(rate.0) << 16) / u128::from(ports.clock.rate.0)) as u64;
        EarlyDetection { config: *config, gain, decays, paces: ports.rates.iter().map(pace).collect() }
    }

    /// Updates the average at `port` for an arrival that found `waiting` packets.
    #[inline]
    fn observe(&self, average: &mut Average, port: PortIndex, waiting: u32, now: Slot) {
        // Both cases at once: an average of (1 - w)^m avg + w q, where m is 1 unless q is 0. The case is unpredictable.
        let idle = ((now.0 - average.idle_since.0) * self.paces[port.index()]) >> 16;
        let m = select_unpredictable(waiting > 0, 1, idle);
        let decay = match self.decays.get(m as usize) {
            Some(&decay) => decay,
            None => libm::pow(1.0 - self.gain, m as f64),
        };
        average.length = decay * average.length + self.gain * f64::from(waiting);
    }

    /// p_b: the probability of a drop or mark at this average, before gaps are evened out. 1 means always.
    #[inline]
    fn base_probability(&self, length: f64) -> f64 {
        let RedConfig { min_threshold, max_threshold, max_probability, gentle, .. } = self.config;
        let (min, max) = (f64::from(min_threshold), f64::from(max_threshold));
        if length < min {
            0.0
        } else if length < max {
            max_probability * (length - min) / (max - min)
        } else if gentle && length < 2.0 * max {
            max_probability + (1.0 - max_probability) * (length - max) / max
        } else {
            1.0
        }
    }

    /// Whether this arrival is dropped or marked.
    #[inline]
    fn should_drop_or_mark(
        &self,
        average: &mut Average,
        probability: f64,
        context: &mut Context<'_>,
    ) -> bool {
        if probability == 0.0 {
            average.count = -1;
            return false;
        }
        average.count += 1;
        // chance < p_b / (1 - count p_b), and always once count reaches 1 / p_b.
        let should_drop_or_mark = probability >= 1.0
            || context.chance() * (1.0 - f64::from(average.count) * probability) < probability;
        if should_drop_or_mark {
            average.count = 0;
        }
        should_drop_or_mark
    }
}

/// The queues of RED.
pub type RedStore<C> = FifosWith<Packet<C>, Average>;

impl<C: Copy + Default> Enqueue<C, RedStore<C>> for EarlyDetection {
    #[inline]
    fn enqueue(
        &mut self,
        mut packet: Packet<C>,
        port: PortIndex,
        _queue: usize,
        store: &mut RedStore<C>,
        context: &mut Context<'_>,
    ) {
        let waiting = store.fifos.packets(port);
        let average = &mut store.states[port.index()];
        self.observe(average, port, waiting, context.now);
        let probability = self.base_probability(average.length);
        let should_drop_or_mark = self.should_drop_or_mark(average, probability, context);
        if waiting == store.fifos.capacity() {
            return context.drop(packet, port, Reason::Full);
        }
        if should_drop_or_mark {
            let may_mark = self.config.ecn && probability < 1.0;
            if !(may_mark && context.try_mark(&mut packet, port)) {
                return context.drop(packet, port, Reason::Early);
            }
        }
        let _room = store.fifos.push(port, packet);
    }
}

/// Sends in order, and records when a queue becomes empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct FifoWithIdle;

impl<C: Copy + Default> Schedule<C, RedStore<C>> for FifoWithIdle {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut RedStore<C>,
        context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let packet = store.fifos.pop(port)?;
        // Only read when the queue is empty, so it does not matter whether this was the last packet.
        store.states[port.index()].idle_since = context.now;
        Some(packet)
    }
}

/// Settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// The average length in packets below which nothing is dropped. 150 (Flexplane, section 5.1).
    pub min_threshold: u32,
    /// The average length in packets from which everything is dropped. 300 (Flexplane, section 5.1).
    pub max_threshold: u32,
    /// p_b just below the upper threshold. 0.1 (Flexplane, section 5.1).
    pub max_probability: f64,
    /// The average's weight as a negative power of two. 5: 1/32 (Flexplane, section 5.1).
    pub weight: u8,
    /// Whether the probability increases to 1 between the upper threshold and twice that. False (Floyd and Jacobson).
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped early. False.
    pub ecn: bool,
    /// The buffer of a port in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for RedConfig {
    fn default() -> Self {
        RedConfig {
            min_threshold: 150,
            max_threshold: 300,
            max_probability: 0.1,
            weight: 5,
            gentle: false,
            ecn: false,
            buffer: 1_024,
        }
    }
}

impl RedConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("red");
        settings.expect_buffer(self.buffer)?;
        let holds = self.max_threshold <= self.buffer;
        settings.expect("max_threshold", self.max_threshold, holds, "at most `buffer`")?;
        let holds = self.min_threshold < self.max_threshold;
        settings.expect("min_threshold", self.min_threshold, holds, "less than `max_threshold`")?;
        let holds = self.max_probability > 0.0 && self.max_probability <= 1.0;
        settings.expect("max_probability", self.max_probability, holds, "more than 0, at most 1")?;
        settings.expect("weight", self.weight, self.weight <= 16, "0 to 16, a power of two")
    }
}

/// A router with RED.
pub type Red<R> = Pattern<R, OneQueue, EarlyDetection, FifoWithIdle, RedStore<()>>;

/// Builds a router with RED.
///
/// # Panics
/// If the settings are not [valid](RedConfig::validate).
pub fn red<R>(route: R, ports: RouterPorts<'_>, config: &RedConfig) -> Red<R> {
    let store = FifosWith::new(ports.ports(), config.buffer, Average::default());
    let enqueue = EarlyDetection::new(ports, config);
    Pattern { route, classify: OneQueue, enqueue, schedule: FifoWithIdle, store, headers: Plain }
}

#[cfg(test)]
mod tests;
