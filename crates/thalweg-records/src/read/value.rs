//! Decodes values of plain pages: little-endian numbers, and strings with their lengths.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use thalweg_wire::flow_export::{Address, Format, LabelStack, Mac, Name};

use super::address::{ADDRESS, address};
use super::delta::Delta;
use super::malformed::Malformed;

/// A type of column values.
pub(crate) trait Value: Copy + Default + Debug + 'static {
    /// Its Parquet type.
    type Physical: DataType;
    /// The type of a range of values.
    type Range;
    /// Name of its Parquet type, for error messages.
    const NAME: &'static str;

    /// Converts a value that the `parquet` crate decoded.
    fn of(physical: &<Self::Physical as DataType>::T) -> Result<Self, Malformed>;

    /// Decodes `out.len()` plain values from byte `at` on. Returns the offset after them.
    fn plain(bytes: &[u8], at: usize, out: &mut [Self]) -> Result<usize, Malformed>;

    /// Decodes `out.len()` values from deltas.
    fn differences(from: &mut Delta, bytes: &[u8], out: &mut [Self]) -> Result<(), Malformed>;

    /// Returns the index of the first value outside the range.
    fn outside(values: &[Self], range: &Self::Range) -> Option<usize>;
}

/// Implements numbers of fixed size.
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
                // 32-bit deltas may wrap, so higher bits are ignored.
                from.read(
                    bytes,
                    |value| *out.next().expect("one slot for each value") = value as $type,
                    count,
                )
            }

            #[inline]
            fn outside(values: &[$type], range: &RangeInclusive<$type>) -> Option<usize> {
                // Branch-free, so that the compiler can vectorise it.
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

/// Implements types with one valid text per value.
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

word!(Mac, mac, "a MAC address in the form 02:00:00:00:00:01");
word!(LabelStack, labels, "MPLS labels in the form 16-0-0 100-5-1");
word!(Name, name, "UTF-8, and fewer than 262,144 different names");

fn mac(text: &[u8]) -> Option<Mac> {
    if text.is_empty() { Some(Mac::NONE) } else { std::str::from_utf8(text).ok()?.parse().ok() }
}

fn labels(text: &[u8]) -> Option<LabelStack> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn name(text: &[u8]) -> Option<Name> {
    Name::of(std::str::from_utf8(text).ok()?)
}

fn format(text: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| format.name().as_bytes() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_decoded_within_the_page() {
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
