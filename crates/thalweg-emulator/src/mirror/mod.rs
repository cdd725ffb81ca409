//! Monitor ports as packet sources: what a monitor port of an emulated router sends, with the headers of a real
//! network. A consumer cannot tell it from a network interface (design rule 2).
//!
//! Frames end after their headers, like those of a capture with a short snap length. MAC and IP addresses are the
//! topology's, including shadow MAC addresses. Sequence numbers, acknowledgements and SACK blocks are the hosts'. Times
//! are emulated time, counted from 1970. Packets without a segment are UDP. The [ports](flow_ports) encode the flow, so
//! that consumers can compute its ECMP path.

mod feed;
mod flow;

use std::convert::Infallible;

use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader,
};
use thalweg_network::routing::flow_ports;
use thalweg_network::{EndpointId, Topology};
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Source, SourceCounters, Timestamp};

pub use feed::MirrorFeed;
pub use flow::{UnknownFlow, flow_of};

use crate::hosts::segment::{Ack, Data, Segment};
use crate::packet::{FRAMING, Packet};
use crate::ports::monitor::Mirrored;
use crate::slot::SlotClock;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: u16 = 14;
/// Bytes kept per frame: Ethernet 14, IPv4 20, TCP 60.
pub const SNAP_LENGTH: u32 = 94;

/// The frames of one monitor port. The emulation adds them, and the consumer takes them in batches.
#[derive(Debug)]
pub struct MirrorSource<'a> {
    topology: &'a Topology,
    clock: SlotClock,
    interface: [Interface; 1],
    coming: Frames,
    going: Frames,
    handed_on: u64,
    ended: bool,
}

/// Frames, back to back.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
}

impl<'a> MirrorSource<'a> {
    /// A source for a monitor port called `name`, in a network of this topology and clock.
    pub fn new(topology: &'a Topology, clock: SlotClock, name: &str) -> Self {
        let link_type = LinkType::Ethernet;
        MirrorSource {
            topology,
            clock,
            interface: [Interface { name: Some(name.to_owned()), link_type, snap_length: SNAP_LENGTH }],
            coming: Frames::default(),
            going: Frames::default(),
            handed_on: 0,
            ended: false,
        }
    }

    /// Adds a packet that the monitor port has sent, and its segment, if the hosts know it.
    pub fn push(&mut self, mirrored: &Mirrored, segment: Option<&Segment>) {
        let Mirrored { packet, at, .. } = mirrored;
        let offset = self.coming.bytes.len();
        self.write(packet, segment);
        self.coming.frames.push(FrameRef {
            time: at.time(self.clock),
            offset,
            captured_length: (self.coming.bytes.len() - offset) as u32,
            original_length: u32::from(frame_bytes(packet)),
            interface: 0,
        });
    }

    /// Ends the source: nothing will be added.
    pub fn end(&mut self) {
        self.ended = true;
    }

    fn write(&mut self, packet: &Packet, segment: Option<&Segment>) {
        let out = &mut self.coming.bytes;
        let mac = |endpoint, address| self.topology.mac(endpoint, address).0;
        let ethernet = Ethernet2Header {
            source: mac(packet.source(), 0),
            destination: mac(packet.destination(), packet.address()),
            ether_type: EtherType::IPV4,
        };
        out.extend_from_slice(&ethernet.to_bytes());
        let ip = |protocol| ipv4(self.topology, packet, protocol);
        match segment {
            Some(Segment::Data(data)) => {
                let (ip, tcp) = (ip(IpNumber::TCP), data_header(packet, data));
                finish(ip, tcp, data.length, out);
            }
            Some(Segment::Ack(ack)) => {
                let (ip, tcp) = (ip(IpNumber::TCP), ack_header(packet, ack));
                finish(ip, tcp, 0, out);
            }
            None => {
                let (source_port, destination_port) = flow_ports::ports(packet.flow());
                let length = ip_bytes(packet) - Ipv4Header::MIN_LEN as u16;
                let udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
                out.extend_from_slice(&ip(IpNumber::UDP).to_bytes());
                out.extend_from_slice(&udp.to_bytes());
            }
        }
    }
}

/// Writes both headers, with valid checksums for a payload of zeros.
fn finish(mut ip: Ipv4Header, mut tcp: TcpHeader, payload: u16, out: &mut Vec<u8>) {
    static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
    // A frame padded by Ethernet contains less than its length says.
    ip.total_len = (ip.header_len() + tcp.header_len()) as u16 + payload;
    ip.header_checksum = ip.calc_header_checksum();
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &ZEROS[..usize::from(payload)]).unwrap_or_default();
    out.extend_from_slice(&ip.to_bytes());
    out.extend_from_slice(&tcp.to_bytes());
}

/// Ids of TCP packets are unique among those in flight. Those of a rack's open-loop packets count the packets of all its hosts,
/// which no real host does, so they would mislead an estimator that takes them for a counter (RFC 6864 lets senders choose).
fn identification(packet: &Packet, protocol: IpNumber) -> u16 {
    if protocol == IpNumber::TCP { packet.id() as u16 } else { 0 }
}

fn ipv4(topology: &Topology, packet: &Packet, protocol: IpNumber) -> Ipv4Header {
    let address = |endpoint: EndpointId| topology.endpoints()[endpoint.index()].ip.octets();
    let mut header = Ipv4Header {
        dscp: IpDscp::try_new(packet.dscp()).expect("six bits"),
        ecn: IpEcn::try_new(packet.ecn() as u8).expect("two bits"),
        total_len: ip_bytes(packet),
        identification: identification(packet, protocol),
        dont_fragment: true,
        time_to_live: 64,
        protocol,
        source: address(packet.source()),
        destination: address(packet.destination()),
        ..Ipv4Header::default()
    };
    header.header_checksum = header.calc_header_checksum();
    header
}

fn data_header(packet: &Packet, data: &Data) -> TcpHeader {
    let (from, to) = flow_ports::ports(packet.flow());
    let mut header = TcpHeader::new(from, to, data.sequence as u32, u16::MAX);
    header.ack = true;
    header.psh = data.length > 0;
    header.cwr = data.cwr;
    set_options(&mut header, &[NOOP, NOOP, timestamps(data.sent_at, Timestamp(0))]);
    header
}

fn ack_header(packet: &Packet, ack: &Ack) -> TcpHeader {
    let (to, from) = flow_ports::ports(packet.flow());
    let mut header = TcpHeader::new(from, to, 0, u16::MAX);
    header.ack = true;
    header.acknowledgment_number = ack.acknowledgement as u32;
    header.ece = ack.ece;
    let timestamps = timestamps(ack.sent_at, ack.echo);
    let block =
        |index: usize| ack.sack.as_slice().get(index).map(|block| (block.start as u32, block.end as u32));
    match block(0) {
        None => set_options(&mut header, &[NOOP, NOOP, timestamps]),
        Some(first) => {
            let blocks = TcpOptionElement::SelectiveAcknowledgement(first, [block(1), block(2), None]);
            set_options(&mut header, &[NOOP, NOOP, timestamps, NOOP, NOOP, blocks]);
        }
    }
    header
}

/// Pads options to four bytes.
const NOOP: TcpOptionElement = TcpOptionElement::Noop;

/// The timestamps option (RFC 7323), in milliseconds.
fn timestamps(value: Timestamp, echo: Timestamp) -> TcpOptionElement {
    TcpOptionElement::Timestamp((value.0 / 1_000_000) as u32, (echo.0 / 1_000_000) as u32)
}

fn set_options(header: &mut TcpHeader, options: &[TcpOptionElement]) {
    header.set_options(options).expect("40 bytes are enough for timestamps and three blocks");
}

/// Bytes of the frame, from its Ethernet header on, without its checksum.
fn frame_bytes(packet: &Packet) -> u16 {
    packet.length().saturating_sub(FRAMING) + ETHERNET_BYTES
}

fn ip_bytes(packet: &Packet) -> u16 {
    packet.length().saturating_sub(FRAMING).max(Ipv4Header::MIN_LEN as u16 + UdpHeader::LEN as u16)
}

impl Source for MirrorSource<'_> {
    type Error = Infallible;

    /// The frames added since the last batch, possibly none.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Infallible> {
        self.going.bytes.clear();
        self.going.frames.clear();
        std::mem::swap(&mut self.going, &mut self.coming);
        self.handed_on += self.going.frames.len() as u64;
        if self.going.frames.is_empty() && self.ended {
            return Ok(None);
        }
        let Frames { bytes, frames } = &self.going;
        Ok(Some(Batch { bytes, frames, interfaces: &self.interface }))
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters { frames: self.handed_on, ..SourceCounters::default() }
    }
}

#[cfg(test)]
mod tests;
