//! Flow records, of flows that end or reach the active timeout: JSON lines as of `thalweg watch --json --flows` with the
//! name of the collector, IPFIX and Parquet.
//!
//! Lines are buffered, and written after [`FLUSH_BYTES`] or [`MAX_DELAY`]. A line that cannot be written is lost and counted for
//! its collector; later lines are written again. A partly written line is terminated before the next.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde::Serialize;
use thalweg_records::handoff::{Handoff, HandoffStatus};
use thalweg_records::metered::Meter;

use super::collectors::CollectorStats;
use super::collectors::sinks::Records;
use thalweg_linux::clock::realtime;
use thalweg_watch::json::FlowLine;

/// Maximum delay of a line in the buffer.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// Interval of ticks for IPFIX and Parquet.
const TICK: Duration = Duration::from_millis(100);

/// Buffered bytes at which lines are written.
const FLUSH_BYTES: usize = 64 << 10;

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    collector: &'a str,
    #[serde(flatten)]
    flow: FlowLine,
}

/// Opens a file for appending.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes records to a file and exports them, as configured, until all senders are gone.
pub(super) fn write(file: Option<impl Write>, mut handoff: Option<Handoff>, records: &Receiver<Records>) {
    let mut writer = file.map(JsonWriter::new);
    let mut due = Instant::now() + MAX_DELAY;
    loop {
        let received = records.recv_deadline(due.min(Instant::now() + TICK));
        match &received {
            Ok(records) => {
                if let Some(handoff) = &mut handoff {
                    // A full queue makes collectors wait, or lose and count records.
                    let now = realtime();
                    handoff.send(&records.records, &[], &Meter::default(), true, now, now);
                }
                match &mut writer {
                    Some(writer) => writer.add(records),
                    None => records.records.iter().for_each(|_| records.stats.note_record(true)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(handoff) = &mut handoff {
            handoff.tick(realtime());
        }
        let is_due = due <= Instant::now();
        if let Some(writer) = &mut writer
            && (is_due || writer.text.len() >= FLUSH_BYTES)
        {
            writer.write();
        }
        if is_due {
            due = Instant::now() + MAX_DELAY;
        }
    }
    if let Some(writer) = &mut writer {
        writer.write();
    }
    if let Some(handoff) = handoff {
        log_summary(&handoff.finish(realtime()));
    }
}

/// Logs what was exported and lost.
fn log_summary(status: &HandoffStatus) {
    if let Some((destination, stats)) = status.export() {
        let (sent, lost) = (stats.sent().flow_records, stats.total_not_sent().flow_records);
        let error = stats.last_error().unwrap_or_default();
        match lost {
            0 => tracing::info!(%destination, sent, "flows exported"),
            _ => tracing::warn!(%destination, sent, lost, error, "flow export incomplete"),
        }
    }
    if let Some(store) = status.store() {
        let (written, lost, in_spool) = (store.written, store.lost.total(), store.in_spool);
        let error = store.last_error.unwrap_or_default();
        match lost + in_spool {
            0 => tracing::info!(written, "flows stored"),
            _ => tracing::warn!(written, lost, in_spool, error, "flow storage incomplete"),
        }
    }
}

/// A writer of JSON lines with a buffer.
struct JsonWriter<W> {
    out: W,
    text: Vec<u8>,
    /// The end of each line in the buffer, and the counters of its collector.
    lines: Vec<(usize, Arc<CollectorStats>)>,
    /// Whether the last write ended within a line.
    ends_within_line: bool,
    has_failed: bool,
}

impl<W: Write> JsonWriter<W> {
    fn new(out: W) -> JsonWriter<W> {
        JsonWriter { out, text: Vec::new(), lines: Vec::new(), ends_within_line: false, has_failed: false }
    }

    fn add(&mut self, records: &Records) {
        if self.ends_within_line && self.text.is_empty() {
            self.text.push(b'\n');
        }
        for record in &records.records {
            let line = Line { r#type: "flow", collector: &records.collector, flow: FlowLine::from(record) };
            // Writing to memory cannot fail, and all types can be serialised.
            let _ = serde_json::to_writer(&mut self.text, &line);
            self.text.push(b'\n');
            self.lines.push((self.text.len(), Arc::clone(&records.stats)));
        }
    }

    /// Writes all buffered lines, or as many as possible.
    fn write(&mut self) {
        let mut written = 0;
        let result = loop {
            if written == self.text.len() {
                break self.out.flush();
            }
            match self.out.write(&self.text[written..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if let Some(last) = written.checked_sub(1) {
            self.ends_within_line = self.text[last] != b'\n';
        }
        for (end, stats) in self.lines.drain(..) {
            stats.note_record(end <= written);
        }
        self.text.clear();
        self.log_transition(result);
    }

    /// Logs the first failure, and the recovery.
    fn log_transition(&mut self, result: io::Result<()>) {
        match &result {
            Err(error) if !self.has_failed => tracing::error!(%error, "cannot write records"),
            Ok(()) if self.has_failed => tracing::info!("writing records again"),
            _ => {}
        }
        self.has_failed = result.is_err();
    }
}

#[cfg(test)]
mod tests;
