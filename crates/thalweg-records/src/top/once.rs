//! Counts a flow once, although several routers exported records of it.
//!
//! Flows and the observation point that counts are those of the [reconstruction](crate::analyse): records of one key with
//! gaps of at most `gap` are a flow, and the point that saw it longest counts it. The records of its other points are left
//! out. Records keep all their columns, which reconstructed flows do not have.
//!
//! 1. Observation points are numbered. If there is only one, or only one per router where flows count once per router, nothing
//!    can be left out and the work ends here.
//! 2. The records of some keys are read, sorted by key and time, and judged. Keys are selected by their hash, so that the
//!    records of each pass fit in memory. A key is represented by a random 128-bit hash (XXH3).
//!
//! **Memory**: 48 bytes per record of a pass, at worst twice that, because vectors double; and one bit per record.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use thalweg_wire::flow_export::Address;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::TopError;
use crate::analyse::points::{MAX_POINTS, Point, PointCache, Points, preference};
use crate::read::scan::{RowGroups, Tick, scan};
use crate::read::{BLOCK, Column, GroupRows, ReadError, RowGroup, RowSet, Schema, Source, field};

/// How flows are recognised that several routers exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Microseconds of silence after which a record belongs to a new flow; not negative.
    pub gap_us: i64,
    /// Counts a flow once per exporter that saw it, instead of once.
    pub per_exporter: bool,
}

/// The records that do not count.
#[derive(Default)]
pub(super) struct LeftOut {
    /// `None` if all records count.
    rows: Option<RowSet>,
    /// Number of records that do not count because of their observation point.
    count: AtomicU64,
    /// Number of observation points; 0 if that does not matter.
    pub(super) observation_points: u64,
}

impl LeftOut {
    /// Creates a set of records that do not count for other reasons.
    pub(super) fn new(rows: Option<RowSet>) -> LeftOut {
        LeftOut { rows, ..LeftOut::default() }
    }

    /// Returns the number of records that do not count because of their observation point.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the rows of a row group that do not count; `None` if all rows of all files count.
    pub(super) fn rows(&self, source: &Source, group: usize) -> Option<GroupRows<'_>> {
        self.rows.as_ref().map(|rows| rows.of_group(source, group))
    }

    fn add(&self, row: u64) {
        self.rows.as_ref().expect("created before").insert(row);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A record: its key, its times in order, and what decides between observation points.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: u128,
    flow_start_us: i64,
    flow_end_us: i64,
    row: u64,
    /// Rank of the observation point.
    point: u32,
    sampling_interval: u32,
}

const _: () = assert!(size_of::<Seen>() == 48, "the documented memory");

/// Parts of the keys of a pass, which threads judge independently.
const PARTS: usize = 256;
/// Maximum number of passes over the records.
const MAX_PASSES: u64 = 64;

/// Returns the number of passes over `records` with `memory_bytes`, besides the one that numbers observation points.
pub(super) fn passes(records: u64, memory_bytes: u64) -> u64 {
    // Vectors double as they grow.
    (records.saturating_mul(2 * size_of::<Seen>() as u64)).div_ceil(memory_bytes.max(1)).max(1)
}

/// Checks that all columns exist.
pub(super) fn check(schema: &Schema<'_>) -> Result<(), ReadError> {
    schema.find(&field::EXPORTER)?;
    schema.find(&field::OBSERVATION_DOMAIN_ID)?;
    schema.find(&field::FLOW_DIRECTION)?;
    schema.find(&field::SRC)?;
    schema.find(&field::DST)?;
    schema.find(&field::SRC_PORT)?;
    schema.find(&field::DST_PORT)?;
    schema.find(&field::PROTOCOL).map(drop)
}

/// Adds the records to `left_out` that do not count because another observation point counts their flow. The ones that it has
/// already are no part of any flow.
///
/// # Errors
/// If a file cannot be read, a value is out of range, the records of the passes do not fit in memory, or `advance` stops
/// the work. `advance` receives the rows done: each record is a step of the first pass, and of each of [`passes`].
pub(super) fn leave_out(
    sources: &[Source],
    once: Once,
    left_out: &mut LeftOut,
    memory_bytes: u64,
    threads: usize,
    advance: &mut Tick<'_, TopError>,
) -> Result<(), TopError> {
    let records: u64 = sources.iter().map(Source::rows).sum();
    let passes = passes(records, memory_bytes);
    let points = number_points(sources, left_out, threads, advance)?;
    left_out.observation_points = points.len() as u64;
    let distinct = if once.per_exporter { points.exporters() } else { 1 };
    if points.len() <= distinct {
        return advance(passes * records);
    }
    if passes > MAX_PASSES {
        return Err(TopError::Memory { groups: records, memory_bytes });
    }
    let had_none = left_out.rows.is_none();
    left_out.rows.get_or_insert_with(|| RowSet::new(sources));
    let pass = Pass {
        sources,
        once,
        points: &points,
        ranks: &points.ranks(),
        seed: RandomState::new().hash_one(0),
        passes,
        memory_bytes,
        left_out,
    };
    for number in 0..passes {
        pass.judge(pass.read(number, threads, advance)?, threads);
    }
    if had_none && left_out.count() == 0 {
        left_out.rows = None;
    }
    Ok(())
}

/// Reads and numbers the observation points of all records.
fn number_points(
    sources: &[Source],
    left_out: &LeftOut,
    threads: usize,
    advance: &mut Tick<'_, TopError>,
) -> Result<Points, TopError> {
    let points = Mutex::new(Points::default());
    let worker = |groups: &mut RowGroups<'_>, tick: &mut Tick<'_, TopError>| {
        let (mut recent, mut block) = (PointCache::new(), PointBlock::new());
        for (source, group) in groups {
            let (left_out, mut row) = (left_out.rows(source, group), 0);
            let group = source.open(group)?;
            let mut columns = PointColumns::open(&group)?;
            for_each_block(group.rows, |rows| {
                columns.read(&mut block, rows)?;
                let mut last = None;
                let counts = |at: usize| left_out.as_ref().is_none_or(|rows| !rows.contains(row + at as u64));
                for (_, point) in block.points(rows).enumerate().filter(|&(at, _)| counts(at)) {
                    // Most records have the point of the one before.
                    if last != Some(point) {
                        recent.number(point, || {
                            let number = points.lock().expect("no worker panicked").number(point);
                            number.ok_or(TopError::ObservationPoints(MAX_POINTS))
                        })?;
                        last = Some(point);
                    }
                }
                row += rows as u64;
                tick(rows as u64)
            })?;
        }
        Ok(())
    };
    scan(sources, threads, worker, advance, || TopError::Interrupted)?;
    Ok(points.into_inner().expect("no worker panicked"))
}

/// A pass over the records of some keys.
struct Pass<'a> {
    sources: &'a [Source],
    once: Once,
    points: &'a Points,
    ranks: &'a [u32],
    seed: u64,
    passes: u64,
    memory_bytes: u64,
    left_out: &'a LeftOut,
}

impl Pass<'_> {
    /// Reads the records of this pass's keys, divided into parts by key, for each worker.
    fn read(
        &self,
        number: u64,
        threads: usize,
        advance: &mut Tick<'_, TopError>,
    ) -> Result<Vec<Vec<Vec<Seen>>>, TopError> {
        let records = AtomicU64::new(0);
        let worker = |groups: &mut RowGroups<'_>, tick: &mut Tick<'_, TopError>| {
            let mut parts = vec![Vec::new(); PARTS];
            let (mut recent, mut block) = (PointCache::new(), KeyBlock::new());
            for (source, group) in groups {
                let (left_out, first_row) = (self.left_out.rows(source, group), source.first_row(group));
                let mut row = 0;
                let group = source.open(group)?;
                let mut columns = KeyColumns::open(&group)?;
                for_each_block(group.rows, |rows| {
                    columns.read(&mut block, rows)?;
                    let mut kept = 0;
                    for (at, point) in block.points.points(rows).enumerate() {
                        let key = self.key(&block, at);
                        let is_left_out = left_out.as_ref().is_some_and(|rows| rows.contains(row));
                        if key as u64 % self.passes == number && !is_left_out {
                            let known =
                                || Ok::<_, TopError>(self.points.find(point).expect("numbered before"));
                            let point = self.ranks[recent.number(point, known)? as usize];
                            parts[(key >> 120) as usize].push(seen(&block, at, key, point, first_row + row));
                            kept += 1;
                        }
                        row += 1;
                    }
                    let records = records.fetch_add(kept, Ordering::Relaxed) + kept;
                    if records > self.memory_bytes / size_of::<Seen>() as u64 {
                        return Err(TopError::Memory { groups: records, memory_bytes: self.memory_bytes });
                    }
                    tick(rows as u64)
                })?;
            }
            Ok(parts)
        };
        scan(self.sources, threads, worker, advance, || TopError::Interrupted)
    }

    /// Returns the hash of a record's key.
    #[inline]
    fn key(&self, block: &KeyBlock, at: usize) -> u128 {
        let mut bytes = [0; 53];
        bytes[..16].copy_from_slice(&block.source_address[at].0.to_ne_bytes());
        bytes[16..32].copy_from_slice(&block.destination_address[at].0.to_ne_bytes());
        bytes[32..34].copy_from_slice(&(block.source_port[at] as u16).to_ne_bytes());
        bytes[34..36].copy_from_slice(&(block.destination_port[at] as u16).to_ne_bytes());
        bytes[36] = block.protocol[at] as u8;
        if self.once.per_exporter {
            bytes[37..53].copy_from_slice(&block.points.exporter[at].0.to_ne_bytes());
        }
        xxh3_128_with_seed(&bytes, self.seed)
    }

    /// Marks the records that do not count; each thread judges whole parts.
    fn judge(&self, workers: Vec<Vec<Vec<Seen>>>, threads: usize) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let (mut records, mut points) = (Vec::new(), Vec::new());
                    loop {
                        let part = next.fetch_add(1, Ordering::Relaxed);
                        if part >= PARTS {
                            return;
                        }
                        records.clear();
                        workers.iter().for_each(|parts| records.extend_from_slice(&parts[part]));
                        self.judge_part(&mut records, &mut points);
                    }
                });
            }
        });
    }

    fn judge_part(&self, records: &mut [Seen], points: &mut Vec<PointSeen>) {
        records.sort_unstable_by_key(|seen| (seen.key, seen.flow_start_us, seen.flow_end_us));
        for records in records.chunk_by(|one, other| one.key == other.key) {
            if records.iter().any(|record| record.point != records[0].point) {
                for_each_flow(records, self.once.gap_us, |flow| self.judge_flow(flow, points));
            }
        }
    }

    /// Leaves out the records of all points of a flow but one.
    fn judge_flow(&self, flow: &[Seen], points: &mut Vec<PointSeen>) {
        points.clear();
        for record in flow {
            match points.iter_mut().find(|seen| seen.point == record.point) {
                Some(seen) => seen.add(record),
                None => points.push(PointSeen::new(record)),
            }
        }
        let counted = points.iter().min_by_key(|seen| seen.order()).map(|seen| seen.point);
        let others = flow.iter().filter(|record| Some(record.point) != counted);
        others.for_each(|record| self.left_out.add(record.row));
    }
}

#[inline]
fn seen(block: &KeyBlock, at: usize, key: u128, point: u32, row: u64) -> Seen {
    let (start, end) = (block.flow_start[at], block.flow_end[at]);
    let sampling_interval = block.sampling_interval[at].max(1) as u32;
    Seen { key, flow_start_us: start.min(end), flow_end_us: start.max(end), row, point, sampling_interval }
}

/// Passes the flows of a key to `each`. `records` are ordered by start.
fn for_each_flow(records: &[Seen], gap_us: i64, mut each: impl FnMut(&[Seen])) {
    let (mut first, mut latest_end) = (0, records[0].flow_end_us);
    for (at, record) in records.iter().enumerate().skip(1) {
        if record.flow_start_us - latest_end > gap_us {
            each(&records[first..at]);
            first = at;
        }
        latest_end = latest_end.max(record.flow_end_us);
    }
    each(&records[first..]);
}

/// How an observation point saw a flow.
struct PointSeen {
    point: u32,
    flow_start_us: i64,
    flow_end_us: i64,
    sampling_interval: u32,
}

impl PointSeen {
    fn new(record: &Seen) -> PointSeen {
        let Seen { point, flow_start_us, flow_end_us, sampling_interval, .. } = *record;
        PointSeen { point, flow_start_us, flow_end_us, sampling_interval }
    }

    fn add(&mut self, record: &Seen) {
        self.flow_end_us = self.flow_end_us.max(record.flow_end_us);
        self.sampling_interval = self.sampling_interval.min(record.sampling_interval);
    }

    fn order(&self) -> (Reverse<i64>, u32, u32) {
        preference(self.flow_end_us - self.flow_start_us, self.sampling_interval, self.point)
    }
}

/// Calls `each` with the number of rows of each block.
fn for_each_block(rows: u64, mut each: impl FnMut(usize) -> Result<(), TopError>) -> Result<(), TopError> {
    let mut left = rows;
    while left > 0 {
        let rows = left.min(BLOCK as u64) as usize;
        each(rows)?;
        left -= rows as u64;
    }
    Ok(())
}

/// The columns of observation points.
struct PointColumns {
    exporter: Column<Address>,
    observation_domain_id: Column<i64>,
    flow_direction: Column<i32>,
}

/// Values of these columns.
struct PointBlock {
    exporter: Box<[Address]>,
    observation_domain_id: Box<[i64]>,
    flow_direction: Box<[i32]>,
}

impl PointColumns {
    fn open(group: &RowGroup<'_>) -> Result<PointColumns, ReadError> {
        Ok(PointColumns {
            exporter: group.column(&field::EXPORTER)?,
            observation_domain_id: group.column(&field::OBSERVATION_DOMAIN_ID)?,
            flow_direction: group.column(&field::FLOW_DIRECTION)?,
        })
    }

    fn read(&mut self, block: &mut PointBlock, rows: usize) -> Result<(), ReadError> {
        self.exporter.read(&mut block.exporter[..rows])?;
        self.observation_domain_id.read(&mut block.observation_domain_id[..rows])?;
        self.flow_direction.read(&mut block.flow_direction[..rows])
    }
}

impl PointBlock {
    fn new() -> PointBlock {
        PointBlock {
            exporter: vec![Address::default(); BLOCK].into(),
            observation_domain_id: vec![0; BLOCK].into(),
            flow_direction: vec![0; BLOCK].into(),
        }
    }

    fn points(&self, rows: usize) -> impl Iterator<Item = Point> {
        (0..rows).map(|at| Point {
            exporter: self.exporter[at],
            observation_domain_id: self.observation_domain_id[at] as u32,
            flow_direction: self.flow_direction[at] as u8,
        })
    }
}

/// The columns of keys, times and observation points.
struct KeyColumns {
    points: PointColumns,
    source_address: Column<Address>,
    destination_address: Column<Address>,
    source_port: Column<i32>,
    destination_port: Column<i32>,
    protocol: Column<i32>,
    sampling_interval: Column<i64>,
    flow_start: Column<i64>,
    flow_end: Column<i64>,
}

/// Values of these columns.
struct KeyBlock {
    points: PointBlock,
    source_address: Box<[Address]>,
    destination_address: Box<[Address]>,
    source_port: Box<[i32]>,
    destination_port: Box<[i32]>,
    protocol: Box<[i32]>,
    sampling_interval: Box<[i64]>,
    flow_start: Box<[i64]>,
    flow_end: Box<[i64]>,
}

impl KeyColumns {
    fn open(group: &RowGroup<'_>) -> Result<KeyColumns, ReadError> {
        Ok(KeyColumns {
            points: PointColumns::open(group)?,
            source_address: group.column(&field::SRC)?,
            destination_address: group.column(&field::DST)?,
            source_port: group.column(&field::SRC_PORT)?,
            destination_port: group.column(&field::DST_PORT)?,
            protocol: group.column(&field::PROTOCOL)?,
            sampling_interval: group.column(&field::SAMPLING_INTERVAL)?,
            flow_start: group.column(&field::FLOW_START)?,
            flow_end: group.column(&field::FLOW_END)?,
        })
    }

    fn read(&mut self, block: &mut KeyBlock, rows: usize) -> Result<(), ReadError> {
        self.points.read(&mut block.points, rows)?;
        self.source_address.read(&mut block.source_address[..rows])?;
        self.destination_address.read(&mut block.destination_address[..rows])?;
        self.source_port.read(&mut block.source_port[..rows])?;
        self.destination_port.read(&mut block.destination_port[..rows])?;
        self.protocol.read(&mut block.protocol[..rows])?;
        self.sampling_interval.read(&mut block.sampling_interval[..rows])?;
        self.flow_start.read(&mut block.flow_start[..rows])?;
        self.flow_end.read(&mut block.flow_end[..rows])
    }
}

impl KeyBlock {
    fn new() -> KeyBlock {
        let addresses = || vec![Address::default(); BLOCK].into();
        let (numbers, counts) = (|| vec![0; BLOCK].into(), || vec![0; BLOCK].into());
        KeyBlock {
            points: PointBlock::new(),
            source_address: addresses(),
            destination_address: addresses(),
            source_port: numbers(),
            destination_port: numbers(),
            protocol: numbers(),
            sampling_interval: counts(),
            flow_start: counts(),
            flow_end: counts(),
        }
    }
}
