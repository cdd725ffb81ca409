//! The time that a packet spent in the emulated network.

use crate::time::Nanos;

/// Nanoseconds of a tick.
const TICK: u64 = 100;

/// The time from the start of the timeslot in which a packet enters the queue of its source's interface to the start of the
/// timeslot by which it has arrived or was dropped, by the clock of timeslots. 0 if the packet was not emulated.
///
/// What else a packet waits for is overhead: the way to the arbiter and back, the start of its first timeslot, timeslots that
/// start late, pauses.
///
/// In ticks of 100 ns: finer than the timers of hosts, and differences between packets of a burst take one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmulatedDelay(pub u32);

impl EmulatedDelay {
    /// No time.
    pub const ZERO: EmulatedDelay = EmulatedDelay(0);

    /// The nearest number of ticks; at most 2^32 - 1, 429 s.
    pub const fn from_nanos(time: Nanos) -> EmulatedDelay {
        let ticks = time.0.saturating_add(TICK / 2) / TICK;
        EmulatedDelay(if ticks > u32::MAX as u64 { u32::MAX } else { ticks as u32 })
    }

    /// In nanoseconds.
    pub const fn nanos(self) -> Nanos {
        Nanos(self.0 as u64 * TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_rounded_to_the_nearest_tick_and_saturates() {
        for (nanos, ticks) in [(0, 0), (49, 0), (50, 1), (1_230, 12), (1_250, 13), (u64::MAX, u32::MAX)] {
            assert_eq!(EmulatedDelay::from_nanos(Nanos(nanos)), EmulatedDelay(ticks), "{nanos} ns");
        }
        assert_eq!(EmulatedDelay(12).nanos(), Nanos(1_200));
        let longest = EmulatedDelay(u32::MAX);
        assert_eq!(EmulatedDelay::from_nanos(longest.nanos()), longest);
    }
}
