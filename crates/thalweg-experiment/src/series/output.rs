//! Rows on their way to a file.

use std::collections::BTreeSet;

use super::rows::FlowSeriesRow;
use crate::files::{Output, Row, RowWriter, WriteError};
use crate::plan::MAX_KEPT_ROWS;
use crate::results::SeriesUse;

/// The rows of a file. The first error ends it, and is reported at the end.
pub(super) struct Rows<R: Row> {
    writer: Option<RowWriter<R>>,
    error: Option<WriteError>,
    written: u64,
}

impl<R: Row> Rows<R> {
    pub(super) fn create(output: Output<'_>) -> Result<Rows<R>, WriteError> {
        Ok(Rows { writer: Some(RowWriter::create(output)?), error: None, written: 0 })
    }

    pub(super) fn push(&mut self, row: R) {
        let Some(writer) = &mut self.writer else { return };
        self.written += 1;
        if let Err(error) = writer.push(row) {
            self.error = Some(error);
            self.writer = None;
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Completes the file.
    pub(super) fn finish(self, lost_rows: u64) -> Result<SeriesUse, WriteError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.writer.map(RowWriter::finish).transpose()?;
        Ok(SeriesUse { table: R::FILE, rows: self.written, lost_rows })
    }
}

/// The rows of flows that may turn out not to be among the largest.
#[derive(Default)]
pub(super) struct KeptRows {
    rows: Vec<FlowSeriesRow>,
    forgotten: BTreeSet<u32>,
    lost: u64,
}

impl KeptRows {
    pub(super) fn push(&mut self, row: FlowSeriesRow) {
        if self.rows.len() as u64 >= MAX_KEPT_ROWS {
            self.remove_forgotten();
        }
        match self.rows.len() as u64 >= MAX_KEPT_ROWS {
            true => self.lost += 1,
            false => self.rows.push(row),
        }
    }

    /// A flow is not among the largest any more.
    pub(super) fn forget(&mut self, flow: u32) {
        self.forgotten.insert(flow);
    }

    fn remove_forgotten(&mut self) {
        let forgotten = std::mem::take(&mut self.forgotten);
        if !forgotten.is_empty() {
            self.rows.retain(|row| !forgotten.contains(&row.flow));
        }
    }

    /// The rows of the largest flows, and how many did not fit.
    pub(super) fn finish(mut self) -> (Vec<FlowSeriesRow>, u64) {
        self.remove_forgotten();
        (self.rows, self.lost)
    }
}
