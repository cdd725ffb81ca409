//! How values of a column stand in plain pages: numbers little-endian, text after its length.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use thalweg_wire::flow_export::{Address, Format};

use super::delta::Delta;
use super::malformed::Malformed;
use super::spelling::{ADDRESS, address};

/// What a column has.
pub(crate) trait Value: Copy + Default + Debug + 'static {
    /// The Parquet type in which it stands.
    type Physical: DataType;
    /// What says which values a column may have.
    type Range;
    /// That type, for people.
    const NAME: &'static str;

    /// A value that the `parquet` crate has decoded.
    fn of(physical: &<Self::Physical as DataType>::T) -> Result<Self, Malformed>;

    /// Reads `out.len()` plain values from byte `at` on; the byte after them.
    fn plain(bytes: &[u8], at: usize, out: &mut [Self]) -> Result<usize, Malformed>;

    /// Reads `out.len()` values that stand as differences.
    fn differences(from: &mut Delta, bytes: &[u8], out: &mut [Self]) -> Result<(), Malformed>;

    /// The first value outside the range.
    fn outside(values: &[Self], range: &Self::Range) -> Option<usize>;
}

/// Numbers of a fixed length.
macro_rules! number {
    ($type:ty, $physical:ty, $name:literal) => {
        impl Value for $type {
            type Physical = $physical;
            type Range = RangeInclusive<$type>;
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

            #[inline]
            fn outside(values: &[$type], range: &RangeInclusive<$type>) -> Option<usize> {
                // Without a branch for each value, which the compiler makes vector instructions of.
                let wrong = values.iter().fold(false, |wrong, value| wrong | !range.contains(value));
                match wrong {
                    true => values.iter().position(|value| !range.contains(value)),
                    false => None,
                }
            }
        }
    };
}

number!(i32, Int32Type, "INT32");
number!(i64, Int64Type, "INT64");

/// Words: text of which each has one spelling.
macro_rules! word {
    ($type:ty, $read:path, $expected:expr) => {
        impl Value for $type {
            type Physical = ByteArrayType;
            type Range = ();
            const NAME: &'static str = "STRING";

            fn of(physical: &ByteArray) -> Result<$type, Malformed> {
                $read(physical.data()).ok_or(Malformed($expected))
            }

            fn plain(bytes: &[u8], mut at: usize, out: &mut [$type]) -> Result<usize, Malformed> {
                for value in out {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let (length, rest) =
                        rest.split_first_chunk().ok_or(Malformed("more values in the page"))?;
                    let length = u32::from_le_bytes(*length) as usize;
                    let text = rest.get(..length).ok_or(Malformed("more values in the page"))?;
                    *value = $read(text).ok_or(Malformed($expected))?;
                    at += 4 + length;
                }
                Ok(at)
            }

            fn differences(_: &mut Delta, _: &[u8], _: &mut [$type]) -> Result<(), Malformed> {
                Err(Malformed("an encoding for text"))
            }

            fn outside(_: &[$type], (): &()) -> Option<usize> {
                None
            }
        }
    };
}

word!(Address, address, ADDRESS);
word!(Format, format, "netflow5, netflow9, ipfix, sflow5 or metered");

fn format(text: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| format.name().as_bytes() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
