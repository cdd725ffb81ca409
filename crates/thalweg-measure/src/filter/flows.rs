//! Filter fields of this crate's flows.

use std::net::IpAddr;

use super::fields::{Field, FlowFields, Totals, key_address, key_number};
use crate::collector::FlowReport;
use crate::detect::{Cheetah, CheetahEnd};
use crate::meter::record::FlowRecord;

/// Values of the fields of [`super::METERED`].
impl FlowFields for FlowRecord {
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::TcpFlags => Some((self.forward.tcp_flags | self.reverse.tcp_flags).0.into()),
            Field::InBytes => Some(self.forward.bytes.0),
            Field::InPackets => Some(self.forward.packets),
            Field::OutBytes => Some(self.reverse.bytes.0),
            Field::OutPackets => Some(self.reverse.packets),
            Field::Flows => Some(1),
            Field::Cheetah => Some((self.forward.cheetah || self.reverse.cheetah).into()),
            _ => {
                let (bytes, packets, duration) = (self.bytes(), self.packets(), self.duration());
                key_number(&self.key, field).or_else(|| Totals { bytes, packets, duration }.number(field))
            }
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

/// Values of the fields of [`super::CHEETAHS`].
impl FlowFields for Cheetah {
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::Bytes => Some(self.bytes.0),
            Field::Flows | Field::Cheetah => Some(1),
            Field::Duration => Some((self.detected - self.first).0 / 1_000_000),
            Field::BitRate => Some(self.rate.0),
            _ => key_number(&self.key, field),
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

/// Values of the fields of [`super::CHEETAHS`].
impl FlowFields for CheetahEnd {
    fn number(&self, field: Field) -> Option<u64> {
        let duration = self.last - self.first;
        match field {
            Field::Flows | Field::Cheetah => Some(1),
            // `cheetah` lines have no packets, so these fields do not apply to `cheetah_end` lines either.
            Field::Packets | Field::PacketRate | Field::PacketSize => None,
            _ => key_number(&self.key, field)
                .or_else(|| Totals { bytes: self.bytes, packets: self.packets, duration }.number(field)),
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

/// Values of the fields of [`super::SAMPLED`].
impl FlowFields for FlowReport {
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            // A rate is a finite number that is not negative.
            Field::BitRate => Some(self.rate.map_or(0, |known| known.rate.value as u64)),
            Field::PacketRate => None,
            Field::InBytes => Some(self.sampled.0),
            Field::InPackets => Some(self.samples),
            Field::Flows => Some(1),
            Field::Cheetah => Some(self.is_cheetah.into()),
            _ => {
                let duration = self.last - self.first;
                let totals = Totals { bytes: self.sampled, packets: self.samples, duration };
                key_number(&self.key, field).or_else(|| totals.number(field))
            }
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}
