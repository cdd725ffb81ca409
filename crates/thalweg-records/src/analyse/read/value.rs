//! How values of a column stand in plain pages: numbers little-endian, text after its length.

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use thalweg_wire::flow_export::Address;

use super::delta::Delta;

/// What was expected where a page has something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// What a column has.
pub(super) trait Value: Copy + Default {
    /// The Parquet type in which it stands.
    type Physical: DataType;
    /// That type, for people.
    const NAME: &'static str;

    /// A value that the `parquet` crate has decoded.
    fn of(physical: &<Self::Physical as DataType>::T) -> Result<Self, Malformed>;

    /// Reads `out.len()` plain values from byte `at` on; the byte after them.
    fn plain(bytes: &[u8], at: usize, out: &mut [Self]) -> Result<usize, Malformed>;

    /// Reads `out.len()` values that stand as differences.
    fn differences(from: &mut Delta, bytes: &[u8], out: &mut [Self]) -> Result<(), Malformed>;
}

/// Numbers of a fixed length.
macro_rules! number {
    ($type:ty, $physical:ty, $name:literal) => {
        impl Value for $type {
            type Physical = $physical;
            const NAME: &'static str = $name;

            fn of(physical: &$type) -> Result<$type, Malformed> {
                Ok(*physical)
            }

            fn plain(bytes: &[u8], at: usize, out: &mut [$type]) -> Result<usize, Malformed> {
                const LENGTH: usize = size_of::<$type>();
                let end = at + out.len() * LENGTH;
                let values = bytes.get(at..end).ok_or(Malformed("more values in the page"))?;
                for (value, bytes) in out.iter_mut().zip(values.as_chunks::<LENGTH>().0) {
                    *value = <$type>::from_le_bytes(*bytes);
                }
                Ok(end)
            }

            fn differences(from: &mut Delta, bytes: &[u8], out: &mut [$type]) -> Result<(), Malformed> {
                let count = out.len();
                let mut out = out.iter_mut();
                // The format lets differences of 32 bits wrap, so what is above them counts for nothing.
                from.read(bytes, |value| *out.next().expect("as many as asked for") = value as $type, count)
            }
        }
    };
}

number!(i32, Int32Type, "INT32");
number!(i64, Int64Type, "INT64");

impl Value for Address {
    type Physical = ByteArrayType;
    const NAME: &'static str = "STRING";

    fn of(physical: &ByteArray) -> Result<Address, Malformed> {
        address(physical.data()).ok_or(Malformed(ADDRESS))
    }

    fn plain(bytes: &[u8], mut at: usize, out: &mut [Address]) -> Result<usize, Malformed> {
        for value in out {
            let rest = bytes.get(at..).unwrap_or_default();
            let (length, rest) = rest.split_first_chunk().ok_or(Malformed("more values in the page"))?;
            let length = u32::from_le_bytes(*length) as usize;
            let text = rest.get(..length).ok_or(Malformed("more values in the page"))?;
            *value = address(text).ok_or(Malformed(ADDRESS))?;
            at += 4 + length;
        }
        Ok(at)
    }

    fn differences(_: &mut Delta, _: &[u8], _: &mut [Address]) -> Result<(), Malformed> {
        Err(Malformed("an encoding for text"))
    }
}

/// What an address column may have.
pub(super) const ADDRESS: &str = "an address as dotted decimal or by RFC 5952, or nothing";

/// An address from its one right spelling; another spelling would count as another address elsewhere.
pub(super) fn address(text: &[u8]) -> Option<Address> {
    if let Some(number) = dotted_decimal(text) {
        return Some(Address::v4(number));
    }
    if text.is_empty() {
        return Some(Address::NONE);
    }
    let text = str::from_utf8(text).ok()?;
    let address = Address::from(text.parse::<std::net::IpAddr>().ok()?);
    (address.to_string() == text).then_some(address)
}

/// An IPv4 address; none where there is any other text, leading zeros too.
#[inline]
fn dotted_decimal(text: &[u8]) -> Option<u32> {
    let (mut address, mut number, mut digits, mut dots) = (0u32, 0u32, 0, 0);
    for &byte in text {
        match byte {
            b'0'..=b'9' if digits == 0 || number > 0 => {
                number = number * 10 + u32::from(byte - b'0');
                digits += 1;
                if number > 255 {
                    return None;
                }
            }
            b'.' if digits > 0 && dots < 3 => {
                address = address << 8 | number;
                (number, digits) = (0, 0);
                dots += 1;
            }
            _ => return None,
        }
    }
    (dots == 3 && digits > 0).then_some(address << 8 | number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        let right = ["10.1.2.3", "0.0.0.0", "255.255.255.255", "::", "2001:db8::1", ""];
        for text in right {
            assert_eq!(address(text.as_bytes()).unwrap().to_string(), text);
        }
        let wrong = [
            "10.1.2",
            "10.1.2.3.4",
            "10.1.2.256",
            "10.01.2.3",
            "10.1.2.",
            ".1.2.3",
            " 10.1.2.3",
            "x",
            "00.1.2.3",
        ];
        for text in wrong.into_iter().chain(["2001:DB8::1", "2001:db8:0::1", "::ffff:10.1.2.3", "999.1.1.1"])
        {
            assert_eq!(address(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn plain_values_are_read_from_their_place_and_never_beyond_the_page() {
        let mut out = [0i32; 2];
        assert_eq!(i32::plain(&[9, 1, 0, 0, 0, 2, 0, 0, 0], 1, &mut out), Ok(9));
        assert_eq!(out, [1, 2]);
        assert!(i32::plain(&[0; 7], 0, &mut out).is_err());
        let mut out = [Address::NONE; 1];
        assert_eq!(Address::plain(b"\x07\0\0\x001.2.3.4", 0, &mut out), Ok(11));
        assert_eq!(out, [Address::v4(0x0102_0304)]);
        assert!(Address::plain(b"\x08\0\0\x001.2.3.4", 0, &mut out).is_err());
    }
}
