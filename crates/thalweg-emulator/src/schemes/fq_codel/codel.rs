//! CoDel, controlled delay (RFC 8289): a queue in which packets have waited for longer than `target` during a whole
//! `interval` drops one as it is emptied, and then more, at shorter and shorter times, until the wait is short.
//!
//! The n-th drop of a spell follows the one before it after `interval / sqrt(n)` (section 3.3): TCP's throughput goes
//! with one over the square root of the loss, so that it falls linearly.

use crate::packet::Packet;
use crate::schemes::stamped::Stamped;
use crate::slot::Slot;

/// A spell of drops that begins within so many intervals of the last one begins at the pace where that ended
/// (RFC 8289, section 5.5).
const MEMORY_INTERVALS: u64 = 16;

/// The two parameters, and the packet length at which a queue counts as empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Wait that is acceptable, in slots.
    pub target: u64,
    /// Slots in which at least one packet must have waited for less.
    pub interval: u64,
    /// Bytes of the longest packet: a queue that holds no more is not long.
    pub mtu: u32,
}

impl Timing {
    /// When to drop next, after drop number `count` at `time`; a slot later at the least.
    #[inline]
    pub fn control_law(&self, time: Slot, count: u32) -> Slot {
        let wait = self.interval as f64 / f64::from(count).sqrt();
        time + (wait.round() as u64).max(1)
    }
}

/// What CoDel keeps of a queue, named as in the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// When waits will have been too long for an interval, if they are now.
    first_above: Option<Slot>,
    drop_next: Slot,
    /// Drops in this spell.
    count: u32,
    /// `count` at the beginning of the last spell.
    last_count: u32,
    is_dropping: bool,
}

/// A packet out of the queue, and whether it is the time to drop one.
struct Next<C> {
    packet: Packet<C>,
    ok_to_drop: bool,
}

impl CoDel {
    /// Of a queue in which nobody has waited yet.
    pub const IDLE: CoDel =
        CoDel { first_above: None, drop_next: Slot(0), count: 0, last_count: 0, is_dropping: false };

    /// Takes the next packet to send. `pop` empties the queue, and says how many bytes it then holds; `strike` drops
    /// a packet, or marks it and says that it is still there.
    #[inline]
    pub fn dequeue<C>(
        &mut self,
        now: Slot,
        timing: &Timing,
        mut pop: impl FnMut() -> Option<(Stamped<C>, u32)>,
        mut strike: impl FnMut(&mut Packet<C>) -> bool,
    ) -> Option<Packet<C>>
    where
        C: Copy,
    {
        let mut next = self.next(now, timing, &mut pop);
        if self.is_dropping {
            while self.goes_on(&next) && now >= self.drop_next {
                self.count += 1;
                let is_marked = next.as_mut().is_some_and(|next| strike(&mut next.packet));
                if !is_marked {
                    next = self.next(now, timing, &mut pop);
                }
                if self.goes_on(&next) {
                    self.drop_next = timing.control_law(self.drop_next, self.count);
                }
                if is_marked {
                    break;
                }
            }
        } else if let Some(first) = next.as_mut().filter(|first| first.ok_to_drop) {
            self.begin_dropping(now, timing);
            if !strike(&mut first.packet) {
                next = self.next(now, timing, &mut pop);
            }
        }
        next.map(|next| next.packet)
    }

    /// Whether the spell of drops goes on; ends it if not.
    #[inline]
    fn goes_on<C>(&mut self, next: &Option<Next<C>>) -> bool {
        self.is_dropping = next.as_ref().is_some_and(|next| next.ok_to_drop);
        self.is_dropping
    }

    fn begin_dropping(&mut self, now: Slot, timing: &Timing) {
        self.is_dropping = true;
        let dropped_last = self.count - self.last_count;
        let is_recent = now.0.saturating_sub(self.drop_next.0) < MEMORY_INTERVALS * timing.interval;
        self.count = if dropped_last > 1 && is_recent { dropped_last } else { 1 };
        self.last_count = self.count;
        self.drop_next = timing.control_law(now, self.count);
    }

    /// Takes a packet out of the queue, and looks at how long it has waited (`dodequeue` of the RFC).
    #[inline]
    fn next<C>(
        &mut self,
        now: Slot,
        timing: &Timing,
        pop: &mut impl FnMut() -> Option<(Stamped<C>, u32)>,
    ) -> Option<Next<C>>
    where
        C: Copy,
    {
        let Some((stamped, bytes)) = pop() else {
            self.first_above = None;
            return None;
        };
        let is_long = stamped.sojourn(now) >= timing.target && bytes > timing.mtu;
        let above = self.first_above.unwrap_or(now + timing.interval);
        let ok_to_drop = is_long && self.first_above.is_some() && now >= above;
        self.first_above = is_long.then_some(above);
        Some(Next { packet: stamped.packet, ok_to_drop })
    }
}

#[cfg(test)]
mod tests;
