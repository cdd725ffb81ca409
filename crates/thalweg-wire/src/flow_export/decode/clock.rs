//! Clocks of exporters: converts their times to absolute times, and detects restarts.

use crate::time::Timestamp;

/// The maximum time by which the uptime of a flow may exceed that of the header: exporters may fill in the header
/// before the last flow ends, or read the two on different processors. Later uptimes are from before the last counter
/// wrap.
const MAX_AHEAD_MS: u32 = 60_000;

/// A larger change of the clock offset between two messages is a clock jump, in microseconds. Queues and NTP cause
/// less.
const CLOCK_JUMP_US: i64 = 10_000_000;

/// The maximum time by which the uptime of a reordered message may go back, in milliseconds.
const MAX_REORDERING_MS: u32 = 10_000;

/// The difference by which an exporter's uptime and the collector's clock may drift apart between two messages: queues, and
/// exporters that send uptime and time of different processors. A restart takes longer.
const MAX_CLOCK_DIFFERENCE_US: u64 = 20_000_000;

/// Seconds from 1900, the start of NTP time, to 1970.
const NTP_TO_UNIX: u32 = 2_208_988_800;

/// The time when a message was sent, from its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportTime {
    /// Microseconds since 1970.
    pub(super) unix_us: i64,
    /// Milliseconds since the exporter started, if reported; wraps after 49.7 days.
    pub(super) uptime_ms: Option<u32>,
}

impl ExportTime {
    /// Converts an uptime to an absolute time in microseconds; 0 if the message has no uptime.
    #[inline]
    pub(super) fn at(self, uptime_ms: u32) -> i64 {
        match self.uptime_ms {
            Some(now) => absolute_time(self.unix_us, now, uptime_ms),
            None => 0,
        }
    }

    /// Returns the same time for an exporter that started at `system_init_ms` since 1970.
    pub(super) fn started_at(self, system_init_ms: i64) -> ExportTime {
        ExportTime { uptime_ms: Some((self.unix_us / 1000).wrapping_sub(system_init_ms) as u32), ..self }
    }
}

/// Converts `uptime_ms` to an absolute time, given the current time `now_us` and the current uptime `now_ms`.
#[inline]
fn absolute_time(now_us: i64, now_ms: u32, uptime_ms: u32) -> i64 {
    let ahead = uptime_ms.wrapping_sub(now_ms);
    let milliseconds =
        if ahead <= MAX_AHEAD_MS { i64::from(ahead) } else { -i64::from(now_ms.wrapping_sub(uptime_ms)) };
    now_us + milliseconds * 1000
}

/// Converts a 64-bit NTP timestamp to microseconds since 1970. Seconds before 1970 belong to the era that starts in
/// 2036. Rounds to the nearest microsecond, because binary fractions do not represent microseconds exactly.
#[inline]
pub(super) fn from_ntp(timestamp: u64) -> i64 {
    if timestamp == 0 {
        return 0;
    }
    let seconds = ((timestamp >> 32) as u32).wrapping_sub(NTP_TO_UNIX);
    let fraction = (timestamp & 0xFFFF_FFFF) * 1_000_000 + (1 << 31);
    i64::from(seconds) * 1_000_000 + (fraction >> 32) as i64
}

/// Converts to microseconds since 1970, for the columns of a batch.
pub(super) fn micros(time: Timestamp) -> i64 {
    (time.0 / 1000) as i64
}

/// The state of an exporter's clock between messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    last: Option<(ExportTime, i64)>,
    /// The start time of the exporter in milliseconds since 1970, if it sent one in an options record.
    pub(super) system_init_ms: Option<i64>,
}

/// The changes of an exporter's clock between two messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockChange {
    /// The exporter restarted: its uptime went back, and not by a wrap.
    pub(super) restarted: bool,
    /// The clock was set.
    pub(super) jumped: bool,
}

impl Clock {
    /// Updates the state with the times of a message, and returns the changes.
    pub(super) fn observe(&mut self, export: ExportTime, received_us: i64) -> ClockChange {
        let Some((last, last_received_us)) = self.last.replace((export, received_us)) else {
            return ClockChange::default();
        };
        let elapsed_us = received_us.saturating_sub(last_received_us);
        let moved_us = export.unix_us.saturating_sub(last.unix_us).saturating_sub(elapsed_us);
        let restarted = match (last.uptime_ms, export.uptime_ms) {
            (Some(then), Some(now)) => {
                now < then && {
                    let wrapped_us = i64::from(now.wrapping_sub(then)) * 1000;
                    then - now > MAX_REORDERING_MS
                        && (wrapped_us - elapsed_us).abs() > i64::from(MAX_AHEAD_MS) * 1000
                }
            }
            _ => false,
        };
        ClockChange { restarted, jumped: moved_us.abs() > CLOCK_JUMP_US }
    }
}

/// A domain's last message, to detect a restart of the exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastMessage {
    pub(super) received: Timestamp,
    /// The exporter's uptime, which only NetFlow v9 has.
    pub(super) uptime_ms: Option<u32>,
    pub(super) sequence: u32,
}

impl LastMessage {
    /// Whether the exporter has not restarted between this message and a later one.
    pub(super) fn is_continued_by(&self, next: &LastMessage) -> bool {
        let has_run_on = match (self.uptime_ms, next.uptime_ms) {
            (Some(then), Some(now)) => {
                let by_uptime_us = i64::from(now.wrapping_sub(then)) * 1000;
                let by_clock_us = micros(next.received).saturating_sub(micros(self.received));
                by_uptime_us.abs_diff(by_clock_us) <= MAX_CLOCK_DIFFERENCE_US
            }
            _ => true,
        };
        has_run_on && next.sequence.wrapping_sub(self.sequence) < 1 << 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_666_350_481_000_000;

    #[test]
    fn uptimes_are_absolute_across_a_wrap_and_slightly_ahead() {
        let cases: [(u32, u32, i64); 7] = [
            (90_000_000, 90_000_000, 0),
            (90_000_000, 86_400_000, -3_600_000),
            (100, u32::MAX - 5, -106),
            (90_000_000, 90_000_500, 500),
            (u32::MAX, 30, 31),
            // Beyond 24.8 days a signed difference would be wrong by one wrap.
            (3_000_000_000, 1000, -2_999_999_000),
            (1000, 3_000_000_000, -(1000 + (1 << 32) - 3_000_000_000)),
        ];
        for (now, uptime, expected_ms) in cases {
            let export = ExportTime { unix_us: NOW_US, uptime_ms: Some(now) };
            assert_eq!(export.at(uptime), NOW_US + expected_ms * 1000, "{now} {uptime}");
        }
    }

    #[test]
    fn ntp_timestamps_round_trip_in_both_eras() {
        for unix_us in
            [1, 1_666_350_481_123_457, 2_085_978_495_999_999, 2_085_978_496_000_001, 4_000_000_000_000_001]
        {
            let (seconds, fraction) = (unix_us / 1_000_000, unix_us % 1_000_000);
            let ntp_seconds = u64::from((seconds as u32).wrapping_add(NTP_TO_UNIX));
            let ntp = (ntp_seconds << 32) | (((fraction as u64) << 32) / 1_000_000);
            assert_eq!(from_ntp(ntp), unix_us);
            // RFC 7011 section 6.1.9 leaves the lowest 11 bits of the fraction undefined.
            assert_eq!(from_ntp(ntp & !0x7FF), unix_us);
        }
        assert_eq!(from_ntp(0), 0);
    }

    #[test]
    fn wraps_and_restarts_are_distinguished() {
        let at = |seconds: i64, uptime_ms| ExportTime {
            unix_us: NOW_US + seconds * 1_000_000,
            uptime_ms: Some(uptime_ms),
        };
        let second = |seconds: i64| seconds * 1_000_000;
        let mut clock = Clock::default();
        assert_eq!(clock.observe(at(0, u32::MAX - 500), second(0)), ClockChange::default());
        assert_eq!(clock.observe(at(1, 499), second(1)), ClockChange::default(), "wrapped");
        assert_eq!(clock.observe(at(100, 100_000), second(100)), ClockChange::default());
        assert_eq!(clock.observe(at(99, 99_000), second(100)), ClockChange::default(), "reordered");
        let restarted = ClockChange { restarted: true, jumped: false };
        assert_eq!(clock.observe(at(160, 20_000), second(160)), restarted);
        let jumped = ClockChange { restarted: false, jumped: true };
        assert_eq!(clock.observe(at(3770, 30_000), second(170)), jumped, "an hour ahead");
        assert_eq!(clock.observe(at(3780, 40_000), second(180)), ClockChange::default(), "no further jump");
    }
}
