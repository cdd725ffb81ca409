//! CSV (RFC 4180, with `\n` line ends): a header, then a line per row. A missing value is an empty cell.

use std::fmt::Write as _;
use std::io::Write;

use super::columns::{Row, Values, signed};

/// Writes a table.
pub(super) struct Writer<W: Write>(csv::Writer<W>);

impl<W: Write> Writer<W> {
    /// Writes the header of a table of rows `R`.
    pub(super) fn new<R: Row>(out: W) -> Result<Writer<W>, csv::Error> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(R::COLUMNS.iter().map(|column| column.name))?;
        Ok(Writer(writer))
    }

    /// Writes `rows`.
    pub(super) fn rows<R: Row>(&mut self, rows: &[R]) -> Result<(), csv::Error> {
        let mut cell = String::new();
        for row in rows {
            for column in R::COLUMNS {
                cell.clear();
                let text = match column.values {
                    Values::Name(get) => get(row),
                    Values::Number(get) => shown(&mut cell, get(row)),
                    Values::Count(get) => shown(&mut cell, signed(get(row))),
                    Values::OptionalCount(get) => {
                        get(row).map_or("", |count| shown(&mut cell, signed(count)))
                    }
                    // The fewest digits that read back as the same number.
                    Values::Ratio(get) => shown(&mut cell, get(row)),
                };
                self.0.write_field(text)?;
            }
            // Ends the line.
            self.0.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    /// Completes the file.
    pub(super) fn close(mut self) -> Result<(), csv::Error> {
        Ok(self.0.flush()?)
    }
}

fn shown(cell: &mut String, value: impl std::fmt::Display) -> &str {
    write!(cell, "{value}").expect("writing to a String cannot fail");
    cell
}
