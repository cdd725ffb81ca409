//! Packets sent without feedback: no window, no acknowledgements, no retransmissions.
//!
//! A sender represents a **rack**: consecutive endpoints whose packets one core emulates. In every slot it appends
//! requests to a list that the core injects. Each rack has its own random numbers, by its first endpoint, so its
//! packets do not depend on the core that runs it or on other racks.
//!
//! | sender | packets of a rack per slot |
//! |---|---|
//! | [`PoissonSenders`] | Poisson distributed, from uniformly drawn endpoints: each endpoint is a Poisson process |
//! | [`ConstantSenders`] | always the mean, with fractions carried over; endpoints take turns |
//! | [`BurstSenders`] | Poisson Pareto burst process: long-range dependent |

mod bursts;
mod constant;
mod packets;
mod poisson;
mod racks;

pub use bursts::{BurstSenders, Bursts};
pub use constant::ConstantSenders;
pub use packets::{Destinations, PacketKind, PacketMix};
pub use poisson::{PoissonSenders, PoissonTable};
pub use racks::Racks;

use thalweg_network::EndpointId;

use super::{Named, WorkloadError, checked_load};
use crate::outcome::Request;
use crate::slot::Slot;

/// All senders, by their names in experiment files.
pub const SENDERS: &[Named] = &[
    Named { name: "poisson", summary: "packets as a Poisson process from each endpoint" },
    Named { name: "constant", summary: "packets evenly spaced from each endpoint" },
    Named {
        name: "bursts",
        summary: "on/off bursts of Pareto length (PPBP), self-similar with Hurst parameter H",
    },
];

/// A source of packets, slot by slot.
pub trait PacketWorkload: Send {
    /// Appends the packets sent in `slot`. Call this for consecutive slots.
    fn slot(&mut self, slot: Slot, requests: &mut Vec<Request>);
}

/// Which endpoints send, and how much.
#[derive(Clone, Debug)]
pub struct Rack {
    /// The first endpoint of the rack.
    pub first: EndpointId,
    /// The number of its endpoints.
    pub endpoints: usize,
    /// The number of endpoints in the network, numbered from 0.
    pub network: usize,
    /// Their destinations.
    pub destinations: Destinations,
    /// Bytes sent, as a share of the access links' capacity, framing included.
    pub load: f64,
    /// Bytes that an access link carries in a slot.
    pub slot_bytes: u32,
    /// The kinds of packets.
    pub mix: PacketMix,
    /// The seed of the experiment.
    pub seed: u64,
}

impl Rack {
    /// The mean number of packets that the rack sends per slot: `load * slot_bytes / mean length` for each endpoint.
    ///
    /// # Errors
    /// If the load is invalid or the slot has no bytes.
    pub fn packets_per_slot(&self) -> Result<f64, WorkloadError> {
        let load = checked_load(self.load)?;
        if self.slot_bytes == 0 {
            return Err(WorkloadError::Rate);
        }
        Ok(load * self.endpoints as f64 * f64::from(self.slot_bytes) / self.mix.mean_length())
    }
}

#[cfg(test)]
mod tests;
