//! Capture filters: the first line is an expression, the rest a frame.
//!
//! Checks nothing without libpcap.

use thalweg_capture::filter::{Filter, FilterError};
use thalweg_wire::LinkType;

/// Words of pcap-filter(7). Others would be resolved as names of hosts, networks, ports or protocols, so that
/// the duration of a check would depend on the resolver.
const WORDS: &str = "and or not host net mask port portrange src dst ether ip ip6 arp rarp tcp udp sctp icmp icmp6 igmp \
    igrp pim ah esp vrrp carp proto protochain gateway broadcast multicast less greater len inbound outbound ifindex \
    vlan mpls pppoed pppoes geneve vxlan iso clnp esis isis decnet llc type subtype dir link ppp slip radio lane \
    tr fddi wlan ra ta addr1 addr2 addr3 addr4 atalk aarp lat moprc mopdl stp ipx netbeui \
    tcpflags icmptype icmpcode icmp6type icmp6code";

/// The link types for which expressions are compiled.
const LINK_TYPES: [LinkType; 4] = [LinkType::Ethernet, LinkType::RawIp, LinkType::LinuxSll2, LinkType::Null];

/// BPF instruction classes and operations (McCanne and Jacobson, USENIX 1993; bpf.h).
const CLASS: u16 = 0x07;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const JUMP_OPERATION: u16 = 0xF0;
const JUMP_ALWAYS: u16 = 0x00;

/// Checks that any expression compiles to a program whose jumps stay within it, or is an error; and that the program
/// gives the same result for a frame each time.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let line_end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let Ok(expression) = std::str::from_utf8(&data[..line_end]) else { return };
    let frame = data.get(line_end + 1..).unwrap_or_default();
    if !looks_nothing_up(expression) {
        return;
    }
    for link_type in LINK_TYPES {
        match Filter::compile(expression, link_type, 96) {
            Ok(filter) => check_filter(&filter, frame),
            Err(FilterError::NoLibpcap { .. }) => return,
            Err(error) => assert!(error.to_string().contains(expression), "{error}"),
        }
    }
}

fn looks_nothing_up(expression: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    expression.split(|c| !is_part(c)).filter(|word| !word.is_empty()).all(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || c == '.')
            || word.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()));
        is_number || WORDS.split_whitespace().any(|known| known == word)
    })
}

fn check_filter(filter: &Filter, frame: &[u8]) {
    let program = filter.program();
    for (place, instruction) in program.iter().enumerate() {
        let furthest = match instruction.code & CLASS {
            // Signed: `protochain` jumps back to follow a chain of headers, which ends with the frame.
            JUMP if instruction.code & JUMP_OPERATION == JUMP_ALWAYS => instruction.k as i32,
            JUMP => instruction.jump_true.max(instruction.jump_false).into(),
            RETURN => continue,
            _ => 0,
        };
        let target = place as i64 + 1 + i64::from(furthest);
        assert!((0..program.len() as i64).contains(&target), "instruction {place} jumps out of {program:?}");
    }
    let original_length = frame.len() as u32 + 100;
    let verdict = filter.matches(frame, original_length);
    assert_eq!(filter.matches(frame, original_length), verdict);
}
