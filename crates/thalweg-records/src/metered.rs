//! Converts locally metered flows to rows.
//!
//! The meter counts both directions of a flow in one record (`thalweg_measure::meter::record`). Here each direction with
//! packets becomes a row; the two rows of a flow are adjacent, the initiator's first. This order tells bidirectional
//! flows (RFC 5103) from two unrelated ones; `thalweg_wire::flow_export::encode::ipfix` merges them again.

use thalweg_measure::meter::ethernet::FlowAddresses;
use thalweg_measure::meter::record::{FlowRecord, Traffic};
use thalweg_wire::flow_export::{Address, Format, Mac, Record, RecordBatch};
use thalweg_wire::{Protocol, Timestamp};

/// `biflowDirection` (239) of RFC 5103 section 6.3: sent by the initiator.
const INITIATOR: u8 = 1;

/// `biflowDirection`: sent to the initiator.
const REVERSE_INITIATOR: u8 = 2;

/// The meter that counted a flow: the values that all its rows share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Address of the meter; [`Address::NONE`] for this machine.
    pub exporter: Address,
    /// Number of the meter on this machine.
    pub observation_domain_id: u32,
    /// One in this many packets was counted; 0 if unknown.
    pub sampling_interval: u32,
}

/// Appends the one or two rows of a flow.
///
/// `received` is the time at which the rows count as received. Ports are zero for protocols without ports; the meter keeps the ICMP echo
/// identifier there.
///
/// `addresses` are the MAC addresses of the packets from the initiator and to it; zeros if they are not known.
pub fn rows(
    flow: &FlowRecord,
    addresses: FlowAddresses,
    meter: &Meter,
    received: Timestamp,
    into: &mut RecordBatch,
) {
    let is_bidirectional = flow.forward.packets > 0 && flow.reverse.packets > 0;
    let direction = |direction| if is_bidirectional { direction } else { 0 };
    let (src, dst) = (Address::from(flow.key.src()), Address::from(flow.key.dst()));
    let (src_port, dst_port) = ports(flow);
    let forward = Record {
        source_address: src,
        destination_address: dst,
        source_port: src_port,
        destination_port: dst_port,
        biflow_direction: direction(INITIATOR),
        ..row(flow, &flow.forward, meter, received)
    };
    let reverse = Record {
        source_address: dst,
        destination_address: src,
        source_port: dst_port,
        destination_port: src_port,
        biflow_direction: direction(REVERSE_INITIATOR),
        ..row(flow, &flow.reverse, meter, received)
    };
    let directions = [(forward, flow.forward), (reverse, flow.reverse)];
    for ((row, traffic), frame) in directions.into_iter().zip(addresses) {
        if traffic.packets > 0 {
            let (source_mac, destination_mac) = (Mac(frame.source.0), Mac(frame.destination.0));
            into.push(&Record { source_mac, destination_mac, ..row });
        }
    }
}

/// What does not depend on who sent to whom.
fn row(flow: &FlowRecord, traffic: &Traffic, meter: &Meter, received: Timestamp) -> Record {
    Record {
        received_us: microseconds(received),
        exporter: meter.exporter,
        observation_domain_id: meter.observation_domain_id,
        format: Format::Metered,
        sampling_interval: meter.sampling_interval,
        flow_start_us: microseconds(flow.first),
        flow_end_us: microseconds(flow.last),
        protocol: flow.key.protocol.0,
        tcp_flags: match flow.key.protocol {
            Protocol::TCP => traffic.tcp_flags.0.into(),
            _ => 0,
        },
        octets: traffic.bytes.0,
        packets: traffic.packets,
        flow_end_reason: flow.end_reason.ipfix_number(),
        ..Record::default()
    }
}

fn ports(flow: &FlowRecord) -> (u16, u16) {
    match flow.key.protocol.has_ports() {
        true => (flow.key.src_port, flow.key.dst_port),
        false => (0, 0),
    }
}

fn microseconds(time: Timestamp) -> i64 {
    (time.0 / 1_000) as i64
}

#[cfg(test)]
mod tests {
    use thalweg_measure::meter::record::EndReason;
    use thalweg_wire::{Bytes, EthernetAddresses, FlowKey, MacAddress, TcpFlags};

    use super::*;

    const METER: Meter =
        Meter { exporter: Address::v4(0x7f00_0001), observation_domain_id: 3, sampling_interval: 1 };

    fn flow(protocol: Protocol, reverse: u64) -> FlowRecord {
        let traffic = |packets| Traffic {
            packets,
            bytes: Bytes(100 * packets),
            tcp_flags: TcpFlags(packets as u8),
            cheetah: false,
        };
        FlowRecord {
            key: FlowKey::v4(0x0a00_0001, 0x0a00_0002, 1000, 80, protocol),
            first: Timestamp(5_000_999),
            last: Timestamp(7_000_000),
            forward: traffic(6),
            reverse: traffic(reverse),
            end_reason: EndReason::Fin,
        }
    }

    fn rows_of(flow: &FlowRecord) -> Vec<Record> {
        let mut batch = RecordBatch::default();
        rows(flow, FlowAddresses::default(), &METER, Timestamp(9_000_000), &mut batch);
        (0..batch.len()).map(|row| batch.record(row)).collect()
    }

    #[test]
    fn a_bidirectional_flow_is_one_row_per_direction() {
        let [forward, reverse] = rows_of(&flow(Protocol::TCP, 4)).try_into().unwrap();
        assert_eq!(
            forward,
            Record {
                received_us: 9_000,
                exporter: METER.exporter,
                observation_domain_id: 3,
                sampling_interval: 1,
                flow_start_us: 5_000,
                flow_end_us: 7_000,
                source_address: Address::v4(0x0a00_0001),
                destination_address: Address::v4(0x0a00_0002),
                source_port: 1000,
                destination_port: 80,
                protocol: 6,
                tcp_flags: 6,
                octets: 600,
                packets: 6,
                flow_end_reason: 3,
                biflow_direction: 1,
                ..Record::default()
            }
        );
        let mirrored = Record {
            source_address: forward.destination_address,
            destination_address: forward.source_address,
            source_port: 80,
            destination_port: 1000,
            tcp_flags: 4,
            octets: 400,
            packets: 4,
            biflow_direction: 2,
            ..forward
        };
        assert_eq!(reverse, mirrored);
    }

    #[test]
    fn each_direction_has_the_mac_addresses_of_its_packets() {
        let frame = |source, destination| EthernetAddresses {
            source: MacAddress([2, 0, 0, 0, 0, source]),
            destination: MacAddress([2, 0, 0, 0, 0, destination]),
        };
        let mut batch = RecordBatch::default();
        rows(&flow(Protocol::TCP, 4), [frame(1, 2), frame(3, 4)], &METER, Timestamp(9_000_000), &mut batch);
        let macs = |row: Record| (row.source_mac.number() as u8, row.destination_mac.number() as u8);
        assert_eq!([macs(batch.record(0)), macs(batch.record(1))], [(1, 2), (3, 4)]);
    }

    #[test]
    fn a_one_way_flow_is_one_row_and_icmp_identifiers_are_not_stored_as_ports() {
        let [row] = rows_of(&flow(Protocol::ICMP, 0)).try_into().unwrap();
        assert_eq!(
            (row.biflow_direction, row.source_port, row.destination_port, row.tcp_flags),
            (0, 0, 0, 0)
        );
    }
}
