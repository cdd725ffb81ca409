//! Rows on their way to a file.

use std::collections::BTreeSet;

use crate::files::{Output, Row, RowWriter, WriteError};
use crate::results::SeriesUse;
use crate::results::series_rows::FlowSeriesRow;

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
pub(super) struct KeptRows {
    /// The largest number of rows.
    most: u64,
    rows: Vec<FlowSeriesRow>,
    forgotten: BTreeSet<u32>,
    lost: u64,
}

impl KeptRows {
    /// Keeps at most `most` rows.
    pub(super) fn new(most: u64) -> KeptRows {
        KeptRows { most, rows: Vec::new(), forgotten: BTreeSet::new(), lost: 0 }
    }

    pub(super) fn push(&mut self, row: FlowSeriesRow) {
        if self.rows.len() as u64 >= self.most {
            self.remove_forgotten();
        }
        match self.rows.len() as u64 >= self.most {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flow: u32, time_ns: u64) -> FlowSeriesRow {
        FlowSeriesRow {
            time_ns,
            interval_ns: 1,
            flow,
            workload: 1,
            src: "h0".into(),
            dst: "h1".into(),
            dscp: 0,
            cwnd_packets: 1.0,
            cwnd_bytes: 1,
            ssthresh_bytes: None,
            srtt_ns: None,
            rtt_ns: None,
            in_flight_bytes: 0,
            sent_packets: 0,
            retransmissions: 0,
            timeouts: 0,
            acked_bytes: 0,
            received_packets: 0,
            received_bytes: 0,
            marked_packets: 0,
            delivered_bytes: 0,
            queueing_delay_mean_ns: None,
            queueing_delay_max_ns: None,
        }
    }

    #[test]
    fn rows_of_forgotten_flows_make_room_and_what_does_not_fit_is_counted() {
        let mut kept = KeptRows::new(4);
        (0..4).for_each(|time| kept.push(row(time as u32 % 2, time)));
        kept.forget(0);
        (4..8).for_each(|time| kept.push(row(2, time)));
        let (rows, lost) = kept.finish();
        let rows: Vec<(u64, u32)> = rows.iter().map(|row| (row.time_ns, row.flow)).collect();
        assert_eq!((rows, lost), (vec![(1, 1), (3, 1), (4, 2), (5, 2)], 2));
    }
}
