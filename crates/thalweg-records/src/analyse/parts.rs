//! Records cut into parts by their key, in memory and, beyond a bound, in an unlinked file.
//!
//! A part is what is later sorted and worked on at once: small enough for the second-level cache where memory allows,
//! never larger than the memory given. Parts that come out larger, because a few pairs of hosts have most records, are
//! cut again where their keys first differ.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AnalyseError;
use super::row::{KEY_BITS, Row};

/// Rows of a chunk, the unit in which memory is taken: 32 KiB.
pub(super) const CHUNK: usize = 512;
/// Into how many parts one is cut again, in bits.
const SPLIT_BITS: u32 = 8;

/// Where rows go that memory does not hold.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    /// Bytes written by all.
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Spill {
    /// Files will be made in this directory, without a name as soon as they are open.
    pub(super) fn new(directory: &Path) -> Spill {
        Spill { directory: directory.to_owned(), bytes: AtomicU64::new(0), files: AtomicU64::new(0) }
    }

    /// Bytes written so far.
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

/// Rows in a spill file.
#[derive(Clone, Debug)]
struct Extent {
    file: Arc<File>,
    at: u64,
    rows: usize,
}

/// Rows whose keys begin alike.
#[derive(Debug)]
pub(super) struct Part<R> {
    /// Keys are equal in the bits from this one up.
    pub(super) shift: u32,
    open: Vec<R>,
    full: Vec<Vec<R>>,
    spilled: Vec<Extent>,
}

impl<R: Row> Part<R> {
    fn new(shift: u32) -> Part<R> {
        Part { shift, open: Vec::new(), full: Vec::new(), spilled: Vec::new() }
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        let spilled: usize = self.spilled.iter().map(|extent| extent.rows).sum();
        spilled + self.held()
    }

    /// How many of them are in memory.
    fn held(&self) -> usize {
        self.full.len() * CHUNK + self.open.len()
    }

    /// Takes the rows of another part of the same keys.
    pub(super) fn append(&mut self, mut other: Part<R>) {
        if self.open.is_empty() {
            self.open = other.open;
        } else {
            for row in other.open.drain(..) {
                self.push(row, &mut Vec::new());
            }
        }
        self.full.append(&mut other.full);
        self.spilled.append(&mut other.spilled);
    }

    #[inline]
    fn push(&mut self, row: R, spare: &mut Vec<Vec<R>>) {
        if self.open.len() == self.open.capacity().min(CHUNK) {
            self.add_chunk(spare);
        }
        self.open.push(row);
    }

    #[cold]
    fn add_chunk(&mut self, spare: &mut Vec<Vec<R>>) {
        let chunk = spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
        let full = std::mem::replace(&mut self.open, chunk);
        if !full.is_empty() {
            self.full.push(full);
        }
    }

    /// Moves all rows into `rows`.
    pub(super) fn load(self, rows: &mut Vec<R>, spill: &Spill) -> Result<(), AnalyseError> {
        rows.clear();
        rows.reserve(self.rows());
        for extent in &self.spilled {
            let start = rows.len();
            rows.resize(start + extent.rows, R::zeroed());
            let bytes = bytemuck::cast_slice_mut(&mut rows[start..]);
            extent.file.read_exact_at(bytes, extent.at).map_err(spill.failed())?;
        }
        for chunk in self.full.iter().chain([&self.open]) {
            rows.extend_from_slice(chunk);
        }
        Ok(())
    }

    /// The lowest and the highest key.
    fn span(&self, spill: &Spill) -> Result<(u128, u128), AnalyseError> {
        let (mut lowest, mut highest) = (u128::MAX, 0);
        self.each(spill, |row| {
            lowest = lowest.min(row.key());
            highest = highest.max(row.key());
            Ok(())
        })?;
        Ok((lowest, highest))
    }

    fn each(
        &self,
        spill: &Spill,
        mut f: impl FnMut(R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let mut buffer = Vec::new();
        for extent in &self.spilled {
            for first in (0..extent.rows).step_by(CHUNK) {
                buffer.resize(CHUNK.min(extent.rows - first), R::zeroed());
                let at = extent.at + (first * size_of::<R>()) as u64;
                extent
                    .file
                    .read_exact_at(bytemuck::cast_slice_mut(&mut buffer), at)
                    .map_err(spill.failed())?;
                buffer.iter().try_for_each(|row| f(*row))?;
            }
        }
        self.full.iter().flatten().chain(&self.open).try_for_each(|row| f(*row))
    }

    /// Cuts it where its keys first differ, holding at most `most` rows in memory; itself again if all have one key.
    pub(super) fn split(
        self,
        most: usize,
        spill: &Spill,
    ) -> Result<Result<Vec<Part<R>>, Part<R>>, AnalyseError> {
        let (lowest, highest) = self.span(spill)?;
        let differing = u128::BITS - (lowest ^ highest).leading_zeros();
        if differing == 0 {
            return Ok(Err(self));
        }
        let mut parts = Parts::below(differing, differing.min(SPLIT_BITS), most);
        self.each(spill, |row| {
            parts.push(row);
            parts.keep_within(spill)
        })?;
        Ok(Ok(parts.into_parts()))
    }
}

/// All parts that rows are being put into.
#[derive(Debug)]
pub(super) struct Parts<R> {
    shift: u32,
    mask: usize,
    parts: Vec<Part<R>>,
    /// Empty chunks that were spilled.
    spare: Vec<Vec<R>>,
    /// Rows in memory, and how many may be.
    held: usize,
    most: usize,
    file: Option<(Arc<File>, u64)>,
}

impl<R: Row> Parts<R> {
    /// `1 << bits` parts, of which at most `most` rows are held in memory.
    pub(super) fn new(bits: u32, most: usize) -> Parts<R> {
        Parts::below(KEY_BITS, bits, most)
    }

    /// Parts by the `bits` of the key below bit `top`.
    fn below(top: u32, bits: u32, most: usize) -> Parts<R> {
        let shift = top - bits;
        let parts = (0..1 << bits).map(|_| Part::new(shift)).collect();
        Parts { shift, mask: (1 << bits) - 1, parts, spare: Vec::new(), held: 0, most, file: None }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, row: R) {
        let part = (row.key() >> self.shift) as usize & self.mask;
        self.parts[part].push(row, &mut self.spare);
        self.held += 1;
    }

    /// Spills all rows in memory if they are too many.
    #[inline]
    pub(super) fn keep_within(&mut self, spill: &Spill) -> Result<(), AnalyseError> {
        match self.held > self.most {
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
        for part in &mut self.parts {
            let extent = Extent { file: file.clone(), at: end, rows: part.held() };
            if extent.rows == 0 {
                continue;
            }
            for mut chunk in part.full.drain(..).chain([std::mem::take(&mut part.open)]) {
                let bytes: &[u8] = bytemuck::cast_slice(&chunk);
                file.write_all_at(bytes, end).map_err(spill.failed())?;
                end += bytes.len() as u64;
                chunk.clear();
                self.spare.push(chunk);
            }
            spill.bytes.fetch_add(end - extent.at, Ordering::Relaxed);
            part.spilled.push(extent);
        }
        self.file = Some((file, end));
        self.held = 0;
        Ok(())
    }

    /// The parts in the order of their keys.
    pub(super) fn into_parts(self) -> Vec<Part<R>> {
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::super::row::{Narrow, Told};
    use super::*;

    fn row(number: u32) -> Narrow {
        Narrow {
            source: number % 97,
            destination: number % 7,
            told: Told { point: number, ..Told::zeroed() },
        }
    }

    fn points(part: Part<Narrow>, spill: &Spill) -> Vec<u32> {
        let (count, mut rows) = (part.rows(), Vec::new());
        part.load(&mut rows, spill).unwrap();
        assert_eq!(rows.len(), count);
        let mut points: Vec<u32> = rows.iter().map(|row| row.told.point).collect();
        points.sort_unstable();
        points
    }

    #[test]
    fn what_is_spilled_comes_back_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let (mut all, mut small) = (Parts::new(3, usize::MAX), Parts::new(3, 1000));
        for number in 0..20_000 {
            all.push(row(number));
            small.push(row(number));
            small.keep_within(&spill).unwrap();
        }
        assert!(spill.bytes() > 18_000 * 64);
        for (all, small) in all.into_parts().into_iter().zip(small.into_parts()) {
            assert_eq!(points(all, &spill), points(small, &spill));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_part_is_cut_in_the_order_of_its_keys_and_one_key_is_not_cut() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let mut parts = Parts::new(0, 500);
        for number in 0..5_000 {
            parts.push(row(number));
            parts.keep_within(&spill).unwrap();
        }
        let whole = parts.into_parts().pop().unwrap();
        let (mut last, mut rows, mut cuts) = (None, 0, 0);
        for part in whole.split(100, &spill).unwrap().unwrap() {
            rows += part.rows();
            if part.rows() > 0 {
                let (lowest, highest) = part.span(&spill).unwrap();
                assert!(last < Some(lowest) && lowest >> part.shift == highest >> part.shift);
                (last, cuts) = (Some(highest), cuts + 1);
            }
        }
        assert!(rows == 5_000 && cuts > 100, "{rows} {cuts}");

        let mut parts = Parts::new(0, 10);
        (0..50).for_each(|number| parts.push(row(number * 97 * 7)));
        assert_eq!(parts.into_parts().pop().unwrap().split(10, &spill).unwrap().unwrap_err().rows(), 50);
    }
}
