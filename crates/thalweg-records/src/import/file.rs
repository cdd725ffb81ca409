//! One file: from its blocks to Parquet.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::nfcapd::{BlockHeader, Decoder, FileHeader, NfcapdError, NfcapdProblem, Tally};
use xxhash_rust::xxh3::Xxh3;

use super::ImportError;
use super::compression::decompressed;
use super::run::ImportOptions;
use crate::geo::GeoAnnotator;
use crate::schema::Dataset as _;
use crate::store::files::{Paths, Unpublished};
use crate::store::layout::Stem;

/// The store's name in the names of files.
pub(super) const STORE: &str = "nfcapd";

const HOUR_US: i64 = 3_600_000_000;

/// What a file had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The records by kind.
    pub tally: Tally,
    /// The sum of the packets of all flows.
    pub packets: u64,
    /// The sum of their bytes.
    pub octets: u64,
    /// The Parquet files.
    pub files: Vec<PathBuf>,
}

/// Imports a file.
///
/// # Errors
/// If it cannot be read, is none of nfdump, or damaged, or a Parquet file cannot be written. Then none of its records are
/// stored.
pub fn import_file(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let file = File::open(path).map_err(ImportError::io("read", path))?;
    let length = file.metadata().map_err(ImportError::io("read", path))?.len();
    let content = |source| ImportError::Content { path: path.to_owned(), source };
    if length == 0 {
        return Err(content(FileHeader::read(&[]).unwrap_err()));
    }
    #[expect(unsafe_code, reason = "a memory map of a file")]
    // SAFETY: nfdump renames finished files into place and does not change them; a file that somebody cuts short meanwhile
    // ends the program with SIGBUS, as with every program that maps it.
    let bytes = unsafe { Mmap::map(&file) }.map_err(ImportError::io("map", path))?;
    let header = FileHeader::read(&bytes).map_err(content)?;

    let mut writer = HourWriter::new(path, &bytes, options);
    let (mut decoder, mut room, mut batch) = (Decoder::default(), Vec::new(), RecordBatch::default());
    let mut geo = options.geo.clone().map(GeoAnnotator::new);
    let mut offset = FileHeader::BYTES;
    for block in 0..header.blocks {
        let rest = &bytes[offset..];
        let block_header = BlockHeader::read(rest, offset).map_err(content)?;
        let size = block_header.bytes as usize;
        let body = rest.get(BlockHeader::BYTES..BlockHeader::BYTES + size).ok_or_else(|| {
            let left = (rest.len() - BlockHeader::BYTES) as u64;
            let problem = NfcapdProblem::Truncated { what: "a block", needed: size as u64, left };
            content(NfcapdError { offset: offset as u64, problem })
        })?;
        let failed = |problem: String| ImportError::Block {
            path: path.to_owned(),
            block,
            offset: offset as u64,
            problem,
        };
        if block_header.has_records {
            let compression = match block_header.is_plain {
                true => thalweg_wire::nfcapd::Compression::None,
                false => header.compression,
            };
            let body = decompressed(compression, body, &mut room).map_err(failed)?;
            decoder.block(body, &mut batch).map_err(|error| failed(error.to_string()))?;
            if let Some(geo) = &mut geo {
                geo.annotate(&mut batch);
            }
            writer.push(&mut batch)?;
        }
        offset += BlockHeader::BYTES + size;
    }
    let files = writer.publish()?;
    Ok(Imported { tally: decoder.tally(), packets: files.packets, octets: files.octets, files: files.paths })
}

/// Writes rows to a file for each hour of their reception.
struct HourWriter<'a> {
    source: &'a Path,
    paths: Paths,
    /// Follows from the source.
    sequence: u64,
    hours: BTreeMap<i64, Unpublished<RecordBatch>>,
    packets: u64,
    octets: u64,
}

struct Published {
    paths: Vec<PathBuf>,
    packets: u64,
    octets: u64,
}

impl<'a> HourWriter<'a> {
    fn new(source: &'a Path, bytes: &[u8], options: &ImportOptions) -> HourWriter<'a> {
        let mut hash = Xxh3::new();
        hash.update(source.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(&(bytes.len() as u64).to_le_bytes());
        // The first and the last block tell files of one name and length apart.
        hash.update(&bytes[..bytes.len().min(1 << 16)]);
        hash.update(&bytes[bytes.len().saturating_sub(1 << 16)..]);
        HourWriter {
            source,
            paths: Paths::new::<RecordBatch>(&options.store()),
            sequence: hash.digest() >> 1,
            hours: BTreeMap::new(),
            packets: 0,
            octets: 0,
        }
    }

    /// Writes the rows of a batch, and empties it.
    fn push(&mut self, batch: &mut RecordBatch) -> Result<(), ImportError> {
        let sum = |values: &[u64]| values.iter().fold(0u64, |sum, &value| sum.saturating_add(value));
        self.packets = self.packets.saturating_add(sum(&batch.packets));
        self.octets = self.octets.saturating_add(sum(&batch.octets));
        let hour = |row: usize| batch.received_us[row].div_euclid(HOUR_US);
        let mut from = 0;
        while from < batch.len() {
            let this = hour(from);
            let to = (from + 1..batch.len()).find(|&row| hour(row) != this).unwrap_or(batch.len());
            if from == 0 && to == batch.len() {
                self.write(this, batch)?;
            } else {
                let mut part = RecordBatch::default();
                part.append_rows(batch, from..to);
                self.write(this, &part)?;
            }
            from = to;
        }
        batch.clear();
        Ok(())
    }

    fn write(&mut self, hour: i64, batch: &RecordBatch) -> Result<(), ImportError> {
        let failed = || ImportError::io("write the Parquet file of", self.source);
        let file = match self.hours.entry(hour) {
            std::collections::btree_map::Entry::Occupied(file) => file.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let stem = Stem::new(STORE, hour * HOUR_US, self.sequence);
                place.insert(Unpublished::create(&self.paths, &stem).map_err(failed())?)
            }
        };
        file.writer().push(batch).map_err(failed())
    }

    fn publish(self) -> Result<Published, ImportError> {
        let mut paths = Vec::new();
        for file in self.hours.into_values() {
            let published =
                file.publish().map_err(ImportError::io("write the Parquet file of", self.source))?;
            paths.push(published.path);
        }
        Ok(Published { paths, packets: self.packets, octets: self.octets })
    }
}
