//! Finds rows that were received at a given time.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use thalweg_wire::Timestamp;

use crate::schema::Dataset;

use super::layout::{Stem, partition};

/// Whether the files of a store have a row received at this time, in microseconds since 1970, with these texts and this number in
/// columns. Reads only row groups that may have it. Rows that are only in the spool are not found.
///
/// # Errors
/// If a file cannot be read.
pub fn contains<D: Dataset>(
    directory: &Path,
    name: &str,
    received_us: i64,
    texts: &[(&str, &str)],
    number: (&str, u64),
) -> io::Result<bool> {
    let [date, hour] = partition(Timestamp((received_us.max(0) as u64).saturating_mul(1_000)));
    let folder = directory.join(D::NAME).join(date).join(hour);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let received = D::columns()[0].name;
    let wanted = |row: &Row| {
        row.get_column_iter().all(|(column, value)| match value {
            Field::TimestampMicros(value) => *value == received_us,
            Field::Str(value) => texts.iter().any(|(of, text)| of == column && text == value),
            Field::Long(value) => u64::try_from(*value) == Ok(number.1),
            _ => false,
        })
    };
    let columns: Vec<&str> = texts.iter().map(|(column, _)| *column).chain([received, number.0]).collect();
    for entry in entries {
        let path = entry?.path();
        let is_file = path.extension().is_some_and(|extension| extension == "parquet");
        if !is_file || Stem::parse(&path, name).is_none() {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(&path)?).map_err(io::Error::other)?;
        let schema = reader.metadata().file_metadata().schema();
        let fields = schema.get_fields().iter().filter(|field| columns.contains(&field.name())).cloned();
        let projection = Type::group_type_builder(schema.name()).with_fields(fields.collect()).build();
        let projection = projection.map_err(io::Error::other)?;
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).map_err(io::Error::other)?;
            let bounds = group.metadata().column(0).statistics();
            let may_have = match bounds {
                Some(Statistics::Int64(bounds)) => {
                    bounds.min_opt().is_none_or(|min| *min <= received_us)
                        && bounds.max_opt().is_none_or(|max| *max >= received_us)
                }
                _ => true,
            };
            if !may_have {
                continue;
            }
            for row in group.get_row_iter(Some(projection.clone())).map_err(io::Error::other)? {
                if wanted(&row.map_err(io::Error::other)?) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}
