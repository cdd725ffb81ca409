//! Detects that the source of a collector drops frames.

use std::time::{Duration, Instant};

/// How long after the last drop the alarm ends, and the interval at which it is repeated while drops continue.
const QUIET: Duration = Duration::from_secs(10);

/// Watches the number of frames that a source has dropped.
#[derive(Debug, Default)]
pub(super) struct DropAlarm {
    counted: u64,
    /// Drops that have not been reported yet.
    unreported: u64,
    /// When drops were last seen and reported, while the alarm lasts.
    active: Option<Active>,
}

#[derive(Debug)]
struct Active {
    dropped: Instant,
    reported: Instant,
}

/// A change of the alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropChange {
    /// The source has begun to drop frames: so many.
    Began(u64),
    /// It has dropped so many more.
    Continued(u64),
    /// It has dropped none for [`QUIET`].
    Ended,
}

impl DropAlarm {
    /// Updates the alarm with the number of frames that the source has dropped so far.
    pub(super) fn update(&mut self, dropped: u64, now: Instant) -> Option<DropChange> {
        self.unreported += dropped.saturating_sub(self.counted);
        let has_dropped = dropped > self.counted;
        self.counted = dropped;
        match &mut self.active {
            None if has_dropped => {
                self.active = Some(Active { dropped: now, reported: now });
                Some(DropChange::Began(std::mem::take(&mut self.unreported)))
            }
            None => None,
            Some(active) => {
                if has_dropped {
                    active.dropped = now;
                }
                if now - active.dropped >= QUIET {
                    self.active = None;
                    return Some(DropChange::Ended);
                }
                if self.unreported == 0 || now - active.reported < QUIET {
                    return None;
                }
                active.reported = now;
                Some(DropChange::Continued(std::mem::take(&mut self.unreported)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_reported_when_they_begin_and_at_most_every_ten_seconds() {
        let start = Instant::now();
        let mut alarm = DropAlarm::default();
        let mut update = |seconds, dropped| alarm.update(dropped, start + Duration::from_secs(seconds));
        assert_eq!(update(0, 0), None);
        assert_eq!(update(1, 5), Some(DropChange::Began(5)));
        assert_eq!(update(2, 8), None);
        assert_eq!(update(11, 10), Some(DropChange::Continued(5)));
        assert_eq!(update(20, 10), None);
        assert_eq!(update(21, 10), Some(DropChange::Ended));
        assert_eq!(update(40, 10), None);
        assert_eq!(update(41, 11), Some(DropChange::Began(1)));
    }
}
