//! A MAC address.

use std::fmt;
use std::str::FromStr;

/// An IEEE 802 MAC address. All zeros mean none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// No address.
    pub const NONE: Mac = Mac([0; 6]);

    /// Whether this is an address.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.number() != 0
    }

    /// Returns it as a number, the first byte highest.
    #[inline]
    pub const fn number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Returns its bytes as they are sent.
    #[inline]
    pub const fn to_be_bytes(self) -> [u8; 6] {
        self.0
    }

    /// Returns the address of a number; bits above 48 are ignored.
    #[inline]
    pub const fn from_number(number: u64) -> Mac {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Mac([a, b, c, d, e, f])
    }
}

/// Displays `02:00:00:00:00:01`; an empty string for none.
impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_some() {
            return f.pad("");
        }
        let [first, rest @ ..] = self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(f, ":{byte:02x}"))
    }
}

/// Reads six bytes of one or two hexadecimal digits, separated by colons or hyphens.
impl FromStr for Mac {
    type Err = ();

    fn from_str(text: &str) -> Result<Mac, ()> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut bytes = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            let part = parts.next().ok_or(())?;
            let is_hex = matches!(part.len(), 1 | 2) && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(part, 16).ok().filter(|_| is_hex).ok_or(())?;
        }
        parts.next().is_none().then_some(Mac(bytes)).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_displayed() {
        for (text, shown) in [
            ("02:00:00:00:00:01", "02:00:00:00:00:01"),
            ("2:0:0:0:0:1", "02:00:00:00:00:01"),
            ("AA-BB-CC-DD-EE-FF", "aa:bb:cc:dd:ee:ff"),
            ("00:00:00:00:00:00", ""),
        ] {
            let mac: Mac = text.parse().unwrap();
            assert_eq!(mac.to_string(), shown);
            assert_eq!(Mac::from_number(mac.number()), mac);
        }
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02:00:00:00:00:100",
            "g:0:0:0:0:0",
            "+1:0:0:0:0:0",
        ] {
            assert_eq!(text.parse::<Mac>(), Err(()), "{text}");
        }
    }
}
