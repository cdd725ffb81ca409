//! How many requests a peer may make: a bucket of tokens each.
//!
//! A request takes a token; they come back at a steady rate, up to as many as the bucket holds. At most [`MAX_PEERS`]
//! peers are remembered; when one more comes, the one that has been silent the longest is forgotten, which at worst
//! gives it a full bucket.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::options::Limits;

/// Most peers that are remembered.
const MAX_PEERS: usize = 4_096;

/// What is left to each peer.
#[derive(Debug)]
pub struct Allowance {
    per_second: f64,
    burst: f64,
    peers: HashMap<IpAddr, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    /// When it was last looked at, since the start.
    at: Duration,
}

impl Allowance {
    /// A full bucket for everyone.
    pub fn new(limits: &Limits) -> Allowance {
        Allowance {
            per_second: limits.requests_per_second as f64,
            burst: limits.request_burst as f64,
            peers: HashMap::new(),
        }
    }

    /// Takes a token for a request of this peer at `now`, a time since any fixed moment.
    ///
    /// # Errors
    /// If there is none: how long until there is.
    pub fn take(&mut self, peer: IpAddr, now: Duration) -> Result<(), Duration> {
        let peer = subnet(peer);
        if !self.peers.contains_key(&peer) && self.peers.len() == MAX_PEERS {
            self.forget_one();
        }
        let bucket = self.peers.entry(peer).or_insert(Bucket { tokens: self.burst, at: now });
        let gained = now.saturating_sub(bucket.at).as_secs_f64() * self.per_second;
        *bucket = Bucket { tokens: (bucket.tokens + gained).min(self.burst), at: now };
        if bucket.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.tokens) / self.per_second));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    fn forget_one(&mut self) {
        let oldest =
            self.peers.iter().min_by_key(|(peer, bucket)| (bucket.at, **peer)).map(|(peer, _)| *peer);
        if let Some(peer) = oldest {
            self.peers.remove(&peer);
        }
    }
}

/// Who has one IPv6 address usually has the other 2^64 of its subnet as well. `::1` stands for itself.
pub(crate) fn subnet(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance() -> Allowance {
        Allowance::new(&Limits { requests_per_second: 10, request_burst: 3, ..Limits::default() })
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn a_burst_passes_and_then_the_steady_rate() {
        let (mut allowance, start) = (allowance(), Duration::from_secs(5));
        let mut passed = |now| (0..10).filter(|_| allowance.take(PEER, now).is_ok()).count();
        assert_eq!(passed(start), 3);
        assert_eq!(passed(start + Duration::from_millis(200)), 2);
        assert_eq!(passed(start + Duration::from_secs(60)), 3);
    }

    #[test]
    fn who_is_refused_is_told_how_long_to_wait_and_passes_after_that() {
        let mut allowance = allowance();
        (0..3).for_each(|_| allowance.take(PEER, Duration::ZERO).unwrap());
        let wait = allowance.take(PEER, Duration::ZERO).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(allowance.take(PEER, wait + Duration::from_nanos(1)).is_ok());
    }

    #[test]
    fn peers_do_not_take_from_each_other_but_a_subnet_of_ipv6_is_one_peer() {
        let mut allowance = allowance();
        let mut passes = |peer: &str| allowance.take(peer.parse().unwrap(), Duration::ZERO).is_ok();
        assert_eq!(["192.0.2.1"; 4].map(&mut passes), [true, true, true, false]);
        assert!(passes("192.0.2.2"));
        let same_subnet = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"];
        assert_eq!(same_subnet.map(&mut passes), [true, true, true, false]);
        assert!(passes("2001:db8:0:1::1"));
    }

    #[test]
    fn no_more_peers_are_remembered_than_there_is_room_for() {
        let mut allowance = allowance();
        for number in 0..MAX_PEERS as u32 + 100 {
            let peer = IpAddr::V4((0x0A00_0000 + number).into());
            assert!(allowance.take(peer, Duration::from_nanos(number.into())).is_ok());
        }
        assert_eq!(allowance.peers.len(), MAX_PEERS);
    }
}
