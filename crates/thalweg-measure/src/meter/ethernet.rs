//! The MAC addresses of flows, beside the flow table: those of the first packet of each direction.
//!
//! An [`Observer`], so that only meters that want these addresses pay for them: 25 bytes per flow, and one more cache line
//! per packet.

use thalweg_wire::{Bytes, Direction, EthernetAddresses, FlowKey, MacAddress, Packet};

use super::flow_table::{FlowTableError, FlowTableOptions, Output};
use super::observer::Observer;
use crate::memory::{LargeArray, prefetch};

/// Destination and source address, as in the frame; zeros if no packet had any.
type Frame = [u8; 12];

/// The MAC addresses of a flow: of the packets from its initiator, and of those to it.
pub type FlowAddresses = [EthernetAddresses; 2];

/// Keeps the MAC addresses of the flows of a table. They are added to [`Output::ethernet`].
#[derive(Debug)]
pub struct FlowEthernet {
    /// Two frames per slot, by direction.
    frames: LargeArray<Frame>,
    /// Whether the flow of a slot has ended, so that the next packet is of another.
    ended: LargeArray<u8>,
}

impl FlowEthernet {
    /// Creates an observer for a flow table with these options.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn new(options: &FlowTableOptions) -> Result<FlowEthernet, FlowTableError> {
        let capacity = options.capacity as usize;
        Ok(FlowEthernet { frames: LargeArray::zeroed(2 * capacity)?, ended: LargeArray::zeroed(capacity)? })
    }

    /// Its maximum memory.
    pub fn bytes(&self) -> Bytes {
        Bytes((size_of_val(&self.frames[..]) + self.ended.len()) as u64)
    }

    fn addresses(&self, slot: u32, direction: Direction) -> EthernetAddresses {
        let [a, b, c, d, e, f, rest @ ..] = self.frames[2 * slot as usize + direction as usize];
        EthernetAddresses { destination: MacAddress([a, b, c, d, e, f]), source: MacAddress(rest) }
    }
}

impl Observer for FlowEthernet {
    #[inline(always)]
    fn prefetch(&self, slot: u32, direction: Direction) {
        prefetch(&self.frames[2 * slot as usize + direction as usize]);
    }

    #[inline]
    fn packet(&mut self, slot: u32, direction: Direction, packet: &Packet) {
        let place = 2 * slot as usize;
        if self.ended[slot as usize] != 0 {
            self.ended[slot as usize] = 0;
            self.frames[place..place + 2].fill([0; 12]);
        }
        let frame = &mut self.frames[place + direction as usize];
        if *frame == [0; 12] {
            let EthernetAddresses { destination, source } = packet.ethernet;
            frame[..6].copy_from_slice(&destination.0);
            frame[6..].copy_from_slice(&source.0);
        }
    }

    fn end(&mut self, slot: u32, _: impl Fn(Direction) -> FlowKey) {
        self.ended[slot as usize] = 1;
    }

    fn record(&mut self, slot: u32, initiator: Direction, output: &mut Output) {
        // A part that ended because a count was full was not observed.
        output.ethernet.resize(output.records.len() - 1, FlowAddresses::default());
        output
            .ethernet
            .push([initiator, initiator.opposite()].map(|direction| self.addresses(slot, direction)));
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{HashSeed, Nanos, Timestamp};

    use super::*;
    use crate::meter::flow_table::FlowTable;
    use crate::meter::record::EndReason;

    const SECOND: u64 = 1_000_000_000;

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn packet(second: u64, source: u32, destination: u32, macs: (u8, u8)) -> Packet {
        let key = FlowKey::v4(source, destination, 1, 1, thalweg_wire::Protocol::UDP);
        let ethernet = EthernetAddresses { source: mac(macs.0), destination: mac(macs.1) };
        Packet { time: Timestamp(second * SECOND), ethernet, ..crate::meter::ethernet::tests::template(key) }
    }

    fn template(key: FlowKey) -> Packet {
        Packet {
            time: Timestamp(0),
            key,
            ethernet: EthernetAddresses::default(),
            ip_length: 100,
            payload_length: 72,
            identification: 0,
            tcp_sequence: 0,
            tcp_flags: thalweg_wire::TcpFlags(0),
            fragment: thalweg_wire::Fragment::Whole,
            notes: thalweg_wire::PacketNotes::default(),
        }
    }

    /// Meters packets, and returns end reason, source and destination MAC address of both directions, by record.
    fn metered(capacity: u32, packets: &[Packet]) -> Vec<(EndReason, [[MacAddress; 2]; 2])> {
        let options = FlowTableOptions {
            capacity,
            idle_timeout: Nanos::from_secs(10),
            active_timeout: Nanos::from_secs(60),
            ..FlowTableOptions::default()
        };
        let mut observer = FlowEthernet::new(&options).unwrap();
        let mut table = FlowTable::new(options, None, HashSeed::new(1)).unwrap();
        let mut output = Output::default();
        for packet in packets {
            table.update_with(std::slice::from_ref(packet), &mut output, &mut observer);
        }
        table.finish_with(&mut output, &mut observer);
        assert_eq!(output.records.len(), output.ethernet.len());
        let of = |addresses: &EthernetAddresses| [addresses.source, addresses.destination];
        let both = output.records.iter().zip(&output.ethernet);
        both.map(|(record, [to, from])| (record.end_reason, [of(to), of(from)])).collect()
    }

    #[test]
    fn a_record_has_the_addresses_of_the_first_packet_of_each_direction() {
        // The initiator has the higher address, so it is not the first direction of the table.
        let packets = [packet(1, 9, 5, (1, 2)), packet(2, 5, 9, (3, 4)), packet(3, 9, 5, (7, 7))];
        let expected = [[mac(1), mac(2)], [mac(3), mac(4)]];
        assert_eq!(metered(4, &packets), [(EndReason::EndOfInput, expected)]);
        let one_way = [[mac(1), mac(2)], [MacAddress::default(); 2]];
        assert_eq!(metered(4, &packets[..1]), [(EndReason::EndOfInput, one_way)]);
    }

    #[test]
    fn the_next_flow_of_a_slot_has_its_own_addresses() {
        let one = |macs: u8| [[mac(macs), mac(macs)], [MacAddress::default(); 2]];
        // Of the same 5-tuple after the idle timeout, and of another in a full table.
        let packets = [packet(1, 9, 5, (1, 1)), packet(20, 9, 5, (2, 2)), packet(21, 8, 5, (3, 3))];
        let expected =
            [(EndReason::Idle, one(1)), (EndReason::Evicted, one(2)), (EndReason::EndOfInput, one(3))];
        assert_eq!(metered(1, &packets), expected);
    }

    #[test]
    fn every_part_of_a_long_flow_has_the_addresses() {
        let packets: Vec<Packet> = (0..14).map(|n| packet(1 + 9 * n, 9, 5, (1 + n as u8, 9))).collect();
        let found = metered(1, &packets);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(_, [to, _])| *to == [mac(1), mac(9)]), "{found:?}");
    }
}
