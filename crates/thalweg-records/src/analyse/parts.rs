//! Records cut into parts by their key, in memory and, beyond a bound, in an unlinked file.
//!
//! A part is what is later sorted and worked on at once: small enough for the second-level cache where memory allows,
//! never larger than the memory given. Parts that come out larger, because a few pairs of hosts have most records, are
//! cut again where their keys first differ.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AnalyseError;
use super::chunks::{CHUNK, Chunks};
use super::packed::{MOST, pack, unpack};
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

/// Rows in a spill file: what a chunk had.
#[derive(Clone, Debug)]
struct Extent {
    file: Arc<File>,
    at: u64,
    bytes: usize,
}

/// More than any chunk has.
const NO_CHUNK: usize = usize::MAX;

/// Rows whose keys begin alike.
#[derive(Debug)]
struct Part {
    /// The last chunk, and how much of it is used; [`NO_CHUNK`] if there is none.
    last: u32,
    used: usize,
    /// When the row before began.
    start: i64,
    /// How many rows there are.
    rows: usize,
    /// The chunks before the last, and how much of each is used.
    full: Vec<(u32, usize)>,
    spilled: Vec<Extent>,
}

impl Part {
    fn new() -> Part {
        Part { last: 0, used: NO_CHUNK, start: 0, rows: 0, full: Vec::new(), spilled: Vec::new() }
    }

    #[cold]
    fn add_chunk(&mut self, chunks: &mut Chunks) -> Result<(), AnalyseError> {
        let next = chunks.take().map_err(AnalyseError::Memory)?;
        let before = self.last();
        self.full.extend(before);
        (self.last, self.used, self.start) = (next, 0, 0);
        Ok(())
    }

    fn last(&self) -> Option<(u32, usize)> {
        (self.used != NO_CHUNK).then_some((self.last, self.used))
    }

    /// Its chunks in memory, and how much of each is used.
    fn in_memory(&self) -> impl Iterator<Item = (u32, usize)> {
        self.full.iter().copied().chain(self.last())
    }
}

/// All parts that rows are being put into.
#[derive(Debug)]
pub(super) struct Parts<R> {
    /// Keys of a part are equal in the bits from this one up.
    shift: u32,
    mask: usize,
    parts: Vec<Part>,
    chunks: Chunks,
    /// Bytes in memory, and how many may be.
    held: usize,
    most: usize,
    file: Option<(Arc<File>, u64)>,
    rows: PhantomData<R>,
}

impl<R: Row> Parts<R> {
    /// `1 << bits` parts, of which at most `most` bytes are held in memory.
    pub(super) fn new(bits: u32, most: usize) -> Parts<R> {
        Parts::below(KEY_BITS, bits, most)
    }

    /// Parts by the `bits` of the key below bit `top`.
    fn below(top: u32, bits: u32, most: usize) -> Parts<R> {
        Parts {
            shift: top - bits,
            mask: (1 << bits) - 1,
            parts: (0..1 << bits).map(|_| Part::new()).collect(),
            chunks: Chunks::default(),
            held: 0,
            most,
            file: None,
            rows: PhantomData,
        }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, row: &R) -> Result<(), AnalyseError> {
        let part = &mut self.parts[(row.key() >> self.shift) as usize & self.mask];
        if part.used > CHUNK - MOST {
            part.add_chunk(&mut self.chunks)?;
        }
        let bytes = pack(row, &mut part.start, self.chunks.room(part.last, part.used));
        part.used += bytes;
        part.rows += 1;
        self.held += bytes;
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
            let extents = part.in_memory().map(|(chunk, bytes)| {
                file.write_all_at(&self.chunks.chunk(chunk)[..bytes], end).map_err(spill.failed())?;
                end += bytes as u64;
                Ok(Extent { file: file.clone(), at: end - bytes as u64, bytes })
            });
            let extents = extents.collect::<Result<Vec<_>, AnalyseError>>()?;
            part.spilled.extend(extents);
            part.full.clear();
            part.used = NO_CHUNK;
        }
        spill.bytes.fetch_add(self.held as u64, Ordering::Relaxed);
        self.chunks.clear();
        self.file = Some((file, end));
        self.held = 0;
        Ok(())
    }

    /// Gives the rows of a part to `f`.
    fn each(
        &self,
        number: usize,
        spill: &Spill,
        mut f: impl FnMut(R) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let (part, mut buffer) = (&self.parts[number], [0; CHUNK]);
        for extent in &part.spilled {
            let bytes = &mut buffer[..extent.bytes];
            extent.file.read_exact_at(bytes, extent.at).map_err(spill.failed())?;
            each(&buffer, extent.bytes, &mut f)?;
        }
        part.in_memory().try_for_each(|(chunk, used)| each(self.chunks.chunk(chunk), used, &mut f))
    }
}

/// Gives the rows in the first bytes of a chunk to `f`.
#[inline]
fn each<R: Row>(
    chunk: &[u8; CHUNK],
    used: usize,
    f: &mut impl FnMut(R) -> Result<(), AnalyseError>,
) -> Result<(), AnalyseError> {
    let (mut at, mut start) = (0, 0);
    while at < used {
        let (row, bytes) = unpack(chunk[at..].first_chunk().expect("room for a row"), &mut start);
        at += bytes;
        f(row)?;
    }
    Ok(())
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
        self.parts.iter().map(|parts| parts.parts[self.number].rows).sum()
    }

    /// Puts its rows into `rows`, in place of what is there.
    pub(super) fn load(self, rows: &mut Vec<R>, spill: &Spill) -> Result<(), AnalyseError> {
        rows.clear();
        rows.reserve(self.rows());
        self.each(spill, |row| {
            rows.push(row);
            Ok(())
        })
    }

    fn each(
        self,
        spill: &Spill,
        mut f: impl FnMut(R) -> Result<(), AnalyseError>,
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

    /// Cuts it where its keys first differ, holding at most `most` more bytes in memory; none if all have one key.
    pub(super) fn split(self, most: usize, spill: &Spill) -> Result<Option<Parts<R>>, AnalyseError> {
        let (lowest, highest) = self.span(spill)?;
        let differing = u128::BITS - (lowest ^ highest).leading_zeros();
        if differing == 0 {
            return Ok(None);
        }
        let mut parts = Parts::below(differing, differing.min(SPLIT_BITS), most);
        self.each(spill, |row| {
            parts.push(&row)?;
            parts.keep_within(spill)
        })?;
        Ok(Some(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Narrow, Told};
    use super::*;

    fn row(number: u32) -> Narrow {
        Narrow::new(number % 97, number % 7, Told { point: number, ..Told::default() })
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
        let (mut all, mut small) = (Parts::new(3, usize::MAX), Parts::new(3, 20_000));
        for number in 0..20_000 {
            all.push(&row(number)).unwrap();
            small.push(&row(number)).unwrap();
            small.keep_within(&spill).unwrap();
        }
        assert!(spill.bytes() > 18_000 * 20);
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
            whole.push(&row(number)).unwrap();
            halves[number as usize % 2].push(&row(number)).unwrap();
        }
        for (whole, halves) in Portion::all(&[whole]).zip(Portion::all(&halves)) {
            assert_eq!(points(whole, &spill), points(halves, &spill));
        }
    }

    #[test]
    fn a_part_is_cut_in_the_order_of_its_keys_and_one_key_is_not_cut() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path());
        let mut parts = [Parts::new(0, 10_000)];
        for number in 0..5_000 {
            parts[0].push(&row(number)).unwrap();
            parts[0].keep_within(&spill).unwrap();
        }
        let whole = Portion::all(&parts).next().unwrap();
        let (mut last, mut rows, mut cuts) = (None, 0, 0);
        for part in Portion::all(&[whole.split(2_000, &spill).unwrap().unwrap()]) {
            rows += part.rows();
            if part.rows() > 0 {
                let (lowest, highest) = part.span(&spill).unwrap();
                assert!(last < Some(lowest) && lowest >> part.shift() == highest >> part.shift());
                (last, cuts) = (Some(highest), cuts + 1);
            }
        }
        // The first bits are the source's: 97 sources fall into 81 of 256 parts, give or take a few.
        assert!(rows == 5_000 && cuts > 60, "{rows} {cuts}");

        let mut parts = [Parts::new(0, 200)];
        (0..50).for_each(|number| parts[0].push(&row(number * 97 * 7)).unwrap());
        assert!(Portion::all(&parts).next().unwrap().split(200, &spill).unwrap().is_none());
    }
}
