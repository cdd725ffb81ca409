//! The traffic class of a frame: where it is, and how to change it.

use thalweg_wire::packet::Packet;
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;
use thalweg_wire::{LinkType, Timestamp};

/// Bytes of the addresses of an Ethernet frame.
const ADDRESSES: usize = 12;
/// Tags of VLANs: IEEE 802.1Q and 802.1ad.
const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];
const MAX_TAGS: usize = 8;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MIN_IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// The two low bits of the traffic class (RFC 3168, section 5).
const ECN: u8 = 0b11;
const NOT_CAPABLE: u8 = 0b00;

/// Where the IP header of a frame starts, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IpHeader {
    /// IPv4, at this offset. All 20 bytes without options are there.
    V4(usize),
    /// IPv6, at this offset. All 40 bytes are there.
    V6(usize),
}

impl IpHeader {
    /// Finds the IP header behind up to eight VLAN tags. None if there is none, or it is truncated.
    #[inline]
    pub(super) fn find(frame: &[u8]) -> Option<IpHeader> {
        let mut offset = ADDRESSES;
        for _ in 0..=MAX_TAGS {
            let kind = u16::from_be_bytes(*frame.get(offset..)?.first_chunk()?);
            if VLAN_TYPES.contains(&kind) {
                offset += 4;
                continue;
            }
            let start = offset + 2;
            let first = *frame.get(start)?;
            return match (kind, first >> 4) {
                (IPV4, 4) if frame.len() >= start + MIN_IPV4_HEADER => Some(IpHeader::V4(start)),
                (IPV6, 6) if frame.len() >= start + IPV6_HEADER => Some(IpHeader::V6(start)),
                _ => None,
            };
        }
        None
    }

    /// The offset of the first byte.
    #[cfg(test)]
    fn start(self) -> usize {
        match self {
            IpHeader::V4(start) | IpHeader::V6(start) => start,
        }
    }

    /// Reads the traffic class: DSCP in the six high bits, ECN in the two low ones.
    #[inline]
    pub(super) fn traffic_class(self, frame: &[u8]) -> u8 {
        match self {
            IpHeader::V4(start) => frame[start + 1],
            IpHeader::V6(start) => frame[start] << 4 | frame[start + 1] >> 4,
        }
    }

    /// Writes the traffic class, and updates the checksum of an IPv4 header (RFC 1624, equation 3).
    #[inline]
    pub(super) fn set_traffic_class(self, frame: &mut [u8], traffic_class: u8) {
        match self {
            IpHeader::V4(start) => {
                let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
                let old = word(frame, start);
                frame[start + 1] = traffic_class;
                let new = word(frame, start);
                let sum = u32::from(!word(frame, start + 10)) + u32::from(!old) + u32::from(new);
                let sum = (sum & 0xffff) + (sum >> 16);
                let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
                frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            IpHeader::V6(start) => {
                frame[start] = frame[start] & 0xf0 | traffic_class >> 4;
                frame[start + 1] = frame[start + 1] & 0x0f | traffic_class << 4;
            }
        }
    }

    /// Sets congestion experienced. Returns whether the sender's transport is capable of ECN; otherwise nothing changes (RFC
    /// 3168, section 5).
    #[inline]
    pub(super) fn mark(self, frame: &mut [u8]) -> bool {
        let traffic_class = self.traffic_class(frame);
        if traffic_class & ECN == NOT_CAPABLE {
            return false;
        }
        self.set_traffic_class(frame, traffic_class | ECN);
        true
    }
}

/// Parses flow key, length and sequence number of a frame.
#[inline]
pub(super) fn parse(frame: &[u8]) -> Option<Packet> {
    let original_length = u32::try_from(frame.len()).ok()?;
    let frame = Frame { time: Timestamp(0), bytes: frame, original_length, link_type: LinkType::Ethernet };
    Parser::default().parse(&frame).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Addresses, tags, and a header.
    fn frame(tags: usize, kind: u16, header: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x02; ADDRESSES];
        (0..tags).for_each(|tag| frame.extend([0x81, 0, 0, tag as u8 + 1]));
        frame.extend(kind.to_be_bytes());
        frame.extend(header);
        frame
    }

    /// A header of IPv4 with a correct checksum.
    fn ipv4(traffic_class: u8, identification: u16) -> Vec<u8> {
        let mut header =
            vec![0x45, traffic_class, 0, 20, 0, 0, 0x40, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        let checksum = !sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    /// The sum of all words in ones' complement (RFC 1071): 0xffff for a header with a correct checksum.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    proptest! {
        #[test]
        fn the_checksum_remains_correct(old: u8, new: u8, identification: u16, tags in 0..=MAX_TAGS) {
            let mut frame = frame(tags, IPV4, &ipv4(old, identification));
            let header = IpHeader::find(&frame).unwrap();
            prop_assert_eq!(header.traffic_class(&frame), old);
            header.set_traffic_class(&mut frame, new);
            prop_assert_eq!(header.traffic_class(&frame), new);
            prop_assert_eq!(sum(&frame[header.start()..]), 0xffff);
        }

        #[test]
        fn a_change_of_the_traffic_class_of_ipv6_leaves_version_and_flow_label(bytes: [u8; 40], new: u8) {
            let mut bytes = bytes;
            bytes[0] = 0x60 | bytes[0] & 0x0f;
            let mut frame = frame(1, IPV6, &bytes);
            let header = IpHeader::find(&frame).unwrap();
            header.set_traffic_class(&mut frame, new);
            prop_assert_eq!(header.traffic_class(&frame), new);
            let start = header.start();
            prop_assert_eq!((frame[start] >> 4, frame[start + 1] & 0x0f), (6, bytes[1] & 0x0f));
            prop_assert_eq!(&frame[start + 2..], &bytes[2..]);
        }

        #[test]
        fn any_bytes_are_searched_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(header) = IpHeader::find(&frame) {
                let mut frame = frame;
                header.mark(&mut frame);
            }
        }
    }

    #[test]
    fn only_packets_of_transports_with_ecn_are_marked() {
        for (before, after) in [(0b00, None), (0b01, Some(0b11)), (0b10, Some(0b11)), (0b11, Some(0b11))] {
            let mut frame = frame(0, IPV4, &ipv4(0xb8 | before, 7));
            let header = IpHeader::find(&frame).unwrap();
            assert_eq!(header.mark(&mut frame), after.is_some());
            assert_eq!(header.traffic_class(&frame), 0xb8 | after.unwrap_or(before));
        }
    }

    #[test]
    fn frames_without_an_ip_header_have_none() {
        assert_eq!(IpHeader::find(&frame(0, 0x0806, &[0; 28])), None, "ARP");
        assert_eq!(IpHeader::find(&frame(0, IPV6, &ipv4(0, 0))), None, "another version");
        assert_eq!(IpHeader::find(&frame(0, IPV4, &ipv4(0, 0)[..19])), None, "truncated");
        assert_eq!(IpHeader::find(&frame(MAX_TAGS + 1, IPV4, &ipv4(0, 0))), None, "too many tags");
        assert_eq!(IpHeader::find(&[0; 13]), None);
    }
}
