//! Counters of an output port. Arrivals equal packets sent, dropped and queued. (An endpoint's interface counts a
//! packet as sent when it is handed over, since its departure is known.)

use std::ops::AddAssign;

use crate::outcome::Reason;

/// Traffic that a port has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes, framing included.
    pub bytes: u64,
}

/// The decisions of a port's scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Packets marked (ECN).
    pub marked: u64,
    /// Packets dropped, by [`Reason`].
    pub dropped: [u64; Reason::ALL.len()],
}

/// Counters of one port since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTally {
    /// Traffic sent.
    pub sent: Traffic,
    /// The scheme's decisions.
    pub verdicts: Verdicts,
}

impl Verdicts {
    /// Packets dropped for any reason.
    pub fn drops(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl AddAssign for Verdicts {
    fn add_assign(&mut self, other: Verdicts) {
        self.marked += other.marked;
        for (sum, count) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += count;
        }
    }
}

impl AddAssign for PortTally {
    fn add_assign(&mut self, other: PortTally) {
        self.sent += other.sent;
        self.verdicts += other.verdicts;
    }
}
