//! What a poll knows: the latest counters, the latest interval, the average, and counts.

use std::collections::{BTreeMap, VecDeque};

use thalweg_control::threshold::regulator::Measurement;
use thalweg_poll::{Differences, InterfaceReading, Interval, Loss, LossWindow, ReadError, Unusable};
use thalweg_wire::Timestamp;

/// Measurements to keep for a reader that is late.
const RECENT: usize = 64;

/// What a poll knows.
#[derive(Debug)]
pub struct PollState {
    differences: Differences,
    window: LossWindow,
    report: PollReport,
    /// Of the latest polls, the latest last.
    recent: VecDeque<Measurement>,
}

/// A poll at one moment.
#[derive(Clone, Debug, Default)]
pub struct PollReport {
    /// Number of polls so far, failed ones included.
    pub number: u64,
    /// Time of the latest poll by the wall clock.
    pub time: Option<Timestamp>,
    /// The latest counters.
    pub reading: Option<InterfaceReading>,
    /// The latest interval between counters.
    pub interval: Option<Interval>,
    /// Why the latest poll failed; `None` if it did not.
    pub error: Option<String>,
    /// The short name of that error.
    pub error_kind: Option<&'static str>,
    /// The sum of the latest usable intervals of the primary queue; `None` if there is none.
    pub average: Option<Loss>,
    /// The number of intervals in `average`.
    pub averaged: usize,
    /// Counters since the start.
    pub counts: PollCounts,
}

/// Counters of a poll since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollCounts {
    /// Polls that read counters.
    pub succeeded: u64,
    /// Failed polls by [`ReadError::kind`].
    pub failed: BTreeMap<&'static str, u64>,
    /// Intervals without a loss of the primary queue, by [`Unusable::name`]. The first is not counted.
    pub unusable: BTreeMap<&'static str, u64>,
    /// Packets that arrived at the primary queue in usable intervals, and its drops.
    pub primary: (u64, u64),
    /// The same of the scavenger queue, if it is read.
    pub scavenger: Option<(u64, u64)>,
    /// Rows of counters that found no room on the way to the store.
    pub rows_lost: u64,
}

impl PollState {
    /// Creates the state of a poll that averages over `average` intervals.
    pub(super) fn new(average: usize) -> PollState {
        PollState {
            differences: Differences::default(),
            window: LossWindow::new(average),
            report: PollReport::default(),
            recent: VecDeque::new(),
        }
    }

    /// Adds counters, at `now` by the wall clock. Returns the reason if the interval is unusable.
    pub(super) fn add(&mut self, reading: InterfaceReading, now: Timestamp) -> Option<Unusable> {
        let interval = self.differences.next(reading.clone());
        let counts = &mut self.report.counts;
        counts.succeeded += 1;
        let unusable = match interval.loss {
            Ok(loss) => {
                self.window.add(loss);
                counts.primary = (counts.primary.0 + loss.packets, counts.primary.1 + loss.drops);
                None
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = unusable.filter(|reason| *reason != Unusable::First) {
            *counts.unusable.entry(reason.name()).or_default() += 1;
        }
        if let Some(loss) = interval.scavenger {
            let (packets, drops) = counts.scavenger.unwrap_or_default();
            counts.scavenger = Some((packets + loss.packets, drops + loss.drops));
        }
        self.report = PollReport {
            number: self.report.number + 1,
            time: Some(now),
            reading: Some(reading),
            interval: Some(interval),
            error: None,
            error_kind: None,
            average: self.window.sum(),
            averaged: self.window.len(),
            counts: std::mem::take(counts),
        };
        self.remember();
        unusable
    }

    /// Notes a failed poll.
    pub(super) fn fail(&mut self, error: &ReadError, now: Timestamp) {
        let report = &mut self.report;
        report.number += 1;
        report.time = Some(now);
        report.error = Some(error.to_string());
        report.error_kind = Some(error.kind());
        *report.counts.failed.entry(error.kind()).or_default() += 1;
        self.remember();
    }

    fn remember(&mut self) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.extend(self.report.measurement());
    }

    /// Returns what the polls after this number say about the primary queue, the latest last, and the number of the latest.
    /// At most 64 are kept.
    pub(super) fn after(&self, number: u64) -> (u64, Vec<Measurement>) {
        let missed = self.report.number.saturating_sub(number);
        let old = self.recent.len().saturating_sub(usize::try_from(missed).unwrap_or(usize::MAX));
        (self.report.number, self.recent.range(old..).cloned().collect())
    }

    pub(super) fn note_lost_row(&mut self) {
        self.report.counts.rows_lost += 1;
    }

    /// Returns everything.
    pub fn report(&self) -> PollReport {
        self.report.clone()
    }
}

impl PollReport {
    /// Returns what the latest poll says about the primary queue, for the regulator of R; `None` before the first.
    fn measurement(&self) -> Option<Measurement> {
        if let Some(kind) = self.error_kind {
            return Some(Measurement::Unusable(format!("the poll failed ({kind})")));
        }
        Some(match self.interval.as_ref()?.loss {
            Ok(loss) => Measurement::Loss { packets: loss.packets, drops: loss.drops },
            Err(Unusable::SumOfQueues) => Measurement::SumOfQueues,
            Err(reason) => Measurement::Unusable(reason.name().to_owned()),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use thalweg_poll::{Counter, PortCounters, Scope};
    use thalweg_wire::Nanos;

    use super::*;

    /// Returns a reading of a port whose input and output are alike.
    pub(in crate::polls) fn reading(
        seconds: u64,
        packets: u64,
        drops: u32,
        scope: Scope,
    ) -> InterfaceReading {
        let port = PortCounters {
            packets: Counter::bits64(packets),
            bytes: Counter::bits64(packets * 1_000),
            errors: Some(Counter::bits32(0)),
            discards: Some(Counter::bits32(drops)),
        };
        InterfaceReading {
            time: Timestamp(1) + Nanos::from_secs(seconds),
            agent: None,
            time_error: Nanos::ZERO,
            name: "wan0".to_owned(),
            description: None,
            is_up: true,
            index: 3,
            speed: None,
            uptime_ticks: None,
            discontinuity_ticks: None,
            input: port,
            output: port,
            primary: None,
            scavenger: None,
            scope,
        }
    }

    #[test]
    fn each_poll_is_one_measurement() {
        let now = Timestamp(7);
        let mut state = PollState::new(2);
        assert_eq!(state.report().measurement(), None);
        assert_eq!(state.add(reading(0, 0, 0, Scope::OneQueue), now), Some(Unusable::First));
        assert_eq!(state.report().measurement(), Some(Measurement::Unusable("first".to_owned())));
        assert_eq!(state.add(reading(10, 1_000, 2, Scope::OneQueue), now), None);
        assert_eq!(state.report().measurement(), Some(Measurement::Loss { packets: 1_000, drops: 2 }));
        let error = ReadError::Timeout { target: "r1:161".to_owned(), message: "2 s".to_owned() };
        state.fail(&error, now);
        let report = state.report();
        assert_eq!(
            (report.number, report.measurement()),
            (3, Some(Measurement::Unusable("the poll failed (timeout)".to_owned())))
        );
        assert_eq!(report.error.as_deref(), Some("no answer from r1:161: 2 s"));
        let loss = Measurement::Loss { packets: 1_000, drops: 2 };
        let failed = Measurement::Unusable("the poll failed (timeout)".to_owned());
        assert_eq!(state.after(1), (3, vec![loss, failed.clone()]), "a late reader misses none");
        assert_eq!((state.after(2), state.after(3)), ((3, vec![failed]), (3, vec![])));
        // The interval over the failed poll is longer, and loses nothing.
        state.add(reading(30, 4_000, 5, Scope::OneQueue), now);
        let report = state.report();
        assert_eq!((report.error, report.averaged), (None, 2));
        assert_eq!(report.average.map(|loss| (loss.packets, loss.drops)), Some((4_000, 5)));
        assert_eq!((report.counts.succeeded, report.counts.failed["timeout"]), (3, 1));
    }

    #[test]
    fn a_sum_of_queues_is_said() {
        let mut state = PollState::new(2);
        state.add(reading(0, 0, 0, Scope::AllQueues), Timestamp(1));
        state.add(reading(10, 1_000, 2, Scope::AllQueues), Timestamp(1));
        let report = state.report();
        assert_eq!((report.measurement(), report.average), (Some(Measurement::SumOfQueues), None));
        assert_eq!(report.counts.unusable["sum_of_queues"], 1);
    }
}
