//! Interface Description Block: link type, snap length, name, and the clock of the interface's timestamps.

use super::{ByteOrder, FormatError};
use crate::link_type::LinkType;
use crate::source::Interface;
use crate::time::Timestamp;

/// Option codes.
pub(super) mod option {
    pub(in super::super) const END: u16 = 0;
    pub(in super::super) const COMMENT: u16 = 1;
    pub(in super::super) const NAME: u16 = 2;
    pub(in super::super) const DESCRIPTION: u16 = 3;
    pub(in super::super) const TIME_RESOLUTION: u16 = 9;
    pub(in super::super) const TIME_OFFSET: u16 = 14;
}

/// The offset of the options: after type, total length, link type, two reserved bytes and snap length.
const OPTIONS_OFFSET: usize = 16;

/// The maximum kept length of a name in bytes, which bounds all names to 16 MiB. Linux names have 15 bytes, Windows
/// device paths about 50.
const MAX_NAME_LENGTH: usize = 256;

/// Converts the timestamps of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    resolution: Resolution,
    /// Seconds to add (`if_tsoffset`).
    offset_seconds: i64,
}

/// The unit of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// The length of a unit in nanoseconds.
    Nanos(u64),
    /// The number of units per nanosecond; `None` if it exceeds 64 bits.
    PerNano(Option<u64>),
    /// 2^-n seconds.
    PowerOfTwo(u32),
}

impl Default for Clock {
    /// Microseconds since the epoch.
    fn default() -> Clock {
        Clock { resolution: Resolution::Nanos(1_000), offset_seconds: 0 }
    }
}

impl Resolution {
    /// Decodes `if_tsresol`: a negative power of 10, or of 2 if the highest bit is set.
    fn from_option(value: u8) -> Resolution {
        let exponent = u32::from(value & 0x7f);
        if value & 0x80 != 0 {
            Resolution::PowerOfTwo(exponent)
        } else if exponent <= 9 {
            Resolution::Nanos(10_u64.pow(9 - exponent))
        } else {
            Resolution::PerNano(10_u64.checked_pow(exponent - 9))
        }
    }
}

impl Clock {
    /// Converts a timestamp, rounded down to nanoseconds and clamped to the range of [`Timestamp`].
    #[inline]
    pub(super) fn time(&self, ticks: u64) -> Timestamp {
        let nanos = match self.resolution {
            Resolution::Nanos(nanos) => ticks.saturating_mul(nanos),
            Resolution::PerNano(units) => units.map_or(0, |units| ticks / units),
            Resolution::PowerOfTwo(exponent) => {
                // Fits: 2^64 * 10^9 is below 2^94, and the exponent is at most 127.
                let nanos = (u128::from(ticks) * 1_000_000_000) >> exponent;
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        if self.offset_seconds == 0 {
            return Timestamp(nanos);
        }
        let nanos = i128::from(nanos) + i128::from(self.offset_seconds) * 1_000_000_000;
        Timestamp(nanos.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

/// Decodes a complete block of at least the minimum length.
pub(super) fn decode(block: &[u8], order: ByteOrder, offset: u64) -> Result<(Interface, Clock), FormatError> {
    let mut interface = Interface {
        name: None,
        link_type: LinkType::from_number(order.read_u16(block, 8)),
        snap_length: order.read_u32(block, 12),
    };
    let mut clock = Clock::default();
    let mut options = &block[OPTIONS_OFFSET..block.len() - 4];
    while options.len() >= 4 {
        let (code, length) = (order.read_u16(options, 0), order.read_u16(options, 2));
        let padded = 4 + usize::from(length).next_multiple_of(4);
        let wrong =
            |expected: usize| FormatError::OptionLength { offset, code, length, expected: expected as u32 };
        if code == option::END {
            break;
        }
        if padded > options.len() {
            return Err(wrong(options.len() - 4));
        }
        let value = &options[4..][..usize::from(length)];
        match code {
            option::NAME => interface.name = Some(name(value)),
            option::TIME_RESOLUTION => {
                let [value] = value.try_into().map_err(|_| wrong(1))?;
                clock.resolution = Resolution::from_option(value);
            }
            option::TIME_OFFSET => {
                let value = value.try_into().map_err(|_| wrong(8))?;
                clock.offset_seconds = match order {
                    ByteOrder::Little => i64::from_le_bytes(value),
                    ByteOrder::Big => i64::from_be_bytes(value),
                };
            }
            _ => {}
        }
        options = &options[padded..];
    }
    Ok((interface, clock))
}

fn name(value: &[u8]) -> String {
    let kept = &value[..value.len().min(MAX_NAME_LENGTH)];
    // Some writers include the final zero of a C string.
    String::from_utf8_lossy(kept).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(resolution: u8, offset_seconds: i64) -> Clock {
        Clock { resolution: Resolution::from_option(resolution), offset_seconds }
    }

    #[test]
    fn timestamps_have_decimal_and_binary_units() {
        let second = Timestamp(1_000_000_000);
        for (resolution, ticks) in [(0, 1), (3, 1_000), (6, 1_000_000), (9, 1_000_000_000)] {
            assert_eq!(clock(resolution, 0).time(ticks), second, "10^-{resolution}");
        }
        assert_eq!(clock(12, 0).time(1_500), Timestamp(1), "picoseconds round down");
        assert_eq!(clock(0x80, 0).time(1), second, "2^0");
        assert_eq!(clock(0x80 | 10, 0).time(1536), Timestamp(1_500_000_000), "2^-10");
        assert_eq!(clock(0x80 | 32, 0).time(1 << 31), Timestamp(500_000_000), "2^-32, as in NTP");
        assert_eq!(Clock::default(), clock(6, 0));
    }

    #[test]
    fn a_time_offset_is_signed_and_clamped() {
        assert_eq!(clock(6, 100).time(1), Timestamp(100_000_001_000));
        assert_eq!(clock(6, -1).time(1_500_000), Timestamp(500_000_000));
        assert_eq!(clock(6, -5).time(1), Timestamp(0));
        assert_eq!(clock(0, i64::MAX).time(u64::MAX), Timestamp(u64::MAX));
        assert_eq!(clock(0, i64::MIN).time(u64::MAX), Timestamp(0));
    }

    #[test]
    fn no_resolution_overflows() {
        for resolution in 0..=255 {
            for ticks in [0, 1, u64::MAX] {
                clock(resolution, 0).time(ticks);
            }
        }
        assert_eq!(clock(0, 0).time(u64::MAX), Timestamp(u64::MAX));
        assert_eq!(clock(127, 0).time(u64::MAX), Timestamp(0));
        assert_eq!(clock(255, 0).time(u64::MAX), Timestamp(0));
    }
}
