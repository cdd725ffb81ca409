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
use super::chunks::{CHUNK, Chunks};
use super::row::{KEY_BITS, Row};

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
struct Part {
    chunks: Vec<u32>,
    /// The last chunk, and how many rows it has; [`CHUNK`] if there is none.
    last: u32,
    last_rows: usize,
    spilled: Vec<Extent>,
}

impl Part {
    fn new() -> Part {
        Part { chunks: Vec::new(), last: 0, last_rows: CHUNK, spilled: Vec::new() }
    }

    #[cold]
    fn add_chunk<R: Row>(&mut self, chunks: &mut Chunks<R>) -> Result<(), AnalyseError> {
        self.last = chunks.take().map_err(AnalyseError::Memory)?;
        self.last_rows = 0;
        self.chunks.push(self.last);
        Ok(())
    }

    /// How many rows are in memory.
    fn held(&self) -> usize {
        self.chunks.len() * CHUNK + self.last_rows - CHUNK
    }

    /// These rows.
    fn in_memory<'c, R: Row>(&self, chunks: &'c Chunks<R>) -> impl Iterator<Item = &'c [R]> {
        let rows = |place| if place + 1 == self.chunks.len() { self.last_rows } else { CHUNK };
        self.chunks.iter().enumerate().map(move |(place, &chunk)| chunks.rows(chunk, rows(place)))
    }
}

/// All parts that rows are being put into.
#[derive(Debug)]
pub(super) struct Parts<R> {
    /// Keys of a part are equal in the bits from this one up.
    shift: u32,
    mask: usize,
    parts: Vec<Part>,
    chunks: Chunks<R>,
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
        Parts {
            shift: top - bits,
            mask: (1 << bits) - 1,
            parts: (0..1 << bits).map(|_| Part::new()).collect(),
            chunks: Chunks::new(),
            held: 0,
            most,
            file: None,
        }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, row: R) -> Result<(), AnalyseError> {
        let part = &mut self.parts[(row.key() >> self.shift) as usize & self.mask];
        if part.last_rows == CHUNK {
            part.add_chunk(&mut self.chunks)?;
        }
        *self.chunks.row(part.last, part.last_rows) = row;
        part.last_rows += 1;
        self.held += 1;
        Ok(())
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
            for rows in part.in_memory(&self.chunks) {
                let bytes: &[u8] = bytemuck::cast_slice(rows);
                file.write_all_at(bytes, end).map_err(spill.failed())?;
                end += bytes.len() as u64;
            }
            part.chunks.clear();
            part.last_rows = CHUNK;
            spill.bytes.fetch_add(end - extent.at, Ordering::Relaxed);
            part.spilled.push(extent);
        }
        self.chunks.clear();
        self.file = Some((file, end));
        self.held = 0;
        Ok(())
    }

    /// How many rows a part has.
    fn rows(&self, number: usize) -> usize {
        let part = &self.parts[number];
        part.held() + part.spilled.iter().map(|extent| extent.rows).sum::<usize>()
    }

    /// Appends the rows of a part to `rows`.
    fn load(&self, number: usize, rows: &mut Vec<R>, spill: &Spill) -> Result<(), AnalyseError> {
        let part = &self.parts[number];
        for extent in &part.spilled {
            let start = rows.len();
            rows.resize(start + extent.rows, R::zeroed());
            let bytes = bytemuck::cast_slice_mut(&mut rows[start..]);
            extent.file.read_exact_at(bytes, extent.at).map_err(spill.failed())?;
        }
        part.in_memory(&self.chunks).for_each(|chunk| rows.extend_from_slice(chunk));
        Ok(())
    }

    fn each(
        &self,
        number: usize,
        spill: &Spill,
        f: &mut impl FnMut(&R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let (part, mut buffer) = (&self.parts[number], Vec::new());
        for extent in &part.spilled {
            for first in (0..extent.rows).step_by(CHUNK) {
                buffer.resize(CHUNK.min(extent.rows - first), R::zeroed());
                let at = extent.at + (first * size_of::<R>()) as u64;
                let bytes = bytemuck::cast_slice_mut(&mut buffer);
                extent.file.read_exact_at(bytes, at).map_err(spill.failed())?;
                buffer.iter().try_for_each(&mut *f)?;
            }
        }
        part.in_memory(&self.chunks).flatten().try_for_each(f)
    }
}

/// The parts of one number, one of each worker.
#[derive(Debug)]
pub(super) struct Portion<'a, R> {
    parts: &'a [Parts<R>],
    number: usize,
}

impl<R> Clone for Portion<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Portion<'_, R> {}

impl<'a, R: Row> Portion<'a, R> {
    /// All portions, in the order of their keys.
    pub(super) fn all(parts: &'a [Parts<R>]) -> impl Iterator<Item = Portion<'a, R>> {
        let count = parts.first().map_or(0, |parts| parts.parts.len());
        (0..count).map(move |number| Portion { parts, number })
    }

    /// Keys are equal in the bits from this one up.
    pub(super) fn shift(self) -> u32 {
        self.parts[0].shift
    }

    /// How many rows it has.
    pub(super) fn rows(self) -> usize {
        self.parts.iter().map(|parts| parts.rows(self.number)).sum()
    }

    /// Puts its rows into `rows`, in place of what is there.
    pub(super) fn load(self, rows: &mut Vec<R>, spill: &Spill) -> Result<(), AnalyseError> {
        rows.clear();
        rows.reserve(self.rows());
        self.parts.iter().try_for_each(|parts| parts.load(self.number, rows, spill))
    }

    fn each(
        self,
        spill: &Spill,
        mut f: impl FnMut(&R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        self.parts.iter().try_for_each(|parts| parts.each(self.number, spill, &mut f))
    }

    /// The lowest and the highest key.
    fn span(self, spill: &Spill) -> Result<(u128, u128), AnalyseError> {
        let (mut lowest, mut highest) = (u128::MAX, 0);
        self.each(spill, |row| {
            lowest = lowest.min(row.key());
            highest = highest.max(row.key());
            Ok(())
        })?;
        Ok((lowest, highest))
    }

    /// Cuts it where its keys first differ, holding at most `most` more rows in memory; none if all have one key.
    pub(super) fn split(self, most: usize, spill: &Spill) -> Result<Option<Parts<R>>, AnalyseError> {
        let (lowest, highest) = self.span(spill)?;
        let differing = u128::BITS - (lowest ^ highest).leading_zeros();
        if differing == 0 {
            return Ok(None);
        }
        let mut parts = Parts::below(differing, differing.min(SPLIT_BITS), most);
        self.each(spill, |row| {
            parts.push(*row)?;
            parts.keep_within(spill)
        })?;
        Ok(Some(parts))
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::super::row::{Narrow, Told};
    use super::*;

    fn row(number: u32) -> Narrow {
        Narrow::new(number % 97, number % 7, Told { point: number, ..Told::zeroed() })
    }

    fn points(portion: Portion<'_, Narrow>, spill: &Spill) -> Vec<u32> {
        let mut rows = Vec::new();
        portion.load(&mut rows, spill).unwrap();
        assert_eq!(rows.len(), portion.rows());
        let mut points: Vec<u32> = rows.iter().map(|row| row.told().point).collect();
        points.sort_unstable();
        points
    }

    #[test]
    fn what_is_spilled_comes_back_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let (mut all, mut small) = (Parts::new(3, usize::MAX), Parts::new(3, 1000));
        for number in 0..20_000 {
            all.push(row(number)).unwrap();
            small.push(row(number)).unwrap();
            small.keep_within(&spill).unwrap();
        }
        assert!(spill.bytes() > 18_000 * 64);
        for (all, small) in Portion::all(&[all]).zip(Portion::all(&[small])) {
            assert_eq!(points(all, &spill), points(small, &spill));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_portion_has_the_rows_of_all_workers() {
        let spill = Spill::new(Path::new("."));
        let (mut whole, mut halves) =
            (Parts::new(2, usize::MAX), [(); 2].map(|()| Parts::new(2, usize::MAX)));
        for number in 0..2_000 {
            whole.push(row(number)).unwrap();
            halves[number as usize % 2].push(row(number)).unwrap();
        }
        for (whole, halves) in Portion::all(&[whole]).zip(Portion::all(&halves)) {
            assert_eq!(points(whole, &spill), points(halves, &spill));
        }
    }

    #[test]
    fn a_part_is_cut_in_the_order_of_its_keys_and_one_key_is_not_cut() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let mut parts = [Parts::new(0, 500)];
        for number in 0..5_000 {
            parts[0].push(row(number)).unwrap();
            parts[0].keep_within(&spill).unwrap();
        }
        let whole = Portion::all(&parts).next().unwrap();
        let (mut last, mut rows, mut cuts) = (None, 0, 0);
        for part in Portion::all(&[whole.split(100, &spill).unwrap().unwrap()]) {
            rows += part.rows();
            if part.rows() > 0 {
                let (lowest, highest) = part.span(&spill).unwrap();
                assert!(last < Some(lowest) && lowest >> part.shift() == highest >> part.shift());
                (last, cuts) = (Some(highest), cuts + 1);
            }
        }
        // The first bits are the source's: 97 sources fall into 81 of 256 parts, give or take a few.
        assert!(rows == 5_000 && cuts > 60, "{rows} {cuts}");

        let mut parts = [Parts::new(0, 10)];
        (0..50).for_each(|number| parts[0].push(row(number * 97 * 7)).unwrap());
        assert!(Portion::all(&parts).next().unwrap().split(10, &spill).unwrap().is_none());
    }
}
