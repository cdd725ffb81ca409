//! Whether the machine had time to spare while something was measured.
//!
//! Hosts, switches and collectors share the processors here. When these are busy, what is measured is how they wait for
//! each other, and not the network. So a measurement comes with its [`Headroom`], and with less than 30 % of the
//! processors' time idle, or one processor never idle, it shows nothing. Nor does it where a hypervisor took more than 2 %, idle as they may be: it takes
//! tens of milliseconds at a time, in which everything stands still but the clock.

use std::fs;
use std::io;

use crate::error::LabError;

/// The smallest share of the processors' time that must be idle. Besides, no processor may be busy all the time.
pub const LEAST_IDLE: f64 = 0.30;

/// Most of a processor's time that a hypervisor may take.
pub const MAX_STOLEN: f64 = 0.02;

const STAT: &str = "/proc/stat";
const SOFTNET: &str = "/proc/net/softnet_stat";

/// What the machine had left over a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// Part of the time of all processors that was idle, 0 to 1. Waiting for a disk is idle; what a hypervisor took is
    /// not. 1 if no tick of the clock (10 ms) went by.
    pub idle: f64,
    /// Part of the time of the busiest processor that was idle.
    pub least_idle: f64,
    /// Part of the time that a hypervisor took, of the processor from which it took most.
    pub stolen: f64,
    /// Frames that the kernel dropped between two interfaces, for a processor had too many waiting (the
    /// backlog of `net.core.netdev_max_backlog`). They are in no counter of a switch or a queue. Whole machine.
    pub backlog_drops: u64,
}

/// Whether a measurement shows anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There was time to spare, a hypervisor took little, and the kernel dropped nothing on its own.
    Conclusive,
    /// There was not.
    Inconclusive,
}

impl Headroom {
    /// Runs `work`, and tells what the machine had left meanwhile.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn measure<T>(work: impl FnOnce() -> T) -> Result<(T, Headroom), LabError> {
        let begun = Begun::now()?;
        let result = work();
        Ok((result, begun.end()?))
    }

    /// What this says of the measurement.
    pub fn verdict(&self) -> Verdict {
        let had_time = self.idle >= LEAST_IDLE && !self.has_saturated_processor();
        match had_time && self.stolen <= MAX_STOLEN && self.backlog_drops == 0 {
            true => Verdict::Conclusive,
            false => Verdict::Inconclusive,
        }
    }

    /// Whether a processor was busy all the time: whatever ran there waited, however idle the others were.
    pub fn has_saturated_processor(&self) -> bool {
        self.least_idle <= 0.0
    }
}

/// A measurement under way.
#[derive(Clone, Debug)]
pub struct Begun {
    processors: Vec<Time>,
    backlog_drops: u64,
}

/// Time of a processor since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Time {
    idle: u64,
    stolen: u64,
    all: u64,
}

impl Begun {
    /// A measurement begins.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn now() -> Result<Begun, LabError> {
        let processors = read(STAT, parse_stat)?;
        // Some kernels keep no such statistics; then it stays at none.
        let backlog_drops =
            if fs::exists(SOFTNET).unwrap_or(false) { read(SOFTNET, parse_softnet)? } else { 0 };
        Ok(Begun { processors, backlog_drops })
    }

    /// What the machine had left since.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub fn end(&self) -> Result<Headroom, LabError> {
        Ok(between(self, &Begun::now()?))
    }
}

fn between(begun: &Begun, ended: &Begun) -> Headroom {
    let spent = |(before, after): (&Time, &Time)| Time {
        idle: after.idle.saturating_sub(before.idle),
        stolen: after.stolen.saturating_sub(before.stolen),
        all: after.all.saturating_sub(before.all),
    };
    let processors: Vec<Time> = begun.processors.iter().zip(&ended.processors).map(spent).collect();
    let idle = |time: &Time| if time.all == 0 { 1.0 } else { time.idle as f64 / time.all as f64 };
    let stolen = |time: &Time| time.stolen as f64 / time.all.max(1) as f64;
    let sum =
        |a: Time, b: &Time| Time { idle: a.idle + b.idle, stolen: a.stolen + b.stolen, all: a.all + b.all };
    Headroom {
        idle: idle(&processors.iter().fold(Time::default(), sum)),
        least_idle: processors.iter().map(idle).fold(1.0, f64::min),
        stolen: processors.iter().map(stolen).fold(0.0, f64::max),
        backlog_drops: ended.backlog_drops.saturating_sub(begun.backlog_drops),
    }
}

fn read<T>(path: &'static str, parse: fn(&str) -> Option<T>) -> Result<T, LabError> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not what proc(5) says");
    let read = || parse(&fs::read_to_string(path)?).ok_or_else(wrong);
    read().map_err(|source| LabError::Headroom { path, source })
}

/// The processors' times from /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal. What
/// guests took is part of user.
fn parse_stat(text: &str) -> Option<Vec<Time>> {
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let time = |line: &str| {
        let fields = line.split_whitespace().skip(1).take(8).map(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect::<Option<_>>()?;
        // Old kernels do not tell what was stolen.
        let stolen = fields.get(7).copied().unwrap_or_default();
        Some(Time { idle: fields.get(3)? + fields.get(4)?, stolen, all: fields.iter().sum() })
    };
    let processors: Vec<Time> = text.lines().filter(is_processor).map(time).collect::<Option<_>>()?;
    (!processors.is_empty()).then_some(processors)
}

/// The frames dropped on all processors' backlogs, from /proc/net/softnet_stat: the second column, in hexadecimal.
fn parse_softnet(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0 0 0\nintr 7\n";
    const AFTER: &str = "cpu  180 0 160 850 10 0 0 0 0 0\ncpu0 130 0 60 405 5 0 0 0 0 0\ncpu1 50 0 100 445 5 0 0 0 0 0\nintr 9\n";

    fn begun(stat: &str, softnet: &str) -> Begun {
        Begun { processors: parse_stat(stat).unwrap(), backlog_drops: parse_softnet(softnet).unwrap() }
    }

    #[test]
    fn idle_is_the_part_of_all_time_that_was_idle_or_waiting() {
        let headroom = between(&begun(BEFORE, "0a 00 00\n"), &begun(AFTER, "0b 00 00\n"));
        assert_eq!(headroom, Headroom { idle: 0.3, least_idle: 0.1, stolen: 0.0, backlog_drops: 0 });
        assert_eq!(headroom.verdict(), Verdict::Conclusive);
    }

    #[test]
    fn without_time_to_spare_a_measurement_shows_nothing() {
        let busy = AFTER.replace("445", "444");
        let headroom = between(&begun(BEFORE, ""), &begun(&busy, ""));
        assert!(headroom.idle < LEAST_IDLE);
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn measurement_with_a_saturated_processor_is_inconclusive() {
        let saturated = AFTER.replace("130 0 60 405 5", "150 0 50 400 0").replace("100 445 5", "50 500 0");
        let headroom = between(&begun(BEFORE, ""), &begun(&saturated, ""));
        assert_eq!(headroom, Headroom { idle: 0.5, least_idle: 0.0, stolen: 0.0, backlog_drops: 0 });
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn nor_does_one_while_which_a_hypervisor_took_time() {
        for (taken, verdict) in [(2, Verdict::Conclusive), (3, Verdict::Inconclusive)] {
            let after =
                format!("cpu0 130 0 60 405 5 0 0 {taken} 0 0\ncpu1 50 0 100 {} 5 0 0 0 0 0\n", 450 + taken);
            let headroom = between(&begun(BEFORE, ""), &begun(&after, ""));
            assert_eq!(headroom.stolen, f64::from(taken) / f64::from(100 + taken));
            assert_eq!(headroom.verdict(), verdict, "{headroom:?}");
        }
    }

    #[test]
    fn nor_does_one_with_frames_lost_on_the_way() {
        let headroom = between(&begun(BEFORE, "00 0f\n00 01\n"), &begun(AFTER, "00 0f\n00 11\n"));
        assert_eq!(headroom.backlog_drops, 16);
        assert_eq!(headroom.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn what_the_kernel_would_not_write_is_refused() {
        for text in ["", "cpu 1 2 3 4 5\n", "cpu0 1 2\n", "cpu0 a b c d e f g h\n"] {
            assert_eq!(parse_stat(text), None, "{text:?}");
        }
        assert_eq!(parse_softnet("00\n"), None);
    }

    #[test]
    fn a_measurement_of_nothing_leaves_the_machine_idle_or_not_but_within_bounds() {
        let (seven, headroom) = Headroom::measure(|| 7).unwrap();
        assert_eq!(seven, 7);
        assert!((0.0..=1.0).contains(&headroom.idle) && headroom.least_idle <= headroom.idle);
    }
}
