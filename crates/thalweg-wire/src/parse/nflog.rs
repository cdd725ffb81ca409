//! NFLOG: packets that netfilter logged, with attributes (tcpdump.org, LINKTYPE_NFLOG).

use crate::parse::Unparsed;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::Network;
use crate::parse::link;

/// Family, version and resource.
const HEADER_LENGTH: u32 = 4;
/// The attribute with the packet (`NFULA_PAYLOAD`).
const PAYLOAD: u16 = 9;
/// Attributes before it.
const MAX_ATTRIBUTES: u32 = 64;

/// Parses the attributes up to the packet. Their numbers have the byte order of the machine that logged them.
pub(super) fn nflog(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let &[family, _, _, _] = rest.header()?;
    let mut rest = rest.skip(HEADER_LENGTH);
    for _ in 0..MAX_ATTRIBUTES {
        let &[l0, l1, t0, t1] = rest.header()?;
        let (mut length, mut kind) = (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([t0, t1]));
        // Types are small numbers, which reveals the byte order.
        if kind > 0xFF {
            (length, kind) = (length.swap_bytes(), kind.swap_bytes());
        }
        if kind == PAYLOAD {
            return link::raw_ip(rest.skip(4));
        }
        // An attribute without a length would not end.
        let length = u32::from(length).max(4).next_multiple_of(4);
        rest = rest.skip(length);
    }
    Err(Unparsed::NonIp { ethertype: u16::from(family) })
}
