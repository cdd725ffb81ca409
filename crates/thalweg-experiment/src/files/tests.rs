use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use ::parquet::basic::Compression;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::*;
use crate::results::{DropRow, FlowRow, LinkRow, QueueRow};

fn flows() -> Vec<FlowRow> {
    let flow = FlowRow {
        flow: 0,
        src: "h0".to_owned(),
        dst: "h\u{e9}, \"17\"".to_owned(),
        bytes: 14_600,
        dscp: 46,
        start_ns: 1_200,
        fct_ns: 23_400,
        slowdown: 1.25,
        retransmissions: 0,
        timeouts: 0,
        marks: 3,
    };
    vec![
        flow.clone(),
        FlowRow {
            flow: u32::MAX,
            bytes: u64::MAX,
            slowdown: 1.0 / 3.0,
            src: "h2".to_owned(),
            ..flow.clone()
        },
        FlowRow { flow: 2, src: String::new(), slowdown: 2.0, dscp: 0, ..flow },
    ]
}

fn queues() -> Vec<QueueRow> {
    let queue = |index: u32| QueueRow {
        time_ns: u64::from(index / 4) * 1_000_000,
        router: format!("tor{}", index % 2),
        port: (index % 4) as u16 * 21_845,
        to: "spine0".to_owned(),
        packets: index.wrapping_mul(0x9E37_79B9) >> 24,
        bytes: u64::from(index) * 1_538,
    };
    (0..1_000).map(queue).collect()
}

fn links() -> Vec<LinkRow> {
    vec![LinkRow {
        time_ns: 10_000_000,
        interval_ns: 10_000_000,
        from: "h0".to_owned(),
        to: "tor0".to_owned(),
        packets: 8_000,
        bytes: 12_304_000,
        utilisation: 0.984_32,
        marked_packets: 12,
        dropped_packets: 0,
    }]
}

fn flow_series() -> Vec<FlowSeriesRow> {
    let row = |index: u64| FlowSeriesRow {
        time_ns: 1_000 * index,
        interval_ns: 1_000,
        flow: index as u32 % 3,
        workload: 1,
        src: "h0".into(),
        dst: "h1".into(),
        dscp: 0,
        cwnd_packets: 10.5 + index as f64,
        cwnd_bytes: 15_204 + 1_448 * index,
        ssthresh_bytes: (index > 4).then_some(9_000),
        srtt_ns: index.is_multiple_of(2).then_some(25_000 + index),
        rtt_ns: index.is_multiple_of(3).then_some(u64::MAX),
        in_flight_bytes: 2_896,
        sent_packets: 2,
        retransmissions: 0,
        timeouts: 0,
        acked_bytes: 2_896,
        received_packets: 2,
        received_bytes: 3_076,
        marked_packets: 0,
        delivered_bytes: 2_896,
        queueing_delay_mean_ns: None,
        queueing_delay_max_ns: None,
    };
    (0..10).map(row).collect()
}

fn csv_text<R: Row>(rows: &[R]) -> String {
    let mut out = Vec::new();
    let mut writer = super::csv::Writer::new::<R>(&mut out).unwrap();
    writer.rows(rows).unwrap();
    writer.close().unwrap();
    String::from_utf8(out).unwrap()
}

fn parquet_bytes<R: Row>(rows: &[R], group: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = super::parquet::Writer::new(&mut out).unwrap();
    rows.chunks(group).for_each(|rows| writer.group(rows).unwrap());
    writer.close().unwrap();
    out
}

fn open(bytes: &[u8]) -> SerializedFileReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    SerializedFileReader::new(file).unwrap()
}

/// Column names and values as in CSV.
fn read_back(bytes: &[u8]) -> Vec<Vec<(String, String)>> {
    let reader = open(bytes);
    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        Field::UShort(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Null => String::new(),
        other => panic!("no column has the type of {other:?}"),
    };
    let row = |row: ::parquet::record::Row| {
        row.get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect()
    };
    reader.get_row_iter(None).unwrap().map(|read| row(read.unwrap())).collect()
}

/// The same, read from CSV.
fn by_csv<R: Row>(rows: &[R]) -> Vec<Vec<(String, String)>> {
    let text = csv_text(rows);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let row = |cells: ::csv::StringRecord| {
        names.iter().map(str::to_owned).zip(cells.iter().map(str::to_owned)).collect()
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

#[test]
fn csv_matches_the_golden_text() {
    assert_eq!(
        csv_text(&flows()),
        "flow,src,dst,bytes,dscp,start_ns,fct_ns,slowdown,retransmissions,timeouts,marks\n\
         0,h0,\"h\u{e9}, \"\"17\"\"\",14600,46,1200,23400,1.25,0,0,3\n\
         4294967295,h2,\"h\u{e9}, \"\"17\"\"\",9223372036854775807,46,1200,23400,0.3333333333333333,0,0,3\n\
         2,,\"h\u{e9}, \"\"17\"\"\",14600,0,1200,23400,2,0,0,3\n"
    );
    assert_eq!(
        csv_text(&queues()[..2]),
        "time_ns,router,port,to,packets,bytes\n0,tor0,0,spine0,0,0\n0,tor1,21845,spine0,158,1538\n"
    );
    assert_eq!(
        csv_text(&links()),
        "time_ns,interval_ns,from,to,packets,bytes,utilisation,marked_packets,dropped_packets\n\
         10000000,10000000,h0,tor0,8000,12304000,0.98432,12,0\n"
    );
    let drops = [DropRow { place: "tor0 > h3".to_owned(), reason: "queue full", packets: 7 }];
    assert_eq!(csv_text(&drops), "place,reason,packets\ntor0 > h3,queue full,7\n");
    assert_eq!(csv_text::<DropRow>(&[]), "place,reason,packets\n");
}

#[test]
fn parquet_round_trips_for_any_row_groups() {
    assert_eq!(read_back(&parquet_bytes(&flows(), 2)), by_csv(&flows()));
    assert_eq!(read_back(&parquet_bytes(&links(), 1)), by_csv(&links()));
    for group in [300, 1_000, 5_000] {
        assert_eq!(read_back(&parquet_bytes(&queues(), group)), by_csv(&queues()), "{group} rows a group");
    }
    assert_eq!(read_back(&parquet_bytes::<LinkRow>(&[], 10)), [[]; 0]);
}

/// Serde's names are those of the structs and of JSON.
#[test]
fn columns_are_the_fields_of_the_rows_in_their_order() {
    fn check<R: Row + serde::Serialize>(row: &R) {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.serialize(row).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        let names: Vec<_> = R::COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(text.lines().next().unwrap(), names.join(","));
    }
    check(&flows()[0]);
    check(&queues()[0]);
    check(&links()[0]);
    check(&DropRow { place: String::new(), reason: "", packets: 0 });
}

#[test]
fn a_parquet_file_names_its_writer_without_a_date() {
    let bytes = parquet_bytes(&queues(), 300);
    assert_eq!(bytes, parquet_bytes(&queues(), 300));
    let reader = open(&bytes);
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some(concat!("thalweg version ", env!("CARGO_PKG_VERSION"))));
    assert_eq!(file.key_value_metadata(), None);
    assert_eq!(reader.metadata().num_row_groups(), 4);
    let chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    for chunk in chunks {
        assert!(matches!(chunk.compression(), Compression::ZSTD(_)));
        let is_name = matches!(chunk.column_path().string().as_str(), "router" | "to");
        assert!(!is_name || chunk.dictionary_page_offset().is_some(), "{}", chunk.column_path());
    }
}

#[test]
fn files_are_complete_under_their_names() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/new/folder");
    for format in [Format::Parquet, Format::Csv] {
        let path = write_rows(&folder, format, &links()).unwrap();
        assert_eq!(path, folder.join(format!("links.{}", format.extension())));
        let first = fs::read(&path).unwrap();
        write_rows(&folder, format, &links()).unwrap();
        assert_eq!(first, fs::read(&path).unwrap());
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn an_error_names_the_file_and_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write_rows(&file.join("below"), Format::Csv, &links()).unwrap_err();
    assert!(matches!(&error, WriteError::Folder { .. }));
    assert_eq!(error.to_string(), format!("cannot create the directory {}", file.join("below").display()));
    assert!(std::error::Error::source(&error).is_some());

    // A directory in the place of the file.
    fs::create_dir(folder.path().join("links.csv")).unwrap();
    let error = write_rows(folder.path(), Format::Csv, &links()).unwrap_err();
    assert!(matches!(&error, WriteError::File { .. }));
    assert_eq!(error.to_string(), format!("cannot write {}", folder.path().join("links.csv").display()));
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| name == "file" || name == "links.csv"));
}

#[test]
fn the_reference_page_has_every_column_with_its_type() {
    let page = reference();
    for line in [
        "| `fct_ns` | int64 | ns | flow completion time: from the start until the receiver has all bytes |",
        "| `port` | uint16 |  | port number, from 0 |",
        "| `utilisation` | double |  | share of the link's capacity that was used, 0 to 1 |",
        "| `router` | string |  | router of the port |",
    ] {
        assert!(page.contains(line), "{line}");
    }
    // Those of the four tables, of the three series, and of the table of a sweep.
    assert_eq!(page.matches("\n| `").count(), 11 + 6 + 9 + 3 + 25 + 16 + 16 + 14 + 6);
}

/// With pandas, if installed: missing values, sums and the pivot of the guide.
#[test]
fn pandas_reads_time_series_from_both_formats() {
    const SCRIPT: &str = r#"
import sys
try:
    import pandas
except ImportError as error:
    print("skipped:", error)
    sys.exit()
folder = sys.argv[1]
tables = [pandas.read_csv(folder + "/flow_series.csv")]
try:
    tables.append(pandas.read_parquet(folder + "/flow_series.parquet"))
except ImportError as error:
    print("without Parquet:", error, file=sys.stderr)
for table in tables:
    pivot = table.pivot(index="time_ns", columns="flow", values="cwnd_packets")
    print(len(table), int(table.acked_bytes.sum()), int(table.srtt_ns.isna().sum()),
          int(table.queueing_delay_max_ns.notna().sum()), pivot.shape, float(table.goodput_bps.iloc[0]))
"#;
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Parquet, Format::Csv] {
        write_rows(folder.path(), format, &flow_series()).unwrap();
    }
    let python = Command::new("python3").args(["-c", SCRIPT]).arg(folder.path()).output();
    let Ok(output) = python.inspect_err(|error| println!("skipped: no python3: {error}")) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    match text.strip_prefix("skipped:") {
        Some(why) => println!("skipped:{why}"),
        None => {
            let lines: Vec<&str> = text.lines().collect();
            assert!((1..=2).contains(&lines.len()), "{text}");
            lines.iter().for_each(|line| assert_eq!(*line, "10 28960 5 0 (10, 3) 23168000000.0"));
        }
    }
}

/// With other readers, if installed: types as on the reference page, values as in CSV.
#[test]
fn pyarrow_and_duckdb_read_the_files() {
    const SCRIPT: &str = r#"
import csv, sys
try:
    import duckdb
    import pyarrow.parquet
except ImportError as error:
    print("skipped:", error)
    sys.exit()
folder = sys.argv[1]
table = pyarrow.parquet.read_table(folder + "/queues.parquet")
print([f"{field.name} {field.type}" for field in table.schema])
with open(folder + "/queues.csv") as file:
    rows = [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]
    assert rows == list(csv.DictReader(file))
print(duckdb.sql(f"SELECT count(*), sum(bytes) FROM '{folder}/queues.parquet'").fetchall())
"#;
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Parquet, Format::Csv] {
        write_rows(folder.path(), format, &queues()).unwrap();
    }
    let python = Command::new("python3").args(["-c", SCRIPT]).arg(folder.path()).output();
    let Ok(output) = python.inspect_err(|error| println!("skipped: no python3: {error}")) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    match text.strip_prefix("skipped:") {
        Some(why) => println!("skipped:{why}"),
        None => assert_eq!(
            text,
            "['time_ns int64', 'router string', 'port uint16', 'to string', 'packets int64', 'bytes int64']\n\
             [(1000, 768231000)]\n"
        ),
    }
}

const LIMITS: read::TableLimits = read::TableLimits { bytes: 1 << 20, rows: 2_000 };

/// The values of all columns in the order of the table, as text.
fn read_table<R: Row>(
    folder: &Path,
    limits: read::TableLimits,
) -> Result<Vec<Vec<String>>, read::TableError> {
    let (path, format) = read::table::<R>(folder).unwrap();
    let columns: Vec<&str> = R::COLUMNS.iter().map(|column| column.name).collect();
    let mut rows = Vec::new();
    read::read_rows::<R>((&path, format), &columns, limits, &mut |row| {
        let text = |cell: &read::Cell<'_>| match cell {
            read::Cell::Name(name) => (*name).to_owned(),
            read::Cell::Count(count) => count.to_string(),
            read::Cell::Ratio(ratio) => ratio.to_string(),
            read::Cell::Missing => String::new(),
        };
        rows.push(row.iter().map(text).collect());
    })?;
    Ok(rows)
}

fn check_read<R: Row>(rows: &[R]) {
    let expected: Vec<Vec<String>> =
        by_csv(rows).into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect();
    for format in [Format::Parquet, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        assert!(read::table::<R>(folder.path()).is_none());
        write_rows(folder.path(), format, rows).unwrap();
        assert_eq!(read_table::<R>(folder.path(), LIMITS).unwrap(), expected, "{format:?}");
    }
}

#[test]
fn tables_are_read_as_they_were_written() {
    check_read(&flows());
    check_read(&queues());
    check_read(&links());
    check_read(&flow_series());
    check_read::<DropRow>(&[]);
}

#[test]
fn tables_beyond_a_limit_and_damaged_ones_are_refused() {
    for format in [Format::Parquet, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let path = write_rows(folder.path(), format, &queues()).unwrap();
        let problem = |limits| read_table::<QueueRow>(folder.path(), limits).unwrap_err().problem;
        let rows = problem(read::TableLimits { rows: 999, ..LIMITS });
        assert_eq!(rows, "the table has more than 999 rows");
        let bytes = problem(read::TableLimits { bytes: 10, ..LIMITS });
        assert!(
            bytes.starts_with("the file has ") && bytes.ends_with(" bytes, at most 10 are read"),
            "{bytes}"
        );
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        if format == Format::Parquet {
            assert!(read_table::<QueueRow>(folder.path(), LIMITS).is_err());
        }
        fs::write(&path, "time_ns,router\nx,tor0\n").unwrap();
        let missing = problem(LIMITS);
        assert!(format == Format::Parquet || missing == "column port is missing", "{missing}");
        // A link may lead anywhere.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(read::table::<QueueRow>(folder.path()).is_none());
    }
}

#[test]
fn a_number_that_is_none_is_refused_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let text = csv_text(&links()).replace("8000", "many");
    fs::write(folder.path().join("links.csv"), text).unwrap();
    let problem = read_table::<LinkRow>(folder.path(), LIMITS).unwrap_err().problem;
    assert_eq!(problem, "row 1, column packets: expected a number, found \"many\"");
}
