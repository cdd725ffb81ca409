//! How many connections there may be: together, and of one peer.
//!
//! A peer of another machine may have a quarter of all places, so that no one keeps the others out. The loopback
//! interface is no single peer: a reverse proxy there asks for many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::subnet;

/// One peer may have one place in so many.
const SHARE: u64 = 4;

/// Places for connections.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    most: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u64,
    /// Peers that have any; none of the loopback interface.
    by_peer: HashMap<IpAddr, u64>,
}

/// A place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connection_limits: Arc<ConnectionLimits>,
    peer: IpAddr,
}

impl ConnectionLimits {
    /// As many as `most`, all free.
    pub(super) fn new(most: u64) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits { most, taken: Mutex::default() })
    }

    /// A place for this peer, if there is one.
    pub(super) fn take(self: &Arc<ConnectionLimits>, peer: IpAddr) -> Option<Place> {
        let mut taken = self.taken();
        if taken.all == self.most {
            return None;
        }
        let peer = subnet(peer);
        if !peer.is_loopback() {
            let own = taken.by_peer.get(&peer).copied().unwrap_or_default();
            if own >= (self.most / SHARE).max(1) {
                return None;
            }
            taken.by_peer.insert(peer, own + 1);
        }
        taken.all += 1;
        Some(Place { connection_limits: Arc::clone(self), peer })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.connection_limits.taken();
        taken.all -= 1;
        if let Some(own) = taken.by_peer.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(connection_limits: &Arc<ConnectionLimits>, peer: &str, count: usize) -> Vec<Place> {
        (0..count).filter_map(|_| connection_limits.take(peer.parse().unwrap())).collect()
    }

    #[test]
    fn a_peer_gets_a_quarter_of_all_places_and_leaves_the_rest_to_others() {
        let connection_limits = ConnectionLimits::new(16);
        let held = took(&connection_limits, "192.0.2.1", 16);
        assert_eq!(held.len(), 4);
        assert_eq!(took(&connection_limits, "192.0.2.2", 1).len(), 1);
        drop(held);
        assert_eq!(connection_limits.taken().by_peer.len(), 0, "who has gone is not remembered");
        assert_eq!(took(&connection_limits, "192.0.2.1", 16).len(), 4);
    }

    #[test]
    fn a_subnet_of_ipv6_is_one_peer() {
        let connection_limits = ConnectionLimits::new(8);
        let _held = took(&connection_limits, "2001:db8::1", 8);
        assert!(connection_limits.take("2001:db8::2".parse().unwrap()).is_none());
        assert!(connection_limits.take("2001:db8:0:1::1".parse().unwrap()).is_some());
    }

    #[test]
    fn the_loopback_interface_may_have_them_all_and_no_more() {
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let connection_limits = ConnectionLimits::new(16);
            assert_eq!(took(&connection_limits, peer, 20).len(), 16, "{peer}");
        }
    }
}
