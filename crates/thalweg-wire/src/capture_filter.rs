//! The capture filter of a flow, in the syntax of tcpdump (pcap-filter(7)).
//!
//! The filter selects the packets of one flow in both directions, and no others. It misses
//! - later fragments, which have no ports;
//! - IPv6 packets with extension headers, if the protocol has ports; those without are also found behind a fragment header and
//!   hop-by-hop options;
//! - packets behind headers that the filter language does not skip: tunnels, MPLS, PPPoE, more than two VLAN tags.

use std::fmt::Write;

use crate::flow_key::{FlowKey, IpVersion};
use crate::packet::VlanTags;
use crate::protocol::Protocol;

/// The protocols whose ports the language knows.
const WITH_PORTS: [Protocol; 3] = [Protocol::TCP, Protocol::UDP, Protocol::SCTP];

impl FlowKey {
    /// Returns the filter of the flow in both directions, on a link with these tags besides untagged frames.
    pub fn capture_filter(&self, tags: VlanTags) -> String {
        let untagged = self.untagged_filter();
        match tags {
            VlanTags { double: true, .. } => {
                format!("({untagged}) or (vlan and (({untagged}) or (vlan and {untagged})))")
            }
            VlanTags { single: true, .. } => format!("({untagged}) or (vlan and {untagged})"),
            VlanTags { .. } => untagged,
        }
    }

    fn untagged_filter(&self) -> String {
        let (a, b) = self.canonical_parts();
        let directions = match a == b {
            true => a,
            false => format!("(({a}) or ({b}))"),
        };
        format!("{} and {directions}", self.protocol_filter())
    }

    /// Returns the filter of each direction, without the protocol.
    fn canonical_parts(&self) -> (String, String) {
        (self.direction_filter(), self.reversed().direction_filter())
    }

    fn direction_filter(&self) -> String {
        let mut filter = format!("src host {} and dst host {}", self.src(), self.dst());
        let ports = (self.src_port, self.dst_port);
        if WITH_PORTS.contains(&self.protocol) {
            let _ = write!(filter, " and src port {} and dst port {}", ports.0, ports.1);
        } else if self.protocol.has_ports() {
            // The ports are the first words after the IP header.
            let [first, second] = match self.version() {
                IpVersion::V4 => ["ip[(ip[0] & 0xf) << 2:2]", "ip[((ip[0] & 0xf) << 2) + 2:2]"],
                IpVersion::V6 => ["ip6[40:2]", "ip6[42:2]"],
            };
            let _ = write!(filter, " and {first} = {} and {second} = {}", ports.0, ports.1);
        }
        filter
    }

    fn protocol_filter(&self) -> String {
        let number = self.protocol.0;
        match (self.version(), self.protocol) {
            (_, Protocol::TCP) => "tcp".to_owned(),
            (_, Protocol::UDP) => "udp".to_owned(),
            (_, Protocol::SCTP) => "sctp".to_owned(),
            (IpVersion::V4, Protocol::ICMP) => {
                format!("icmp and {}", self.echo_filter("icmp[0] = 8 or icmp[0] = 0", "icmp[4:2]"))
            }
            (IpVersion::V6, Protocol::ICMPV6) => {
                let echo = self.echo_filter("ip6[40] = 128 or ip6[40] = 129", "ip6[44:2]");
                match self.src_port {
                    0 => format!("{} and {echo}", behind_options(58)),
                    _ => format!("icmp6 and {echo}"),
                }
            }
            // A later fragment has no ports.
            (IpVersion::V4, protocol) if protocol.has_ports() => {
                format!("ip proto {number} and ip[6:2] & 0x1fff = 0")
            }
            (IpVersion::V4, _) => format!("ip proto {number}"),
            (IpVersion::V6, protocol) if protocol.has_ports() => format!("ip6 proto {number}"),
            (IpVersion::V6, _) => behind_options(number),
        }
    }

    /// Returns the filter of an echo identifier. A flow without one has all other messages, and echoes with the identifier 0.
    fn echo_filter(&self, is_echo: &str, identifier: &str) -> String {
        match self.src_port {
            0 => format!("not (({is_echo}) and {identifier} != 0)"),
            port => format!("({is_echo}) and {identifier} = {port}"),
        }
    }
}

/// Returns the filter of an IPv6 protocol, directly or behind hop-by-hop options, as in reports of multicast listeners.
fn behind_options(protocol: u8) -> String {
    format!("(ip6 proto {protocol} or (ip6 proto 0 and ip6[40] = {protocol}))")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(key: &str, single: bool, double: bool) -> String {
        key.parse::<FlowKey>().unwrap().capture_filter(VlanTags { single, double, more: false })
    }

    #[test]
    fn filters_have_the_documented_form() {
        assert_eq!(
            filter("tcp 10.0.0.1:443 > 10.0.0.2:51000", false, false),
            "tcp and ((src host 10.0.0.1 and dst host 10.0.0.2 and src port 443 and dst port 51000) or \
             (src host 10.0.0.2 and dst host 10.0.0.1 and src port 51000 and dst port 443))"
        );
        assert_eq!(
            filter("esp 10.0.0.1 > 10.0.0.2", true, false),
            "(ip proto 50 and ((src host 10.0.0.1 and dst host 10.0.0.2) or (src host 10.0.0.2 and dst host 10.0.0.1))) \
             or (vlan and ip proto 50 and ((src host 10.0.0.1 and dst host 10.0.0.2) or (src host 10.0.0.2 and dst host 10.0.0.1)))"
        );
        assert_eq!(
            filter("gre ::1 > ::1", false, false),
            "(ip6 proto 47 or (ip6 proto 0 and ip6[40] = 47)) and src host ::1 and dst host ::1"
        );
        let echo = filter("icmp 10.0.0.1:17 > 10.0.0.2:17", false, false);
        assert!(echo.starts_with("icmp and (icmp[0] = 8 or icmp[0] = 0) and icmp[4:2] = 17 and "), "{echo}");
    }
}
