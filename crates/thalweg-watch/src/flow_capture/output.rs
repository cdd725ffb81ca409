//! The file of a flow capture.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
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

/// Bytes that are written together.
const BUFFER: usize = 64 << 10;

/// Files of the same flow in a directory.
const MAX_FILES: u32 = 10_000;

/// An open file, with its header written.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: File,
    /// Whole blocks, in which so many packets are, that the file does not have yet.
    buffer: Vec<u8>,
    buffered_packets: u64,
    /// Bytes of the file.
    written: u64,
    max_size: Bytes,
}

impl Output {
    /// Creates a file with a new name.
    pub(super) fn create(options: &FlowCaptureOptions, key: &FlowKey) -> Result<Output, String> {
        let (path, file) = create_new(&options.directory, &file_stem(key))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        Encoder::default().section_header(&mut buffer);
        let max_size = options.max_size;
        let mut output = Output { path, file, buffer, buffered_packets: 0, written: 0, max_size };
        output.write_buffer()?;
        Ok(output)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a chunk, unless the file would grow beyond its maximum. Returns whether it was written.
    pub(super) fn write(&mut self, chunk: &Chunk, progress: &Progress) -> bool {
        if self.written + (self.buffer.len() + chunk.bytes.len()) as u64 > self.max_size.0 {
            progress.is_full.store(true, Ordering::Relaxed);
            return false;
        }
        self.buffer.extend_from_slice(&chunk.bytes);
        self.buffered_packets += chunk.packets;
        self.buffer.len() < BUFFER || self.flush(progress)
    }

    /// Writes what is buffered. Returns whether it was written; if not, the file ends with the block before.
    pub(super) fn flush(&mut self, progress: &Progress) -> bool {
        let packets = self.buffered_packets;
        let result = self.write_buffer();
        if result.is_ok() {
            progress.packets.fetch_add(packets, Ordering::Relaxed);
        }
        progress.bytes.store(self.written, Ordering::Relaxed);
        result.map_err(|message| progress.fail(message)).is_ok()
    }

    fn write_buffer(&mut self) -> Result<(), String> {
        let result = self.file.write_all(&self.buffer);
        match &result {
            Ok(()) => self.written += self.buffer.len() as u64,
            // On a full disk a part was written. A failure to cut it off leaves a file that readers call cut.
            Err(_) => drop(self.file.set_len(self.written)),
        }
        self.buffered_packets = 0;
        self.buffer.clear();
        result.map_err(|error| self.failed(&error))
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
                if chunks.is_empty() && !self.flush(&progress) {
                    break;
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
