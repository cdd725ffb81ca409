//! Limits of connections, in total and per peer.
//!
//! A remote peer may have a quarter of all connections, so that it cannot exclude others. The loopback interface has no limit of its
//! own, because a reverse proxy connects on behalf of many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::subnet;

/// One peer may have one connection in this many.
const PEER_SHARE: u64 = 4;

/// Limits of connections.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    max: u64,
    in_use: Mutex<InUse>,
}

#[derive(Debug, Default)]
struct InUse {
    all: u64,
    /// Connections by remote peer. The loopback interface is not counted.
    by_peer: HashMap<IpAddr, u64>,
}

/// The permit of a connection. Dropping it releases the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connection_limits: Arc<ConnectionLimits>,
    peer: IpAddr,
}

impl ConnectionLimits {
    /// Creates limits for at most `max` connections.
    pub(super) fn new(max: u64) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits { max, in_use: Mutex::default() })
    }

    /// Returns a permit for a peer, if one is free.
    pub(super) fn acquire(self: &Arc<ConnectionLimits>, peer: IpAddr) -> Option<ConnectionPermit> {
        let mut in_use = self.in_use();
        if in_use.all == self.max {
            return None;
        }
        let peer = subnet(peer);
        if !peer.is_loopback() {
            let own = in_use.by_peer.get(&peer).copied().unwrap_or_default();
            if own >= (self.max / PEER_SHARE).max(1) {
                return None;
            }
            in_use.by_peer.insert(peer, own + 1);
        }
        in_use.all += 1;
        Some(ConnectionPermit { connection_limits: Arc::clone(self), peer })
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut in_use = self.connection_limits.in_use();
        in_use.all -= 1;
        if let Some(own) = in_use.by_peer.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                in_use.by_peer.remove(&self.peer);
            }
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
    ) -> Vec<ConnectionPermit> {
        (0..count).filter_map(|_| connection_limits.acquire(peer.parse().unwrap())).collect()
    }

    #[test]
    fn a_peer_gets_at_most_a_quarter() {
        let connection_limits = ConnectionLimits::new(16);
        let held = acquired(&connection_limits, "192.0.2.1", 16);
        assert_eq!(held.len(), 4);
        assert_eq!(acquired(&connection_limits, "192.0.2.2", 1).len(), 1);
        drop(held);
        assert_eq!(connection_limits.in_use().by_peer.len(), 0, "closed connections leave no entry");
        assert_eq!(acquired(&connection_limits, "192.0.2.1", 16).len(), 4);
    }

    #[test]
    fn an_ipv6_subnet_is_one_peer() {
        let connection_limits = ConnectionLimits::new(8);
        let _held = acquired(&connection_limits, "2001:db8::1", 8);
        assert!(connection_limits.acquire("2001:db8::2".parse().unwrap()).is_none());
        assert!(connection_limits.acquire("2001:db8:0:1::1".parse().unwrap()).is_some());
    }

    #[test]
    fn the_loopback_interface_may_use_all_connections() {
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let connection_limits = ConnectionLimits::new(16);
            assert_eq!(acquired(&connection_limits, peer, 20).len(), 16, "{peer}");
        }
    }
}
