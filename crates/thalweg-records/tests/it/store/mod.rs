//! Tests of the store with killed processes and full disks.

mod crash;
mod disk_full;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use thalweg_records::schema::Dataset;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Address, Format, Record, RecordBatch};

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

/// Returns rows that are numbered by their octets.
fn rows(octets: std::ops::Range<u64>, received: Timestamp) -> RecordBatch {
    let mut batch = RecordBatch::default();
    for octets in octets {
        batch.push(&Record {
            received_us: (received.0 / 1000) as i64,
            format: Format::NetFlow9,
            source_address: Address::v4((octets as u32).wrapping_mul(0x9E37_79B9)),
            octets,
            ..Record::default()
        });
    }
    batch
}

/// Returns the `*.parquet` files below a directory.
fn visible(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(visible(&path));
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    found
}

/// Returns the sorted octets of all rows of all files. Fails on an incomplete file.
fn octets(directory: &Path) -> Vec<u64> {
    let column = RecordBatch::columns().iter().position(|column| column.name == "bytes").unwrap();
    let mut octets = Vec::new();
    for path in visible(directory) {
        let file = SerializedFileReader::new(fs::File::open(&path).unwrap());
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for row in file.get_row_iter(None).unwrap() {
            octets.push(row.unwrap().get_long(column).unwrap() as u64);
        }
    }
    octets.sort_unstable();
    octets
}
