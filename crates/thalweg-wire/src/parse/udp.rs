//! Parses UDP datagrams (RFC 768), for decoders of their payload.

use std::net::SocketAddr;

use super::frame_cursor::FrameCursor;
use super::transport::UDP_HEADER_LENGTH;
use super::{Parser, Unparsed, ip, link, tunnel};
use crate::packet::Fragment;
use crate::protocol::Protocol;
use crate::source::Frame;

/// A UDP datagram in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The source.
    pub source: SocketAddr,
    /// The destination.
    pub destination: SocketAddr,
    /// The captured payload.
    pub payload: &'a [u8],
    /// The length of the payload on the wire.
    pub payload_length: u32,
    /// The position in a fragmented datagram. A later fragment has ports zero, and all its bytes are payload.
    pub fragment: Fragment,
}

impl Parser {
    /// Returns the UDP datagram in a frame; `None` for another protocol.
    ///
    /// # Errors
    /// [`Unparsed`] if the frame is not IP, malformed, or ends before the end of the UDP header.
    pub fn udp<'a>(&self, frame: &Frame<'a>) -> Result<Option<UdpDatagram<'a>>, Unparsed> {
        let mut datagram = ip::parse(link::network(frame)?)?;
        if self.decapsulate {
            tunnel::decapsulate(&mut datagram);
        }
        if datagram.key.protocol != Protocol::UDP {
            return Ok(None);
        }
        let (key, fragment) = (datagram.key, datagram.fragment);
        let (ports, payload) = match fragment {
            Fragment::Later { .. } => ([0, 0], datagram.payload),
            Fragment::First { .. } => (ports(&datagram.payload)?, datagram.payload.skip(UDP_HEADER_LENGTH)),
            Fragment::Whole => {
                let ports = ports(&datagram.payload)?;
                let &[_, _, _, _, high, low, _, _] = datagram.payload.header()?;
                let length = u32::from(u16::from_be_bytes([high, low])).min(datagram.payload.wire_length());
                // Jumbograms have length 0 (RFC 2675 section 4).
                let whole =
                    if length == 0 { datagram.payload } else { datagram.payload.with_wire_length(length) };
                (ports, whole.skip(UDP_HEADER_LENGTH))
            }
        };
        Ok(Some(UdpDatagram {
            source: SocketAddr::new(key.src(), ports[0]),
            destination: SocketAddr::new(key.dst(), ports[1]),
            payload: payload.bytes(),
            payload_length: payload.wire_length(),
            fragment,
        }))
    }
}

fn ports(udp: &FrameCursor<'_>) -> Result<[u16; 2], Unparsed> {
    let &[s0, s1, d0, d1] = udp.header()?;
    Ok([u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])])
}
