//! CSV (RFC 4180, with `\n` line ends): a header, then a line per row.

use std::fmt::Write as _;
use std::io::Write;

use super::columns::{Row, Values, signed};

/// Writes `rows`.
pub(super) fn write<R: Row>(out: impl Write, rows: &[R]) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(R::COLUMNS.iter().map(|column| column.name))?;
    let mut cell = String::new();
    for row in rows {
        for column in R::COLUMNS {
            cell.clear();
            let text = match column.values {
                Values::Name(get) => get(row),
                Values::Number(get) => shown(&mut cell, get(row)),
                Values::Count(get) => shown(&mut cell, signed(get(row))),
                // The fewest digits that read back as the same number.
                Values::Ratio(get) => shown(&mut cell, get(row)),
            };
            writer.write_field(text)?;
        }
        // Ends the line.
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(writer.flush()?)
}

fn shown(cell: &mut String, value: impl std::fmt::Display) -> &str {
    write!(cell, "{value}").expect("writing to a String cannot fail");
    cell
}
