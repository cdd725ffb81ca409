//! The whole of a run, put together from its workers: what reports are made of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_records::handoff::HandoffStatus;
use thalweg_wire::{Bytes, Nanos, SourceCounters, Timestamp};

use crate::ledger::CheetahLog;
use crate::message::Done;
use crate::meter::MeterCounters;
use crate::tasks::TaskLedger;

/// A run from its first packet to its last.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// What the frames were.
    pub intake: IntakeCounters,
    /// `None` without a flow table.
    pub meter: Option<MeterCounters>,
    /// `None` without tasks.
    pub tasks: Option<TaskLedger>,
    /// Of all inputs together.
    pub source: SourceCounters,
    /// What became of flows that were handed on; `None` if none were to be.
    pub handed_on: Option<Arc<HandoffStatus>>,
    /// Inputs that could not be read to their end, and why.
    pub cut_short: Vec<CutShort>,
    /// The cheetahs found last.
    pub cheetahs: CheetahLog,
    /// Largest flow records, the largest first.
    pub largest: Vec<FlowRecord>,
    /// Earliest and latest time stamp of all frames.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Time that the run took.
    pub elapsed: Duration,
    /// Threads that metered.
    pub workers: usize,
}

/// An input that could not be read to its end.
#[derive(Clone, Debug)]
pub struct CutShort {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Totals {
    /// Adds what one worker did; `top` is the length of the list of largest flows.
    pub(crate) fn add(&mut self, done: Done, top: usize) {
        if let Some(reading) = done.reading {
            self.intake += reading.intake;
            self.span = match (self.span, reading.span) {
                (Some((first, last)), Some((other_first, other_last))) => {
                    Some((first.min(other_first), last.max(other_last)))
                }
                (one, other) => one.or(other),
            };
            // Several rings of one interface fail together: once is enough to say so.
            let mut failed = BTreeMap::new();
            for input in reading.inputs {
                self.source += input.counters;
                if let Some(reason) = input.error {
                    failed.insert(input.name, reason);
                }
            }
            failed.retain(|name, _| self.cut_short.iter().all(|known| known.name != *name));
            self.cut_short.extend(failed.into_iter().map(|(name, reason)| CutShort { name, reason }));
        }
        if let Some(counters) = done.counters {
            *self.meter.get_or_insert_default() += counters;
        }
        self.workers += usize::from(done.has_metered);
        self.largest.extend(done.largest);
        self.largest.sort_by_key(|record| std::cmp::Reverse((record.bytes(), record.key, record.first)));
        self.largest.truncate(top);
    }

    /// Bound of the memory of tables, detectors and sketches.
    pub fn memory(&self) -> Bytes {
        let sketches = self.tasks.as_ref().map_or(Bytes(0), |tasks| tasks.plan.bytes());
        Bytes(self.meter.map_or(0, |meter| meter.memory.0) + sketches.0)
    }

    /// Packet time from first to last.
    pub fn duration(&self) -> Nanos {
        self.span.map_or(Nanos::ZERO, |(first, last)| last - first)
    }
}
