//! The output of the generator: a pcap file and its ground truth as CSV.

use std::io::Write;

use thalweg_wire::{FlowKey, Timestamp};

use super::connection::{Connection, Segment};
use super::generator::Sink;
use super::options::SynthOptions;
use super::summary::SynthError;
use super::trace_writer::TraceWriter;
use super::truth::{Account, TruthWriter};

/// The trace and the truth.
pub(super) struct Files<'a, T, U> {
    trace: TraceWriter<'a, T>,
    truth: TruthWriter<'a, U>,
}

impl<'a, T: Write, U: Write> Files<'a, T, U> {
    /// Starts both files.
    pub(super) fn new(
        options: &SynthOptions,
        trace: &'a mut T,
        truth: &'a mut U,
    ) -> Result<Files<'a, T, U>, SynthError> {
        let trace = TraceWriter::new(trace, options.precision, options.link_type, options.snap_length);
        Ok(Files { trace, truth: TruthWriter::new(truth).map_err(SynthError::Truth)? })
    }

    /// Writes the buffered rest.
    pub(super) fn finish(self) -> Result<(), SynthError> {
        self.trace.finish().map_err(SynthError::Trace)?;
        self.truth.finish().map_err(SynthError::Truth)
    }
}

impl<T: Write, U: Write> Sink for Files<'_, T, U> {
    #[inline]
    fn packet(
        &mut self,
        connection: &mut Connection,
        segment: &Segment,
        time: Timestamp,
    ) -> Result<u32, SynthError> {
        self.trace.write(connection, segment, time).map_err(SynthError::Trace)
    }

    fn row(&mut self, flow: u64, key: &FlowKey, account: &Account) -> Result<(), SynthError> {
        self.truth.row(flow, key, account).map_err(SynthError::Truth)
    }
}
