//! Rate limit of requests: a token bucket per peer.
//!
//! A request takes a token. Tokens are added at a steady rate, up to the size of the bucket. At most [`MAX_PEERS`] peers have a
//! bucket; another one evicts the peer that was idle longest, which at worst gives it a full bucket.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::options::Limits;

/// Maximum number of peers with a bucket.
const MAX_PEERS: usize = 4_096;

/// The token buckets of all peers.
#[derive(Debug)]
pub struct RateLimiter {
    per_second: f64,
    burst: f64,
    peers: HashMap<IpAddr, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    /// Time of the last update, since the start.
    at: Duration,
}

impl RateLimiter {
    /// Creates a limiter with full buckets.
    pub fn new(limits: &Limits) -> RateLimiter {
        RateLimiter {
            per_second: limits.requests_per_second as f64,
            burst: limits.request_burst as f64,
            peers: HashMap::new(),
        }
    }

    /// Takes a token of a peer. `now` is relative to a fixed instant.
    ///
    /// # Errors
    /// If the bucket is empty: the time until the next token.
    pub fn take(&mut self, peer: IpAddr, now: Duration) -> Result<(), Duration> {
        let peer = subnet(peer);
        if !self.peers.contains_key(&peer) && self.peers.len() == MAX_PEERS {
            self.evict_oldest();
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

    fn evict_oldest(&mut self) {
        let oldest =
            self.peers.iter().min_by_key(|(peer, bucket)| (bucket.at, **peer)).map(|(peer, _)| *peer);
        if let Some(peer) = oldest {
            self.peers.remove(&peer);
        }
    }
}

/// Returns the /64 subnet of an IPv6 address, because one peer usually has all of it. Other addresses and `::1` are unchanged.
pub(crate) fn subnet(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_limiter() -> RateLimiter {
        RateLimiter::new(&Limits { requests_per_second: 10, request_burst: 3, ..Limits::default() })
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn a_burst_passes_and_then_the_steady_rate() {
        let (mut rate_limiter, start) = (rate_limiter(), Duration::from_secs(5));
        let mut passed = |now| (0..10).filter(|_| rate_limiter.take(PEER, now).is_ok()).count();
        assert_eq!(passed(start), 3);
        assert_eq!(passed(start + Duration::from_millis(200)), 2);
        assert_eq!(passed(start + Duration::from_secs(60)), 3);
    }

    #[test]
    fn a_refused_peer_passes_after_the_returned_wait() {
        let mut rate_limiter = rate_limiter();
        (0..3).for_each(|_| rate_limiter.take(PEER, Duration::ZERO).unwrap());
        let wait = rate_limiter.take(PEER, Duration::ZERO).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(rate_limiter.take(PEER, wait + Duration::from_nanos(1)).is_ok());
    }

    #[test]
    fn each_peer_has_its_own_bucket() {
        let mut rate_limiter = rate_limiter();
        let mut passes = |peer: &str| rate_limiter.take(peer.parse().unwrap(), Duration::ZERO).is_ok();
        assert_eq!(["192.0.2.1"; 4].map(&mut passes), [true, true, true, false]);
        assert!(passes("192.0.2.2"));
        let same_subnet = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"];
        assert_eq!(same_subnet.map(&mut passes), [true, true, true, false]);
        assert!(passes("2001:db8:0:1::1"));
    }

    #[test]
    fn the_number_of_peers_is_bounded() {
        let mut rate_limiter = rate_limiter();
        for number in 0..MAX_PEERS as u32 + 100 {
            let peer = IpAddr::V4((0x0A00_0000 + number).into());
            assert!(rate_limiter.take(peer, Duration::from_nanos(number.into())).is_ok());
        }
        assert_eq!(rate_limiter.peers.len(), MAX_PEERS);
    }
}
