//! Counters of a collector that outlive its restarts.
//!
//! A failure replaces the source of a collector, a reload its flow table or its thread. Metrics must not fall then: the counters
//! of replaced parts are added to these totals. They are kept as long as a collector of the name exists.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thalweg_measure::collector::Counters;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_wire::{BitRate, SourceCounters};

use super::latency::LatencyHistogram;

/// The counters of all collectors of one name.
#[derive(Debug, Default)]
pub struct CollectorStats {
    /// Rises several times per second while the collector's thread is healthy.
    heartbeat: AtomicU64,
    pub(super) decision: LatencyHistogram,
    pub(super) arrival: LatencyHistogram,
    /// The rate threshold of cheetah flows in bit/s; 0 for none.
    rate_threshold: AtomicU64,
    /// Restarts after a failure.
    pub(super) restarts: AtomicU64,
    /// Requests that found the mailbox full.
    pub(super) requests_refused: AtomicU64,
    /// Requests that timed out.
    pub(super) requests_timed_out: AtomicU64,
    /// Completed windows of tasks.
    pub(super) windows: AtomicU64,
    /// Windows that found the evaluation queue full.
    pub(super) windows_lost: AtomicU64,
    /// Samples written to rings that no longer exist.
    pub(super) samples_kept: AtomicU64,
    /// Records that found the writer's queue full.
    records_queue_full: AtomicU64,
    /// Records that could not be written.
    records_write_failed: AtomicU64,
    /// Records that wait to be written.
    records_waiting: AtomicU64,
    /// Totals of sources, intakes and flow tables that no longer exist.
    ended: Mutex<Totals>,
}

/// Counters of source, intake and flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) source: SourceCounters,
    pub(super) intake: IntakeCounters,
    pub(super) collector: Counters,
}

/// Records that were not written, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsLost {
    /// The writer's queue was full.
    pub queue_full: u64,
    /// The file could not be written.
    pub write_failed: u64,
}

impl CollectorStats {
    /// Advances the heartbeat.
    #[inline]
    pub(super) fn beat(&self) {
        self.heartbeat.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the heartbeat.
    pub(super) fn heartbeat(&self) -> u64 {
        self.heartbeat.load(Ordering::Relaxed)
    }

    /// Notes the threshold that applies.
    pub(super) fn set_threshold(&self, threshold: Option<CheetahThreshold>) {
        self.rate_threshold.store(threshold.map_or(0, |it| it.rate_threshold.0), Ordering::Relaxed);
    }

    /// Returns the rate threshold that applies, if any.
    pub(super) fn rate_threshold(&self) -> Option<BitRate> {
        Some(BitRate(self.rate_threshold.load(Ordering::Relaxed))).filter(|rate| rate.0 > 0)
    }

    /// Adds the counters of a part that ends.
    pub(super) fn end(&self, totals: Totals) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += totals;
    }

    /// Returns the counters of all parts that have ended.
    pub(super) fn ended(&self) -> Totals {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts records that were queued for writing.
    pub(crate) fn note_queued(&self, records: u64) {
        self.records_waiting.fetch_add(records, Ordering::Relaxed);
    }

    /// Counts queued records that found the queue full.
    pub(super) fn note_queue_full(&self, records: u64) {
        self.records_queue_full.fetch_add(records, Ordering::Relaxed);
        self.records_waiting.fetch_sub(records, Ordering::Relaxed);
    }

    /// Counts a queued record that was written, or could not be.
    pub(crate) fn note_record(&self, is_written: bool) {
        self.records_write_failed.fetch_add(u64::from(!is_written), Ordering::Relaxed);
        self.records_waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of records that wait to be written.
    pub fn records_waiting(&self) -> u64 {
        self.records_waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of records that were not written.
    pub fn records_lost(&self) -> RecordsLost {
        RecordsLost {
            queue_full: self.records_queue_full.load(Ordering::Relaxed),
            write_failed: self.records_write_failed.load(Ordering::Relaxed),
        }
    }
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.source += other.source;
        self.intake += other.intake;
        self.collector += other.collector;
    }
}
