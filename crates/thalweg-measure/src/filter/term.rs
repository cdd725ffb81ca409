//! The terms of the language, each with its first words.

use super::view::View;

/// Declares [`Term`], its names and the order of lists.
macro_rules! terms {
    ($($(#[$meta:meta])* $name:ident = $word:literal,)*) => {
        /// A term of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Term {
            $($(#[$meta])* $name,)*
        }

        impl Term {
            /// All terms, in the order of lists.
            pub const ALL: &'static [Term] = &[$(Term::$name,)*];

            /// Returns the first words of the term.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Term::$name => $word,)*
                }
            }
        }
    };
}

terms! {
    /// Every flow.
    Any = "any",
    /// Flows of IPv4; also `inet`.
    Ipv4 = "ipv4",
    /// Flows of IPv6; also `inet6`.
    Ipv6 = "ipv6",
    /// An address of an endpoint; also `ip`.
    Host = "host",
    /// A prefix of an endpoint's address.
    Net = "net",
    /// A port.
    Port = "port",
    /// The IP protocol.
    Proto = "proto",
    /// TCP flags.
    Flags = "flags",
    /// Bytes.
    Bytes = "bytes",
    /// Packets.
    Packets = "packets",
    /// Bytes from the source.
    InBytes = "in bytes",
    /// Packets from the source.
    InPackets = "in packets",
    /// Bytes to the source.
    OutBytes = "out bytes",
    /// Packets to the source.
    OutPackets = "out packets",
    /// Number of flows that a row combines.
    Flows = "flows",
    /// Milliseconds from the first to the last packet.
    Duration = "duration",
    /// Bits per second.
    Bps = "bps",
    /// Packets per second.
    Pps = "pps",
    /// Bytes per packet.
    Bpp = "bpp",
    /// Flows that are cheetahs.
    Cheetah = "cheetah",
    /// The type of ICMP messages.
    IcmpType = "icmp-type",
    /// The code of ICMP messages.
    IcmpCode = "icmp-code",
    /// The type of service.
    Tos = "tos",
    /// The autonomous system.
    As = "as",
    /// The length of a route's prefix.
    Mask = "mask",
    /// The interface, by its SNMP index.
    If = "if",
    /// The VLAN.
    Vlan = "vlan",
    /// The inner of two VLAN tags.
    CustomerVlan = "customer vlan",
    /// A MAC address.
    Mac = "mac",
    /// The smallest or the largest TTL.
    Ttl = "ttl",
    /// The smallest TTL.
    MinTtl = "min ttl",
    /// The largest TTL.
    MaxTtl = "max ttl",
    /// The forwarding status.
    FwdStat = "fwdstat",
    /// An MPLS label, by its position from 1 to 10.
    MplsLabel = "mpls label1",
    /// The experimental bits of an MPLS label.
    MplsExp = "mpls exp1",
    /// The MPLS label at the bottom of the stack.
    MplsEos = "mpls eos",
    /// An MPLS label at any position.
    MplsAny = "mpls any",
    /// The VRF, by its number.
    Vrf = "vrf",
    /// The name of the VRF.
    VrfName = "vrf name",
    /// The name of the interface.
    IfName = "if name",
    /// The address of the next hop.
    NextIp = "next ip",
    /// The address of the next hop in BGP.
    BgpNextIp = "bgpnext ip",
    /// The next autonomous system towards the destination.
    NextAs = "next as",
    /// The previous autonomous system, towards the source.
    PrevAs = "prev as",
    /// The country.
    Geo = "geo",
    /// The address of the exporter.
    RouterIp = "router ip",
    /// The name of the exporter.
    RouterName = "router name",
    /// The direction in which the packets were observed; also `dir`.
    FlowDir = "flowdir",
    /// The observation domain.
    ObservationDomainId = "observation domain id",
    /// The observation point.
    ObservationPointId = "observation point id",
}

/// Terms that can follow `src` and `dst`, in the order of messages.
pub(super) const QUALIFIED: [Term; 8] =
    [Term::Host, Term::Net, Term::Port, Term::As, Term::Mask, Term::Vlan, Term::Mac, Term::Geo];

/// nfdump's keywords that no view supports.
pub(super) const FOREIGN: &[&str] = &[
    "app",
    "asa",
    "client",
    "count",
    "egress",
    "engine-id",
    "engine-type",
    "event",
    "ident",
    "ingress",
    "nat",
    "nip",
    "nport",
    "payload",
    "pblock",
    "pf",
    "server",
    "sysid",
    "tun",
    "tunip",
    "version",
    "xip",
    "xnet",
    "xport",
];

/// Returns the names of a view's terms, separated by commas.
pub(super) fn known(view: &View) -> String {
    let names: Vec<&str> = view.terms().map(Term::name).collect();
    names.join(", ")
}
