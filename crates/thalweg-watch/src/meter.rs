//! The metering half of a worker: packets are counted in flows and looked through for cheetahs.

use thalweg_measure::detect::cfinf::{Cfinf, CfinfCounters, CfinfParameters};
use thalweg_measure::detect::sliding_window::SlidingWindow;
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableCounters, Output};
use thalweg_wire::{Bytes, HashSeed, Packet, Timestamp};

use crate::error::WatchError;
use crate::options::{Detector, WatchOptions};

/// A flow table and the detector asked for.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) table: FlowTable,
    cfinf: Option<Cfinf>,
    /// What was handed on; the caller empties it.
    pub(crate) output: Output,
}

/// What a meter, or several together, have done.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeterCounters {
    /// What became of flows.
    pub table: FlowTableCounters,
    /// What the published detector counted, if it is the one asked for.
    pub cfinf: Option<CfinfCounters>,
    /// Cheetahs found.
    pub cheetahs: u64,
    /// Milestones that found no track: the detector's guarantee stands while this is zero.
    pub untracked: u64,
    /// Most memory of tables and detectors.
    pub memory: Bytes,
    /// Flows that fit in.
    pub capacity: u64,
    /// Flows in progress.
    pub live: u64,
}

impl Meter {
    /// One of `workers` meters that share the capacity asked for.
    pub(crate) fn new(options: &WatchOptions, workers: usize, seed: u64) -> Result<Meter, WatchError> {
        let mut flow_table = options.flow_table;
        flow_table.capacity = flow_table.capacity.div_ceil(workers as u32);
        let (sliding_window, cfinf) = match &options.detector {
            Detector::None => (None, None),
            Detector::SlidingWindow { tracks } => {
                (Some(SlidingWindow::new(options.threshold, tracks.div_ceil(workers))?), None)
            }
            Detector::Cfinf(parameters) => {
                let flow_cache_entries = parameters.flow_cache_entries.div_ceil(workers as u32);
                let threshold = options.threshold;
                let parameters = CfinfParameters { threshold, flow_cache_entries, ..parameters.clone() };
                (None, Some(Cfinf::new(parameters, seed)?))
            }
        };
        let table = FlowTable::new(flow_table, sliding_window, HashSeed::new(seed))?;
        Ok(Meter { table, cfinf, output: Output::default() })
    }

    pub(crate) fn packets(&mut self, packets: &[Packet]) {
        self.table.update(packets, &mut self.output);
        if let Some(cfinf) = &mut self.cfinf {
            for packet in packets {
                cfinf.handle(packet, &mut self.output.findings);
            }
        }
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.table.advance(now, &mut self.output);
    }

    /// Hands on everything that is left.
    pub(crate) fn finish(&mut self) {
        self.table.finish(&mut self.output);
        if let Some(cfinf) = &mut self.cfinf {
            cfinf.finish(&mut self.output.findings);
        }
    }

    pub(crate) fn counters(&self) -> MeterCounters {
        let cfinf = self.cfinf.as_ref();
        let table = self.table.counters();
        MeterCounters {
            table,
            cfinf: cfinf.map(Cfinf::counters),
            cheetahs: table.cheetahs + cfinf.map_or(0, |cfinf| cfinf.counters().cheetahs),
            untracked: self.table.detector().map_or(0, SlidingWindow::untracked),
            memory: self.table.bytes() + cfinf.map_or(Bytes(0), Cfinf::bytes),
            capacity: u64::from(self.table.options().capacity),
            live: u64::from(self.table.live()),
        }
    }
}

impl std::ops::AddAssign for MeterCounters {
    fn add_assign(&mut self, other: MeterCounters) {
        self.table += other.table;
        self.cfinf = match (self.cfinf, other.cfinf) {
            (Some(mut sum), Some(part)) => {
                sum += part;
                Some(sum)
            }
            (one, other) => one.or(other),
        };
        self.cheetahs += other.cheetahs;
        self.untracked += other.untracked;
        self.memory += other.memory;
        self.capacity += other.capacity;
        self.live += other.live;
    }
}
