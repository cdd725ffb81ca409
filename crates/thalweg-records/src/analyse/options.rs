//! Options of an analysis.

use super::AnalyseError;
use super::elephant::ElephantRule;
use super::flowset::Rule;

/// Options of an analysis; the defaults are those of the dissertation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum gap between records of one flow, in microseconds: from the latest end so far to the next start. Default 60 s,
    /// the usual active timeout of routers.
    pub gap_us: i64,
    /// A flow is an elephant if a window holds more octets than this. Default 1 GB (section 2.2).
    pub threshold_bytes: i64,
    /// Length of the window in microseconds. Default one minute (section 2.2).
    pub window_us: i64,
    /// Maximum time between the starts of flows of a flowset, in microseconds. Default 10 s (section 2.3).
    pub tau_us: i64,
    /// How to split chains of flows that span more than `tau_us`.
    pub rule: Rule,
    /// Whether flowsets contain only elephants, as in the dissertation.
    pub elephants_only: bool,
    /// Memory limit in bytes, at least 64 KiB. Read and write buffers need up to 64 MiB per thread in addition.
    pub memory_bytes: u64,
    /// Number of worker threads, 1 to 256.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            gap_us: 60_000_000,
            threshold_bytes: 1_000_000_000,
            window_us: 60_000_000,
            tau_us: 10_000_000,
            rule: Rule::Span,
            elephants_only: true,
            memory_bytes: 4 << 30,
            threads: 1,
        }
    }
}

/// Range of durations, chosen so that adding one to a time cannot overflow.
const LENGTHS: std::ops::RangeInclusive<i64> = 0..=1 << 61;
const LENGTH: &str = "0 to 2^61 microseconds";

impl Options {
    /// # Errors
    /// The first parameter that is out of range.
    pub(super) fn check(&self) -> Result<(), AnalyseError> {
        let checks = [
            ("gap_us", LENGTHS.contains(&self.gap_us), LENGTH, self.gap_us.to_string()),
            ("threshold_bytes", self.threshold_bytes >= 0, "0 or more", self.threshold_bytes.to_string()),
            ("window_us", LENGTHS.contains(&self.window_us), LENGTH, self.window_us.to_string()),
            ("tau_us", LENGTHS.contains(&self.tau_us), LENGTH, self.tau_us.to_string()),
            ("memory_bytes", self.memory_bytes >= 1 << 16, "65536 or more", self.memory_bytes.to_string()),
            ("threads", (1..=256).contains(&self.threads), "1 to 256", self.threads.to_string()),
        ];
        match checks.into_iter().find(|(_, holds, _, _)| !holds) {
            Some((option, _, expected, found)) => Err(AnalyseError::Option { option, expected, found }),
            None => Ok(()),
        }
    }

    pub(super) fn elephant_rule(&self) -> ElephantRule {
        ElephantRule { threshold_bytes: self.threshold_bytes, window_us: self.window_us }
    }

    /// Returns the memory per thread for packed rows (five eighths).
    pub(super) fn packed_bytes(&self) -> usize {
        (self.memory_bytes / self.threads as u64 / 8 * 5) as usize
    }

    /// Returns the memory per thread for the partition being assembled (one eighth).
    pub(super) fn working_bytes(&self) -> usize {
        (self.memory_bytes / self.threads as u64 / 8) as usize
    }
}
