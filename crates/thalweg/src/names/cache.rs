//! Names of addresses. Each is kept for some time, addresses without a name too. A full cache drops the entry that expires first.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a name is kept.
const NAME_TIME: Duration = Duration::from_secs(600);
/// How long an address without a name is not asked for again.
const NO_NAME_TIME: Duration = Duration::from_secs(60);

/// A bounded cache of names. Time is an argument.
#[derive(Debug)]
pub(super) struct NameCache {
    entries: HashMap<IpAddr, Entry>,
    capacity: usize,
}

#[derive(Debug)]
struct Entry {
    state: State,
    expires: Instant,
}

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A lookup runs.
    Pending,
    /// The name.
    Name(Arc<str>),
    /// There is no name, or the lookup failed.
    NoName,
}

impl NameCache {
    pub(super) fn new(capacity: usize) -> NameCache {
        NameCache { entries: HashMap::new(), capacity }
    }

    /// Returns what is known; `None` if the address should be looked up. A name that has expired is returned while a lookup runs.
    pub(super) fn get(&self, address: IpAddr, now: Instant) -> Option<&State> {
        self.entries.get(&address).filter(|entry| now < entry.expires).map(|entry| &entry.state)
    }

    /// Marks an address as being looked up.
    pub(super) fn set_pending(&mut self, address: IpAddr, now: Instant) {
        self.insert(address, State::Pending, now + NO_NAME_TIME, now);
    }

    /// Adds the result of a lookup.
    pub(super) fn set(&mut self, address: IpAddr, name: Option<Arc<str>>, now: Instant) {
        match name {
            Some(name) => self.insert(address, State::Name(name), now + NAME_TIME, now),
            None => self.insert(address, State::NoName, now + NO_NAME_TIME, now),
        }
    }

    fn insert(&mut self, address: IpAddr, state: State, expires: Instant, now: Instant) {
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&address) {
            self.entries.retain(|_, entry| now < entry.expires);
            let first =
                self.entries.iter().min_by_key(|(_, entry)| entry.expires).map(|(address, _)| *address);
            if let Some(first) = first.filter(|_| self.entries.len() >= self.capacity) {
                self.entries.remove(&first);
            }
        }
        self.entries.insert(address, Entry { state, expires });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    #[test]
    fn names_and_missing_names_expire() {
        let (mut cache, start) = (NameCache::new(8), Instant::now());
        cache.set_pending(address(1), start);
        assert_eq!(cache.get(address(1), start), Some(&State::Pending));
        cache.set(address(1), Some("a.example".into()), start);
        cache.set(address(2), None, start);
        assert_eq!(cache.get(address(1), start), Some(&State::Name("a.example".into())));
        assert_eq!(cache.get(address(2), start), Some(&State::NoName));
        assert_eq!(cache.get(address(2), start + NO_NAME_TIME), None);
        assert_eq!(cache.get(address(1), start + NAME_TIME), None);
        assert_eq!(cache.get(address(3), start), None);
    }

    #[test]
    fn a_full_cache_drops_what_expires_first() {
        let (mut cache, start) = (NameCache::new(3), Instant::now());
        for number in 0..100 {
            cache.set(address(number), Some("x".into()), start + Duration::from_millis(number.into()));
            assert!(cache.entries.len() <= 3);
        }
        let kept = (0..100).filter(|number| cache.get(address(*number), start).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [97, 98, 99]);
    }
}
