use proptest::prelude::*;

use super::*;
use crate::packet::PacketNotes;

fn decapsulate(bytes: &[u8], original_length: usize) -> Packet {
    Parser { decapsulate: true }.parse(&frame(LinkType::RawIp, bytes, original_length)).unwrap()
}

/// With the right header checksum.
fn checked(mut packet: Vec<u8>) -> Vec<u8> {
    let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!folded as u16).to_be_bytes());
    packet
}

fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ipv4(protocol, payload);
    bytes[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    bytes
}

/// Over IP and over UDP.
fn messages(before: &[u8], payload: &[u8]) -> [Vec<u8>; 2] {
    let data = [&[0, 0, 0x12, 0x34], before, payload].concat();
    [outer(115, &data), outer(17, &udp(1701, 1701, &[&[0, 3, 0, 0], &data[..]].concat()))]
}

/// All payloads of an IP packet.
fn payloads(packet: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let (ethertype, ppp, nlpid) = match packet[0] >> 4 {
        4 => (0x0800_u16, [0, 0x21], 0xCC),
        _ => (0x86DD, [0, 0x57], 0x8E),
    };
    let [high, low] = ethertype.to_be_bytes();
    vec![
        ("ethernet", ethernet(ethertype, packet)),
        ("vlan", ethernet(0x8100, &[&[0, 7, high, low], packet].concat())),
        ("ppp", [&ppp, packet].concat()),
        ("ppp in hdlc", [&[0xFF, 3], &ppp[..], packet].concat()),
        ("cisco hdlc", [&[0x0F, 0, high, low], packet].concat()),
        ("frame relay", [&[0x18, 0x41, 3, nlpid], packet].concat()),
        ("ip", packet.to_vec()),
    ]
}

fn cookies() -> Vec<Vec<u8>> {
    [0, 4, 8, 12].map(|length| (0..length).map(|byte| 0xC1 ^ 29_u8.wrapping_mul(byte)).collect()).to_vec()
}

#[test]
fn the_inner_packet_is_found_after_any_cookie_and_sublayer_in_any_payload() {
    for packet in [checked(tcp_v4()), checked(udp_v4()), tcp_v6()] {
        let alone = parse_ip(&packet);
        for before in cookies() {
            for (name, payload) in payloads(&packet) {
                for bytes in messages(&before, &payload) {
                    let found = decapsulate(&bytes, bytes.len());
                    assert_eq!(found.key, alone.key, "{name} after {} bytes", before.len());
                    assert_eq!(found.ip_length, alone.ip_length, "{name}");
                    assert!(found.notes.contains(PacketNotes::DECAPSULATED));
                }
            }
        }
    }
}

#[test]
fn ethernet_frames_of_the_minimum_size_are_padded_and_others_are_not() {
    let short = ethernet(0x0800, &checked(tcp_v4()));
    let padded = [&short[..], &[0; 1]].concat();
    assert_eq!(padded.len(), 60);
    let long = [&short[..], &[0; 20]].concat();
    for (payload, is_found) in [(padded, true), (long, false)] {
        for bytes in messages(&[], &payload) {
            let notes = decapsulate(&bytes, bytes.len()).notes;
            assert_eq!(notes.contains(PacketNotes::DECAPSULATED), is_found, "{}", payload.len());
        }
    }
}

#[test]
fn messages_that_carry_no_valid_packet_give_the_outer_packet() {
    let valid = checked(tcp_v4());
    let changed = |at: usize, bit: u8| {
        let mut packet = valid.clone();
        packet[at] ^= bit;
        packet
    };
    let mut messages: Vec<(&str, Vec<u8>)> = vec![
        ("wrong checksum", outer(115, &[&[0, 0, 0, 1], &ethernet(0x0800, &changed(11, 1))[..]].concat())),
        ("wrong length", outer(115, &[&[0, 0, 0, 1], &ethernet(0x0800, &changed(3, 1))[..]].concat())),
        ("wrong version", outer(115, &[&[0, 0, 0, 1], &ethernet(0x0800, &changed(0, 0x20))[..]].concat())),
        ("arp", outer(115, &[&[0, 0, 0, 1], &ethernet(0x0806, &[0; 46])[..]].concat())),
        ("control", outer(115, &[&[0, 0, 0, 0, 0xC8, 3, 0, 12], &valid[..]].concat())),
        ("control over udp", outer(17, &udp(1701, 1701, &[&[0xC8, 3, 0, 12], &valid[..]].concat()))),
        ("nothing", outer(115, &[0, 0, 0, 1])),
        ("empty", outer(115, &[])),
    ];
    let mut unassigned = tcp_v6();
    unassigned[8] = 0x50;
    messages.push(("unassigned address", outer(115, &[&[0, 0, 0, 1], &unassigned[..]].concat())));
    for (name, bytes) in messages {
        let packet = decapsulate(&bytes, bytes.len());
        assert_eq!(packet.key.src().to_string(), "192.0.2.1", "{name}");
        assert!(!packet.notes.contains(PacketNotes::DECAPSULATED), "{name}");
    }
}

/// A valid header that is also the cookie of another one: it cannot be told which is meant.
#[test]
fn two_valid_packets_give_the_outer_packet() {
    // IP of 32 bytes after no cookie, whose last 24 bytes are valid IP after a cookie of 8 bytes: with options, the inner
    // header begins in the middle of the outer one.
    let inner = checked(ipv4(59, &[]));
    let mut packet = vec![0x47, 0, 0, 28, 0, 0, 0, 0];
    packet.extend(&inner);
    // The checksum of the longer header, 28 bytes, is set by its identification: bytes 4 and 5.
    let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    packet[4..6].copy_from_slice(&(!folded as u16).to_be_bytes());
    for bytes in messages(&[], &packet) {
        assert!(!decapsulate(&bytes, bytes.len()).notes.contains(PacketNotes::DECAPSULATED));
    }
    for bytes in messages(&[1; 8], &inner) {
        assert!(decapsulate(&bytes, bytes.len()).notes.contains(PacketNotes::DECAPSULATED));
    }
}

#[test]
fn truncated_captures_give_the_inner_packet_from_its_header_on() {
    for before in cookies() {
        let packet = checked(tcp_v4());
        let [bytes, _] = messages(&before, &ethernet(0x0800, &packet));
        let header_end = bytes.len() - packet.len() + 20;
        for captured in 20..bytes.len() {
            let found = decapsulate(&bytes[..captured], bytes.len());
            assert_eq!(found.notes.contains(PacketNotes::DECAPSULATED), captured >= header_end, "{captured}");
        }
    }
}

proptest! {
    /// Chance of a false alarm: 10^-6 or less over all cases.
    #[test]
    fn random_payloads_are_not_taken_for_packets(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        for bytes in messages(&[], &payload) {
            prop_assert!(!decapsulate(&bytes, bytes.len()).notes.contains(PacketNotes::DECAPSULATED));
        }
    }
}
