//! Faults of installed rules: how they differ from those that were sent.

use std::fmt;
use std::ops::AddAssign;

/// Numbers of rules of a switch that were not as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleFaults {
    /// Rules that somebody removed.
    pub missing: u64,
    /// Rules that somebody changed.
    pub changed: u64,
    /// Rules under Thalweg's cookies that Thalweg did not send.
    pub foreign: u64,
}

impl RuleFaults {
    /// Returns the number of faults.
    pub fn total(self) -> u64 {
        self.missing + self.changed + self.foreign
    }
}

impl AddAssign for RuleFaults {
    fn add_assign(&mut self, other: RuleFaults) {
        self.missing += other.missing;
        self.changed += other.changed;
        self.foreign += other.foreign;
    }
}

/// `2 missing, 1 changed, 0 foreign`.
impl fmt::Display for RuleFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleFaults { missing, changed, foreign } = self;
        write!(f, "{missing} missing, {changed} changed, {foreign} foreign")
    }
}
