//! Encodes flow numbers as TCP and UDP ports, and decodes them.
//!
//! [`ecmp`](super::ecmp) hashes a flow number. A packet on the wire has ports instead, so the ports encode the number:
//!
//! ```text
//! number         29 bits of the flow: its low 28 bits and its highest bit
//! source port    1000 0000 0000 0000 | the low 15 bits of the number
//! destination    0100 0000 0000 0000 | the high 14 bits
//! ```
//!
//! Source ports are in the upper half, as ephemeral ports are; destination ports are in the quarter below.
//! Acknowledgements have the two swapped, and decode to the same number. None of these ports is a tunnel port. Flows
//! that differ only in bits 28 to 30 share their ports.
//!
//! All other ports decode to the flow `source | destination << 16`. So ECMP spreads such flows too, each direction on
//! its own, as switches that hash the 5-tuple do.

/// The number of low bits that the source port carries.
const SOURCE_BITS: u32 = 15;
/// Set in a source port.
const SOURCE: u16 = 1 << 15;
/// Set in a destination port, while [`SOURCE`] is clear.
const DESTINATION: u16 = 1 << 14;
/// The number of low bits of the flow in the number.
const LOW_BITS: u32 = 28;

/// Returns the source port and the destination port of a flow.
#[inline]
pub const fn ports(flow: u32) -> (u16, u16) {
    let number = flow & ((1 << LOW_BITS) - 1) | (flow >> 31) << LOW_BITS;
    let (low, high) = (number as u16 & (SOURCE - 1), (number >> SOURCE_BITS) as u16);
    (SOURCE | low, DESTINATION | high)
}

/// Decodes the flow from the ports of a packet. Both directions of a flow from [`ports`] decode to the same number.
#[inline]
pub const fn flow(source_port: u16, destination_port: u16) -> u32 {
    let (low, high) = match (kind(source_port), kind(destination_port)) {
        (Kind::Source, Kind::Destination) => (source_port, destination_port),
        (Kind::Destination, Kind::Source) => (destination_port, source_port),
        _ => return source_port as u32 | (destination_port as u32) << 16,
    };
    let number = (low & (SOURCE - 1)) as u32 | ((high & (DESTINATION - 1)) as u32) << SOURCE_BITS;
    number & ((1 << LOW_BITS) - 1) | (number >> LOW_BITS) << 31
}

/// The end of a flow that a port belongs to.
enum Kind {
    Source,
    Destination,
    Neither,
}

#[inline]
const fn kind(port: u16) -> Kind {
    if port & SOURCE != 0 {
        Kind::Source
    } else if port & DESTINATION != 0 {
        Kind::Destination
    } else {
        Kind::Neither
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Flows whose bits 28 to 30 are zero.
    fn flows() -> impl Strategy<Value = u32> {
        (0u32..1 << 28, any::<bool>()).prop_map(|(low, high)| low | u32::from(high) << 31)
    }

    proptest! {
        #[test]
        fn the_transport_ports_of_a_flow_decode_to_its_number_in_both_directions(number in flows()) {
            let (source, destination) = ports(number);
            prop_assert!(source >= 32_768 && (16_384..32_768).contains(&destination));
            prop_assert_eq!(flow(source, destination), number);
            prop_assert_eq!(flow(destination, source), number);
        }

        #[test]
        fn decoding_any_transport_ports_and_encoding_the_number_returns_them(source: u16, destination: u16) {
            let number = flow(source, destination);
            match ports(number) == (source, destination) || ports(number) == (destination, source) {
                true => prop_assert_eq!(number >> 28 & 0b111, 0),
                false => prop_assert_eq!(number, u32::from(source) | u32::from(destination) << 16),
            }
        }
    }

    #[test]
    fn transport_ports_match_known_values() {
        assert_eq!(ports(0), (32_768, 16_384));
        assert_eq!(ports(1 << 15 | 3), (32_771, 16_385));
        assert_eq!(ports(1 << 31), (32_768, 24_576));
        assert_eq!(ports(u32::MAX), (65_535, 32_767));
        assert_eq!(flow(443, 51_000), 443 | 51_000 << 16, "well-known ports encode no number");
        assert_eq!(flow(40_000, 50_000), 40_000 | 50_000 << 16, "two ephemeral ports encode no number");
    }
}
