//! Addresses of peers that logs name.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// Maximum number of remembered names.
const MAX_NAMES: usize = 10_000;

/// Time after a failed lookup before the next one of the same name.
const RETRY: Duration = Duration::from_secs(300);

/// Addresses of names. An address that was found is kept; a failure holds for [`RETRY`].
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Result<IpAddr, Instant>>);

impl Names {
    /// Returns the address of a name; `None` if it has none.
    pub(super) fn address(
        &mut self,
        name: &str,
        now: Instant,
        look_up: impl FnOnce(&str) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        match self.0.get(name) {
            Some(Ok(address)) => return Some(*address),
            Some(Err(failed)) if now.duration_since(*failed) < RETRY => return None,
            _ => {}
        }
        if self.0.len() >= MAX_NAMES {
            self.0.clear();
        }
        let found = look_up(name);
        self.0.insert(name.to_owned(), found.ok_or(now));
        found
    }
}

/// Asks the resolver of this host for the address of a name.
pub(super) fn look_up(name: &str) -> Option<IpAddr> {
    (name, 0).to_socket_addrs().ok()?.next().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_lookup_is_repeated_after_five_minutes_and_a_found_address_is_kept() {
        let mut names = Names::default();
        let start = Instant::now();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let mut lookups = 0;
        let mut ask = |seconds, answer| {
            names.address("dtn2", start + Duration::from_secs(seconds), |_| {
                lookups += 1;
                answer
            })
        };
        assert_eq!([ask(0, None), ask(299, Some(address))], [None, None]);
        assert_eq!([ask(300, Some(address)), ask(9_999, None)], [Some(address); 2]);
        assert_eq!(lookups, 2);
    }
}
