//! Headers: bytes of a frame in, a [`Packet`] out.
//!
//! A frame is read from the outside in: its link layer with tags and labels (`link`), the IP header with what
//! extends it (`ipv4`, `ipv6`), tunnels on request (`tunnel`), and last the ports (`transport`). The packet
//! that most links carry most of the time, TCP or UDP over plain IP, takes a short cut through all of them
//! (`fast`).
//!
//! Captures that end early are normal: once both IP addresses are there, a frame gives a packet, and
//! [`PacketNotes`](crate::packet::PacketNotes) say what was missing. Lengths come from the IP header, so that
//! neither the snap length nor the padding of short Ethernet frames counts.
//!
//! Any bytes give a value, never a panic: headers are read as arrays of fixed size that are there or not.
//! Nothing is allocated, and every loop (tags, labels, extension headers, options, tunnels) has a bound.

mod datagram;
mod fast;
mod ip;
mod ipv4;
mod ipv6;
mod link;
mod rest;
mod transport;
mod tunnel;
mod udp;
mod unparsed;

#[cfg(test)]
mod tests;

pub use udp::UdpDatagram;
pub use unparsed::{Malformed, Unparsed};

use crate::link_type::LinkType;
use crate::packet::{EthernetAddresses, Packet};
use crate::source::Frame;

/// Takes frames apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parser {
    /// Whether tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP) are peeled, so that the key is the inner packet's.
    ///
    /// Up to four, one inside the other. A tunnel whose inside gives no packet (it carries no IP, is malformed,
    /// or is cut off before its addresses) and a fragment of a tunnel's packet stand for themselves.
    pub peel_tunnels: bool,
}

impl Parser {
    /// Takes one frame apart.
    ///
    /// # Errors
    /// [`Unparsed`] if the frame carries no IP or breaks its format.
    #[inline]
    pub fn parse(&self, frame: &Frame<'_>) -> Result<Packet, Unparsed> {
        match fast::parse(frame, self.peel_tunnels) {
            Some(packet) => Ok(packet),
            None => self.parse_any(frame),
        }
    }

    /// As [`Parser::parse`], with the packet appended to `packets`: the short cut writes it there at once, which
    /// takes about half the time of taking it and pushing it.
    ///
    /// # Errors
    /// [`Unparsed`] as from [`Parser::parse`]; nothing is appended.
    #[inline]
    pub fn parse_onto(&self, frame: &Frame<'_>, packets: &mut Vec<Packet>) -> Result<(), Unparsed> {
        match fast::parse(frame, self.peel_tunnels) {
            Some(packet) => packets.push(packet),
            None => packets.push(self.parse_any(frame)?),
        }
        Ok(())
    }

    /// Takes any frame apart, layer by layer.
    #[inline(never)]
    fn parse_any(&self, frame: &Frame<'_>) -> Result<Packet, Unparsed> {
        let mut datagram = ip::parse(link::network(frame)?)?;
        if self.peel_tunnels {
            tunnel::peel(&mut datagram);
        }
        let ethernet = match frame.link_type {
            LinkType::Ethernet => frame.bytes.first_chunk().map(link::addresses).unwrap_or_default(),
            _ => EthernetAddresses::default(),
        };
        Ok(transport::packet(frame.time, ethernet, &datagram))
    }
}
