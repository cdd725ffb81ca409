//! How far the applications of TCP connections have written, as the eBPF program noted it (`egress.bpf.c`).

use thalweg_linux::bpf::MappedArray;
use thalweg_wire::{Packet, Protocol};

use crate::endpoint::headers::IpHeader;

/// `struct written`: addresses, ports, sequence number, whether it is used.
type Entry = [u32; 4];

/// The sequence numbers by connection. Each place belongs to the connection that used it last.
#[derive(Debug)]
pub(crate) struct WrittenBytes {
    entries: MappedArray<4>,
}

impl WrittenBytes {
    pub(crate) fn new(entries: MappedArray<4>) -> WrittenBytes {
        WrittenBytes { entries }
    }

    /// The bytes that the application has written and that this packet and later ones send: pFabric's priority. None if that
    /// is unknown: not TCP, a fragment, extension headers, or another connection has the same place.
    #[inline]
    pub(crate) fn remaining(&self, frame: &[u8], header: IpHeader, packet: &Packet) -> Option<u32> {
        if packet.key.protocol != Protocol::TCP {
            return None;
        }
        let (addresses, ports) = connection(frame, header)?;
        let entry = self.entries.get(place_of(addresses, ports) % self.entries.entries());
        remaining_of(entry, addresses, ports, packet)
    }
}

#[inline]
fn remaining_of(entry: Entry, addresses: u32, ports: u32, packet: &Packet) -> Option<u32> {
    let [entry_addresses, entry_ports, written, is_used] = entry;
    if is_used == 0 || entry_addresses != addresses || entry_ports != ports {
        return None;
    }
    // Modulo 2^32 as sequence numbers. A packet that is older than the entry's connection would have a huge value.
    let remaining = written.wrapping_sub(packet.tcp_sequence);
    (remaining <= i32::MAX as u32).then_some(remaining.max(packet.payload_length))
}

/// All words of both addresses, combined by exclusive or, and the word with both ports; all as they are in the packet.
#[inline]
fn connection(frame: &[u8], header: IpHeader) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_ne_bytes(*frame.get(at..)?.first_chunk()?));
    let (addresses, words, ports) = match header {
        IpHeader::V4(start) => (start + 12, 2, start + usize::from(frame[start] & 0x0f) * 4),
        IpHeader::V6(start) => (start + 8, 8, start + 40),
    };
    let folded = (0..words).try_fold(0, |folded, place| Some(folded ^ word(addresses + 4 * place)?))?;
    Some((folded, word(ports)?))
}

/// As in the program.
#[inline]
fn place_of(addresses: u32, ports: u32) -> usize {
    ((addresses ^ ports).wrapping_mul(0x9e37_79b1) >> 16) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::headers;

    #[test]
    fn remaining_bytes_are_those_from_the_packet_on() {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x30, 0x39, 0, 80, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        frame.extend([0; 20]);
        let (header, packet) = (IpHeader::find(&frame).unwrap(), headers::parse(&frame).unwrap());
        assert_eq!((packet.tcp_sequence, packet.payload_length), (0xffff_ff00, 20));
        let (addresses, ports) = connection(&frame, header).unwrap();
        assert_eq!(addresses, u32::from_ne_bytes([0, 0, 0, 3]));
        assert_eq!(ports, u32::from_ne_bytes([0x30, 0x39, 0, 80]));
        let remaining = |entry| remaining_of(entry, addresses, ports, &packet);
        assert_eq!(remaining([addresses, ports, 0x100, 1]), Some(0x200), "across the wrap");
        assert_eq!(remaining([addresses, ports, 0xffff_ff00, 1]), Some(20), "at least its own");
        assert_eq!(remaining([addresses, ports, 0xffff_feff, 1]), None, "before the packet");
        assert_eq!(remaining([addresses, ports, 0x100, 0]), None, "never written");
        assert_eq!(remaining([addresses ^ 1, ports, 0x100, 1]), None, "another connection");
    }
}
