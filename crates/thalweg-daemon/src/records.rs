//! Records of flows as they end: written, a JSON line each, as `thalweg watch --json --flows` has them, with the
//! collector's name; and handed on, as IPFIX and into Parquet.
//!
//! Lines are gathered and written together, [`GATHERED`] bytes or [`LONGEST_WAIT`] after the first of them. A line that
//! cannot be written is lost, and counted for its collector; what follows is tried again. A line that was written in
//! part is ended before the next.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde::Serialize;
use thalweg_records::handoff::{Handoff, HandoffStatus};
use thalweg_records::metered::Meter;

use super::clock::wall_clock;
use super::collectors::Tallies;
use super::collectors::sinks::Records;
use thalweg_watch::json::FlowLine;

/// How long a line waits in memory at most.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// How often time passes for what is handed on.
const TICK: Duration = Duration::from_millis(100);

/// Bytes that are written without waiting for more.
const GATHERED: usize = 64 << 10;

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    collector: &'a str,
    #[serde(flatten)]
    flow: FlowLine,
}

/// Opens the file to which lines are added.
///
/// # Errors
/// If it cannot be.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes records to a file and hands them on, if there is one and the other, until all collectors have gone.
pub(super) fn write(file: Option<impl Write>, mut handoff: Option<Handoff>, records: &Receiver<Records>) {
    let mut writer = file.map(JsonWriter::new);
    let mut due = Instant::now() + LONGEST_WAIT;
    loop {
        let received = records.recv_deadline(due.min(Instant::now() + TICK));
        match &received {
            Ok(records) => {
                if let Some(handoff) = &mut handoff {
                    // It is the collectors who wait, or who lose what finds no room on its way here, and count it.
                    handoff.send(&records.records, &Meter::default(), true, wall_clock());
                }
                match &mut writer {
                    Some(writer) => writer.add(records),
                    None => records.records.iter().for_each(|_| records.tallies.note_record(true)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(handoff) = &mut handoff {
            handoff.tick(wall_clock());
        }
        let is_due = due <= Instant::now();
        if let Some(writer) = &mut writer
            && (is_due || writer.text.len() >= GATHERED)
        {
            writer.write();
        }
        if is_due {
            due = Instant::now() + LONGEST_WAIT;
        }
    }
    if let Some(writer) = &mut writer {
        writer.write();
    }
    if let Some(handoff) = handoff {
        tell_rest(&handoff.finish(wall_clock()));
    }
}

/// Says what was not handed on before the daemon ends.
fn tell_rest(ledger: &HandoffStatus) {
    if let Some((destination, tallies)) = ledger.export() {
        let (sent, lost) = (tallies.sent().flow_records, tallies.total_not_sent().flow_records);
        let trouble = tallies.last_error().unwrap_or_default();
        match lost {
            0 => tracing::info!(%destination, sent, "flows exported"),
            _ => tracing::warn!(%destination, sent, lost, trouble, "flow export incomplete"),
        }
    }
    if let Some(store) = ledger.store() {
        let (kept, lost, in_spool) = (store.written, store.lost.total(), store.in_spool);
        let error = store.last_error.unwrap_or_default();
        match lost + in_spool {
            0 => tracing::info!(kept, "flows stored"),
            _ => tracing::warn!(kept, lost, in_spool, error, "flow storage incomplete"),
        }
    }
}

/// Lines that wait to be written.
struct JsonWriter<W> {
    out: W,
    text: Vec<u8>,
    /// Where each line ends, and where it is counted.
    lines: Vec<(usize, Arc<Tallies>)>,
    /// Whether what was written last ended within a line.
    is_torn: bool,
    has_failed: bool,
}

impl<W: Write> JsonWriter<W> {
    fn new(out: W) -> JsonWriter<W> {
        JsonWriter { out, text: Vec::new(), lines: Vec::new(), is_torn: false, has_failed: false }
    }

    fn add(&mut self, records: &Records) {
        if self.is_torn && self.text.is_empty() {
            self.text.push(b'\n');
        }
        for record in &records.records {
            let line = Line { r#type: "flow", collector: &records.collector, flow: FlowLine::from(record) };
            // Memory takes everything, and the line is of types that JSON has.
            let _ = serde_json::to_writer(&mut self.text, &line);
            self.text.push(b'\n');
            self.lines.push((self.text.len(), Arc::clone(&records.tallies)));
        }
    }

    /// Writes all lines, or as many as can be.
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
            self.is_torn = self.text[last] != b'\n';
        }
        for (end, tallies) in self.lines.drain(..) {
            tallies.note_record(end <= written);
        }
        self.text.clear();
        self.tell(result);
    }

    /// Tells when writing begins to fail, and when it goes on.
    fn tell(&mut self, result: io::Result<()>) {
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
