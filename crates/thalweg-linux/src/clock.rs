//! The kernel's clocks (clock_gettime(2)).

use nix::time::{ClockId, clock_gettime};
use thalweg_wire::{Nanos, Timestamp};

/// Two readings of a clock this close to each other bound a reading between them well enough to round to seconds.
const CLOSE: u64 = 100_000_000;

/// Returns the wall clock (CLOCK_REALTIME).
pub fn realtime() -> Timestamp {
    Timestamp(read(ClockId::CLOCK_REALTIME))
}

/// Returns the time since the machine started, except sleep (CLOCK_MONOTONIC). Steps of the wall clock do not move it.
/// eBPF programs read the same clock (`bpf_ktime_get_ns`).
pub fn monotonic() -> Timestamp {
    Timestamp(read(ClockId::CLOCK_MONOTONIC))
}

/// Returns how far International Atomic Time (CLOCK_TAI) is ahead of the wall clock.
///
/// Whole seconds: 37 s since 2017 on a host whose time service tells the kernel, otherwise 0. Steps of the wall clock
/// move both clocks, so the offset changes only with a leap second, or when the time service starts.
pub fn tai_offset() -> Nanos {
    const SECOND: u64 = 1_000_000_000;
    loop {
        let (before, wall, after) = (read(ClockId::CLOCK_TAI), realtime(), read(ClockId::CLOCK_TAI));
        // This thread may have been stopped in between.
        if after.abs_diff(before) < CLOSE {
            return Nanos((after.saturating_sub(wall.0) + SECOND / 2) / SECOND * SECOND);
        }
    }
}

/// Reads a clock in nanoseconds. Every kernel has the clocks of this module, so reading them cannot fail.
fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_tai_is_whole_seconds() {
        let offset = tai_offset();
        assert_eq!(offset.0 % 1_000_000_000, 0);
        assert!(offset.0 <= 60_000_000_000, "{offset}");
        let tai = read(ClockId::CLOCK_TAI) - offset.0;
        assert!(tai.abs_diff(realtime().0) < 500_000_000);
    }
}
