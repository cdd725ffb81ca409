//! Packets that are sent whatever becomes of them: no window, no answer, no repetition.
//!
//! A sender stands for a **rack**: endpoints that follow one another, whose packets one core emulates. In every
//! slot it adds requests to a list that the core injects. Each rack has its own streams of chance, by its first
//! endpoint, so that its packets do not depend on which core runs it, or on what other racks there are.
//!
//! | sender | packets of a rack in a slot |
//! |---|---|
//! | [`PoissonSenders`] | Poisson distributed, from endpoints drawn evenly: each endpoint is a Poisson process |
//! | [`ConstantSenders`] | always the mean, its fraction carried over; endpoints take turns |
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

/// All kinds of senders, by the names that experiments use.
pub const SENDERS: &[Named] = &[
    Named { name: "poisson", summary: "packets as a Poisson process from each endpoint" },
    Named { name: "constant", summary: "packets evenly spaced from each endpoint" },
    Named {
        name: "bursts",
        summary: "on/off bursts of Pareto length (PPBP), self-similar with Hurst parameter H",
    },
];

/// Packets that come slot by slot.
pub trait PacketWorkload: Send {
    /// Adds the packets that are sent in `slot`. To be called for one slot after another.
    fn slot(&mut self, slot: Slot, requests: &mut Vec<Request>);
}

/// Which endpoints send, and how much.
#[derive(Clone, Debug)]
pub struct Rack {
    /// The first endpoint of the rack.
    pub first: EndpointId,
    /// How many it has.
    pub endpoints: usize,
    /// How many there are in the whole network, numbered from 0.
    pub network: usize,
    /// Whom they send to.
    pub destinations: Destinations,
    /// Bytes sent, as a share of what the access links carry: framing included, as packets' lengths are.
    pub load: f64,
    /// Bytes that an access link carries in a slot.
    pub slot_bytes: u32,
    /// What packets look like.
    pub mix: PacketMix,
    /// Seed of the experiment.
    pub seed: u64,
}

impl Rack {
    /// Mean number of packets that the rack sends in a slot: `load * slot_bytes / mean length` from each endpoint.
    ///
    /// # Errors
    /// A load, or a slot of no bytes.
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
