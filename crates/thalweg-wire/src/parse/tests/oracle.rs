//! Compares the parser with the etherparse crate, with frames built by etherparse, all their prefixes, damaged frames
//! and arbitrary bytes.

use etherparse::{
    Icmpv4Type, IpFragOffset, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6FragmentHeader,
    Ipv6Header, Ipv6RawExtHeader, Ipv6RoutingExtensions, LaxNetSlice, LaxSlicedPacket, LinuxSllPacketType,
    NetSlice, PacketBuilder, PacketBuilderStep, SlicedPacket, TcpHeader, TransportSlice, VlanHeader, VlanId,
    ip_number,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::flow_key::FlowKey;
use crate::packet::{EthernetAddresses, Fragment, PacketNotes, VlanTags};
use crate::parse::fast;
use crate::protocol::Protocol;

/// A frame built by etherparse.
#[derive(Clone, Debug)]
struct Built {
    link_type: LinkType,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp { sequence: u32, flags: u8, option_words: usize },
    Udp,
    Echo,
    OtherIcmp,
    None(u8),
}

fn any_built() -> impl Strategy<Value = Built> {
    let ip = prop_oneof![any_ipv4(), any_ipv6()];
    let payload = vec(any::<u8>(), 0..40);
    (0..6u8, ip, any_transport(), any::<(u16, u16)>(), payload).prop_map(
        |(link, ip, transport, ports, payload)| {
            let (link_type, step) = begin(link, ip);
            Built { link_type, bytes: finish(step, transport, ports, &payload) }
        },
    )
}

fn any_ipv4() -> BoxedStrategy<IpHeaders> {
    let fields = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), 0..=10usize);
    let header =
        (fields, any_fragmentation()).prop_map(|((source, destination, identification, words), place)| {
            let mut header = Ipv4Header::new(0, 64, ip_number::TCP, source, destination).unwrap();
            header.identification = identification;
            (header.fragment_offset, header.more_fragments) = place;
            header.options = vec![1u8; words * 4][..].try_into().unwrap();
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        });
    header.boxed()
}

fn any_ipv6() -> BoxedStrategy<IpHeaders> {
    let any_extension = || prop::option::of((0..4usize).prop_map(raw_extension));
    let fragment = prop::option::of((any_fragmentation(), any::<u32>()));
    let extensions = (any_extension(), any_extension(), any_extension(), any_extension(), fragment);
    let header =
        (any::<[u8; 16]>(), any::<[u8; 16]>(), extensions).prop_map(|(source, destination, extensions)| {
            let (hop_by_hop_options, destination_options, routing, final_destination_options, fragment) =
                extensions;
            let extensions = Ipv6Extensions {
                hop_by_hop_options,
                destination_options,
                routing: routing.map(|routing| Ipv6RoutingExtensions { routing, final_destination_options }),
                fragment: fragment.map(|((offset, more_fragments), identification)| {
                    Ipv6FragmentHeader::new(ip_number::TCP, offset, more_fragments, identification)
                }),
                auth: None,
            };
            IpHeaders::Ipv6(Ipv6Header { source, destination, ..Default::default() }, extensions)
        });
    header.boxed()
}

/// Returns an extension header of `8 + 8 * units` bytes with padding.
fn raw_extension(units: usize) -> Ipv6RawExtHeader {
    let length = 6 + 8 * units;
    let padding = [&[1, (length - 2) as u8], &vec![0; length - 2][..]].concat();
    Ipv6RawExtHeader::new_raw(ip_number::TCP, &padding).unwrap()
}

/// Mostly unfragmented packets.
fn any_fragmentation() -> impl Strategy<Value = (IpFragOffset, bool)> {
    let offset = prop_oneof![8 => Just(0), 1 => 1..0x2000u16].prop_map(|o| IpFragOffset::try_new(o).unwrap());
    (offset, prop::bool::weighted(0.1))
}

fn any_transport() -> impl Strategy<Value = Transport> {
    let tcp = (any::<u32>(), any::<u8>(), 0..=10usize)
        .prop_map(|(sequence, flags, option_words)| Transport::Tcp { sequence, flags, option_words });
    prop_oneof![
        3 => tcp,
        2 => Just(Transport::Udp),
        1 => Just(Transport::Echo),
        1 => Just(Transport::OtherIcmp),
        1 => prop::sample::select(vec![47, 50, 89, 200]).prop_map(Transport::None),
    ]
}

fn begin(link: u8, ip: IpHeaders) -> (LinkType, PacketBuilderStep<IpHeaders>) {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let tag = |id| VlanId::try_new(id).unwrap();
    match link {
        0 | 1 => (LinkType::Ethernet, ethernet.ip(ip)),
        2 => {
            let single = etherparse::SingleVlanHeader { vlan_id: tag(100), ..Default::default() };
            (LinkType::Ethernet, ethernet.vlan(VlanHeader::Single(single)).ip(ip))
        }
        3 => (LinkType::Ethernet, ethernet.double_vlan(tag(7), tag(8)).ip(ip)),
        4 => (LinkType::RawIp, PacketBuilder::ip(ip)),
        _ => (LinkType::LinuxSll, PacketBuilder::linux_sll(LinuxSllPacketType::OTHERHOST, 6, [2; 8]).ip(ip)),
    }
}

fn finish(
    step: PacketBuilderStep<IpHeaders>,
    transport: Transport,
    (src_port, dst_port): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    match transport {
        Transport::Tcp { sequence, flags, option_words } => {
            let mut header = TcpHeader::new(src_port, dst_port, sequence, 1000);
            (header.fin, header.syn, header.rst) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
            (header.psh, header.ack, header.urg) = (flags & 8 != 0, flags & 16 != 0, flags & 32 != 0);
            (header.ece, header.cwr) = (flags & 64 != 0, flags & 128 != 0);
            header.set_options_raw(&vec![1; option_words * 4]).unwrap();
            step.tcp_header(header).write(&mut bytes, payload).unwrap();
        }
        Transport::Udp => step.udp(src_port, dst_port).write(&mut bytes, payload).unwrap(),
        Transport::Echo => step.icmpv4_echo_request(src_port, 1).write(&mut bytes, payload).unwrap(),
        Transport::OtherIcmp => {
            let unknown = Icmpv4Type::Unknown { type_u8: 200, code_u8: 0, bytes5to8: [9; 4] };
            step.icmpv4(unknown).write(&mut bytes, payload).unwrap();
        }
        Transport::None(protocol) => {
            step.write(&mut bytes, etherparse::IpNumber(protocol), payload).unwrap();
        }
    }
    bytes
}

fn slice(link_type: LinkType, bytes: &[u8]) -> Option<SlicedPacket<'_>> {
    match link_type {
        LinkType::Ethernet => SlicedPacket::from_ethernet(bytes).ok(),
        LinkType::LinuxSll => SlicedPacket::from_linux_sll(bytes).ok(),
        _ => SlicedPacket::from_ip(bytes).ok(),
    }
}

/// Returns the ports, TCP sequence number and payload length according to the oracle.
fn oracle_transport(transport: &TransportSlice<'_>) -> (u16, u16, u32, usize) {
    // An echo is defined by its type only; etherparse also requires code 0, so it is not used here.
    let identifier = |kind: u8, bytes: [u8; 4], echo: [u8; 2]| {
        if echo.contains(&kind) { u16::from_be_bytes([bytes[0], bytes[1]]) } else { 0 }
    };
    match transport {
        TransportSlice::Tcp(tcp) => {
            (tcp.source_port(), tcp.destination_port(), tcp.sequence_number(), tcp.payload().len())
        }
        TransportSlice::Udp(udp) => (udp.source_port(), udp.destination_port(), 0, udp.payload().len()),
        TransportSlice::Icmpv4(icmp) => {
            let id = identifier(icmp.type_u8(), icmp.bytes5to8(), [0, 8]);
            (id, id, 0, icmp.slice().len() - 8)
        }
        TransportSlice::Icmpv6(icmp) => {
            let id = identifier(icmp.type_u8(), icmp.bytes5to8(), [128, 129]);
            (id, id, 0, icmp.slice().len() - 8)
        }
        TransportSlice::Igmp(igmp) => (0, 0, 0, igmp.slice().len()),
    }
}

/// Returns a flow key with the addresses and protocol of the oracle and these ports.
fn oracle_key(net: &NetSlice<'_>, src_port: u16, dst_port: u16) -> FlowKey {
    match net {
        NetSlice::Ipv4(ip) => {
            let (src, dst) = (ip.header().source(), ip.header().destination());
            let protocol = Protocol(ip.payload().ip_number.0);
            FlowKey::v4(u32::from_be_bytes(src), u32::from_be_bytes(dst), src_port, dst_port, protocol)
        }
        NetSlice::Ipv6(ip) => {
            let (src, dst) = (ip.header().source(), ip.header().destination());
            let protocol = Protocol(ip.payload().ip_number.0);
            FlowKey::v6(u128::from_be_bytes(src), u128::from_be_bytes(dst), src_port, dst_port, protocol)
        }
        NetSlice::Arp(_) => unreachable!("no ARP is built"),
    }
}

/// Checks that the fast path, if it applies, gives the same result as the general path, and the list variant the same
/// as the single variant.
fn assert_all_paths_agree(frame: &Frame<'_>) {
    for decapsulate in [false, true] {
        let parser = Parser { decapsulate };
        let mut packets = Vec::new();
        let mut appended_tags = VlanTags::default();
        let appended = parser.parse_into(frame, &mut packets, &mut appended_tags).map(|()| packets[0]);
        assert_eq!((appended, packets.len()), (parser.parse(frame), usize::from(appended.is_ok())));
        let [mut fast_tags, mut tags] = [VlanTags::default(); 2];
        let any = parser.parse_any(frame, &mut tags);
        if let Some(packet) = fast::parse(frame, decapsulate, &mut fast_tags) {
            assert_eq!((Ok(packet), fast_tags), (any, tags));
        }
        if any.is_ok() {
            assert_eq!(appended_tags, tags);
        }
    }
}

proptest! {
    #[test]
    fn frames_built_by_etherparse_are_parsed_equally(built in any_built()) {
        let packet = parse(built.link_type, &built.bytes).unwrap();
        let sliced = slice(built.link_type, &built.bytes).unwrap();
        let net = sliced.net.as_ref().unwrap();
        let carried = match net {
            NetSlice::Ipv4(ip) => ip.payload(),
            NetSlice::Ipv6(ip) => ip.payload(),
            NetSlice::Arp(_) => unreachable!("no ARP is built"),
        };
        prop_assert_eq!(carried.fragmented, packet.fragment != Fragment::Whole);
        prop_assert_eq!(packet.notes, PacketNotes::default());
        let identification = match net {
            NetSlice::Ipv4(ip) => ip.header().identification(),
            _ => 0,
        };
        prop_assert_eq!(packet.identification, identification);
        if let Some(transport) = &sliced.transport {
            let (src_port, dst_port, sequence, payload_length) = oracle_transport(transport);
            prop_assert_eq!(packet.key, oracle_key(net, src_port, dst_port));
            prop_assert_eq!((packet.tcp_sequence, packet.payload_length as usize), (sequence, payload_length));
            if let TransportSlice::Tcp(tcp) = transport {
                prop_assert_eq!(packet.tcp_flags.0, tcp.slice()[13]);
            }
        } else if packet.fragment == Fragment::Whole {
            prop_assert_eq!(packet.key, oracle_key(net, 0, 0));
            prop_assert_eq!(packet.payload_length as usize, carried.payload.len());
        } else {
            // etherparse continues to parse extension headers within a fragmented payload.
            let key = oracle_key(net, 0, 0);
            prop_assert_eq!((packet.key.src(), packet.key.dst()), (key.src(), key.dst()));
        }
        let ip_header = built.bytes.len() - packet.ip_length as usize;
        let without_addresses = Packet { ethernet: EthernetAddresses::default(), ..packet };
        prop_assert_eq!(parse(LinkType::RawIp, &built.bytes[ip_header..]).unwrap(), without_addresses);
        let mut tags = VlanTags::default();
        let frame = frame(built.link_type, &built.bytes, built.bytes.len());
        Parser::default().parse_into(&frame, &mut Vec::new(), &mut tags).unwrap();
        let number = sliced.vlan_ids().len();
        prop_assert_eq!(tags, VlanTags { single: number == 1, double: number == 2, more: false });
        let addresses = sliced.link.as_ref().and_then(|link| link.to_header()).and_then(|link| link.ethernet2());
        let addresses = addresses.map(|link| (link.destination, link.source)).unwrap_or_default();
        prop_assert_eq!((packet.ethernet.destination.0, packet.ethernet.source.0), addresses);
    }

    #[test]
    fn a_prefix_gives_the_result_of_the_whole_frame_or_is_marked(built in any_built()) {
        let whole = parse(built.link_type, &built.bytes).unwrap();
        let header_length = if whole.key.src().is_ipv4() { 20 } else { 40 };
        let addresses_end = built.bytes.len() - whole.ip_length as usize + header_length;
        for snap_length in 0..built.bytes.len() {
            let frame = frame(built.link_type, &built.bytes[..snap_length], built.bytes.len());
            assert_all_paths_agree(&frame);
            match Parser::default().parse(&frame) {
                Err(Unparsed::Malformed { kind: Malformed::Truncated, .. }) => {
                    prop_assert!(snap_length < addresses_end);
                }
                Err(other) => prop_assert!(false, "{other}"),
                Ok(packet) => {
                    prop_assert!(snap_length >= addresses_end);
                    prop_assert_eq!(packet.ip_length, whole.ip_length);
                    if packet.notes.contains(PacketNotes::PORTS_NOT_CAPTURED) {
                        let mut key = whole.key.with_ports(0, 0);
                        key.protocol = packet.key.protocol;
                        prop_assert_eq!(packet.key, key);
                    } else {
                        prop_assert_eq!((packet.key, packet.fragment), (whole.key, whole.fragment));
                    }
                }
            }
        }
    }

    /// etherparse accepts a version that differs from the EtherType, an IPv4 length shorter than the
    /// header, and an empty IPv6 packet; if both accept a frame, they agree.
    #[test]
    fn damaged_frames_that_both_accept_are_parsed_equally(
        built in any_built(),
        damage in vec((any::<Index>(), any::<u8>()), 1..6),
        snap_length in any::<Index>(),
    ) {
        let mut bytes = built.bytes;
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let original_length = bytes.len();
        bytes.truncate(snap_length.index(original_length) + 1);
        let frame = frame(built.link_type, &bytes, original_length);
        assert_all_paths_agree(&frame);
        let ours = Parser::default().parse(&frame);
        let theirs = match built.link_type {
            LinkType::Ethernet => LaxSlicedPacket::from_ethernet(&bytes).ok(),
            LinkType::RawIp => LaxSlicedPacket::from_ip(&bytes).ok(),
            _ => None,
        };
        let net = theirs.as_ref().and_then(|theirs| theirs.net.as_ref());
        let (Ok(packet), Some(net)) = (ours, net) else { return Ok(()) };
        let (src, dst, empty) = match net {
            LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into(), false),
            LaxNetSlice::Ipv6(ip) => {
                let empty = packet.ip_length == 40;
                (ip.header().source_addr().into(), ip.header().destination_addr().into(), empty)
            }
            LaxNetSlice::Arp(_) => unreachable!("ARP gives no packet"),
        };
        prop_assert_eq!((packet.key.src(), packet.key.dst()), (src, dst));
        if let Some(transport) = theirs.as_ref().and_then(|theirs| theirs.transport.as_ref()).filter(|_| !empty) {
            let (src_port, dst_port, sequence, _) = oracle_transport(transport);
            prop_assert_eq!((packet.key.src_port, packet.key.dst_port), (src_port, dst_port));
            prop_assert_eq!(packet.tcp_sequence, sequence);
            prop_assert_eq!(packet.key.protocol.0, net.ip_payload_ref().unwrap().ip_number.0);
        }
    }

    #[test]
    fn arbitrary_bytes_on_any_link_do_not_panic(
        bytes in vec(any::<u8>(), 0..200),
        start in prop::sample::select(vec![vec![], vec![0x45], vec![0x60], ethernet(0x0800, &[0x45]), ethernet(0x86DD, &[0x60])]),
        link_type in prop::sample::select(vec![0u16, 1, 101, 108, 113, 228, 229, 276, 9]),
        original_length in any::<u32>(),
        decapsulate in any::<bool>(),
    ) {
        let bytes = [start, bytes].concat();
        let link_type = LinkType::from_number(link_type);
        let frame = Frame { time: Timestamp::default(), bytes: &bytes, original_length, link_type };
        assert_all_paths_agree(&frame);
        if let Ok(packet) = (Parser { decapsulate }).parse(&frame) {
            prop_assert!(packet.payload_length < packet.ip_length);
        }
    }

    #[test]
    fn a_built_packet_is_found_in_every_tunnel(built in any_built(), tunnel in 0..3) {
        let whole = parse(built.link_type, &built.bytes).unwrap();
        let ip = &built.bytes[built.bytes.len() - whole.ip_length as usize..];
        let is_v4 = whole.key.src().is_ipv4();
        let outer = match tunnel {
            0 => ipv4(if is_v4 { 4 } else { 41 }, ip),
            1 => ipv6(47, &[&[0, 0], if is_v4 { &[0x08, 0x00] } else { &[0x86, 0xDD] }, ip].concat()),
            _ => {
                let inner = ethernet(if is_v4 { 0x0800 } else { 0x86DD }, ip);
                ipv4(17, &udp(40_000, 4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat()))
            }
        };
        let parser = Parser { decapsulate: true };
        let packet = parser.parse(&frame(LinkType::RawIp, &outer, outer.len())).unwrap();
        let alone = parser.parse(&frame(LinkType::RawIp, ip, ip.len())).unwrap();
        prop_assert_eq!(Packet { notes: alone.notes, ..packet }, alone);
        prop_assert!(packet.notes.contains(PacketNotes::DECAPSULATED));
    }
}

#[test]
fn common_packets_take_the_fast_path() {
    for (link_type, bytes) in [
        (LinkType::Ethernet, ethernet(0x0800, &tcp_v4())),
        (LinkType::Ethernet, ethernet(0x0800, &udp_v4())),
        (LinkType::Ethernet, ethernet(0x86DD, &tcp_v6())),
        (LinkType::Ethernet, ethernet(0x8100, &[&[0, 7, 0x08, 0x00], &tcp_v4()[..]].concat())),
        (LinkType::RawIp, tcp_v4()),
        (LinkType::RawIp, udp_v4()),
    ] {
        assert!(
            fast::parse(&frame(link_type, &bytes, bytes.len()), true, &mut VlanTags::default()).is_some()
        );
    }
}
