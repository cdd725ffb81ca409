//! CoDel, controlled delay (RFC 8289): if all packets have waited for longer than `target` during a whole `interval`,
//! the queue drops one when it sends, then more at decreasing intervals, until the delay is short.
//!
//! The n-th drop in a row follows after `interval / sqrt(n)` (section 3.3). TCP's throughput is proportional to one
//! over the square root of the loss, so it decreases linearly.

use crate::packet::Packet;
use crate::schemes::stamped::Stamped;
use crate::slot::Slot;

/// A series of drops that starts within this many intervals of the last one continues at its pace (RFC 8289, section
/// 5.5).
const MEMORY_INTERVALS: u64 = 16;

/// The two parameters, and the queue length that counts as empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Acceptable queueing delay in slots.
    pub target: u64,
    /// Slots in which at least one packet must have waited for less.
    pub interval: u64,
    /// Bytes of the longest packet. A queue with no more bytes counts as empty.
    pub mtu: u32,
}

impl Timing {
    /// When to drop next, after drop number `count` at `time`: at least a slot later.
    #[inline]
    pub fn control_law(&self, time: Slot, count: u32) -> Slot {
        let wait = self.interval as f64 / f64::from(count).sqrt();
        time + (wait.round() as u64).max(1)
    }
}

/// CoDel's state of a queue, with the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// When delays will have exceeded the target for an interval, if they do now.
    first_above: Option<Slot>,
    drop_next: Slot,
    /// Drops in this series.
    count: u32,
    /// `count` at the start of the last series.
    last_count: u32,
    is_dropping: bool,
}

/// A packet from the queue, and whether it may be dropped.
struct Next<C> {
    packet: Packet<C>,
    ok_to_drop: bool,
}

impl CoDel {
    /// The state of a new queue.
    pub const IDLE: CoDel =
        CoDel { first_above: None, drop_next: Slot(0), count: 0, last_count: 0, is_dropping: false };

    /// Takes the next packet to send. `pop` takes a packet from the queue and returns the bytes left in it. `strike`
    /// drops a packet, or marks it and returns true.
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

    /// Whether the series of drops continues; ends it if not.
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

    /// Takes a packet from the queue and checks its delay (`dodequeue` of the RFC).
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
