//! A legend that is a table: the name of each series, and what it comes to.

use crate::error::DrawError;
use crate::page::{Area, GREY, HPos, INK, Swatch, TEXT, sample, write};

/// Height of a row.
const ROW: u32 = 24;
/// Where samples of series begin, and their names.
const SAMPLE: i32 = 64;
const NAME: i32 = 92;

/// A legend that is a table.
#[derive(Clone, Debug)]
pub struct LegendTable<const COLUMNS: usize> {
    /// Above each column, and where it ends, in pixels from the left.
    pub columns: [(&'static str, i32); COLUMNS],
    /// For each series its style, its name, and its cells.
    pub rows: Vec<(usize, String, [String; COLUMNS])>,
}

impl<const COLUMNS: usize> LegendTable<COLUMNS> {
    /// Height of a table of this many series.
    pub const fn height(series: usize) -> u32 {
        ROW * (series as u32 + 1) + 14
    }

    /// Draws it into the whole of `area`.
    ///
    /// # Errors
    /// If the plotting library cannot draw it.
    pub fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let row = |index: usize| (ROW as usize * index + ROW as usize / 2) as i32;
        for (name, end) in self.columns {
            write(area, (end, row(0)), name, TEXT, GREY, HPos::Right)?;
        }
        for (index, (style, name, cells)) in (1..).zip(&self.rows) {
            sample(area, (SAMPLE, row(index)), *style, Swatch::Line)?;
            write(area, (NAME, row(index)), name, TEXT, INK, HPos::Left)?;
            for ((_, end), cell) in self.columns.iter().zip(cells) {
                write(area, (*end, row(index)), cell, TEXT, INK, HPos::Right)?;
            }
        }
        Ok(())
    }
}
