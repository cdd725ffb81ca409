//! Evenly spaced packets.

use super::packets::Packets;
use super::{PacketWorkload, Rack};
use crate::outcome::Request;
use crate::slot::Slot;
use crate::workloads::WorkloadError;

/// A rack whose endpoints take turns and send the same number of packets in every slot; fractions carry over. So each
/// endpoint's packets are evenly spaced at its load.
#[derive(Clone, Debug)]
pub struct ConstantSenders {
    /// Packets per slot, in 2^-32.
    rate: u64,
    /// The fraction of the next packet that is due, in 2^-32.
    due: u64,
    /// The next endpoint, counted within the rack.
    turn: u64,
    packets: Packets,
}

impl ConstantSenders {
    /// The senders of a rack.
    ///
    /// # Errors
    /// If the rack is invalid.
    pub fn new(rack: &Rack) -> Result<ConstantSenders, WorkloadError> {
        let packets = Packets::new(rack)?;
        // At most 100 * 2^16 * 2^32 packets; 2^32 parts of one fit unless the slot is absurdly long.
        let rate = rack.packets_per_slot()? * 4_294_967_296.0;
        if rate >= (1u64 << 60) as f64 {
            return Err(WorkloadError::Load(rack.load));
        }
        Ok(ConstantSenders { rate: rate.round() as u64, due: 0, turn: 0, packets })
    }
}

impl PacketWorkload for ConstantSenders {
    #[inline]
    fn slot(&mut self, _slot: Slot, requests: &mut Vec<Request>) {
        self.due += self.rate;
        let count = (self.due >> 32) as usize;
        self.due &= u64::from(u32::MAX);
        self.turn = self.packets.send_in_turn(count, self.turn, requests);
    }
}
