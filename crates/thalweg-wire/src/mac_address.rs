//! MAC addresses.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A MAC address (EUI-48).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether it is a unicast address: neither a group address nor all zeros.
    pub const fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

/// Displays six octets in lower-case hexadecimal, separated by colons.
impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

/// The error of parsing a MAC address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid MAC address: expected six octets in hexadecimal, as in 02:54:57:00:00:01")]
pub struct ParseMacAddressError;

impl FromStr for MacAddress {
    type Err = ParseMacAddressError;

    /// Parses six octets of two hexadecimal digits each, separated by `:` or by `-`.
    fn from_str(text: &str) -> Result<Self, ParseMacAddressError> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            let part = parts.next().ok_or(ParseMacAddressError)?;
            // `from_str_radix` alone would accept a sign.
            if part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(ParseMacAddressError);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| ParseMacAddressError)?;
        }
        if parts.next().is_some() { Err(ParseMacAddressError) } else { Ok(MacAddress(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_mac_addresses_are_rejected() {
        for text in [
            "",
            "02:54:57:00:00",
            "02:54:57:00:00:00:00",
            "02:54:57:00:00:0g",
            "2:54:57:0:0:0",
            "02-54:57:00:00:00",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(ParseMacAddressError), "{text}");
        }
        assert!("+2:54:57:00:00:00".parse::<MacAddress>().is_err(), "a sign is not a digit");
        assert_eq!("02-54-57-03-12-34".parse(), Ok(MacAddress([0x02, 0x54, 0x57, 0x03, 0x12, 0x34])));
    }

    proptest! {
        #[test]
        fn any_text_gives_an_address_or_an_error(text in ".{0,24}") {
            if let Ok(mac) = text.parse::<MacAddress>() {
                prop_assert_eq!(mac.to_string(), text.to_lowercase().replace('-', ":"));
            }
        }

        #[test]
        fn an_address_round_trips(octets: [u8; 6]) {
            prop_assert_eq!(MacAddress(octets).to_string().parse(), Ok(MacAddress(octets)));
        }
    }
}
