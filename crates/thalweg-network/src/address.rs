//! Default addresses of endpoints, and their shadow MAC addresses.
//!
//! | address | form | of endpoint `E` |
//! |---|---|---|
//! | MAC | `02:54:57:AA:EE:EE` | `AA` is the number of the address, 0 for the base; `EEEE` is `E`, big-endian |
//! | IPv4 | `10.0.0.1` to `10.0.255.255` | `10.0.0.1 + E` |
//!
//! The MAC addresses are unicast and locally administered (first octet `x2`; RFC 9542, section 2.1). All addresses of
//! one endpoint differ in one octet only, so they are easy to read.
//!
//! A shadow address (Rasley et al., "Planck", SIGCOMM 2014, section 6.2) is a further destination address of the same
//! endpoint for which switches have another path. Changing the destination MAC address of a flow reroutes it, and the
//! last switch restores the base address. The paper uses three shadow addresses; this format allows 255.

use std::net::Ipv4Addr;

pub use thalweg_wire::MacAddress;

use crate::identity::EndpointId;

/// The first three octets of all default and shadow addresses: locally administered, then `TW`.
const PREFIX: [u8; 3] = [0x02, b'T', b'W'];

/// The IPv4 address of endpoint 0.
const FIRST_IP: u32 = u32::from_be_bytes([10, 0, 0, 1]);

/// Returns the default MAC address of an endpoint.
#[inline]
pub const fn default_mac(endpoint: EndpointId) -> MacAddress {
    shadow_mac(endpoint, 0)
}

/// Returns MAC address number `address` of an endpoint: 0 is its default address, the others are shadow addresses.
#[inline]
pub const fn shadow_mac(endpoint: EndpointId, address: u8) -> MacAddress {
    let [high, low] = endpoint.0.to_be_bytes();
    MacAddress([PREFIX[0], PREFIX[1], PREFIX[2], address, high, low])
}

/// Returns the endpoint and the address number of a default or shadow MAC address; `None` for other addresses. The
/// inverse of [`shadow_mac`].
#[inline]
pub const fn parse_shadow_mac(mac: MacAddress) -> Option<(EndpointId, u8)> {
    match mac.0 {
        [first, second, third, address, high, low]
            if first == PREFIX[0] && second == PREFIX[1] && third == PREFIX[2] =>
        {
            Some((EndpointId(u16::from_be_bytes([high, low])), address))
        }
        _ => None,
    }
}

/// Returns the default IPv4 address of an endpoint.
pub fn default_ip(endpoint: EndpointId) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_IP + u32::from(endpoint.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_have_the_documented_form() {
        assert_eq!(default_mac(EndpointId(0)).to_string(), "02:54:57:00:00:00");
        assert_eq!(shadow_mac(EndpointId(0x1234), 3).to_string(), "02:54:57:03:12:34");
        assert_eq!(default_ip(EndpointId(0)), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(default_ip(EndpointId(65_534)), Ipv4Addr::new(10, 0, 255, 255));
    }

    proptest! {
        #[test]
        fn shadow_addresses_are_unicast_and_parse_back(endpoint: u16, address: u8) {
            let mac = shadow_mac(EndpointId(endpoint), address);
            prop_assert!(mac.is_unicast());
            prop_assert_eq!(mac.0[0] & 0x0f, 0x02);
            prop_assert_eq!(parse_shadow_mac(mac), Some((EndpointId(endpoint), address)));
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
        }

        #[test]
        fn only_addresses_with_the_prefix_are_shadow_addresses(octets: [u8; 6]) {
            let mac = MacAddress(octets);
            match parse_shadow_mac(mac) {
                Some((endpoint, address)) => prop_assert_eq!(shadow_mac(endpoint, address), mac),
                None => prop_assert_ne!(&octets[..3], &PREFIX[..]),
            }
        }
    }
}
