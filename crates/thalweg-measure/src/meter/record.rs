//! Flow records: exported when a flow, or a part of one, ends.

use std::fmt;

use thalweg_wire::{Bytes, FlowKey, Nanos, TcpFlags, Timestamp};

/// A flow in both directions, or its part between two active timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The key in the direction of the initiator: the sender of the first packet that was seen (or, if that was a
    /// SYN/ACK, its receiver).
    pub key: FlowKey,
    /// The time of the earliest packet.
    pub first: Timestamp,
    /// The time of the latest packet.
    pub last: Timestamp,
    /// Traffic from the initiator.
    pub forward: Traffic,
    /// Traffic to the initiator.
    pub reverse: Traffic,
    /// The reason for its end.
    pub end_reason: EndReason,
}

/// The traffic of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of the IP layer.
    pub bytes: Bytes,
    /// All TCP flags seen.
    pub tcp_flags: TcpFlags,
    /// Whether this direction was found to be a cheetah flow.
    pub cheetah: bool,
}

impl FlowRecord {
    /// Returns the time from first to last packet.
    pub fn duration(&self) -> Nanos {
        self.last - self.first
    }

    /// Returns the packets in both directions.
    pub fn packets(&self) -> u64 {
        self.forward.packets + self.reverse.packets
    }

    /// Returns the bytes of the IP layer in both directions.
    pub fn bytes(&self) -> Bytes {
        self.forward.bytes + self.reverse.bytes
    }
}

/// Why a record was exported. The numbers are IPFIX's `flowEndReason` (RFC 5102 section 5.11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndReason {
    /// No packet for the idle timeout.
    Idle,
    /// The active timeout passed; the flow continues in the next record.
    Active,
    /// TCP ended it with FIN in both directions.
    Fin,
    /// TCP ended it with RST.
    Rst,
    /// The input ended.
    EndOfInput,
    /// The table was full and this flow the least recently used.
    Evicted,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [EndReason; 6] = [
        EndReason::Idle,
        EndReason::Active,
        EndReason::Fin,
        EndReason::Rst,
        EndReason::EndOfInput,
        EndReason::Evicted,
    ];

    /// Returns IPFIX `flowEndReason`: 1 idle, 2 active, 3 end of flow detected, 4 forced, 5 lack of resources.
    pub const fn ipfix_number(self) -> u8 {
        match self {
            EndReason::Idle => 1,
            EndReason::Active => 2,
            EndReason::Fin | EndReason::Rst => 3,
            EndReason::EndOfInput => 4,
            EndReason::Evicted => 5,
        }
    }

    /// Returns the name in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            EndReason::Idle => "idle",
            EndReason::Active => "active",
            EndReason::Fin => "fin",
            EndReason::Rst => "rst",
            EndReason::EndOfInput => "end_of_input",
            EndReason::Evicted => "evicted",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
