//! Flow numbers as TCP and UDP ports, and back.
//!
//! The hash of [`ecmp`](super::ecmp) is over a flow number, of which a packet on a wire has none: it has ports. So ports
//! stand for the number, in one way for all who write headers and all who read them:
//!
//! ```text
//! number         29 bits of the flow: its low 28, and its highest
//! source port    1000 0000 0000 0000 | the low 15 bits of the number
//! destination    0100 0000 0000 0000 | the high 14 bits
//! ```
//!
//! A source port is in the upper half, as those are that hosts choose; a destination port is in the quarter below. Which
//! of a packet's ports is which tells data from acknowledgements, which have them the other way round, and the number is
//! found from either. None of these ports is one at which a tunnel is looked for. Flows that differ in bits 28 to 30
//! only share their ports.
//!
//! Ports of any other form stand for the flow `source | destination << 16`, so that switches spread such flows as well,
//! each direction by itself, as switches do that hash the 5-tuple as it comes.

/// Bits of the number that the source port carries.
const SOURCE_BITS: u32 = 15;
/// Set in a port at the source.
const SOURCE: u16 = 1 << 15;
/// Set in a port at the destination, where [`SOURCE`] is not.
const DESTINATION: u16 = 1 << 14;
/// Low bits of the flow that are in the number.
const LOW_BITS: u32 = 28;

/// The ports of a flow, at its source and at its destination.
#[inline]
pub const fn ports(flow: u32) -> (u16, u16) {
    let number = flow & ((1 << LOW_BITS) - 1) | (flow >> 31) << LOW_BITS;
    let (low, high) = (number as u16 & (SOURCE - 1), (number >> SOURCE_BITS) as u16);
    (SOURCE | low, DESTINATION | high)
}

/// The flow that a packet's ports stand for. The same for both directions of a flow that [`ports`] has numbered.
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

/// What end of a flow a port may be at.
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
        fn a_flow_is_found_from_its_ports_in_either_direction(number in flows()) {
            let (source, destination) = ports(number);
            prop_assert!(source >= 32_768 && (16_384..32_768).contains(&destination));
            prop_assert_eq!(flow(source, destination), number);
            prop_assert_eq!(flow(destination, source), number);
        }

        #[test]
        fn ports_that_stand_for_a_number_are_those_of_it(source: u16, destination: u16) {
            let number = flow(source, destination);
            match ports(number) == (source, destination) || ports(number) == (destination, source) {
                true => prop_assert_eq!(number >> 28 & 0b111, 0),
                false => prop_assert_eq!(number, u32::from(source) | u32::from(destination) << 16),
            }
        }
    }

    #[test]
    fn known_ports_stay_what_they_are() {
        assert_eq!(ports(0), (32_768, 16_384));
        assert_eq!(ports(1 << 15 | 3), (32_771, 16_385));
        assert_eq!(ports(1 << 31), (32_768, 24_576));
        assert_eq!(ports(u32::MAX), (65_535, 32_767));
        assert_eq!(flow(443, 51_000), 443 | 51_000 << 16, "well-known ports are another matter");
        assert_eq!(flow(40_000, 50_000), 40_000 | 50_000 << 16, "as are two that hosts have chosen");
    }
}
