//! The totals of a run, summed over its workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_records::handoff::HandoffStatus;
use thalweg_wire::{Bytes, Nanos, SourceCounters, Timestamp};

use crate::groups::GroupTotals;
use crate::in_kernel::InKernelTotals;
use crate::inputs::Incomplete;
use crate::ledger::CheetahLog;
use crate::message::Done;
use crate::meter::MeterCounters;
use crate::survey::{LinkMtu, Survey};
use crate::tasks::TaskLedger;

/// Frames of an input that were merged from several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFrames {
    /// Number of frames.
    pub frames: u64,
    /// MTU of the input, which they exceed.
    pub mtu: LinkMtu,
}

/// The totals of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Counters of frames by kind.
    pub intake: IntakeCounters,
    /// `None` without a flow table.
    pub meter: Option<MeterCounters>,
    /// `None` without tasks.
    pub tasks: Option<TaskLedger>,
    /// Counters of all sources.
    pub source: SourceCounters,
    /// Merged frames by input, of those that have any.
    pub merged: BTreeMap<String, MergedFrames>,
    /// Counters of flow export; `None` without export.
    pub exported: Option<Arc<HandoffStatus>>,
    /// Inputs that were not read to their end.
    pub incomplete: Vec<Incomplete>,
    /// The latest cheetah flows.
    pub cheetahs: CheetahLog,
    /// The largest flow records, largest first.
    pub largest: Vec<FlowRecord>,
    /// Hosts or pairs, if requested.
    pub groups: Option<GroupTotals>,
    /// Earliest and latest timestamp of all frames.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Number of metering threads.
    pub workers: usize,
    /// `None` unless the sketches are in the kernel.
    pub in_kernel: Option<InKernelTotals>,
}

impl Totals {
    /// Adds the results of a worker. `top` is the length of the list of largest flows.
    pub(crate) fn add(&mut self, done: Done, top: usize) {
        if let Some(reading) = done.reading {
            self.intake += reading.intake;
            self.span = match (self.span, reading.span) {
                (Some((first, last)), Some((other_first, other_last))) => {
                    Some((first.min(other_first), last.max(other_last)))
                }
                (one, other) => one.or(other),
            };
            // All rings of an interface fail together: report it once.
            let mut failed = BTreeMap::new();
            for input in reading.inputs {
                self.source += input.counters;
                let Survey { merged: frames, mtu, .. } = input.survey;
                if frames > 0 {
                    let merged = MergedFrames { frames: 0, mtu };
                    self.merged.entry(input.name.clone()).or_insert(merged).frames += frames;
                }
                if let Some(reason) = input.error {
                    failed.insert(input.name, reason);
                }
            }
            failed.retain(|name, _| self.incomplete.iter().all(|known| known.name != *name));
            self.incomplete.extend(failed.into_iter().map(|(name, reason)| Incomplete {
                name,
                reason,
                is_skipped: false,
            }));
        }
        if let Some(counters) = done.counters {
            *self.meter.get_or_insert_default() += counters;
        }
        match (&mut self.groups, done.groups) {
            (Some(groups), Some(others)) => groups.merge(others),
            (groups @ None, others) => *groups = others,
            (Some(_), None) => {}
        }
        self.in_kernel = self.in_kernel.take().or(done.in_kernel);
        self.workers += usize::from(done.has_metered);
        self.largest.extend(done.largest);
        self.largest.sort_by_key(|record| std::cmp::Reverse((record.bytes(), record.key, record.first)));
        self.largest.truncate(top);
    }

    /// Returns the maximum memory of flow tables, detectors and sketches, also of those in the kernel.
    pub fn memory(&self) -> Bytes {
        let sketches = self.tasks.as_ref().map_or(Bytes(0), |tasks| tasks.plan.bytes());
        let in_kernel = self.in_kernel.as_ref().map_or(0, |in_kernel| in_kernel.memory.0);
        Bytes(self.meter.map_or(0, |meter| meter.memory.0) + sketches.0 + in_kernel)
    }

    /// Returns the number of frames that were merged from several.
    pub fn merged_frames(&self) -> u64 {
        self.merged.values().map(|merged| merged.frames).sum()
    }

    /// Returns the packet time from the first to the last packet.
    pub fn duration(&self) -> Nanos {
        self.span.map_or(Nanos::ZERO, |(first, last)| last - first)
    }
}
