//! Partitions records by key, in memory and, beyond a limit, in an unlinked file.
//!
//! A partition is sorted and assembled at once. It fits the second-level cache if memory allows, and never exceeds the
//! memory limit. Larger partitions, which arise if a few pairs of hosts have most records, are split again where their
//! keys first differ.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AnalyseError;
use super::chunks::{CHUNK, Chunks};
use super::packed::{MAX_ROW_BYTES, pack, unpack};
use super::row::{KEY_BITS, Row};

/// Number of partitions of a split, as a power of two.
const SPLIT_BITS: u32 = 8;

/// Creates spill files and counts their bytes.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    /// Bytes written to all files.
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Spill {
    /// Creates files in this directory, and unlinks each as soon as it is open.
    pub(super) fn new(directory: &Path) -> Spill {
        Spill { directory: directory.to_owned(), bytes: AtomicU64::new(0), files: AtomicU64::new(0) }
    }

    /// Returns the bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn create(&self) -> Result<Arc<File>, AnalyseError> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!(".thalweg-spill-{}-{number}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.and_then(|file| fs::remove_file(&path).map(|()| file));
        file.map(Arc::new).map_err(AnalyseError::io(&path))
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> AnalyseError {
        AnalyseError::io(&self.directory)
    }
}

/// A chunk's rows in a spill file.
#[derive(Clone, Debug)]
struct Extent {
    file: Arc<File>,
    at: u64,
    bytes: usize,
}

/// Larger than any used size.
const NO_CHUNK: usize = usize::MAX;

/// The rows of one worker whose keys share a prefix.
#[derive(Debug)]
struct WorkerPartition {
    /// The current chunk and its used size; [`NO_CHUNK`] if there is none.
    last: u32,
    used: usize,
    /// Start time of the previous row.
    start: i64,
    /// Number of rows.
    rows: usize,
    /// The full chunks and their used sizes.
    full: Vec<(u32, usize)>,
    spilled: Vec<Extent>,
}

impl WorkerPartition {
    fn new() -> WorkerPartition {
        WorkerPartition { last: 0, used: NO_CHUNK, start: 0, rows: 0, full: Vec::new(), spilled: Vec::new() }
    }

    #[cold]
    fn add_chunk(&mut self, chunks: &mut Chunks) -> Result<(), AnalyseError> {
        let next = chunks.allocate().map_err(AnalyseError::Memory)?;
        let before = self.last();
        self.full.extend(before);
        (self.last, self.used, self.start) = (next, 0, 0);
        Ok(())
    }

    fn last(&self) -> Option<(u32, usize)> {
        (self.used != NO_CHUNK).then_some((self.last, self.used))
    }

    /// Returns the chunks in memory and their used sizes.
    fn in_memory(&self) -> impl Iterator<Item = (u32, usize)> {
        self.full.iter().copied().chain(self.last())
    }
}

/// All partitions of one worker.
#[derive(Debug)]
pub(super) struct WorkerPartitions<R> {
    /// Keys of a partition agree in the bits from this one up.
    shift: u32,
    mask: usize,
    partitions: Vec<WorkerPartition>,
    chunks: Chunks,
    /// Bytes in memory, and their limit.
    bytes_in_memory: usize,
    max_bytes: usize,
    file: Option<(Arc<File>, u64)>,
    rows: PhantomData<R>,
}

impl<R: Row> WorkerPartitions<R> {
    /// Creates `1 << bits` partitions that hold about `max_bytes` in memory.
    pub(super) fn new(bits: u32, max_bytes: usize) -> WorkerPartitions<R> {
        WorkerPartitions::below(KEY_BITS, bits, max_bytes)
    }

    /// Partitions by the `bits` of the key below bit `top`.
    fn below(top: u32, bits: u32, max_bytes: usize) -> WorkerPartitions<R> {
        WorkerPartitions {
            shift: top - bits,
            mask: (1 << bits) - 1,
            partitions: (0..1 << bits).map(|_| WorkerPartition::new()).collect(),
            chunks: Chunks::default(),
            bytes_in_memory: 0,
            max_bytes,
            file: None,
            rows: PhantomData,
        }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, row: &R) -> Result<(), AnalyseError> {
        let partition = &mut self.partitions[(row.key() >> self.shift) as usize & self.mask];
        if partition.used > CHUNK - MAX_ROW_BYTES {
            partition.add_chunk(&mut self.chunks)?;
        }
        let bytes = pack(row, &mut partition.start, self.chunks.room(partition.last, partition.used));
        partition.used += bytes;
        partition.rows += 1;
        self.bytes_in_memory += bytes;
        Ok(())
    }

    /// Spills all rows in memory if they exceed the limit.
    #[inline]
    pub(super) fn spill_if_full(&mut self, spill: &Spill) -> Result<(), AnalyseError> {
        match self.bytes_in_memory > self.max_bytes {
            true => self.spill(spill),
            false => Ok(()),
        }
    }

    #[cold]
    fn spill(&mut self, spill: &Spill) -> Result<(), AnalyseError> {
        let (file, mut end) = match self.file.take() {
            Some(file) => file,
            None => (spill.create()?, 0),
        };
        for partition in &mut self.partitions {
            let extents = partition.in_memory().map(|(chunk, bytes)| {
                file.write_all_at(&self.chunks.chunk(chunk)[..bytes], end).map_err(spill.failed())?;
                end += bytes as u64;
                Ok(Extent { file: file.clone(), at: end - bytes as u64, bytes })
            });
            let extents = extents.collect::<Result<Vec<_>, AnalyseError>>()?;
            partition.spilled.extend(extents);
            partition.full.clear();
            partition.used = NO_CHUNK;
        }
        spill.bytes.fetch_add(self.bytes_in_memory as u64, Ordering::Relaxed);
        self.chunks.clear();
        self.file = Some((file, end));
        self.bytes_in_memory = 0;
        Ok(())
    }

    /// Passes the rows of a partition to `f`.
    fn for_each_row(
        &self,
        number: usize,
        spill: &Spill,
        mut f: impl FnMut(R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let (partition, mut buffer) = (&self.partitions[number], [0; CHUNK]);
        for extent in &partition.spilled {
            let bytes = &mut buffer[..extent.bytes];
            extent.file.read_exact_at(bytes, extent.at).map_err(spill.failed())?;
            unpack_rows(&buffer, extent.bytes, &mut f)?;
        }
        partition
            .in_memory()
            .try_for_each(|(chunk, used)| unpack_rows(self.chunks.chunk(chunk), used, &mut f))
    }
}

/// Passes the rows of a chunk to `f`.
#[inline]
fn unpack_rows<R: Row>(
    chunk: &[u8; CHUNK],
    used: usize,
    f: &mut impl FnMut(R) -> Result<(), AnalyseError>,
) -> Result<(), AnalyseError> {
    let (mut at, mut start) = (0, 0);
    while at < used {
        let (row, bytes) = unpack(chunk[at..].first_chunk().expect("space for a row"), &mut start);
        at += bytes;
        f(row)?;
    }
    Ok(())
}

/// The rows of one partition from all workers.
#[derive(Debug)]
pub(super) struct Partition<'a, R> {
    workers: &'a [WorkerPartitions<R>],
    number: usize,
}

impl<R> Clone for Partition<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Partition<'_, R> {}

impl<'a, R: Row> Partition<'a, R> {
    /// Returns all partitions, in key order.
    pub(super) fn all(workers: &'a [WorkerPartitions<R>]) -> impl Iterator<Item = Partition<'a, R>> {
        let count = workers.first().map_or(0, |worker| worker.partitions.len());
        (0..count).map(move |number| Partition { workers, number })
    }

    /// Returns the bit from which on all keys agree.
    pub(super) fn shift(self) -> u32 {
        self.workers[0].shift
    }

    /// Returns the number of rows.
    pub(super) fn rows(self) -> usize {
        self.workers.iter().map(|worker| worker.partitions[self.number].rows).sum()
    }

    /// Replaces the contents of `rows` by the rows of this partition.
    pub(super) fn load(self, rows: &mut Vec<R>, spill: &Spill) -> Result<(), AnalyseError> {
        rows.clear();
        rows.reserve(self.rows());
        self.for_each_row(spill, |row| {
            rows.push(row);
            Ok(())
        })
    }

    fn for_each_row(
        self,
        spill: &Spill,
        mut f: impl FnMut(R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        self.workers.iter().try_for_each(|worker| worker.for_each_row(self.number, spill, &mut f))
    }

    /// Returns the smallest and the largest key.
    fn key_range(self, spill: &Spill) -> Result<(u128, u128), AnalyseError> {
        let (mut lowest, mut highest) = (u128::MAX, 0);
        self.for_each_row(spill, |row| {
            lowest = lowest.min(row.key());
            highest = highest.max(row.key());
            Ok(())
        })?;
        Ok((lowest, highest))
    }

    /// Splits it where its keys first differ, holding about `max_bytes` more in memory; `None` if all keys are equal.
    pub(super) fn split(
        self,
        max_bytes: usize,
        spill: &Spill,
    ) -> Result<Option<WorkerPartitions<R>>, AnalyseError> {
        let (lowest, highest) = self.key_range(spill)?;
        let differing = u128::BITS - (lowest ^ highest).leading_zeros();
        if differing == 0 {
            return Ok(None);
        }
        let mut partitions = WorkerPartitions::below(differing, differing.min(SPLIT_BITS), max_bytes);
        self.for_each_row(spill, |row| {
            partitions.push(&row)?;
            partitions.spill_if_full(spill)
        })?;
        Ok(Some(partitions))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Fields, Narrow};
    use super::*;

    fn row(number: u32) -> Narrow {
        Narrow::new(number % 97, number % 7, Fields { point: number, ..Fields::default() })
    }

    fn points(partition: Partition<'_, Narrow>, spill: &Spill) -> Vec<u32> {
        let mut rows = Vec::new();
        partition.load(&mut rows, spill).unwrap();
        assert_eq!(rows.len(), partition.rows());
        let mut points: Vec<u32> = rows.iter().map(|row| row.fields().point).collect();
        points.sort_unstable();
        points
    }

    #[test]
    fn spilled_rows_are_read_back_and_no_file_remains() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let (mut all, mut small) = (WorkerPartitions::new(3, usize::MAX), WorkerPartitions::new(3, 20_000));
        for number in 0..20_000 {
            all.push(&row(number)).unwrap();
            small.push(&row(number)).unwrap();
            small.spill_if_full(&spill).unwrap();
        }
        assert!(spill.bytes() > 18_000 * 20);
        for (all, small) in Partition::all(&[all]).zip(Partition::all(&[small])) {
            assert_eq!(points(all, &spill), points(small, &spill));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_partition_has_the_rows_of_all_workers() {
        let spill = Spill::new(Path::new("."));
        let (mut whole, mut halves) =
            (WorkerPartitions::new(2, usize::MAX), [(); 2].map(|()| WorkerPartitions::new(2, usize::MAX)));
        for number in 0..2_000 {
            whole.push(&row(number)).unwrap();
            halves[number as usize % 2].push(&row(number)).unwrap();
        }
        for (whole, halves) in Partition::all(&[whole]).zip(Partition::all(&halves)) {
            assert_eq!(points(whole, &spill), points(halves, &spill));
        }
    }

    #[test]
    fn a_split_keeps_key_order_and_a_single_key_is_not_split() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let mut partitions = [WorkerPartitions::new(0, 10_000)];
        for number in 0..5_000 {
            partitions[0].push(&row(number)).unwrap();
            partitions[0].spill_if_full(&spill).unwrap();
        }
        let whole = Partition::all(&partitions).next().unwrap();
        let (mut last, mut rows, mut cuts) = (None, 0, 0);
        for partition in Partition::all(&[whole.split(2_000, &spill).unwrap().unwrap()]) {
            rows += partition.rows();
            if partition.rows() > 0 {
                let (lowest, highest) = partition.key_range(&spill).unwrap();
                assert!(last < Some(lowest) && lowest >> partition.shift() == highest >> partition.shift());
                (last, cuts) = (Some(highest), cuts + 1);
            }
        }
        // The first bits are the source's: 97 sources fall into about 81 of 256 partitions.
        assert!(rows == 5_000 && cuts > 60, "{rows} {cuts}");

        let mut partitions = [WorkerPartitions::new(0, 200)];
        (0..50).for_each(|number| partitions[0].push(&row(number * 97 * 7)).unwrap());
        assert!(Partition::all(&partitions).next().unwrap().split(200, &spill).unwrap().is_none());
    }
}
