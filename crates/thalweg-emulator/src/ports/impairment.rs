//! Random loss and jitter of a link, in one direction.
//!
//! Both depend only on the time at which the last byte of a packet leaves the port, and on keys drawn from the seed for
//! each link and direction. There is no stream of random numbers: results do not depend on the core that runs a router,
//! and a link without impairment has the same packets at the same times as in a network without any.
//!
//! **Loss.** A packet is lost if the hash of its time is below a threshold: with the link's loss rate, to 2^-32,
//! independently of other packets. No two packets leave a port at the same time.
//!
//! **Jitter.** The delay is a function of time, drawn every `4 * jitter` uniformly from `delay - jitter` to
//! `delay + jitter`, and linear in between. So its mean is the delay, and its standard deviation `jitter * sqrt(2) / 3`.
//! It falls by at most half as fast as time passes, so a packet never overtakes the one before, and packets arrive at
//! most at twice the rate at which they were sent. With an independent delay for each packet, every packet behind a late
//! one would have to wait for it, and with many packets the delay would always be close to the largest.
//!
//! **Cost.** One or three hashes per packet, none where no link is impaired.

use thalweg_network::LinkId;
use thalweg_network::routing::ecmp::{hash, mix};
use thalweg_network::topology::Link;
use thalweg_wire::Nanos;

use crate::slot::{Slot, SlotClock};
use crate::ticks::{Delay, Lag, Ticks};

/// Loss and jitter. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Impairment {
    pub(crate) loss: Loss,
    pub(crate) jitter: Jitter,
}

impl Impairment {
    /// The impairment of a link from end number `from`, in a network with this clock and seed.
    pub(crate) fn new(link: &Link, id: LinkId, from: usize, clock: SlotClock, seed: u64) -> Self {
        let of_seed = mix(seed ^ SALT);
        let key = |number: u64| mix(of_seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let direction = 2 * u64::from(id.0) + from as u64;
        let [least, most] = delays(link, clock);
        Impairment {
            loss: Loss { key: key(2 * direction), threshold: link.loss[from].share_of(1 << 32) },
            jitter: Jitter { key: key(2 * direction + 1), range: most.units_above(least) },
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.loss.threshold == 0 && self.jitter.is_none()
    }

    /// The slot that processes a packet at the other end and its lag, as [`Delay::arrival`] with the least delay of the
    /// link; `None` if the packet is lost.
    pub(crate) fn arrival(&self, least: Delay, finish: Ticks, earliest: Ticks) -> Option<(Slot, Lag)> {
        match self.loss.loses(finish) {
            true => None,
            false => Some(least.varied_arrival(finish, earliest, |finish| self.jitter.extra(finish))),
        }
    }
}

/// Distinguishes the keys of links from other numbers drawn from the seed.
const SALT: u64 = 0x6C69_6E6B_5F6B_6579;

/// The least and the largest delay of a link.
pub(crate) fn delays(link: &Link, clock: SlotClock) -> [Delay; 2] {
    let (delay, jitter) = (link.delay.0, link.jitter.0);
    [delay - jitter, delay + jitter].map(|delay| Delay::new(clock, Nanos(delay)))
}

/// Random loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    key: u64,
    /// The loss rate in 2^-32.
    threshold: u64,
}

impl Loss {
    /// Whether a packet is lost whose last byte leaves at `finish`.
    fn loses(&self, finish: Ticks) -> bool {
        self.threshold > 0 && u64::from(hash(self.key, finish.0)) < self.threshold
    }
}

/// A delay that varies over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jitter {
    key: u64,
    /// The difference between the largest and the least delay, in 2^-7 slots; 0 without jitter.
    range: u32,
}

impl Jitter {
    pub(crate) fn is_none(&self) -> bool {
        self.range == 0
    }

    /// By how much the delay is longer than the least one, for a packet that leaves at `finish`; all in 2^-7 slots.
    #[inline]
    pub(crate) fn extra(&self, finish: u64) -> u32 {
        if self.is_none() {
            return 0;
        }
        // Twice the range is four times the jitter.
        let period = 2 * u64::from(self.range);
        let (number, after) = (finish / period, finish % period);
        let (last, next) = (self.drawn(number), self.drawn(number + 1));
        ((last * (period - after) + next * after) / period) as u32
    }

    /// The delay above the least one at the start of a period.
    fn drawn(&self, number: u64) -> u64 {
        (u64::from(hash(self.key, number)) * (u64::from(self.range) + 1)) >> 32
    }
}

#[cfg(test)]
mod tests;
