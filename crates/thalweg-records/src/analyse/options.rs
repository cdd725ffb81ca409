//! Parameters of an analysis.

use super::AnalyseError;
use super::cheetah::CheetahRule;
use super::flowset::Rule;

/// Parameters of an analysis; the defaults are the dissertation's where it has one.
#[derive(Clone, Debug)]
pub struct Options {
    /// Records of a key are one flow while each begins at most so long after the latest end before, microseconds.
    /// 60 s: the active timeout that routers have as a rule.
    pub gap_us: i64,
    /// A flow is a cheetah if more octets than this lie within one window. 1 GB (section 2.2).
    pub threshold_bytes: i64,
    /// The window, microseconds. A minute (section 2.2).
    pub window_us: i64,
    /// Flows of a flowset start within this of each other, microseconds. 10 s (section 2.3).
    pub tau_us: i64,
    /// What becomes of chains of flows that span more than `tau_us`.
    pub rule: Rule,
    /// Whether only cheetahs go into flowsets, as in the dissertation, or all flows.
    pub cheetahs_only: bool,
    /// Memory to stay within, bytes, at least 64 KiB. Up to 64 MiB a thread come on top for buffers of reading and
    /// writing.
    pub memory_bytes: u64,
    /// Threads that work, 1 to 256.
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
            cheetahs_only: true,
            memory_bytes: 4 << 30,
            threads: 1,
        }
    }
}

/// Parameters that are lengths of time lie in this range, so that times plus them cannot overflow.
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

    pub(super) fn cheetah_rule(&self) -> CheetahRule {
        CheetahRule { threshold_bytes: self.threshold_bytes, window_us: self.window_us }
    }

    /// Of the memory of one thread, the bytes for rows that wait in memory (five eighths).
    pub(super) fn waiting_bytes(&self) -> usize {
        (self.memory_bytes / self.threads as u64 / 8 * 5) as usize
    }

    /// Of the memory of one thread, the bytes for what is worked on at once (an eighth).
    pub(super) fn working_bytes(&self) -> usize {
        (self.memory_bytes / self.threads as u64 / 8) as usize
    }
}
