//! The open connections of a listener, limited in total and by source.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use thalweg_wire::Timestamp;

use super::StreamLimits;
use super::connection::ConnectionState;
use crate::collect::intake::Snapshot;

/// Bits of an IPv6 address that identify a source: its subnet (RFC 4291 section 2.5.4).
const SUBNET_BITS: u32 = 64;

/// The open connections of a listener.
#[derive(Default)]
pub(super) struct OpenConnections(BTreeMap<SocketAddr, OpenConnection>);

struct OpenConnection {
    snapshot: Arc<Mutex<Snapshot>>,
    state: Arc<ConnectionState>,
    opened: Timestamp,
}

impl OpenConnections {
    /// Adds a connection. At a limit it replaces the oldest one that has not sent a message yet; `None` if there is none, or
    /// only recent ones.
    pub(super) fn admit(
        &mut self,
        from: SocketAddr,
        limits: &StreamLimits,
        now: Timestamp,
    ) -> Option<(Arc<Mutex<Snapshot>>, Arc<ConnectionState>)> {
        let is_of_source = |address: &SocketAddr| source(address.ip()) == source(from.ip());
        let remaining = || self.0.iter().filter(|(_, connection)| !connection.is_evicted());
        let of_source = remaining().filter(|(address, _)| is_of_source(address)).count();
        let is_source_full = of_source >= limits.connections_per_source;
        if is_source_full || remaining().count() >= limits.connections {
            let may_be_replaced = |(address, connection): &(&SocketAddr, &OpenConnection)| {
                (!is_source_full || is_of_source(address)) && connection.is_silent(limits, now)
            };
            let (_, oldest) = remaining().filter(may_be_replaced).min_by_key(|(_, it)| it.opened)?;
            oldest.state.is_evicted.store(true, Ordering::Relaxed);
        }
        let (snapshot, state) = (Arc::default(), Arc::default());
        let added =
            OpenConnection { snapshot: Arc::clone(&snapshot), state: Arc::clone(&state), opened: now };
        self.0.insert(from, added);
        Some((snapshot, state))
    }

    pub(super) fn remove(&mut self, from: SocketAddr) {
        self.0.remove(&from);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn snapshots(&self) -> impl Iterator<Item = &Arc<Mutex<Snapshot>>> {
        self.0.values().map(|connection| &connection.snapshot)
    }
}

impl OpenConnection {
    fn is_evicted(&self) -> bool {
        self.state.is_evicted.load(Ordering::Relaxed)
    }

    /// Whether it has had the time of a TLS handshake, and has not sent a message.
    fn is_silent(&self, limits: &StreamLimits, now: Timestamp) -> bool {
        now.since(self.opened) > limits.handshake_timeout && !self.state.has_sent.load(Ordering::Relaxed)
    }
}

/// Returns the address that identifies a source: of IPv6 the subnet.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let subnet = u128::from(address) >> (128 - SUBNET_BITS) << (128 - SUBNET_BITS);
            Ipv6Addr::from(subnet).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Nanos;

    use super::*;

    const LIMITS: fn() -> StreamLimits =
        || StreamLimits { connections: 4, connections_per_source: 2, ..StreamLimits::default() };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::new(1_700_000_000 + seconds, 0)
    }

    /// Opens a connection; returns its state.
    fn open(connections: &mut OpenConnections, from: &str, seconds: u64) -> Option<Arc<ConnectionState>> {
        connections.admit(from.parse().unwrap(), &LIMITS(), at(seconds)).map(|(_, state)| state)
    }

    #[test]
    fn a_source_cannot_use_the_connections_of_others() {
        let mut connections = OpenConnections::default();
        let admitted =
            (1..=9).filter(|port| open(&mut connections, &format!("192.0.2.1:{port}"), 0).is_some()).count();
        assert_eq!(admitted, 2);
        assert!(open(&mut connections, "[::ffff:192.0.2.1]:10", 0).is_none(), "the same address");
        assert!(open(&mut connections, "[2001:db8::1]:1", 0).is_some());
        assert!(open(&mut connections, "[2001:db8::2]:1", 0).is_some());
        assert!(open(&mut connections, "[2001:db8::3]:1", 0).is_none(), "the same subnet");
        assert!(open(&mut connections, "192.0.2.2:1", 0).is_none(), "four in total");
        connections.remove("192.0.2.1:1".parse().unwrap());
        assert!(open(&mut connections, "192.0.2.2:1", 0).is_some());
    }

    #[test]
    fn at_a_limit_the_oldest_connection_without_a_message_is_replaced() {
        let mut connections = OpenConnections::default();
        let states: Vec<_> = ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "192.0.2.3:1"]
            .iter()
            .enumerate()
            .map(|(second, from)| open(&mut connections, from, second as u64).unwrap())
            .collect();
        states[0].has_sent.store(true, Ordering::Relaxed);
        let evicted =
            || states.iter().map(|state| state.is_evicted.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert!(open(&mut connections, "192.0.2.4:1", 10).is_none(), "none has had ten seconds");
        assert!(open(&mut connections, "192.0.2.4:1", 13).is_some());
        assert_eq!(evicted(), [false, true, false, false]);
        // Its place is taken, though it is still in the list.
        assert!(open(&mut connections, "192.0.2.4:2", 13).is_some());
        assert_eq!(evicted(), [false, true, true, false]);
        assert!(open(&mut connections, "192.0.2.1:3", 13).is_none(), "192.0.2.3 is younger than ten seconds");
        assert!(open(&mut connections, "192.0.2.1:3", 14).is_some());
        assert_eq!(evicted(), [false, true, true, true]);
        assert!(LIMITS().handshake_timeout == Nanos::from_secs(10));
    }
}
