//! The first pass: reads records and distributes them over partitions by key.

use std::sync::Mutex;

use super::block::{self, Block};
use super::chunks::CHUNK;
use super::partitions::{Spill, WorkerPartitions};
use super::points::{MAX_POINTS, Point, PointCache, Points};
use super::row::{Fields, Narrow, SOURCE_BITS, Wide};
use super::{AnalyseError, Options, Statistics};
use crate::read::scan::{RowGroups, Tick, scan};
use crate::read::{RowSet, Source};

/// Target number of rows per partition: with the memory for ordering, as much as the second-level cache holds.
const ROWS_PER_PARTITION: u64 = 1 << 14;
/// Maximum number of partitions, as a power of two, so that a partition has the pairs of few sources.
const MAX_BITS: u32 = SOURCE_BITS;

/// The records to read.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) sources: &'a [Source],
    /// Rows that do not count.
    pub(super) left_out: Option<&'a RowSet>,
    /// Number of rows in `sources`.
    pub(super) records: u64,
}

/// All records in their partitions, for each worker.
pub(super) struct Scattered {
    pub(super) narrow: Vec<WorkerPartitions<Narrow>>,
    pub(super) wide: Vec<WorkerPartitions<Wide>>,
    pub(super) statistics: Statistics,
}

/// Reads and distributes all records.
pub(super) fn scatter(
    input: Input<'_>,
    options: &Options,
    spill: &Spill,
    points: &Mutex<Points>,
    progress: &mut Tick<'_, AnalyseError>,
) -> Result<Scattered, AnalyseError> {
    let worker = |groups: &mut RowGroups<'_>, tick: &mut Tick<'_, AnalyseError>| {
        let mut scatterer = Scatterer::new(input.records, options, spill, points);
        let mut block = Block::new();
        for (source, group) in groups {
            let left_out = input.left_out.map(|left_out| left_out.of_group(source, group));
            let mut done = 0;
            block::read(source, group, &mut block, |block| {
                let is_left_out =
                    |at: usize| left_out.as_ref().is_some_and(|left_out| left_out.contains(done + at as u64));
                scatterer.add_block(source, block, is_left_out)?;
                done += block.rows as u64;
                tick(block.rows as u64)
            })?;
        }
        Ok(scatterer.finish())
    };
    let mut done = 0;
    let mut advance = |rows: u64| {
        done += rows;
        progress(done)
    };
    let scattered = scan(input.sources, options.threads, worker, &mut advance, || AnalyseError::Interrupted)?;
    let mut scattered = scattered.into_iter();
    let mut all = scattered.next().expect("at least one worker");
    for other in scattered {
        all.narrow.extend(other.narrow);
        all.wide.extend(other.wide);
        all.statistics.add(&other.statistics);
    }
    Ok(all)
}

/// The partitions of one worker.
struct Scatterer<'a> {
    narrow: WorkerPartitions<Narrow>,
    wide: WorkerPartitions<Wide>,
    statistics: Statistics,
    spill: &'a Spill,
    points: &'a Mutex<Points>,
    recent: PointCache,
}

impl<'a> Scatterer<'a> {
    fn new(records: u64, options: &Options, spill: &'a Spill, points: &'a Mutex<Points>) -> Scatterer<'a> {
        let waiting = options.packed_bytes();
        // Limits partially filled chunks to a fraction of the memory.
        let by_memory = (waiting / 4 / CHUNK).max(1).ilog2();
        let bits = (records / ROWS_PER_PARTITION).max(1).ilog2().min(MAX_BITS).min(by_memory);
        Scatterer {
            narrow: WorkerPartitions::new(bits, waiting / 4 * 3),
            wide: WorkerPartitions::new(bits, waiting / 4),
            statistics: Statistics::default(),
            spill,
            points,
            recent: PointCache::new(),
        }
    }

    fn add_block(
        &mut self,
        source: &Source,
        block: &Block,
        is_left_out: impl Fn(usize) -> bool,
    ) -> Result<(), AnalyseError> {
        for at in (0..block.rows).filter(|&at| !is_left_out(at)) {
            self.statistics.records += 1;
            let fields = self.read_fields(source, block, at)?;
            let (from, to) = (block.source_address[at], block.destination_address[at]);
            match (from.as_v4(), to.as_v4()) {
                (Some(source), Some(destination)) => {
                    self.narrow.push(&Narrow::new(source, destination, fields))?
                }
                _ => self.wide.push(&Wide::new(from, to, fields))?,
            }
        }
        self.narrow.spill_if_full(self.spill)?;
        self.wide.spill_if_full(self.spill)
    }

    #[inline]
    fn read_fields(&mut self, source: &Source, block: &Block, at: usize) -> Result<Fields, AnalyseError> {
        let point = Point {
            exporter: block.exporter[at],
            observation_domain_id: block.observation_domain_id[at] as u32,
            flow_direction: block.flow_direction[at] as u8,
        };
        let point = self.recent.number(point, || point_number(self.points, point, source))?;
        let (start, end) = (block.flow_start[at], block.flow_end[at]);
        self.statistics.swapped_times += u64::from(end < start);
        let interval = block.sampling_interval[at].max(1);
        let saturates = |count: i64| count.checked_mul(interval).is_none();
        self.statistics.saturated += u64::from(saturates(block.octets[at]) || saturates(block.packets[at]));
        Ok(Fields {
            source_port: block.source_port[at] as u16,
            destination_port: block.destination_port[at] as u16,
            tcp_flags: block.tcp_flags[at] as u16,
            protocol: block.protocol[at] as u8,
            point,
            sampling_interval: interval as u32,
            flow_start_us: start.min(end),
            flow_end_us: start.max(end),
            octets: block.octets[at],
            packets: block.packets[at],
            source_as: block.source_as[at] as u32,
            destination_as: block.destination_as[at] as u32,
        })
    }

    fn finish(self) -> Scattered {
        Scattered { narrow: vec![self.narrow], wide: vec![self.wide], statistics: self.statistics }
    }
}

#[cold]
fn point_number(points: &Mutex<Points>, point: Point, source: &Source) -> Result<u32, AnalyseError> {
    let number = points.lock().expect("no worker panicked").number(point);
    number.ok_or_else(|| AnalyseError::ObservationPoints { path: source.path.clone(), limit: MAX_POINTS })
}
