//! What a parser keeps of sessions that have not ended.
//!
//! The number of sessions is limited. A session that begins when all are in use replaces the one whose first line is the oldest. Sessions
//! without a line for seven days, by the times of the log, end too: their last line was lost. Both are counted.

use std::collections::BTreeMap;

/// Maximum number of open sessions of a parser.
pub const MAX_SESSIONS: usize = 1_024;

/// Time without a line after which a session is dropped, in microseconds: seven days.
pub const SESSION_TIMEOUT_US: i64 = 7 * 86_400 * 1_000_000;

/// Open sessions by their key in the log, such as a process identifier.
#[derive(Debug)]
pub(super) struct Sessions<K, S> {
    open: BTreeMap<K, Session<S>>,
    dropped: u64,
}

#[derive(Debug)]
struct Session<S> {
    /// Offset of the first line.
    offset: u64,
    /// Time of the latest line.
    active_us: i64,
    state: S,
}

impl<K: Ord + Clone, S> Sessions<K, S> {
    /// Starts without sessions.
    pub(super) fn new() -> Sessions<K, S> {
        Sessions { open: BTreeMap::new(), dropped: 0 }
    }

    /// Opens a session whose first line begins at this offset. A session with the same key is dropped: its end was lost.
    pub(super) fn open(&mut self, key: K, offset: u64, time_us: i64, state: S) -> &mut S {
        self.drop_session(Some(key.clone()));
        self.active_or_open(key, offset, time_us, || state)
    }

    /// Returns an open session that has a line at this time, or opens it.
    pub(super) fn active_or_open(
        &mut self,
        key: K,
        offset: u64,
        time_us: i64,
        state: impl FnOnce() -> S,
    ) -> &mut S {
        if !self.open.contains_key(&key) {
            self.make_room(time_us);
        }
        let new = || Session { offset, active_us: time_us, state: state() };
        let session = self.open.entry(key).or_insert_with(new);
        session.active_us = session.active_us.max(time_us);
        &mut session.state
    }

    /// Returns an open session that has a line at this time.
    pub(super) fn active(&mut self, key: &K, time_us: i64) -> Option<&mut S> {
        let session = self.open.get_mut(key)?;
        session.active_us = session.active_us.max(time_us);
        Some(&mut session.state)
    }

    /// Returns the open session with the highest key below this one, which has a line at this time.
    pub(super) fn active_below(&mut self, key: &K, time_us: i64) -> Option<&mut S> {
        let (_, session) = self.open.range_mut(..key).next_back()?;
        session.active_us = session.active_us.max(time_us);
        Some(&mut session.state)
    }

    /// Ends a session.
    pub(super) fn close(&mut self, key: &K) -> Option<S> {
        self.open.remove(key).map(|session| session.state)
    }

    /// Returns the offset of the first line of the oldest open session.
    pub(super) fn needs_from(&self) -> Option<u64> {
        self.open.values().map(|session| session.offset).min()
    }

    /// Returns the number of sessions that were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn drop_session(&mut self, key: Option<K>) {
        if key.is_some_and(|key| self.open.remove(&key).is_some()) {
            self.dropped += 1;
        }
    }

    fn make_room(&mut self, time_us: i64) {
        let before = self.open.len();
        self.open.retain(|_, session| time_us.saturating_sub(session.active_us) <= SESSION_TIMEOUT_US);
        self.dropped += (before - self.open.len()) as u64;
        if self.open.len() >= MAX_SESSIONS {
            let oldest =
                self.open.iter().min_by_key(|(_, session)| session.offset).map(|(key, _)| key.clone());
            self.drop_session(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_session_is_dropped_when_all_are_in_use() {
        let mut sessions = Sessions::new();
        for number in 0..MAX_SESSIONS as u64 {
            sessions.open(number, 100 + number, 0, ());
        }
        assert_eq!((sessions.dropped(), sessions.needs_from()), (0, Some(100)));
        sessions.open(5_000, 5_000, 0, ());
        assert_eq!((sessions.dropped(), sessions.needs_from()), (1, Some(101)));
        assert!(sessions.active(&0, 0).is_none());
    }

    #[test]
    fn a_session_without_lines_for_seven_days_is_dropped() {
        let mut sessions = Sessions::new();
        sessions.open(1, 10, 0, ());
        sessions.open(2, 20, SESSION_TIMEOUT_US, ());
        assert_eq!(sessions.dropped(), 0);
        sessions.open(3, 30, SESSION_TIMEOUT_US + 1, ());
        assert_eq!((sessions.dropped(), sessions.needs_from()), (1, Some(20)));
    }

    #[test]
    fn a_session_with_a_known_key_replaces_the_earlier_one() {
        let mut sessions = Sessions::new();
        sessions.open(1, 10, 0, "a");
        sessions.open(1, 20, 0, "b");
        assert_eq!(sessions.dropped(), 1);
        assert_eq!(sessions.close(&1), Some("b"));
        assert_eq!(sessions.needs_from(), None);
    }
}
