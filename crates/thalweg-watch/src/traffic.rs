//! The traffic of a row: a flow, a host, or a pair of hosts.

use thalweg_measure::filter::{Field, Totals};
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

/// Traffic in both directions. Index 0 of a pair is from the initiator of a flow, from the host, or from the first host of
/// a pair, index 1 to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// First packet in either direction.
    pub first: Timestamp,
    /// Latest packet in either direction.
    pub last: Timestamp,
    /// Packets per direction.
    pub packets: [u64; 2],
    /// Bytes per direction.
    pub bytes: [u64; 2],
    /// Bits per second per direction.
    pub rate: [BitRate; 2],
    /// Packets per second per direction.
    pub packet_rate: [u64; 2],
    /// Number of flows.
    pub flows: u64,
}

impl Traffic {
    /// Returns the rate of both directions.
    pub fn total_rate(&self) -> BitRate {
        BitRate(self.rate[0].0.saturating_add(self.rate[1].0))
    }

    /// Returns the bytes of both directions.
    pub fn total_bytes(&self) -> Bytes {
        Bytes(self.bytes[0].saturating_add(self.bytes[1]))
    }

    /// Returns the packets of both directions.
    pub fn total_packets(&self) -> u64 {
        self.packets[0].saturating_add(self.packets[1])
    }

    /// Returns the time from the first to the last packet.
    pub fn duration(&self) -> Nanos {
        self.last - self.first
    }

    /// Returns the traffic as seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Traffic {
        let swapped = |[from, to]: [u64; 2]| [to, from];
        Traffic {
            packets: swapped(self.packets),
            bytes: swapped(self.bytes),
            rate: [self.rate[1], self.rate[0]],
            packet_rate: swapped(self.packet_rate),
            ..self
        }
    }

    /// Returns the traffic with mean rates over its duration.
    #[must_use]
    pub fn with_mean_rates(self) -> Traffic {
        let span = self.duration();
        let packets = self.packets;
        let mean =
            |packets: u64| Totals { bytes: Bytes(0), packets, duration: span }.number(Field::PacketRate);
        Traffic {
            rate: match span {
                Nanos::ZERO => Default::default(),
                _ => self.bytes.map(|bytes| BitRate::of(Bytes(bytes), span)),
            },
            packet_rate: packets.map(|packets| mean(packets).unwrap_or(0)),
            ..self
        }
    }

    /// Returns the value of an amount ([`Field::is_amount`]).
    pub(crate) fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::InBytes => Some(self.bytes[0]),
            Field::InPackets => Some(self.packets[0]),
            Field::OutBytes => Some(self.bytes[1]),
            Field::OutPackets => Some(self.packets[1]),
            Field::Flows => Some(self.flows),
            Field::BitRate => Some(self.total_rate().0),
            Field::PacketRate => Some(self.packet_rate[0].saturating_add(self.packet_rate[1])),
            _ => {
                let (bytes, packets) = (self.total_bytes(), self.total_packets());
                Totals { bytes, packets, duration: self.duration() }.number(field)
            }
        }
    }
}

/// Adds traffic of other flows in the same directions.
impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        for side in 0..2 {
            self.packets[side] = self.packets[side].saturating_add(other.packets[side]);
            self.bytes[side] = self.bytes[side].saturating_add(other.bytes[side]);
            self.rate[side].0 = self.rate[side].0.saturating_add(other.rate[side].0);
            self.packet_rate[side] = self.packet_rate[side].saturating_add(other.packet_rate[side]);
        }
        self.flows += other.flows;
    }
}
