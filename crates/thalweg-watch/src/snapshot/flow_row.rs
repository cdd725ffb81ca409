//! A live flow.

use std::net::IpAddr;

use thalweg_measure::filter::{Field, FlowFields, key_address, key_number};
use thalweg_measure::meter::top::FlowRate;
use thalweg_wire::{FlowKey, TcpFlags};

use crate::traffic::Traffic;

/// A live flow with both directions. Index 0 of a pair is from the initiator, index 1 to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// 5-tuple. The source is the initiator: the sender of the first packet seen.
    pub key: FlowKey,
    /// Its traffic. Rates are those since the previous snapshot.
    pub traffic: Traffic,
    /// Union of the TCP flags per direction.
    pub tcp_flags: [TcpFlags; 2],
    /// Whether each direction is currently a cheetah flow.
    pub cheetah: [bool; 2],
}

impl FlowRow {
    /// Whether either direction is currently a cheetah flow.
    pub fn is_cheetah(&self) -> bool {
        self.cheetah[0] || self.cheetah[1]
    }
}

impl From<FlowRate> for FlowRow {
    fn from(FlowRate { flow, bit_rate, packet_rate }: FlowRate) -> FlowRow {
        FlowRow {
            key: flow.key,
            traffic: Traffic {
                first: flow.first,
                last: flow.last,
                packets: [flow.forward.packets, flow.reverse.packets],
                bytes: [flow.forward.bytes.0, flow.reverse.bytes.0],
                rate: bit_rate,
                packet_rate,
                flows: 1,
            },
            tcp_flags: [flow.forward.tcp_flags, flow.reverse.tcp_flags],
            cheetah: [flow.forward.cheetah, flow.reverse.cheetah],
        }
    }
}

/// Values of the fields of [`thalweg_measure::filter::METERED`]. Rates are those since the previous snapshot.
impl FlowFields for FlowRow {
    fn number(&self, field: Field) -> Option<u64> {
        let [tcp_flags, reverse_tcp_flags] = self.tcp_flags;
        match field {
            Field::TcpFlags => Some((tcp_flags | reverse_tcp_flags).0.into()),
            Field::Cheetah => Some(self.is_cheetah().into()),
            _ => key_number(&self.key, field).or_else(|| self.traffic.number(field)),
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}
