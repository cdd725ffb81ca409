//! Reverse DNS in background threads. Nothing waits for an answer, except [`Resolver::wait_for`].
//!
//! A lookup is getnameinfo(3), so `/etc/hosts`, `/etc/nsswitch.conf` and the time-outs of `/etc/resolv.conf` apply. Several
//! threads look up names, so that one slow name server does not delay the others.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use dns_lookup::lookup_addr;

use super::cache::{NameCache, State};

/// Addresses that are remembered, about 100 bytes each.
const CAPACITY: usize = 8_192;
/// Addresses that wait for a thread. Further ones are asked for again with the next snapshot.
const QUEUE: usize = 1_024;
/// Lookups at the same time.
const THREADS: usize = 4;
/// How often [`Resolver::wait_for`] checks for answers.
const POLL: Duration = Duration::from_millis(20);

/// Names of addresses.
pub(crate) type HostNames = HashMap<IpAddr, Arc<str>>;

/// A lookup; `None` if the address has no name.
type Lookup = fn(IpAddr) -> Option<String>;

/// Looks up names. Its threads end when it is dropped and their lookups return.
#[derive(Debug)]
pub(crate) struct Resolver {
    requests: Sender<IpAddr>,
    cache: Arc<Mutex<NameCache>>,
}

impl Resolver {
    /// Starts the threads. They run as the current user, so drop privileges first.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(crate) fn start() -> std::io::Result<Resolver> {
        Resolver::with_lookup(reverse_dns)
    }

    fn with_lookup(lookup: Lookup) -> std::io::Result<Resolver> {
        let (requests, receiver) = bounded::<IpAddr>(QUEUE);
        let cache = Arc::new(Mutex::new(NameCache::new(CAPACITY)));
        for _ in 0..THREADS {
            let (receiver, cache) = (receiver.clone(), Arc::clone(&cache));
            thread::Builder::new()
                .name("names".to_owned())
                .spawn(move || answer(&receiver, &cache, lookup))?;
        }
        Ok(Resolver { requests, cache })
    }

    /// Returns the names that are known, and requests the others.
    pub(crate) fn names(&self, addresses: impl Iterator<Item = IpAddr>) -> HostNames {
        let mut names = HostNames::new();
        let (mut cache, now) = (locked(&self.cache), Instant::now());
        for address in addresses {
            match cache.get(address, now) {
                Some(State::Name(name)) => {
                    names.insert(address, Arc::clone(name));
                }
                Some(State::Pending | State::NoName) => {}
                None => match self.requests.try_send(address) {
                    Ok(()) => cache.set_pending(address, now),
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => break,
                },
            }
        }
        names
    }

    /// Returns the names of addresses; waits for answers, but at most `timeout`.
    pub(crate) fn wait_for(&self, addresses: &[IpAddr], timeout: Duration) -> HostNames {
        let end = Instant::now() + timeout;
        loop {
            let names = self.names(addresses.iter().copied());
            let now = Instant::now();
            let cache = locked(&self.cache);
            let is_open =
                |address: &&IpAddr| matches!(cache.get(**address, now), None | Some(State::Pending));
            if now >= end || !addresses.iter().any(|address| is_open(&address)) {
                return names;
            }
            drop(cache);
            thread::sleep(POLL);
        }
    }
}

/// Answers requests until the resolver is dropped.
fn answer(requests: &Receiver<IpAddr>, cache: &Mutex<NameCache>, lookup: Lookup) {
    while let Ok(address) = requests.recv() {
        let name = lookup(address).filter(|name| is_printable(name)).map(Arc::from);
        locked(cache).set(address, name, Instant::now());
    }
}

fn locked(cache: &Mutex<NameCache>) -> MutexGuard<'_, NameCache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks up a name. An address without a name is returned as text.
fn reverse_dns(address: IpAddr) -> Option<String> {
    lookup_addr(&address)
        .ok()
        .filter(|name| name.parse::<IpAddr>().is_err() && name.parse::<SocketAddr>().is_err())
}

/// Whether a name has only characters of host names. Whoever owns an address chooses its name, which must not control the
/// terminal.
fn is_printable(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    const NAMELESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));
    const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));

    fn fake(address: IpAddr) -> Option<String> {
        match address {
            HOST => Some("host.example".to_owned()),
            HOSTILE => Some("\u{1b}[2Jx".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn names_arrive_later_and_hostile_ones_never() {
        let resolver = Resolver::with_lookup(fake).unwrap();
        let all = [HOST, NAMELESS, HOSTILE];
        let names = resolver.wait_for(&all, Duration::from_secs(60));
        assert_eq!(names, HostNames::from([(HOST, "host.example".into())]));
        assert_eq!(resolver.names(all.into_iter()), names);
    }

    #[test]
    fn nothing_waits_for_a_slow_name_server() {
        fn slow(_: IpAddr) -> Option<String> {
            thread::sleep(Duration::from_secs(3_600));
            None
        }
        let resolver = Resolver::with_lookup(slow).unwrap();
        let many = (0..100_000).map(|number| IpAddr::from(Ipv4Addr::from(number)));
        assert!(resolver.names(many).is_empty());
        assert!(resolver.wait_for(&[HOST], Duration::from_millis(1)).is_empty());
    }

    #[test]
    fn the_hosts_file_names_this_host() {
        // `localhost` in every /etc/hosts; a name server is not asked.
        assert!(reverse_dns(Ipv4Addr::LOCALHOST.into()).is_some());
    }
}
