//! Names of IP protocol numbers (IANA "Assigned Internet Protocol Numbers").

use std::fmt;
use std::str::FromStr;

/// A protocol above IP, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Protocol(pub u8);

impl Protocol {
    /// Internet Control Message Protocol (RFC 792).
    pub const ICMP: Protocol = Protocol(1);
    /// Transmission Control Protocol (RFC 9293).
    pub const TCP: Protocol = Protocol(6);
    /// User Datagram Protocol (RFC 768).
    pub const UDP: Protocol = Protocol(17);
    /// Generic Routing Encapsulation (RFC 2784).
    pub const GRE: Protocol = Protocol(47);
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: Protocol = Protocol(58);
    /// Stream Control Transmission Protocol (RFC 9260).
    pub const SCTP: Protocol = Protocol(132);

    /// Whether the header of the protocol starts with a source and a destination port.
    pub const fn has_ports(self) -> bool {
        matches!(self.0, 6 | 17 | 33 | 132 | 136)
    }

    /// Returns the names of protocols, in lower case.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, name)| *name)
    }

    /// Returns the protocol of a lower-case name.
    pub fn of_name(name: &str) -> Option<Protocol> {
        match name {
            "icmpv6" | "ipv6-icmp" => Some(Protocol::ICMPV6),
            _ => NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| Protocol(*number)),
        }
    }
}

/// Lower-case names as in tcpdump and `/etc/protocols`.
const NAMES: [(u8, &str); 20] = [
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipip"),
    (6, "tcp"),
    (8, "egp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "ipv6"),
    (46, "rsvp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmp6"),
    (88, "eigrp"),
    (89, "ospf"),
    (103, "pim"),
    (112, "vrrp"),
    (115, "l2tp"),
    (132, "sctp"),
    (136, "udplite"),
];

/// Displays the name, or `proto-N` for an unknown number.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.pad(name),
            None => f.pad(&format!("proto-{}", self.0)),
        }
    }
}

impl FromStr for Protocol {
    type Err = ();

    /// Parses a name in upper or lower case, `proto-N`, or a number.
    fn from_str(text: &str) -> Result<Self, ()> {
        let lower = text.to_ascii_lowercase();
        let number = || lower.strip_prefix("proto-").unwrap_or(&lower).parse().map(Protocol).map_err(drop);
        Protocol::of_name(&lower).map_or_else(number, Ok)
    }
}
