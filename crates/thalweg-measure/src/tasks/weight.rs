//! What is counted of a packet, and parts of all that was counted.

use std::fmt;

/// What is counted of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// That it came.
    #[default]
    Packets,
    /// Its bytes, of the IP layer.
    Bytes,
}

/// A part of a whole: more than nothing, and at most all of it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share {
    percent: f64,
}

impl Share {
    /// A hundredth.
    pub(super) const ONE_PERCENT: Share = Share { percent: 1.0 };

    /// `percent` hundredths; `None` unless above 0 and at most 100.
    pub fn from_percent(percent: f64) -> Option<Share> {
        (percent > 0.0 && percent <= 100.0).then_some(Share { percent })
    }

    /// As a number above 0 and at most 1.
    pub fn get(self) -> f64 {
        self.percent / 100.0
    }

    /// No more keys than this can have such a share.
    pub fn most_keys(self) -> usize {
        (100.0 / self.percent).ceil().min(f64::from(u32::MAX)) as usize
    }
}

/// `0.1%`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.percent))
    }
}

/// `packets` or `bytes`.
impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Weight {
    /// `packets` or `bytes`.
    pub const fn name(self) -> &'static str {
        match self {
            Weight::Packets => "packets",
            Weight::Bytes => "bytes",
        }
    }
}
