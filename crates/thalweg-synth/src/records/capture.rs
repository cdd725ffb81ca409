//! Writes export datagrams to a pcap file of raw IPv4, as captured in front of a collector.

use std::io::{self, Write};

use thalweg_wire::capture_file::{ByteOrder, pcap};
use thalweg_wire::flow_export::Address;
use thalweg_wire::{Frame, LinkType, Timestamp};

use super::datagrams::Deliver;

/// Address of the collector: 198.18.255.254, from the range for benchmarks (RFC 2544).
const COLLECTOR: u32 = 0xC612_FFFE;

/// Source and destination port: NetFlow collectors listen on it by custom; v9 has no registered port.
const PORT: u16 = 2_055;

const IPV4_HEADER_LENGTH: usize = 20;
const UDP_HEADER_LENGTH: usize = 8;
const HEADERS_LENGTH: usize = IPV4_HEADER_LENGTH + UDP_HEADER_LENGTH;
const UDP: u8 = 17;
const TTL: u8 = 64;

const SNAP_LENGTH: u32 = 65_535;
const BUFFER_LENGTH: usize = 1 << 20;

/// Writes datagrams to a pcap file.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    encoder: pcap::Encoder,
    buffer: Vec<u8>,
    packet: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Starts the file.
    pub fn new(out: W) -> Capture<W> {
        let encoder = pcap::Encoder { order: ByteOrder::Little, precision: pcap::Precision::Micros };
        let mut buffer = Vec::with_capacity(BUFFER_LENGTH + usize::from(u16::MAX));
        encoder.file_header(LinkType::RawIp, SNAP_LENGTH, &mut buffer);
        Capture { out, encoder, buffer, packet: Vec::new() }
    }

    /// Writes the buffered rest.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Deliver for Capture<W> {
    fn deliver(&mut self, exporter: Address, time: Timestamp, datagram: &[u8]) -> io::Result<()> {
        let source = exporter.as_v4().ok_or_else(|| {
            io::Error::other(format!(
                "cannot write a datagram of exporter {exporter}: expected an IPv4 address"
            ))
        })?;
        self.packet.clear();
        self.packet.extend_from_slice(&ipv4_header(source, HEADERS_LENGTH + datagram.len()));
        self.packet.extend_from_slice(&udp_header(UDP_HEADER_LENGTH + datagram.len()));
        self.packet.extend_from_slice(datagram);
        let original_length = self.packet.len() as u32;
        let frame = Frame { time, bytes: &self.packet, original_length, link_type: LinkType::RawIp };
        self.encoder.record(&frame, &mut self.buffer);
        if self.buffer.len() >= BUFFER_LENGTH {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// RFC 791 section 3.1, without options.
fn ipv4_header(source: u32, length: usize) -> [u8; IPV4_HEADER_LENGTH] {
    let mut header = [0; IPV4_HEADER_LENGTH];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    header[8] = TTL;
    header[9] = UDP;
    header[12..16].copy_from_slice(&source.to_be_bytes());
    header[16..20].copy_from_slice(&COLLECTOR.to_be_bytes());
    let checksum = checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// RFC 768; without a checksum, as that allows over IPv4.
fn udp_header(length: usize) -> [u8; UDP_HEADER_LENGTH] {
    let mut header = [0; UDP_HEADER_LENGTH];
    header[0..2].copy_from_slice(&PORT.to_be_bytes());
    header[2..4].copy_from_slice(&PORT.to_be_bytes());
    header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    header
}

/// RFC 1071.
fn checksum(header: &[u8; IPV4_HEADER_LENGTH]) -> u16 {
    let words = header.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_have_valid_ip_and_udp_headers() {
        let mut capture = Capture::new(Vec::new());
        let time = Timestamp::new(1_000_000_000, 7_000);
        capture.deliver(Address::v4(0xC612_0001), time, b"datagram").unwrap();
        let file = capture.finish().unwrap();
        let packet = &file[24 + 16..];
        assert_eq!(packet.len(), HEADERS_LENGTH + 8);
        let header = packet.first_chunk::<IPV4_HEADER_LENGTH>().unwrap();
        assert_eq!(checksum(header), 0, "a header with its checksum sums to all ones (RFC 1071)");
        assert_eq!(u16::from_be_bytes([packet[2], packet[3]]), 36);
        assert_eq!(packet[20..26], [8, 7, 8, 7, 0, 16]);
        assert_eq!(&packet[28..], b"datagram");
        assert!(Capture::new(Vec::new()).deliver(Address(1), time, b"").is_err());
    }
}
