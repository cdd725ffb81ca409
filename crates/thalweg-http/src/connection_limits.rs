//! Limits of connections, in total and per peer.
//!
//! A remote peer may have a quarter of all connections, so that it cannot exclude others. The loopback interface has no limit of its
//! own, because a reverse proxy connects on behalf of many.
//!
//! At a limit, a new connection replaces the one that has waited longest for its client: for a request, for the rest of one, or for
//! the client to read a response. So slow clients cannot keep others out, however many they are. Connections whose request is being
//! answered, event streams included, are not replaced.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::access::subnet;

/// One peer may have one connection in this many.
const PEER_SHARE: u64 = 4;

/// The turn of a connection whose request is being answered.
const ANSWERING: u64 = 0;

/// Limits of connections.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    max: u64,
    in_use: Mutex<InUse>,
}

#[derive(Debug, Default)]
struct InUse {
    all: u64,
    /// Connections that wait for their clients, by turn: the longest wait first.
    waiting: BTreeMap<u64, Waiting>,
    /// Connections by remote peer. The loopback interface is not counted.
    by_peer: HashMap<IpAddr, PeerConnections>,
    last_turn: u64,
}

#[derive(Debug)]
struct Waiting {
    peer: IpAddr,
    eviction: Arc<Notify>,
}

#[derive(Debug, Default)]
struct PeerConnections {
    all: u64,
    /// Turns of those that wait.
    waiting: BTreeSet<u64>,
}

/// The permit of a connection. Dropping it releases the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connection_limits: Arc<ConnectionLimits>,
    peer: IpAddr,
    /// The key in [`InUse::waiting`], which has no such key after an eviction, or [`ANSWERING`]. Changes only while [`InUse`] is
    /// locked.
    turn: AtomicU64,
    eviction: Arc<Notify>,
    has_evicted: bool,
}

/// While it lives, the connection is not replaced.
#[derive(Debug)]
pub(super) struct Answering(Arc<ConnectionPermit>);

impl ConnectionLimits {
    /// Creates limits for at most `max` connections.
    pub(super) fn new(max: u64) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits { max, in_use: Mutex::default() })
    }

    /// Returns a permit for a peer. At a limit, it replaces a waiting connection; `None` if none waits.
    pub(super) fn acquire(self: &Arc<ConnectionLimits>, peer: IpAddr) -> Option<Arc<ConnectionPermit>> {
        let peer = subnet(peer);
        let mut in_use = self.in_use();
        let is_peer_full = in_use.of_peer(peer) >= (self.max / PEER_SHARE).max(1);
        let has_evicted = match (is_peer_full, in_use.all >= self.max) {
            (true, _) => in_use.evict_of(peer).then_some(true)?,
            (false, true) => in_use.evict_any().then_some(true)?,
            (false, false) => false,
        };
        in_use.all += 1;
        if !peer.is_loopback() {
            in_use.by_peer.entry(peer).or_default().all += 1;
        }
        let permit = ConnectionPermit {
            connection_limits: Arc::clone(self),
            peer,
            turn: AtomicU64::new(ANSWERING),
            eviction: Arc::default(),
            has_evicted,
        };
        in_use.wait(&permit);
        drop(in_use);
        Some(Arc::new(permit))
    }

    /// Closes the connection that has waited longest, which frees its file descriptor. Returns whether one waited.
    pub(super) fn evict(&self) -> bool {
        self.in_use().evict_any()
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// Returns the number of connections of a remote peer.
    fn of_peer(&self, peer: IpAddr) -> u64 {
        self.by_peer.get(&peer).map_or(0, |own| own.all)
    }

    fn evict_any(&mut self) -> bool {
        let turn = self.waiting.first_key_value().map(|(turn, _)| *turn);
        turn.is_some_and(|turn| self.evict(turn))
    }

    fn evict_of(&mut self, peer: IpAddr) -> bool {
        let turn = self.by_peer.get(&peer).and_then(|own| own.waiting.first().copied());
        turn.is_some_and(|turn| self.evict(turn))
    }

    /// Closes a waiting connection. Its permit is free at once.
    fn evict(&mut self, turn: u64) -> bool {
        let Some(Waiting { peer, eviction }) = self.stop_waiting(turn) else { return false };
        self.release(peer);
        eviction.notify_one();
        true
    }

    fn wait(&mut self, permit: &ConnectionPermit) {
        self.last_turn += 1;
        permit.turn.store(self.last_turn, Ordering::Relaxed);
        let waiting = Waiting { peer: permit.peer, eviction: Arc::clone(&permit.eviction) };
        self.waiting.insert(self.last_turn, waiting);
        if let Some(own) = self.by_peer.get_mut(&permit.peer) {
            own.waiting.insert(self.last_turn);
        }
    }

    fn stop_waiting(&mut self, turn: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&turn)?;
        if let Some(own) = self.by_peer.get_mut(&waiting.peer) {
            own.waiting.remove(&turn);
        }
        Some(waiting)
    }

    fn release(&mut self, peer: IpAddr) {
        self.all -= 1;
        if let Some(own) = self.by_peer.get_mut(&peer) {
            own.all -= 1;
            if own.all == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

impl ConnectionPermit {
    /// Whether this connection replaced another.
    pub(super) fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Waits until another connection replaces this one.
    pub(super) async fn evicted(&self) {
        self.eviction.notified().await;
    }

    /// Marks the connection as being answered: the client has sent its request and waits for this server.
    pub(super) fn answering(self: &Arc<ConnectionPermit>) -> Answering {
        let mut in_use = self.connection_limits.in_use();
        // If it has just been replaced, the connection is about to close, and keeps its turn.
        if in_use.stop_waiting(self.turn.load(Ordering::Relaxed)).is_some() {
            self.turn.store(ANSWERING, Ordering::Relaxed);
        }
        Answering(Arc::clone(self))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut in_use = self.0.connection_limits.in_use();
        if self.0.turn.load(Ordering::Relaxed) == ANSWERING {
            in_use.wait(&self.0);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut in_use = self.connection_limits.in_use();
        let turn = self.turn.load(Ordering::Relaxed);
        if turn == ANSWERING || in_use.stop_waiting(turn).is_some() {
            in_use.release(self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquired(
        connection_limits: &Arc<ConnectionLimits>,
        peer: &str,
        count: usize,
    ) -> Vec<Arc<ConnectionPermit>> {
        (0..count).filter_map(|_| connection_limits.acquire(peer.parse().unwrap())).collect()
    }

    fn answering(permits: &[Arc<ConnectionPermit>]) -> Vec<Answering> {
        permits.iter().map(ConnectionPermit::answering).collect()
    }

    fn is_evicted(permit: &ConnectionPermit) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(std::time::Duration::ZERO, permit.evicted()).await.is_ok()
        })
    }

    #[test]
    fn a_peer_gets_at_most_a_quarter() {
        let connection_limits = ConnectionLimits::new(16);
        let held = acquired(&connection_limits, "192.0.2.1", 4);
        let answers = answering(&held);
        assert_eq!(acquired(&connection_limits, "192.0.2.1", 4).len(), 0);
        assert_eq!(acquired(&connection_limits, "192.0.2.2", 1).len(), 1);
        drop((answers, held));
        assert_eq!(connection_limits.in_use().by_peer.len(), 0, "closed connections leave no entry");
        assert_eq!(acquired(&connection_limits, "192.0.2.1", 4).len(), 4);
    }

    #[test]
    fn a_peer_at_its_limit_replaces_its_own_connections_only() {
        let connection_limits = ConnectionLimits::new(16);
        let other = acquired(&connection_limits, "192.0.2.2", 1);
        let held = acquired(&connection_limits, "192.0.2.1", 6);
        let evicted: Vec<bool> = held.iter().map(|permit| is_evicted(permit)).collect();
        assert_eq!(evicted, [true, true, false, false, false, false]);
        assert!(!is_evicted(&other[0]));
        assert_eq!(connection_limits.in_use().all, 5);
    }

    #[test]
    fn the_longest_wait_is_replaced_and_no_answer() {
        let connection_limits = ConnectionLimits::new(3);
        let held = acquired(&connection_limits, "127.0.0.1", 3);
        // The first has just been answered, and the second is being answered.
        drop(held[0].answering());
        let answer = held[1].answering();
        let next = acquired(&connection_limits, "127.0.0.1", 1);
        assert!(next[0].has_evicted() && is_evicted(&held[2]) && !is_evicted(&held[0]));
        let rest = answering(&[Arc::clone(&held[0]), Arc::clone(&next[0])]);
        assert_eq!(acquired(&connection_limits, "127.0.0.1", 1).len(), 0, "all are being answered");
        // A replaced connection does not come back.
        drop((held[2].answering(), answer, rest, held, next));
        let in_use = connection_limits.in_use();
        assert_eq!((in_use.all, in_use.waiting.len()), (0, 0));
    }

    #[test]
    fn an_ipv6_subnet_is_one_peer() {
        let connection_limits = ConnectionLimits::new(8);
        let held = acquired(&connection_limits, "2001:db8::1", 2);
        let _answers = answering(&held);
        assert!(connection_limits.acquire("2001:db8::2".parse().unwrap()).is_none());
        assert!(connection_limits.acquire("2001:db8:0:1::1".parse().unwrap()).is_some());
    }

    #[test]
    fn the_loopback_interface_may_use_all_connections() {
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let connection_limits = ConnectionLimits::new(16);
            let held = acquired(&connection_limits, peer, 20);
            assert_eq!(held.iter().filter(|permit| is_evicted(permit)).count(), 4, "{peer}");
        }
    }
}
