use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use thalweg_wire::flow_export::{Address, CounterBatch, Format, Record, RecordBatch};

use crate::schema::Values;

use super::*;

fn written<D: Dataset>(batches: &[&D], row_group_rows: usize) -> (SerializedFileReader<Bytes>, u64) {
    let mut file = FileWriter::new(Vec::new(), row_group_rows, 1).unwrap();
    for batch in batches {
        file.push(*batch).unwrap();
    }
    let (bytes, saturated) = file.finish().unwrap();
    (SerializedFileReader::new(Bytes::from(bytes)).unwrap(), saturated)
}

/// Returns the value that the `parquet` crate's reader must read.
fn field(values: Values<'_>, row: usize) -> Field {
    match values {
        Values::Timestamp(values) => Field::TimestampMicros(values[row]),
        Values::Address(values) => Field::Str(values[row].to_string()),
        Values::Format(values) => Field::Str(values[row].name().to_owned()),
        Values::Text(values) => Field::Str(values[row].to_string()),
        Values::U8(values) => Field::Int(values[row].into()),
        Values::U16(values) => Field::Int(values[row].into()),
        Values::U32(values) => Field::Long(values[row].into()),
        Values::U64(values) => Field::Long(values[row].try_into().unwrap_or(i64::MAX)),
        Values::Name(values) => Field::Str(values[row].to_string()),
        Values::Mac(values) => Field::Str(values[row].to_string()),
        Values::Labels(values) => Field::Str(values[row].to_string()),
        Values::Unset(Kind::U8 | Kind::U16, _) => Field::Int(0),
        Values::Unset(Kind::U32 | Kind::U64, _) => Field::Long(0),
        Values::Unset(..) => Field::Str(String::new()),
    }
}

fn check_read_back<D: Dataset>(file: &SerializedFileReader<Bytes>, batches: &[&D]) {
    let expected = batches.iter().flat_map(|&batch| (0..batch.rows()).map(move |row| (batch, row)));
    let mut rows = file.get_row_iter(None).unwrap();
    for (batch, row) in expected {
        let read = rows.next().expect("a row is missing").unwrap();
        for ((number, column), (name, value)) in D::columns().iter().enumerate().zip(read.get_column_iter()) {
            assert_eq!(name, column.name);
            assert_eq!(*value, field(batch.values(number), row), "{name}, row {row}");
        }
    }
    assert!(rows.next().is_none(), "extra rows");
}

/// Records with columns of all shapes: constants, few values, many values, and extremes.
fn any_record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![Just(0), Just(1_795_352_400_000_000_i64), any::<i64>()];
    let address = prop_oneof![
        (0_u32..20).prop_map(Address::v4),
        any::<u32>().prop_map(Address::v4),
        any::<u128>().prop_map(Address),
        Just(Address::NONE),
    ];
    let number = prop_oneof![0_u64..3, any::<u64>(), Just(u64::MAX), Just(i64::MAX as u64)];
    let format = prop::sample::select(&Format::ALL[..]);
    (time.clone(), time, address.clone(), address, number, any::<u32>(), any::<u16>(), any::<u8>(), format)
        .prop_map(
            |(received_us, flow_end_us, exporter, source_address, octets, source_as, port, flags, format)| {
                Record {
                    received_us,
                    flow_end_us,
                    exporter,
                    source_address,
                    octets,
                    source_as,
                    source_port: port,
                    protocol: flags,
                    format,
                    ..Record::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rows_round_trip(records in prop::collection::vec(any_record(), 1..700)) {
        let mut batch = RecordBatch::default();
        records.iter().for_each(|record| batch.push(record));
        let (file, saturated) = written(&[&batch], 1 << 20);
        check_read_back(&file, &[&batch]);
        let above = batch.octets.iter().filter(|&&octets| octets > i64::MAX as u64).count();
        prop_assert_eq!(saturated, above as u64);
    }
}

/// Readers skip row groups by these bounds, so they must be exact.
#[test]
fn the_footer_has_minimum_and_maximum_of_each_column() {
    let mut batch = RecordBatch::default();
    for number in [7_u32, 3, 11] {
        batch.push(&Record {
            received_us: i64::from(number),
            source_address: Address::v4(number),
            source_as: number,
            source_port: number as u16,
            ..Record::default()
        });
    }
    let (file, _) = written(&[&batch], 1 << 20);
    let bounds = |name: &str| {
        let number = RecordBatch::columns().iter().position(|column| column.name == name).unwrap();
        let statistics = file.metadata().row_group(0).column(number).statistics().unwrap().clone();
        (statistics.min_bytes_opt().unwrap().to_vec(), statistics.max_bytes_opt().unwrap().to_vec())
    };
    assert_eq!(bounds("received"), (3_i64.to_le_bytes().to_vec(), 11_i64.to_le_bytes().to_vec()));
    assert_eq!(bounds("src_as"), (3_i64.to_le_bytes().to_vec(), 11_i64.to_le_bytes().to_vec()));
    assert_eq!(bounds("src_port"), (3_i32.to_le_bytes().to_vec(), 11_i32.to_le_bytes().to_vec()));
    // As text: 0.0.0.11 is before 0.0.0.3.
    assert_eq!(bounds("src"), (b"0.0.0.11".to_vec(), b"0.0.0.7".to_vec()));
    assert_eq!(bounds("next_hop"), (Vec::new(), Vec::new()));
}

/// `octets` has few values, then distinct ones, so its dictionary is abandoned after some pages; that of `flow_start` is
/// abandoned in the first page. A row group ends in between, which resets both.
#[test]
fn columns_with_large_dictionaries_switch_to_deltas() {
    let mut batches = Vec::new();
    for page in 0..6_u64 {
        let mut batch = RecordBatch::default();
        for row in 0..PAGE_ROWS as u64 {
            let mixed = (page * PAGE_ROWS as u64 + row).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            batch.push(&Record {
                received_us: (page * 1000 + row / 24) as i64,
                flow_start_us: (mixed >> 20) as i64,
                octets: if page == 0 { row % 100 } else { mixed >> 1 },
                source_address: Address::v4((mixed >> 32) as u32),
                source_port: mixed as u16,
                ..Record::default()
            });
        }
        batches.push(batch);
    }
    let batches: Vec<_> = batches.iter().collect();
    let (file, _) = written(&batches, 5 * PAGE_ROWS);
    assert_eq!(file.metadata().num_row_groups(), 2);
    let encodings = |name: &str| {
        let number = RecordBatch::columns().iter().position(|column| column.name == name).unwrap();
        let column = file.metadata().row_group(0).column(number);
        assert!(matches!(column.compression(), Compression::ZSTD(_)));
        column.encodings().collect::<Vec<_>>()
    };
    let (dictionary, delta) = (Encoding::RLE_DICTIONARY, Encoding::DELTA_BINARY_PACKED);
    assert!(encodings("bytes").contains(&dictionary) && encodings("bytes").contains(&delta));
    assert_eq!(encodings("flow_start"), [delta]);
    assert!(!encodings("src").contains(&delta));
    check_read_back(&file, &batches);
}

#[test]
fn small_batches_are_collected_into_pages() {
    let mut batches = Vec::new();
    for number in 0..50_u32 {
        let mut batch = CounterBatch::default();
        batch.resize(1000);
        batch.in_octets.fill(u64::from(number) << 40);
        batch.exporter.fill(Address::v4(number));
        batches.push(batch);
    }
    let batches: Vec<_> = batches.iter().collect();
    let (file, _) = written(&batches, 1 << 20);
    assert_eq!(file.metadata().file_metadata().num_rows(), 50_000);
    check_read_back(&file, &batches);
}

#[test]
fn equal_rows_give_equal_files() {
    let mut batch = RecordBatch::default();
    batch.resize(5000);
    let mixed = (0..5000_u32).map(|row| Address::v4(row.wrapping_mul(0x9E37_79B9)));
    batch.source_address = mixed.collect();
    let bytes = || {
        let mut file = FileWriter::new(Vec::new(), 1 << 20, 1).unwrap();
        file.push(&batch).unwrap();
        file.finish().unwrap().0
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_failed_write_leaves_no_file() {
    let none: [&RecordBatch; 0] = [];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.parquet");
    assert_eq!(write_file(&path, none, 1000, 1).unwrap(), 0);
    let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    let blocked = directory.path().join("blocked.parquet");
    std::fs::create_dir(&blocked).unwrap();
    assert!(write_file(&blocked, none, 1000, 1).is_err());
    let mut names: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["blocked.parquet", "empty.parquet"]);
}
