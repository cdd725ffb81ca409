//! What is counted at an output port. What has come in is what was sent, dropped, or still waits. (An endpoint's
//! interface counts a packet as sent when it is handed over, for what waits there leaves at a known time.)

use std::ops::AddAssign;

use crate::outcome::Reason;

/// What a port has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes, framing included.
    pub bytes: u64,
}

/// What a port's scheme has done to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Packets marked (ECN).
    pub marked: u64,
    /// Packets dropped, by [`Reason`].
    pub dropped: [u64; Reason::ALL.len()],
}

/// Counters of one port since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTally {
    /// What it has sent.
    pub sent: Traffic,
    /// What its scheme has done.
    pub verdicts: Verdicts,
}

impl Verdicts {
    /// Packets dropped for whatever reason.
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
