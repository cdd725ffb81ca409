//! Link types: the first header of a captured frame (`LINKTYPE_` values of the pcap and pcapng formats).

use std::fmt;

/// The first header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the capturing machine (0).
    Null,
    /// Ethernet (1).
    Ethernet,
    /// PPP (9).
    Ppp,
    /// PPP in HDLC, or Cisco HDLC (50).
    PppHdlc,
    /// Cisco HDLC (104).
    CiscoHdlc,
    /// IEEE 802.11 (105).
    Ieee80211,
    /// Frame Relay (107).
    FrameRelay,
    /// IEEE 802.11 after a radiotap header (127).
    Radiotap,
    /// Packets that netfilter logged (239).
    Nflog,
    /// IPv4 or IPv6 without a link header (101; also 12 and 14, as OpenBSD and others wrote it).
    RawIp,
    /// OpenBSD loopback: the address family in network byte order (108).
    Loop,
    /// Linux cooked capture, version 1 (113).
    LinuxSll,
    /// IPv4 without a link header (228).
    Ipv4,
    /// IPv6 without a link header (229).
    Ipv6,
    /// Linux cooked capture, version 2 (276).
    LinuxSll2,
    /// An unsupported link type; its frames are counted.
    Other(u16),
}

impl LinkType {
    /// Returns the link type of a number in a capture file.
    pub const fn from_number(number: u16) -> LinkType {
        match number {
            0 => LinkType::Null,
            1 => LinkType::Ethernet,
            9 => LinkType::Ppp,
            12 | 14 | 101 => LinkType::RawIp,
            50 => LinkType::PppHdlc,
            104 => LinkType::CiscoHdlc,
            105 => LinkType::Ieee80211,
            107 => LinkType::FrameRelay,
            108 => LinkType::Loop,
            113 => LinkType::LinuxSll,
            127 => LinkType::Radiotap,
            228 => LinkType::Ipv4,
            229 => LinkType::Ipv6,
            239 => LinkType::Nflog,
            276 => LinkType::LinuxSll2,
            other => LinkType::Other(other),
        }
    }

    /// Returns the number for a capture file.
    pub const fn number(self) -> u16 {
        match self {
            LinkType::Null => 0,
            LinkType::Ethernet => 1,
            LinkType::Ppp => 9,
            LinkType::PppHdlc => 50,
            LinkType::RawIp => 101,
            LinkType::CiscoHdlc => 104,
            LinkType::Ieee80211 => 105,
            LinkType::FrameRelay => 107,
            LinkType::Loop => 108,
            LinkType::LinuxSll => 113,
            LinkType::Radiotap => 127,
            LinkType::Ipv4 => 228,
            LinkType::Ipv6 => 229,
            LinkType::Nflog => 239,
            LinkType::LinuxSll2 => 276,
            LinkType::Other(number) => number,
        }
    }

    /// Whether the parser supports frames of this type.
    pub const fn is_supported(self) -> bool {
        !matches!(self, LinkType::Other(_))
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            LinkType::Null => "null",
            LinkType::Ethernet => "Ethernet",
            LinkType::Ppp => "PPP",
            LinkType::PppHdlc => "PPP in HDLC",
            LinkType::CiscoHdlc => "Cisco HDLC",
            LinkType::Ieee80211 => "802.11",
            LinkType::FrameRelay => "Frame Relay",
            LinkType::Radiotap => "802.11 with radiotap",
            LinkType::Nflog => "NFLOG",
            LinkType::RawIp => "raw IP",
            LinkType::Loop => "loopback",
            LinkType::LinuxSll => "Linux cooked v1",
            LinkType::Ipv4 => "raw IPv4",
            LinkType::Ipv6 => "raw IPv6",
            LinkType::LinuxSll2 => "Linux cooked v2",
            LinkType::Other(number) => return f.pad(&format!("link type {number}")),
        };
        f.pad(name)
    }
}
