//! What is counted per packet, and shares of the total.

use std::fmt;

/// What is counted per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// One per packet.
    #[default]
    Packets,
    /// Its bytes, of the IP layer.
    Bytes,
}

/// A share of a whole: above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share {
    percent: f64,
}

impl Share {
    /// One percent.
    pub(super) const ONE_PERCENT: Share = Share { percent: 1.0 };

    /// Creates a share of `percent`; `None` unless above 0 and at most 100.
    pub fn from_percent(percent: f64) -> Option<Share> {
        (percent > 0.0 && percent <= 100.0).then_some(Share { percent })
    }

    /// Returns the share as a number above 0 and at most 1.
    pub fn get(self) -> f64 {
        self.percent / 100.0
    }

    /// Returns the maximum number of keys that can each have this share.
    pub fn max_keys(self) -> usize {
        (100.0 / self.percent).ceil().min(f64::from(u32::MAX)) as usize
    }
}

/// Formats as `0.1%`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.percent))
    }
}

/// Formats as `packets` or `bytes`.
impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Weight {
    /// Returns `packets` or `bytes`.
    pub const fn name(self) -> &'static str {
        match self {
            Weight::Packets => "packets",
            Weight::Bytes => "bytes",
        }
    }
}
