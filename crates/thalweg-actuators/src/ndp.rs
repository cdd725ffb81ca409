//! Reroutes IPv6 by Neighbor Discovery (RFC 4861): the counterpart of the ARP packets of [`arp`](crate::arp).
//!
//! **A unicast solicitation.** The controller sends the source a Neighbor Solicitation for the source's own address. The
//! sender's address is the destination's, and the source link-layer option has the shadow address. A node that receives
//! it must replace the cached address of the sender by that of the option, and creates the entry if there is none (RFC
//! 4861, section 7.2.3). An unsolicited advertisement with the override flag (section 7.2.6) changes existing entries
//! only, and hosts may be configured to drop it (`drop_unsolicited_na` of Linux).
//!
//! **A solicited advertisement confirms the address**, as an ARP reply does. Without the override flag it does not
//! change an address that the host has learnt since (section 7.2.5).
//!
//! Only the address in the topology is rerouted. A host that also sends from another IPv6 address, or to one, keeps its
//! path for these packets.

use std::net::Ipv6Addr;

use thalweg_network::{MacAddress, Topology};

use thalweg_control::Pair;

/// Length of a frame: Ethernet, IPv6, and an ICMPv6 message with one option.
pub const FRAME_BYTES: usize = ETHERNET_BYTES + IPV6_BYTES + MESSAGE_BYTES;

const ETHERNET_BYTES: usize = 14;
const IPV6_BYTES: usize = 40;
/// Type, code, checksum, flags, target address, and an option with a MAC address.
const MESSAGE_BYTES: usize = 8 + 16 + 8;

const ETHER_TYPE: [u8; 2] = [0x86, 0xdd];
const ICMPV6: u8 = 58;
/// Receivers drop messages of Neighbor Discovery with another hop limit: a router has forwarded them (section 7.1).
const HOP_LIMIT: u8 = 255;

/// A message of Neighbor Discovery: type, flags, and type of the option with a link-layer address (sections 4.3, 4.4,
/// 4.6.1).
#[derive(Clone, Copy)]
struct Kind {
    message_type: u8,
    flags: u8,
    option: u8,
}

const SOLICITATION: Kind = Kind { message_type: 135, flags: 0, option: 1 };

/// With the flag "solicited" only.
const ADVERTISEMENT: Kind = Kind { message_type: 136, flags: 0x40, option: 2 };

/// Returns the solicitation that makes a pair's source send to this address of its destination; `None` if the topology
/// does not have the IPv6 addresses of both.
///
/// # Panics
/// If the topology does not contain both endpoints.
pub fn solicitation(topology: &Topology, pair: Pair, address: u8) -> Option<[u8; FRAME_BYTES]> {
    let (source, _) = addresses(topology, pair)?;
    frame(topology, pair, address, SOLICITATION, source)
}

/// Returns the advertisement that keeps this address of the destination valid at a pair's source, if the source uses it;
/// `None` as for [`solicitation`].
///
/// # Panics
/// If the topology does not contain both endpoints.
pub fn advertisement(topology: &Topology, pair: Pair, address: u8) -> Option<[u8; FRAME_BYTES]> {
    let (_, destination) = addresses(topology, pair)?;
    frame(topology, pair, address, ADVERTISEMENT, destination)
}

/// Returns the IPv6 addresses of source and destination.
fn addresses(topology: &Topology, pair: Pair) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let [source, destination] =
        [pair.source, pair.destination].map(|endpoint| topology.endpoints()[endpoint.index()].ipv6);
    Some((source?, destination?))
}

fn frame(
    topology: &Topology,
    pair: Pair,
    address: u8,
    kind: Kind,
    target: Ipv6Addr,
) -> Option<[u8; FRAME_BYTES]> {
    let (to, from) = addresses(topology, pair)?;
    let MacAddress(receiver) = topology.mac(pair.source, 0);
    let MacAddress(sender) = topology.mac(pair.destination, address);
    let message = message(kind, target, sender, from, to);
    // Version 6, no traffic class, no flow label.
    let ip = [0x60, 0, 0, 0, 0, MESSAGE_BYTES as u8, ICMPV6, HOP_LIMIT];
    let parts: [&[u8]; 7] = [&receiver, &sender, &ETHER_TYPE, &ip, &from.octets(), &to.octets(), &message];
    let mut frame = [0; FRAME_BYTES];
    frame.copy_from_slice(&parts.concat());
    Some(frame)
}

/// Returns the ICMPv6 message, with its checksum.
fn message(
    kind: Kind,
    target: Ipv6Addr,
    link_layer: [u8; 6],
    from: Ipv6Addr,
    to: Ipv6Addr,
) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[0] = kind.message_type;
    message[4] = kind.flags;
    message[8..24].copy_from_slice(&target.octets());
    // The length of the option, in units of 8 bytes.
    message[24..26].copy_from_slice(&[kind.option, 1]);
    message[26..32].copy_from_slice(&link_layer);
    let checksum = checksum(&message, from, to);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// Returns the checksum of an ICMPv6 message whose checksum is zero (RFC 4443, section 2.3; RFC 8200, section 8.1).
fn checksum(message: &[u8; MESSAGE_BYTES], from: Ipv6Addr, to: Ipv6Addr) -> u16 {
    let words = |bytes: &[u8]| bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum::<u32>();
    let pseudo_header =
        words(&from.octets()) + words(&to.octets()) + MESSAGE_BYTES as u32 + u32::from(ICMPV6);
    let sum = pseudo_header + words(message);
    let folded = (sum >> 16) + (sum & 0xffff);
    !((folded >> 16) + (folded & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use thalweg_network::{EndpointId, LinkSpec, TopologyBuilder};

    use super::*;

    const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(1) };

    fn topology(addresses: [Option<&str>; 2]) -> Topology {
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("tor0").unwrap();
        for (index, address) in addresses.into_iter().enumerate() {
            let host = builder.add_endpoint(format!("h{index}"), router, LinkSpec::default()).unwrap();
            address.map_or(Ok(()), |ip| builder.set_ipv6(host, ip.parse().unwrap())).unwrap();
        }
        builder.build().unwrap()
    }

    fn digits(frame: [u8; FRAME_BYTES]) -> String {
        frame.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_solicitation_of_the_source_names_the_destination_as_sender() {
        let topology = topology([Some("fd00::a"), Some("fd00::b")]);
        let addresses = "fd00000000000000000000000000000b fd00000000000000000000000000000a";
        let expected = [
            "025457000000 025457030001 86dd", // to h0, from h1's shadow address 3
            "60000000 0020 3a ff",
            addresses, // from h1 to h0
            "87 00 272a 00000000",
            "fd00000000000000000000000000000a", // a solicitation of h0's address
            "01 01 025457030001",               // sent by h1
        ];
        assert_eq!(digits(solicitation(&topology, PAIR, 3).unwrap()), expected.concat().replace(' ', ""));
        let expected = [
            "025457000000 025457030001 86dd 60000000 0020 3a ff",
            addresses,
            "88 00 e528 40000000",
            "fd00000000000000000000000000000b", // solicited, without override
            "02 01 025457030001",
        ];
        assert_eq!(digits(advertisement(&topology, PAIR, 3).unwrap()), expected.concat().replace(' ', ""));
    }

    #[test]
    fn hosts_without_ipv6_addresses_are_not_solicited() {
        for addresses in [[None, None], [Some("fd00::a"), None], [None, Some("fd00::b")]] {
            let topology = topology(addresses);
            assert_eq!(solicitation(&topology, PAIR, 1), None);
            assert_eq!(advertisement(&topology, PAIR, 1), None);
        }
    }
}
