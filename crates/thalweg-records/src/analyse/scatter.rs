//! The first sweep: records are read and put into the parts of their keys.

use std::sync::Mutex;

use super::block::{self, Block};
use super::chunks::CHUNK;
use super::parts::{Parts, Spill};
use super::points::{POINTS, Point, Points, Recent};
use super::row::{Narrow, SOURCE_BITS, Told, Wide};
use super::{AnalyseError, Options, Statistics};
use crate::read::Source;
use crate::read::sweep::{RowGroups, Tick, sweep};

/// Rows that a part is meant to have: with what ordering adds, as many as the second-level cache holds.
const ROWS_PER_PART: u64 = 1 << 14;
/// At most so many parts, in bits: a part is to have the pairs of few sources.
const MAX_BITS: u32 = SOURCE_BITS;

/// All records in the parts of their keys, for each worker.
pub(super) struct Scattered {
    pub(super) narrow: Vec<Parts<Narrow>>,
    pub(super) wide: Vec<Parts<Wide>>,
    pub(super) statistics: Statistics,
}

/// Reads all sources.
pub(super) fn scatter(
    sources: &[Source],
    records: u64,
    options: &Options,
    spill: &Spill,
    points: &Mutex<Points>,
    progress: &mut Tick<'_, AnalyseError>,
) -> Result<Scattered, AnalyseError> {
    let worker = |groups: &mut RowGroups<'_>, tick: &mut Tick<'_, AnalyseError>| {
        let mut scatterer = Scatterer::new(records, options, spill, points);
        let mut block = Block::new();
        for (source, group) in groups {
            block::read(source, group, &mut block, |block| {
                scatterer.block(source, block)?;
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
    let scattered = sweep(sources, options.threads, worker, &mut advance, || AnalyseError::Interrupted)?;
    let mut scattered = scattered.into_iter();
    let mut all = scattered.next().expect("a worker at least");
    for other in scattered {
        all.narrow.extend(other.narrow);
        all.wide.extend(other.wide);
        all.statistics.add(&other.statistics);
    }
    Ok(all)
}

/// One worker's parts.
struct Scatterer<'a> {
    narrow: Parts<Narrow>,
    wide: Parts<Wide>,
    statistics: Statistics,
    spill: &'a Spill,
    points: &'a Mutex<Points>,
    recent: Recent,
}

impl<'a> Scatterer<'a> {
    fn new(records: u64, options: &Options, spill: &'a Spill, points: &'a Mutex<Points>) -> Scatterer<'a> {
        let waiting = options.waiting_bytes();
        // Open chunks are to be a fraction of the memory.
        let by_memory = (waiting / 4 / CHUNK).max(1).ilog2();
        let bits = (records / ROWS_PER_PART).max(1).ilog2().min(MAX_BITS).min(by_memory);
        Scatterer {
            narrow: Parts::new(bits, waiting / 4 * 3),
            wide: Parts::new(bits, waiting / 4),
            statistics: Statistics::default(),
            spill,
            points,
            recent: Recent::new(),
        }
    }

    fn block(&mut self, source: &Source, block: &Block) -> Result<(), AnalyseError> {
        self.statistics.records += block.rows as u64;
        for at in 0..block.rows {
            let told = self.told(source, block, at)?;
            let (from, to) = (block.source_address[at], block.destination_address[at]);
            match (from.as_v4(), to.as_v4()) {
                (Some(source), Some(destination)) => {
                    self.narrow.push(&Narrow::new(source, destination, told))?
                }
                _ => self.wide.push(&Wide::new(from, to, told))?,
            }
        }
        self.narrow.keep_within(self.spill)?;
        self.wide.keep_within(self.spill)
    }

    #[inline]
    fn told(&mut self, source: &Source, block: &Block, at: usize) -> Result<Told, AnalyseError> {
        let point = Point {
            exporter: block.exporter[at],
            observation_domain_id: block.observation_domain_id[at] as u32,
            flow_direction: block.flow_direction[at] as u8,
        };
        let point = self.recent.number(point, || number(self.points, point, source))?;
        let (start, end) = (block.flow_start[at], block.flow_end[at]);
        self.statistics.swapped_times += u64::from(end < start);
        let interval = block.sampling_interval[at].max(1);
        let saturates = |count: i64| count.checked_mul(interval).is_none();
        self.statistics.saturated += u64::from(saturates(block.octets[at]) || saturates(block.packets[at]));
        Ok(Told {
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
fn number(points: &Mutex<Points>, point: Point, source: &Source) -> Result<u32, AnalyseError> {
    let number = points.lock().expect("no worker panicked").number(point);
    number.ok_or_else(|| AnalyseError::ObservationPoints { path: source.path.clone(), limit: POINTS })
}
