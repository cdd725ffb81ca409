//! Writes Parquet files of records, and reads result files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Row, RowAccessor};
use parquet::schema::types::Type;
use thalweg_wire::flow_export::{Address, Record};

use crate::analyse::flow::Flow;
use crate::analyse::flowset::Flowset;

/// Layout of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    Dictionary,
    Plain,
    Delta,
    NullableDictionary,
    NullableVersion2,
}

pub(crate) const LAYOUTS: [Layout; 5] =
    [Layout::Dictionary, Layout::Plain, Layout::Delta, Layout::NullableDictionary, Layout::NullableVersion2];

impl Layout {
    fn properties(self) -> WriterPropertiesBuilder {
        let properties =
            WriterProperties::builder().set_data_page_row_count_limit(700).set_write_batch_size(100);
        match self {
            Layout::Dictionary | Layout::NullableDictionary => properties,
            Layout::Plain => properties.set_dictionary_enabled(false).set_encoding(Encoding::PLAIN),
            Layout::Delta | Layout::NullableVersion2 => properties
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_dictionary_enabled(matches!(self, Layout::NullableVersion2)),
        }
    }

    fn nullable(self) -> bool {
        matches!(self, Layout::NullableDictionary | Layout::NullableVersion2)
    }
}

enum Column {
    Text(Vec<ByteArray>),
    Number(Vec<i32>),
    Count(Vec<i64>),
    Time(Vec<i64>),
}

fn columns(records: &[Record]) -> Vec<(&'static str, Column)> {
    macro_rules! of {
        ($($kind:ident $column:literal $field:ident,)*) => {
            vec![$(($column, of!(@@$kind)(records.iter().map(|record| of!(@$kind record.$field)).collect())),)*]
        };
        (@@Word) => { Column::Text };
        (@@$kind:ident) => { Column::$kind };
        (@Word $value:expr) => { $value.name().into() };
        (@Text $value:expr) => { $value.to_string().as_str().into() };
        (@Number $value:expr) => { i32::from($value) };
        (@$kind:ident $value:expr) => { $value as i64 };
    }
    of! {
        Text "exporter" exporter,
        Word "format" format,
        Count "observation_domain_id" observation_domain_id,
        Count "sampling_interval" sampling_interval,
        Time "flow_start" flow_start_us,
        Time "flow_end" flow_end_us,
        Text "src" source_address,
        Text "dst" destination_address,
        Number "src_port" source_port,
        Number "dst_port" destination_port,
        Number "protocol" protocol,
        Number "tcp_flags" tcp_flags,
        Count "bytes" octets,
        Count "packets" packets,
        Count "src_as" source_as,
        Count "dst_as" destination_as,
        Number "flow_direction" flow_direction,
        Number "tos" class_of_service,
        Count "ingress_interface" ingress_interface,
        Count "egress_interface" egress_interface,
        Text "next_hop" next_hop,
        Number "vlan_id" vlan_id,
    }
}

/// Writes a file of records in row groups of `group` rows.
pub(crate) fn write(path: PathBuf, records: &[Record], group: usize, layout: Layout) -> PathBuf {
    let repetition = if layout.nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let schema = columns(&[]).into_iter().map(|(name, column)| {
        let (physical, logical) = match column {
            Column::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Number(_) => (PhysicalType::INT32, None),
            Column::Count(_) => (PhysicalType::INT64, None),
            Column::Time(_) => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        let column = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Arc::new(column.with_repetition(repetition).build().unwrap())
    });
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(schema.collect()).build().unwrap());
    let properties = Arc::new(layout.properties().build());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    for records in records.chunks(group) {
        let levels = layout.nullable().then(|| vec![1; records.len()]);
        let mut group = writer.next_row_group().unwrap();
        for (_, column) in columns(records) {
            let mut chunk = group.next_column().unwrap().unwrap();
            match column {
                Column::Text(texts) => {
                    chunk.typed::<ByteArrayType>().write_batch(&texts, levels.as_deref(), None)
                }
                Column::Number(numbers) => {
                    chunk.typed::<Int32Type>().write_batch(&numbers, levels.as_deref(), None)
                }
                Column::Count(counts) | Column::Time(counts) => {
                    chunk.typed::<Int64Type>().write_batch(&counts, levels.as_deref(), None)
                }
            }
            .unwrap();
            chunk.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    path
}

fn rows<T>(path: &Path, row: impl Fn(&Row) -> T) -> Vec<T> {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    file.get_row_iter(None).unwrap().map(|there| row(&there.unwrap())).collect()
}

fn address(row: &Row, column: usize) -> Address {
    match row.get_string(column).unwrap().as_str() {
        "" => Address::NONE,
        text => Address::from(text.parse::<std::net::IpAddr>().unwrap()),
    }
}

/// Reads a file of flows.
pub(super) fn flows(path: &Path) -> Vec<Flow> {
    rows(path, |row| Flow {
        source_address: address(row, 0),
        destination_address: address(row, 1),
        source_port: row.get_int(2).unwrap() as u16,
        destination_port: row.get_int(3).unwrap() as u16,
        protocol: row.get_int(4).unwrap() as u8,
        flow_start_us: row.get_timestamp_micros(5).unwrap(),
        flow_end_us: row.get_timestamp_micros(6).unwrap(),
        octets: row.get_long(7).unwrap(),
        packets: row.get_long(8).unwrap(),
        records: row.get_long(9).unwrap(),
        observation_points: row.get_long(10).unwrap(),
        sampling_interval: row.get_long(11).unwrap() as u32,
        source_as: row.get_long(12).unwrap() as u32,
        destination_as: row.get_long(13).unwrap() as u32,
        tcp_flags: row.get_int(14).unwrap() as u16,
        elephant: row.get_bool(15).unwrap(),
    })
}

/// Reads a file of flowsets, with durations and rates.
pub(super) fn flowsets(path: &Path) -> Vec<(Flowset, i64, Option<f64>)> {
    rows(path, |row| {
        let set = Flowset {
            source_address: address(row, 0),
            destination_address: address(row, 1),
            flow_start_us: row.get_timestamp_micros(2).unwrap(),
            flow_end_us: row.get_timestamp_micros(3).unwrap(),
            flows: row.get_long(4).unwrap(),
            octets: row.get_long(5).unwrap(),
            packets: row.get_long(6).unwrap(),
            source_as: row.get_long(9).unwrap() as u32,
            destination_as: row.get_long(10).unwrap() as u32,
        };
        (set, row.get_long(7).unwrap(), row.get_double(8).ok())
    })
}
