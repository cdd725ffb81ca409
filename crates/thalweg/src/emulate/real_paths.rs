//! Whether real packets could take other paths than emulated ones (Flexplane, section 3.4).
//!
//! The emulation decides when a packet would have arrived; the real network adds its own delay. That is the same for all packets if there is one path
//! between each pair of hosts, or if all paths have the same delay. With several paths in the emulated network, the real one, which is to be like it, may
//! send a packet over another one than the emulated switches chose.

use thalweg_network::routing::{NextHops, NextHopsError};
use thalweg_network::topology::Node;
use thalweg_network::{LinkState, Topology};
use thiserror::Error;

/// Why real packets could take other paths.
#[derive(Debug, Error)]
pub enum RealPathsError {
    /// There are several paths.
    #[error(
        "{router} has {paths} paths to {host}, and real packets may take others than emulated ones: use a topology with one path \
         between each pair of hosts, or --equal-paths if all paths of the real network have the same delay"
    )]
    Several {
        /// A router.
        router: String,
        /// How many shortest paths it has.
        paths: usize,
        /// To this host.
        host: String,
    },
    /// The network is too large.
    #[error(transparent)]
    NextHops(#[from] NextHopsError),
}

/// Checks that there is one shortest path between each pair of hosts.
///
/// # Errors
/// If there are several.
pub fn check(topology: &Topology) -> Result<(), RealPathsError> {
    let next_hops = NextHops::new(topology, &LinkState::new(topology))?;
    for router in topology.router_ids() {
        for endpoint in topology.endpoint_ids() {
            let paths = next_hops.ports(router, endpoint).len();
            if paths > 1 {
                let [router, host] = [Node::Router(router), Node::Endpoint(endpoint)];
                let [router, host] = [router, host].map(|node| topology.name(node).to_owned());
                return Err(RealPathsError::Several { router, paths, host });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use thalweg_network::LinkSpec;
    use thalweg_network::topology::shapes::{Tiers, leaf_spine, rack};

    use super::*;

    #[test]
    fn several_paths_are_refused() {
        assert!(check(&rack(4, LinkSpec::default()).unwrap()).is_ok());
        assert!(check(&leaf_spine(2, 1, 2, Tiers::default()).unwrap()).is_ok());
        let error = check(&leaf_spine(2, 2, 2, Tiers::default()).unwrap()).unwrap_err().to_string();
        assert!(error.contains(" has 2 paths to h") && error.contains("--equal-paths"), "{error}");
    }
}
