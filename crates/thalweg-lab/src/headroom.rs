//! The machine's headroom during a measurement: idle CPU time, stolen CPU time, dropped frames.
//!
//! Hosts, switches and collectors of a lab share the processors. On a busy machine a measurement shows how they wait
//! for each other, not the network. It is therefore inconclusive if less than 30 % of the CPU time was idle, or if one
//! processor was never idle. The same holds if a hypervisor took more than 2 % of a processor: it takes tens of
//! milliseconds at a time, while everything but the clock stands still.

use std::fs;
use std::io;

use crate::error::LabError;

/// Minimum idle share of the CPU time.
pub const MIN_IDLE: f64 = 0.30;

/// Maximum share of a processor's time that a hypervisor may take.
pub const MAX_STOLEN: f64 = 0.02;

const STAT: &str = "/proc/stat";
const SOFTNET: &str = "/proc/net/softnet_stat";

/// The headroom during a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// Idle share of the time of all processors, 0 to 1. Waiting for a disk counts as idle, stolen time does not. 1 if
    /// the measurement was shorter than a clock tick (10 ms).
    pub idle: f64,
    /// Idle share of the busiest processor.
    pub min_idle: f64,
    /// Share of time taken by the hypervisor, of the processor most affected.
    pub stolen: f64,
    /// Frames that the kernel dropped between two interfaces because a processor's backlog was full
    /// (`net.core.netdev_max_backlog`). No counter of a switch or queue includes them. Counted for the whole machine.
    pub backlog_drops: u64,
}

/// Whether a measurement is conclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Enough idle time, little stolen time and no dropped frames.
    Conclusive,
    /// The headroom was insufficient.
    Inconclusive,
}

impl Headroom {
    /// Runs `work` and returns its result with the headroom.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn measure<T>(work: impl FnOnce() -> T) -> Result<(T, Headroom), LabError> {
        let probe = HeadroomProbe::start()?;
        let result = work();
        Ok((result, probe.finish()?))
    }

    /// Returns whether the measurement is conclusive.
    pub fn verdict(&self) -> Verdict {
        let had_time = self.idle >= MIN_IDLE && !self.has_saturated_processor();
        match had_time && self.stolen <= MAX_STOLEN && self.backlog_drops == 0 {
            true => Verdict::Conclusive,
            false => Verdict::Inconclusive,
        }
    }

    /// Whether one processor was never idle: work waited for it, even if others were idle.
    pub fn has_saturated_processor(&self) -> bool {
        self.min_idle <= 0.0
    }
}

/// A headroom measurement in progress.
#[derive(Clone, Debug)]
pub struct HeadroomProbe {
    processors: Vec<Time>,
    backlog_drops: u64,
}

/// CPU time of a processor since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Time {
    idle: u64,
    stolen: u64,
    all: u64,
}

impl HeadroomProbe {
    /// Starts a measurement.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn start() -> Result<HeadroomProbe, LabError> {
        let processors = read(STAT, parse_stat)?;
        // Some kernels lack these statistics.
        let backlog_drops =
            if fs::exists(SOFTNET).unwrap_or(false) { read(SOFTNET, parse_softnet)? } else { 0 };
        Ok(HeadroomProbe { processors, backlog_drops })
    }

    /// Returns the headroom since the start.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn finish(&self) -> Result<Headroom, LabError> {
        Ok(between(self, &HeadroomProbe::start()?))
    }
}

fn between(start: &HeadroomProbe, end: &HeadroomProbe) -> Headroom {
    let spent = |(before, after): (&Time, &Time)| Time {
        idle: after.idle.saturating_sub(before.idle),
        stolen: after.stolen.saturating_sub(before.stolen),
        all: after.all.saturating_sub(before.all),
    };
    let processors: Vec<Time> = start.processors.iter().zip(&end.processors).map(spent).collect();
    let idle = |time: &Time| if time.all == 0 { 1.0 } else { time.idle as f64 / time.all as f64 };
    let stolen = |time: &Time| time.stolen as f64 / time.all.max(1) as f64;
    let sum =
        |a: Time, b: &Time| Time { idle: a.idle + b.idle, stolen: a.stolen + b.stolen, all: a.all + b.all };
    Headroom {
        idle: idle(&processors.iter().fold(Time::default(), sum)),
        min_idle: processors.iter().map(idle).fold(1.0, f64::min),
        stolen: processors.iter().map(stolen).fold(0.0, f64::max),
        backlog_drops: end.backlog_drops.saturating_sub(start.backlog_drops),
    }
}

fn read<T>(path: &'static str, parse: fn(&str) -> Option<T>) -> Result<T, LabError> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "unexpected format, see proc(5)");
    let read = || parse(&fs::read_to_string(path)?).ok_or_else(wrong);
    read().map_err(|source| LabError::Headroom { path, source })
}

/// Parses the processors' times in /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
/// User includes guest time.
fn parse_stat(text: &str) -> Option<Vec<Time>> {
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let time = |line: &str| {
        let fields = line.split_whitespace().skip(1).take(8).map(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect::<Option<_>>()?;
        // Old kernels do not report stolen time.
        let stolen = fields.get(7).copied().unwrap_or_default();
        Some(Time { idle: fields.get(3)? + fields.get(4)?, stolen, all: fields.iter().sum() })
    };
    let processors: Vec<Time> = text.lines().filter(is_processor).map(time).collect::<Option<_>>()?;
    (!processors.is_empty()).then_some(processors)
}

/// Parses the frames dropped by all processors' backlogs in /proc/net/softnet_stat: the second column, in hexadecimal.
fn parse_softnet(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0 0 0\nintr 7\n";
    const AFTER: &str = "cpu  180 0 160 850 10 0 0 0 0 0\ncpu0 130 0 60 405 5 0 0 0 0 0\ncpu1 50 0 100 445 5 0 0 0 0 0\nintr 9\n";

    fn probe(stat: &str, softnet: &str) -> HeadroomProbe {
        HeadroomProbe {
            processors: parse_stat(stat).unwrap(),
            backlog_drops: parse_softnet(softnet).unwrap(),
        }
    }

    #[test]
    fn idle_share_includes_io_wait() {
        let headroom = between(&probe(BEFORE, "0a 00 00\n"), &probe(AFTER, "0b 00 00\n"));
        assert_eq!(headroom, Headroom { idle: 0.3, min_idle: 0.1, stolen: 0.0, backlog_drops: 0 });
        assert_eq!(headroom.verdict(), Verdict::Conclusive);
    }

    #[test]
    fn too_little_idle_time_is_inconclusive() {
        let busy = AFTER.replace("445", "444");
        let headroom = between(&probe(BEFORE, ""), &probe(&busy, ""));
        assert!(headroom.idle < MIN_IDLE);
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn processor_that_is_never_idle_is_inconclusive() {
        let saturated = AFTER.replace("130 0 60 405 5", "150 0 50 400 0").replace("100 445 5", "50 500 0");
        let headroom = between(&probe(BEFORE, ""), &probe(&saturated, ""));
        assert_eq!(headroom, Headroom { idle: 0.5, min_idle: 0.0, stolen: 0.0, backlog_drops: 0 });
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn more_than_two_percent_stolen_is_inconclusive() {
        for (taken, verdict) in [(2, Verdict::Conclusive), (3, Verdict::Inconclusive)] {
            let after =
                format!("cpu0 130 0 60 405 5 0 0 {taken} 0 0\ncpu1 50 0 100 {} 5 0 0 0 0 0\n", 450 + taken);
            let headroom = between(&probe(BEFORE, ""), &probe(&after, ""));
            assert_eq!(headroom.stolen, f64::from(taken) / f64::from(100 + taken));
            assert_eq!(headroom.verdict(), verdict, "{headroom:?}");
        }
    }

    #[test]
    fn backlog_drops_are_inconclusive() {
        let headroom = between(&probe(BEFORE, "00 0f\n00 01\n"), &probe(AFTER, "00 0f\n00 11\n"));
        assert_eq!(headroom.backlog_drops, 16);
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn malformed_statistics_are_rejected() {
        for text in ["", "cpu 1 2 3 4 5\n", "cpu0 1 2\n", "cpu0 a b c d e f g h\n"] {
            assert_eq!(parse_stat(text), None, "{text:?}");
        }
        assert_eq!(parse_softnet("00\n"), None);
    }

    #[test]
    fn measured_headroom_is_within_bounds() {
        let (seven, headroom) = Headroom::measure(|| 7).unwrap();
        assert_eq!(seven, 7);
        assert!((0.0..=1.0).contains(&headroom.idle) && headroom.min_idle <= headroom.idle);
    }
}
