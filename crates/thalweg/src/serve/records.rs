//! Records of flows, written as they end: a JSON line each, as `thalweg watch --json --flows` has them, with the
//! collector's name.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde::Serialize;

use super::collectors::outlets::Records;
use crate::watch::json::FlowLine;

/// How long a line waits in memory at most.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

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

/// Writes records until all collectors have gone. What cannot be written is lost, and told once.
pub(super) fn write(file: File, records: &Receiver<Records>) {
    let mut out = BufWriter::new(file);
    let mut has_failed = false;
    loop {
        let written = match records.recv_timeout(FLUSH_INTERVAL) {
            Ok(records) => write_lines(&mut out, &records),
            Err(RecvTimeoutError::Timeout) => out.flush(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = &written
            && !has_failed
        {
            tracing::error!("cannot write records: {error}");
        }
        has_failed = written.is_err();
    }
    if let Err(error) = out.flush() {
        tracing::error!("cannot write the last records: {error}");
    }
}

fn write_lines(out: &mut impl Write, records: &Records) -> io::Result<()> {
    for record in &records.records {
        let line = Line { r#type: "flow", collector: &records.collector, flow: FlowLine::from(record) };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
