//! The clock of reports. Isolation decides by the monotonic clock, and users see the wall clock, or emulated time.
//!
//! The same moment always reads the same. Both clocks cannot be read at once, so a conversion by the present difference would change by
//! microseconds from one report to the next. So one difference holds until the clock really steps, and times before a step keep the one of
//! their time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use thalweg_control::isolate::RedirectionReport;
use thalweg_control::isolate::message::FlowCounters;
use thalweg_linux::clock::{monotonic, realtime};
use thalweg_wire::{Nanos, Timestamp};

use crate::emulation::Emulation;

/// The smallest change of the difference that is a step of the clock, not an inaccuracy.
const STEP: Nanos = Nanos::from_millis(10);

/// Steps that are remembered. Times before them are converted as if the oldest had not happened.
const STEPS: usize = 256;

/// Readings of both clocks: at most so many, until one is as accurate as [`ACCURATE`].
const ATTEMPTS: u32 = 20;
const ACCURATE: Nanos = Nanos(2_000);

/// Converts times of the monotonic clock.
#[derive(Debug)]
pub(super) struct ReportClock {
    /// Its clock is shown instead of the wall clock.
    emulation: Option<Emulation>,
    timeline: Mutex<Timeline>,
}

/// The shown clock as a function of the monotonic one: a line from one step to the next.
#[derive(Debug)]
struct Timeline {
    /// Seconds of the shown clock per second.
    pace: f64,
    /// The starts of the lines, the oldest first.
    starts: VecDeque<Reading>,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    monotonic: Timestamp,
    shown: Timestamp,
    /// Time between the readings of both.
    gap: Nanos,
}

impl ReportClock {
    /// Creates the clock of a daemon, whose `emulation` may be `None`.
    pub(super) fn new(emulation: Option<Emulation>) -> ReportClock {
        let pace = emulation.as_ref().map_or(1.0, Emulation::pace);
        let clock = ReportClock {
            emulation,
            timeline: Mutex::new(Timeline { pace, starts: VecDeque::with_capacity(STEPS) }),
        };
        clock.observe();
        clock
    }

    /// Notes a step of the clock, if there was one. Times after the last call are converted as if there was none.
    pub(super) fn observe(&self) {
        let reading = self.read();
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner).observe(reading);
    }

    /// Returns the shown time.
    pub(super) fn now(&self) -> Timestamp {
        self.observe();
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner).convert(monotonic())
    }

    /// Returns a report with the times that are shown.
    pub(super) fn convert(&self, report: RedirectionReport) -> RedirectionReport {
        let timeline = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let time = |time: Timestamp| timeline.convert(time);
        RedirectionReport {
            requested: time(report.requested),
            redirected: report.redirected.map(time),
            confirmed: report.confirmed.map(time),
            ended: report.ended.map(time),
            retry_at: report.retry_at.map(time),
            counters: report
                .counters
                .map(|counters| FlowCounters { first: counters.first.map(time), ..counters }),
            ..report
        }
    }

    fn read(&self) -> Reading {
        if let Some(emulation) = &self.emulation {
            let monotonic = monotonic();
            return Reading { monotonic, shown: emulation.time_at(monotonic), gap: Nanos::ZERO };
        }
        let attempt = || {
            let (before, shown, after) = (monotonic(), realtime(), monotonic());
            let gap = after.since(before);
            Reading { monotonic: before + Nanos(gap.0 / 2), shown, gap }
        };
        // This thread may be stopped in between.
        let mut best = attempt();
        for _ in 1..ATTEMPTS {
            if best.gap <= ACCURATE {
                break;
            }
            best = [best, attempt()].into_iter().min_by_key(|reading| reading.gap).unwrap_or(best);
        }
        best
    }
}

impl Timeline {
    fn observe(&mut self, reading: Reading) {
        let expected = self.convert(reading.monotonic);
        let difference = expected.0.abs_diff(reading.shown.0);
        if !self.starts.is_empty() && difference < STEP.0 + reading.gap.0 {
            return;
        }
        if self.starts.len() >= STEPS {
            self.starts.pop_front();
        }
        self.starts.push_back(reading);
    }

    /// Converts a time of the monotonic clock.
    fn convert(&self, time: Timestamp) -> Timestamp {
        let is_before = |start: &&Reading| start.monotonic <= time;
        let Some(start) = self.starts.iter().rev().find(is_before).or(self.starts.front()) else {
            return time;
        };
        let scaled = |span: Nanos| match self.pace {
            1.0 => span,
            pace => Nanos((span.0 as f64 * pace) as u64),
        };
        match time >= start.monotonic {
            true => start.shown + scaled(time.since(start.monotonic)),
            false => start.shown.saturating_sub(scaled(start.monotonic.since(time))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(monotonic: u64, shown: u64) -> Reading {
        Reading { monotonic: Timestamp(monotonic), shown: Timestamp(shown), gap: Nanos(100) }
    }

    fn timeline(pace: f64) -> Timeline {
        Timeline { pace, starts: VecDeque::new() }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn inaccurate_readings_do_not_move_a_time_and_steps_only_later_ones() {
        let mut it = timeline(1.0);
        it.observe(reading(10 * SECOND, 1_000 * SECOND));
        let (early, late) = (Timestamp(9 * SECOND), Timestamp(15 * SECOND));
        let (shown_early, shown_late) = (it.convert(early), it.convert(late));
        assert_eq!((shown_early.0, shown_late.0), (999 * SECOND, 1_005 * SECOND));
        for (monotonic, error) in [(11, 7_000), (12, 9_000_000), (20, 123)] {
            it.observe(reading(monotonic * SECOND, (990 + monotonic) * SECOND + error));
            assert_eq!((it.convert(early), it.convert(late)), (shown_early, shown_late));
        }
        // The clock is set back by an hour.
        let mut it = timeline(1.0);
        it.observe(reading(10 * SECOND, 5_000 * SECOND));
        it.observe(reading(20 * SECOND, 1_410 * SECOND));
        assert_eq!(it.convert(late).0, 5_005 * SECOND, "it was recorded before");
        assert_eq!(it.convert(Timestamp(21 * SECOND)).0, 1_411 * SECOND);
    }

    #[test]
    fn emulated_time_has_its_pace_and_steps_are_bounded() {
        let mut it = timeline(0.5);
        it.observe(reading(10 * SECOND, 0));
        it.observe(reading(14 * SECOND, 2 * SECOND));
        assert_eq!(it.starts.len(), 1);
        assert_eq!(it.convert(Timestamp(12 * SECOND)).0, SECOND);
        assert_eq!(it.convert(Timestamp(9 * SECOND)).0, 0, "before the start");
        for step in 1..2_000 {
            it.observe(reading((14 + step) * SECOND, 2 * SECOND));
        }
        assert_eq!(it.starts.len(), STEPS);
    }

    #[test]
    fn the_wall_clock_is_shown_without_an_emulation() {
        let clock = ReportClock::new(None);
        let (before, shown, after) = (realtime(), clock.now(), realtime());
        // Unless the clock steps just now.
        assert!(shown + STEP >= before && shown <= after + STEP, "{before} {shown} {after}");
    }
}
