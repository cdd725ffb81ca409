//! Parses the headers of frames into [`Packet`]s.
//!
//! A frame is parsed from the outside in: the link layer with tags and labels (`link`, `serial`, `wireless`, `nflog`), the IP header with extensions
//! (`ipv4`, `ipv6`), optionally tunnels (`tunnel`), and the ports (`transport`). Common packets, TCP or UDP over plain
//! IP, take a fast path (`fast`).
//!
//! Truncated captures are normal: a frame with both IP addresses gives a packet, and
//! [`PacketNotes`](crate::packet::PacketNotes) tell what is missing. Lengths come from the IP header, so neither the
//! snap length nor the padding of short Ethernet frames matters.
//!
//! Any bytes give a value, never a panic: headers are read as arrays of fixed size that exist or not. No allocation,
//! and every loop (tags, labels, extension headers, options, tunnels) is bounded.

mod datagram;
mod fast;
mod frame_cursor;
mod ip;
mod ipv4;
mod ipv6;
mod l2tpv3;
mod link;
mod nflog;
mod serial;
mod transport;
mod tunnel;
mod udp;
mod unparsed;
mod wireless;

#[cfg(test)]
mod tests;

pub(crate) use tunnel::is_udp_tunnel;
pub use udp::UdpDatagram;
pub use unparsed::{Malformed, Unparsed};

use crate::link_type::LinkType;
use crate::packet::{EthernetAddresses, Packet, VlanTags};
use crate::source::Frame;

/// A parser of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parser {
    /// Whether to remove tunnel headers (GRE, PPTP, WCCP, ERSPAN, VXLAN, Geneve, GTP-U, L2TP, L2TPv3, Teredo, IP in IP), so that the
    /// key is that of the inner packet.
    ///
    /// Up to four nested tunnels. The outer packet is returned if the inner one is not IP, malformed or truncated
    /// before its addresses, or if the outer packet is a fragment.
    pub decapsulate: bool,
}

impl Parser {
    /// Parses a frame.
    ///
    /// # Errors
    /// [`Unparsed`] if the frame is not IP or malformed.
    #[inline]
    pub fn parse(&self, frame: &Frame<'_>) -> Result<Packet, Unparsed> {
        let mut tags = VlanTags::default();
        match fast::parse(frame, self.decapsulate, &mut tags) {
            Some(packet) => Ok(packet),
            None => self.parse_any(frame, &mut tags),
        }
    }

    /// Parses a frame, appends the packet to `packets`, and adds the VLAN tags of the frame to `tags`. The fast path writes directly into the vector, which takes
    /// about half the time of [`Parser::parse`] and a push.
    ///
    /// # Errors
    /// As [`Parser::parse`]; nothing is appended.
    #[inline]
    pub fn parse_into(
        &self,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
        tags: &mut VlanTags,
    ) -> Result<(), Unparsed> {
        match fast::parse(frame, self.decapsulate, tags) {
            Some(packet) => packets.push(packet),
            None => packets.push(self.parse_any(frame, tags)?),
        }
        Ok(())
    }

    /// Parses any frame layer by layer.
    #[inline(never)]
    fn parse_any(&self, frame: &Frame<'_>, tags: &mut VlanTags) -> Result<Packet, Unparsed> {
        let mut datagram = ip::parse(link::network(frame)?)?;
        if self.decapsulate {
            tunnel::decapsulate(&mut datagram);
        }
        let mut ethernet = EthernetAddresses::default();
        if frame.link_type == LinkType::Ethernet {
            ethernet = frame.bytes.first_chunk().map(link::addresses).unwrap_or_default();
            *tags |= link::tags(frame.bytes);
        }
        Ok(transport::packet(frame.time, ethernet, &datagram))
    }
}
