//! Exporters' clocks: absolute times from what they count.

use crate::time::Timestamp;

/// How far ahead of the header's up-time a flow's may be: the header is filled in before the last flow ends, or the
/// two are read from different processors. Anything later is taken for older than the last wrap of the counter.
const AHEAD_MS: u32 = 60_000;

/// How much the offset between two clocks may change between two messages, microseconds: queues and time servers
/// move it by less.
const JUMP_US: i64 = 10_000_000;

/// How far an up-time may go back and still be that of a message overtaken on the way, milliseconds.
const OVERTAKEN_MS: u32 = 10_000;

/// Seconds from 1900, where NTP's time begins, to 1970.
const NTP_TO_UNIX: u32 = 2_208_988_800;

/// When a message was sent, by its own header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportTime {
    /// Microseconds since 1970.
    pub(super) unix_us: i64,
    /// Milliseconds since the exporter started, if it says so; wraps after 49.7 days.
    pub(super) uptime_ms: Option<u32>,
}

impl ExportTime {
    /// The absolute time of an up-time, in microseconds; 0 if the message has none to compare with.
    #[inline]
    pub(super) fn at(self, uptime_ms: u32) -> i64 {
        match self.uptime_ms {
            Some(now) => before(self.unix_us, now, uptime_ms),
            None => 0,
        }
    }

    /// With an exporter that started at `system_init_ms` since 1970.
    pub(super) fn started_at(self, system_init_ms: i64) -> ExportTime {
        ExportTime { uptime_ms: Some((self.unix_us / 1000).wrapping_sub(system_init_ms) as u32), ..self }
    }
}

/// The absolute time of `uptime_ms`, when it is `now_us` and the counter stands at `now_ms`.
#[inline]
fn before(now_us: i64, now_ms: u32, uptime_ms: u32) -> i64 {
    let ahead = uptime_ms.wrapping_sub(now_ms);
    let milliseconds =
        if ahead <= AHEAD_MS { i64::from(ahead) } else { -i64::from(now_ms.wrapping_sub(uptime_ms)) };
    now_us + milliseconds * 1000
}

/// Microseconds since 1970 of a 64-bit NTP timestamp. Seconds before 1970 are those of the era that begins in 2036.
/// Rounded, for milliseconds and microseconds are no whole fractions of 2^32.
#[inline]
pub(super) fn from_ntp(timestamp: u64) -> i64 {
    if timestamp == 0 {
        return 0;
    }
    let seconds = ((timestamp >> 32) as u32).wrapping_sub(NTP_TO_UNIX);
    let fraction = (timestamp & 0xFFFF_FFFF) * 1_000_000 + (1 << 31);
    i64::from(seconds) * 1_000_000 + (fraction >> 32) as i64
}

/// Microseconds since 1970, for the columns of a batch.
pub(super) fn micros(time: Timestamp) -> i64 {
    (time.0 / 1000) as i64
}

/// What of an exporter's clock is remembered from message to message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    last: Option<(ExportTime, i64)>,
    /// When the exporter started, milliseconds since 1970, if it has said so in an options record.
    pub(super) system_init_ms: Option<i64>,
}

/// What two messages tell of the exporter's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// It started anew: its up-time went back, and not by a wrap.
    pub(super) restarted: bool,
    /// It was set.
    pub(super) jumped: bool,
}

impl Clock {
    /// Takes note of a message's time, and when it arrived.
    pub(super) fn observe(&mut self, export: ExportTime, received_us: i64) -> Observed {
        let Some((last, last_received_us)) = self.last.replace((export, received_us)) else {
            return Observed::default();
        };
        let elapsed_us = received_us.saturating_sub(last_received_us);
        let moved_us = export.unix_us.saturating_sub(last.unix_us).saturating_sub(elapsed_us);
        let restarted = match (last.uptime_ms, export.uptime_ms) {
            (Some(then), Some(now)) => {
                now < then && {
                    let wrapped_us = i64::from(now.wrapping_sub(then)) * 1000;
                    then - now > OVERTAKEN_MS && (wrapped_us - elapsed_us).abs() > i64::from(AHEAD_MS) * 1000
                }
            }
            _ => false,
        };
        Observed { restarted, jumped: moved_us.abs() > JUMP_US }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_666_350_481_000_000;

    #[test]
    fn an_up_time_is_absolute_across_its_wrap_and_a_little_ahead_of_the_header() {
        let cases: [(u32, u32, i64); 7] = [
            (90_000_000, 90_000_000, 0),
            (90_000_000, 86_400_000, -3_600_000),
            (100, u32::MAX - 5, -106),
            (90_000_000, 90_000_500, 500),
            (u32::MAX, 30, 31),
            // Beyond 24.8 days a signed difference would be off by a whole wrap.
            (3_000_000_000, 1000, -2_999_999_000),
            (1000, 3_000_000_000, -(1000 + (1 << 32) - 3_000_000_000)),
        ];
        for (now, uptime, expected_ms) in cases {
            let export = ExportTime { unix_us: NOW_US, uptime_ms: Some(now) };
            assert_eq!(export.at(uptime), NOW_US + expected_ms * 1000, "{now} {uptime}");
        }
    }

    #[test]
    fn ntp_timestamps_give_the_microsecond_that_they_were_made_of_in_both_eras() {
        for unix_us in
            [1, 1_666_350_481_123_457, 2_085_978_495_999_999, 2_085_978_496_000_001, 4_000_000_000_000_001]
        {
            let (seconds, fraction) = (unix_us / 1_000_000, unix_us % 1_000_000);
            let ntp_seconds = u64::from((seconds as u32).wrapping_add(NTP_TO_UNIX));
            let ntp = (ntp_seconds << 32) | (((fraction as u64) << 32) / 1_000_000);
            assert_eq!(from_ntp(ntp), unix_us);
            // RFC 7011 section 6.1.9 leaves the lowest 11 bits of the fraction to chance.
            assert_eq!(from_ntp(ntp & !0x7FF), unix_us);
        }
        assert_eq!(from_ntp(0), 0);
    }

    #[test]
    fn a_wrap_is_no_restart_and_a_restart_is_no_wrap() {
        let at = |seconds: i64, uptime_ms| ExportTime {
            unix_us: NOW_US + seconds * 1_000_000,
            uptime_ms: Some(uptime_ms),
        };
        let second = |seconds: i64| seconds * 1_000_000;
        let mut clock = Clock::default();
        assert_eq!(clock.observe(at(0, u32::MAX - 500), second(0)), Observed::default());
        assert_eq!(clock.observe(at(1, 499), second(1)), Observed::default(), "wrapped");
        assert_eq!(clock.observe(at(100, 100_000), second(100)), Observed::default());
        assert_eq!(clock.observe(at(99, 99_000), second(100)), Observed::default(), "overtaken");
        let restarted = Observed { restarted: true, jumped: false };
        assert_eq!(clock.observe(at(160, 20_000), second(160)), restarted);
        let jumped = Observed { restarted: false, jumped: true };
        assert_eq!(clock.observe(at(3770, 30_000), second(170)), jumped, "an hour ahead");
        assert_eq!(clock.observe(at(3780, 40_000), second(180)), Observed::default(), "and steady there");
    }
}
