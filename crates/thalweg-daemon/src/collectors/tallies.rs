//! What is counted of a collector for as long as the daemon has one of its name.
//!
//! A failure gives a collector another source, a reload another flow table or another thread. What scrapers read of it
//! goes on from where it was: counters never fall, though what they count begins anew.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thalweg_measure::collector::Counters;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_wire::SourceCounters;

use super::latency::LatencyHistogram;

/// What is counted of a collector for as long as the daemon has one of its name.
#[derive(Debug, Default)]
pub struct Tallies {
    /// Goes up several times a second while the collector's thread does its work.
    heartbeat: AtomicU64,
    pub(super) decision: LatencyHistogram,
    pub(super) arrival: LatencyHistogram,
    /// New beginnings after a failure.
    pub(super) restarts: AtomicU64,
    /// Questions that found the mailbox full.
    pub(super) refused: AtomicU64,
    /// Questions that were not answered in time.
    pub(super) late: AtomicU64,
    /// Windows of tasks that are over.
    pub(super) windows: AtomicU64,
    /// Windows that found no room where they are evaluated.
    pub(super) windows_lost: AtomicU64,
    /// Samples put into rings that are no more.
    pub(super) samples_kept: AtomicU64,
    /// Records that found no room where they are written.
    records_late: AtomicU64,
    /// Records that could not be written.
    records_failed: AtomicU64,
    /// Records that have been handed on and are not written yet.
    records_waiting: AtomicU64,
    /// Of sources, intakes and flow tables that are no more.
    ended: Mutex<Totals>,
}

/// What source, intake and flow table have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) source: SourceCounters,
    pub(super) intake: IntakeCounters,
    pub(super) collector: Counters,
}

/// Records that were not written, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsLost {
    /// Writing took so long that there was no room for them.
    pub late: u64,
    /// The file could not be written.
    pub failed: u64,
}

impl Tallies {
    /// Says that the collector's thread is at work.
    #[inline]
    pub(super) fn beat(&self) {
        self.heartbeat.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was said.
    pub(super) fn heartbeat(&self) -> u64 {
        self.heartbeat.load(Ordering::Relaxed)
    }

    /// Keeps what something has counted that is no more.
    pub(super) fn end(&self, totals: Totals) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += totals;
    }

    /// What all have counted that are no more.
    pub(super) fn ended(&self) -> Totals {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts records that are on their way to the file.
    pub(crate) fn note_handed_on(&self, records: u64) {
        self.records_waiting.fetch_add(records, Ordering::Relaxed);
    }

    /// Counts those of them that found no room.
    pub(super) fn note_late(&self, records: u64) {
        self.records_late.fetch_add(records, Ordering::Relaxed);
        self.records_waiting.fetch_sub(records, Ordering::Relaxed);
    }

    /// Counts one of them that has been written, or could not be.
    pub(crate) fn note_record(&self, is_written: bool) {
        self.records_failed.fetch_add(u64::from(!is_written), Ordering::Relaxed);
        self.records_waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that are on their way to the file.
    pub fn records_waiting(&self) -> u64 {
        self.records_waiting.load(Ordering::Relaxed)
    }

    /// Records that were not written.
    pub fn records_lost(&self) -> RecordsLost {
        RecordsLost {
            late: self.records_late.load(Ordering::Relaxed),
            failed: self.records_failed.load(Ordering::Relaxed),
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
