//! Names of the hosts in the results, if they are asked for.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use crate::names::{HostNames, Resolver};

/// Maximum time that the results wait for names.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of addresses to look up, the largest first.
const MAX_ADDRESSES: usize = 4_096;

/// Names of hosts.
#[derive(Debug, Default)]
pub(super) struct ResultNames(HostNames);

impl ResultNames {
    /// Looks up the first addresses, those of the largest rows.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn look_up(addresses: impl Iterator<Item = IpAddr>) -> std::io::Result<ResultNames> {
        let mut seen = HashSet::new();
        let addresses: Vec<IpAddr> =
            addresses.filter(|address| seen.insert(*address)).take(MAX_ADDRESSES).collect();
        Ok(ResultNames(Resolver::start()?.wait_for(&addresses, TIMEOUT)))
    }

    /// Returns the name of an address, if it is known.
    pub(super) fn of(&self, address: IpAddr) -> Option<&str> {
        self.0.get(&address).map(|name| &**name)
    }

    /// Returns `10.0.0.1 (name)`, or the address alone.
    pub(super) fn with_address(&self, address: IpAddr) -> String {
        self.of(address).map_or_else(|| address.to_string(), |name| format!("{address} ({name})"))
    }
}
