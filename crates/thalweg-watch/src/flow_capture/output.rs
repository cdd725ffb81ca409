//! The file of a flow capture.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded};
use thalweg_wire::capture_file::pcapng::Encoder;
use thalweg_wire::{Bytes, FlowKey};

use super::recorder::Chunk;
use super::{FlowCaptureOptions, Progress};

/// Batches that wait for the writing thread.
const QUEUE: usize = 1_024;

/// Files of the same flow in a directory.
const MAX_FILES: u32 = 10_000;

/// An open file, with its header written.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    max_size: Bytes,
}

impl Output {
    /// Creates a file with a new name.
    pub(super) fn create(options: &FlowCaptureOptions, key: &FlowKey) -> Result<Output, String> {
        let (path, file) = create_new(&options.directory, &file_stem(key))?;
        let mut output = Output { path, file: BufWriter::new(file), written: 0, max_size: options.max_size };
        let mut header = Vec::new();
        Encoder::default().section_header(&mut header);
        output.file.write_all(&header).map_err(|error| output.failed(&error))?;
        output.written = header.len() as u64;
        Ok(output)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a chunk, unless the file would grow beyond its maximum. Returns whether it was written.
    pub(super) fn write(&mut self, chunk: &Chunk, progress: &Progress) -> bool {
        if self.written + chunk.bytes.len() as u64 > self.max_size.0 {
            progress.is_full.store(true, Ordering::Relaxed);
            return false;
        }
        if let Err(error) = self.file.write_all(&chunk.bytes) {
            progress.fail(self.failed(&error));
            return false;
        }
        self.written += chunk.bytes.len() as u64;
        progress.packets.fetch_add(chunk.packets, Ordering::Relaxed);
        progress.bytes.store(self.written, Ordering::Relaxed);
        true
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self, progress: &Progress) {
        if let Err(error) = self.file.flush() {
            progress.fail(self.failed(&error));
        }
        progress.bytes.store(self.written, Ordering::Relaxed);
    }

    /// Writes the chunks of a channel in a thread, until it closes.
    pub(super) fn write_in_background(
        mut self,
        progress: Arc<Progress>,
    ) -> Result<(Sender<Chunk>, JoinHandle<()>), String> {
        let (sender, chunks) = bounded::<Chunk>(QUEUE);
        let write = move || {
            for chunk in &chunks {
                if !self.write(&chunk, &progress) {
                    break;
                }
                // Readers of a growing file see whole packets.
                if chunks.is_empty() {
                    self.flush(&progress);
                }
            }
            self.flush(&progress);
        };
        Ok((sender, spawn(write)?))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

/// Starts a thread of a flow capture.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let builder = thread::Builder::new().name("flow-capture".to_owned());
    builder.spawn(work).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Creates `STEM.pcapng`, or `STEM-2.pcapng` and so on if it exists.
fn create_new(directory: &Path, stem: &str) -> Result<(PathBuf, File), String> {
    for number in 1..=MAX_FILES {
        let name = if number == 1 { format!("{stem}.pcapng") } else { format!("{stem}-{number}.pcapng") };
        let path = directory.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("cannot create {}: {error}", path.display())),
        }
    }
    Err(format!("{}: {MAX_FILES} files of this flow exist already", directory.display()))
}

/// Returns `tcp_10.0.0.1_443_10.0.0.2_51000`, without characters that other systems forbid.
fn file_stem(key: &FlowKey) -> String {
    let end = |key: &FlowKey| match key.protocol.has_ports() || key.src_port != 0 {
        true => format!("{}_{}", key.src(), key.src_port),
        false => key.src().to_string(),
    };
    format!("{}_{}_{}", key.protocol, end(key), end(&key.reversed())).replace(':', "-")
}
