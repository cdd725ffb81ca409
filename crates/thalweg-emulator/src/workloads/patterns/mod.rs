//! Which endpoints send flows to which.
//!
//! | pattern | flows |
//! |---|---|
//! | [`Rpc`] | clients ask servers as Poisson processes; in all-to-all everybody is both |
//! | [`Incast`] | many to one, in rounds: the next starts when all flows of this one are complete |
//! | [`Shuffle`] | everybody to everybody else in random order, a few at a time |
//! | [`Schedule`] | known in advance: stride, random pairings, persistent senders, a file |

mod foreign;
mod incast;
mod pairings;
mod rpc;
mod schedule;
mod shuffle;
mod text;

pub use incast::{Incast, IncastOptions};
pub use pairings::{Each, Staggered};
pub use rpc::{Rpc, RpcOptions};
pub use schedule::Schedule;
pub use shuffle::{MAX_SHUFFLED, Shuffle, ShuffleOptions};
pub use text::{FlowFileError, MAX_FLOWS};

use std::collections::BTreeSet;

use thalweg_network::EndpointId;

use super::{Named, WorkloadError};

/// All patterns, by their names in experiment files.
pub const PATTERNS: &[Named] = &[
    Named { name: "all_to_all", summary: "flows between random pairs at a load of the access links" },
    Named {
        name: "rpc",
        summary: "clients request flows from random servers at a load of the clients' links",
    },
    Named { name: "incast", summary: "n senders to one, in rounds with a barrier" },
    Named { name: "stride", summary: "endpoint i sends to endpoint i + n, one flow each" },
    Named { name: "shuffle", summary: "each endpoint sends to all others in random order, k at a time" },
    Named {
        name: "random_bijection",
        summary: "each endpoint sends one flow and receives one, paired at random",
    },
    Named { name: "random", summary: "each endpoint sends one flow to a random other" },
    Named { name: "staggered", summary: "one flow per endpoint: to its edge router, its pod or another pod" },
    Named { name: "persistent", summary: "n senders to one, flows that never end" },
    Named {
        name: "file",
        summary: "from a file: start,source,destination,bytes[,dscp]; or of ns-3 or htsim",
    },
];

/// Checks that there are at least `least` endpoints without duplicates.
fn distinct(role: &'static str, endpoints: &[EndpointId], least: usize) -> Result<(), WorkloadError> {
    if endpoints.len() < least {
        return Err(WorkloadError::TooFew { role, given: endpoints.len(), least });
    }
    let mut seen = BTreeSet::new();
    match endpoints.iter().find(|&&endpoint| !seen.insert(endpoint)) {
        Some(&endpoint) => Err(WorkloadError::Repeated { endpoint, role }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
