//! Capture files as a packet source: pcap and pcapng, plain or compressed, from a path or from a
//! stream.
//!
//! The first bytes of a file decide its type, never its name. A plain regular file is mapped into memory and its
//! frames are lent without copying. Anything else (compressed files, pipes, standard input) is read into a buffer
//! that holds little more than one batch. The buffer grows only for a record that does not fit, up to
//! [`MAX_RECORD_LENGTH`](thalweg_wire::capture_file::MAX_RECORD_LENGTH).
//!
//! Everything before a fault is delivered before the fault is reported. One exception: where the compressed bytes
//! themselves are damaged, up to 16 KiB of the decompressed bytes before the detected damage are lost.
//!
//! # A file that shrinks while it is read
//! If another process truncates a mapped file below what has been read so far, the kernel has no page to provide and
//! ends this process with SIGBUS. That is accepted: the alternative costs a copy of every byte, and captures are
//! written once. To read a file that may shrink, open it with [`FileAccess::Buffered`], which reads it, as a replay does,
//! or pass it as standard input (`< FILE`). A mapped file that grows is read up to its length when it was opened.

mod compression;
mod error;
mod mapped;
mod stream;
#[cfg(test)]
mod tests;
mod timeout_reader;

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::spec::FileAccess;
use thalweg_wire::capture_file::{Decoder, Format, FormatError};
use thalweg_wire::{Batch, FrameRef, Progress, Source, SourceCounters};

pub use self::compression::Compression;
pub use self::error::FileError;
use self::mapped::Mapped;
use self::stream::{Fill, Stream};
use self::timeout_reader::TimeoutReader;

/// Frames per batch: enough to overlap the memory misses of a flow table, few enough for the frames' headers to stay
/// in the first-level cache.
const BATCH_FRAMES: usize = 256;

/// The offset of the link type in a pcap file.
const PCAP_LINK_TYPE_OFFSET: u64 = 20;

/// Packets from a capture file.
#[derive(Debug)]
pub struct FileSource {
    /// The name for messages.
    file: String,
    input: Input,
    decoder: Decoder,
    /// The last batch delivered.
    frames: Vec<FrameRef>,
    /// Bytes of the input that this batch takes up.
    lent: usize,
    /// A fault found behind the last batch delivered.
    fault: Option<FileError>,
    ended: bool,
    frames_handed_on: u64,
}

#[derive(Debug)]
enum Input {
    Mapped(Mapped),
    Stream(Stream),
}

/// The result of looking for frames.
enum Found {
    Frames,
    NotYet,
    End,
}

impl FileSource {
    /// Opens a capture file; `-` is standard input. The header of a regular file is read at once. A named pipe does
    /// not need a writer yet: until one opens it, batches are empty.
    ///
    /// # Errors
    /// If the file cannot be read, is a directory or empty, is not a capture file, or is a pcap file of an
    /// unsupported link type. For a stream, all but the first are reported by the first
    /// [`next_batch`](Source::next_batch).
    pub fn open(path: &Path) -> Result<FileSource, FileError> {
        FileSource::open_with(path, FileAccess::Mapped)
    }

    /// Opens a capture file; a plain regular one is mapped or read.
    ///
    /// # Errors
    /// As [`FileSource::open`].
    pub fn open_with(path: &Path, access: FileAccess) -> Result<FileSource, FileError> {
        if path == Path::new("-") {
            return FileSource::standard_input();
        }
        let name = path.display().to_string();
        let cannot_open = |cause| FileError::Open { file: name.clone(), cause };
        // Otherwise opening a named pipe would wait for a writer, possibly forever. It has no effect on a regular
        // file.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(cannot_open)?;
        let metadata = file.metadata().map_err(cannot_open)?;
        if metadata.is_dir() {
            return Err(FileError::Directory { file: name });
        }
        if !metadata.is_file() {
            return Ok(FileSource::new(name, Input::Stream(Stream::new(TimeoutReader::new(file), None))));
        }
        if metadata.len() == 0 {
            return Err(FileError::Empty { file: name });
        }
        let read = |file| Input::Stream(Stream::new(file, Some(metadata.len())));
        let input = match access {
            FileAccess::Buffered => read(file),
            FileAccess::Mapped => {
                let mapped = Mapped::new(&file).map_err(cannot_open)?;
                match Compression::detect(mapped.window()) {
                    None => Input::Mapped(mapped),
                    Some(_) => read(file),
                }
            }
        };
        let mut source = FileSource::new(name, input);
        source.advance(0)?;
        Ok(source)
    }

    /// Reads standard input. While nothing arrives, batches are empty.
    ///
    /// # Errors
    /// If standard input is closed.
    pub fn standard_input() -> Result<FileSource, FileError> {
        let file = "standard input".to_owned();
        match io::stdin().as_fd().try_clone_to_owned() {
            Ok(descriptor) => {
                let stream = Stream::new(TimeoutReader::new(File::from(descriptor)), None);
                Ok(FileSource::new(file, Input::Stream(stream)))
            }
            Err(cause) => Err(FileError::Open { file, cause }),
        }
    }

    /// Reads a stream, called `name` in messages. If the reader returns [`io::ErrorKind::WouldBlock`], the batch is
    /// empty, and the next call reads again.
    pub fn from_reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> FileSource {
        FileSource::new(name.into(), Input::Stream(Stream::new(reader, None)))
    }

    fn new(file: String, input: Input) -> FileSource {
        FileSource {
            file,
            input,
            decoder: Decoder::new(),
            frames: Vec::with_capacity(BATCH_FRAMES),
            lent: 0,
            fault: None,
            ended: false,
            frames_handed_on: 0,
        }
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.file
    }

    /// Returns the format of the file, once its first bytes are known.
    pub fn format(&self) -> Option<Format> {
        self.decoder.format()
    }

    /// Returns the compression of the file, once its first bytes are known.
    pub fn compression(&self) -> Option<Compression> {
        match &self.input {
            Input::Mapped(_) => None,
            Input::Stream(stream) => stream.compression(),
        }
    }

    /// Looks for up to `limit` frames, reading until there is at least one. With a limit of zero, until the format is
    /// known.
    fn advance(&mut self, limit: usize) -> Result<Found, FileError> {
        loop {
            let known = self.decoder.format().is_some();
            if known && limit == 0 {
                return Ok(Found::Frames);
            }
            let limit = if known { limit } else { 0 };
            let decoded =
                self.decoder.decode(self.input.window(), self.input.offset(), limit, &mut self.frames);
            let decoded = decoded.map_err(|fault| self.format_error(fault))?;
            if !known {
                self.check_link_type()?;
            }
            if !self.frames.is_empty() {
                self.lent = decoded.consumed;
                return Ok(Found::Frames);
            }
            self.input.consume(decoded.consumed);
            if decoded.needed == 0 {
                continue;
            }
            match self.input.fill(&self.file)? {
                Fill::More => {}
                Fill::NotYet => return Ok(Found::NotYet),
                Fill::End => return self.end(decoded.needed),
            }
        }
    }

    /// Handles the end of the input, before a record of which at least `needed` bytes were expected.
    fn end(&self, needed: usize) -> Result<Found, FileError> {
        let (file, present) = (self.file.clone(), self.input.window().len());
        match (self.decoder.format(), present) {
            (Some(_), 0) => match self.missing() {
                0 => Ok(Found::End),
                missing => {
                    Err(FileError::Truncated { file, offset: self.input.offset(), needed: missing, present })
                }
            },
            (Some(_), _) => Err(FileError::Truncated { file, offset: self.input.offset(), needed, present }),
            (None, 0) => Err(FileError::Empty { file }),
            (None, _) => Err(FileError::TooShort { file, present }),
        }
    }

    /// Returns the bytes by which a file that is read was shortened since it was opened.
    fn missing(&self) -> usize {
        match self.compression() {
            None => self.progress().map_or(0, |progress| (progress.total - progress.done) as usize),
            Some(_) => 0,
        }
    }

    /// A pcap file has one link type; if it is not supported, the file has nothing to measure. A pcapng file may have
    /// others too, so its frames are delivered and counted by the parser.
    fn check_link_type(&self) -> Result<(), FileError> {
        match (self.decoder.format(), self.decoder.interfaces()) {
            (Some(Format::Pcap), [interface]) if !interface.link_type.is_supported() => {
                Err(FileError::UnsupportedLinkType {
                    file: self.file.clone(),
                    link_type: interface.link_type.number(),
                    offset: PCAP_LINK_TYPE_OFFSET,
                })
            }
            _ => Ok(()),
        }
    }

    fn format_error(&self, fault: FormatError) -> FileError {
        let (file, compression) = (self.file.clone(), self.compression());
        match fault {
            FormatError::NotACapture { found } => FileError::NotACapture { file, compression, found },
            cause => FileError::Format { file, cause },
        }
    }
}

impl Input {
    /// Returns the bytes in memory that have not been consumed.
    fn window(&self) -> &[u8] {
        match self {
            Input::Mapped(mapped) => mapped.window(),
            Input::Stream(stream) => stream.window(),
        }
    }

    /// Returns the offset of the window in the decompressed file.
    fn offset(&self) -> u64 {
        match self {
            Input::Mapped(mapped) => mapped.offset(),
            Input::Stream(stream) => stream.offset(),
        }
    }

    fn consume(&mut self, length: usize) {
        match self {
            Input::Mapped(mapped) => mapped.consume(length),
            Input::Stream(stream) => stream.consume(length),
        }
    }

    /// Extends the window.
    fn fill(&mut self, file: &str) -> Result<Fill, FileError> {
        match self {
            Input::Mapped(_) => Ok(Fill::End),
            Input::Stream(stream) => stream.fill(file),
        }
    }
}

/// After an error or the end there are no more batches.
impl Source for FileSource {
    type Error = FileError;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, FileError> {
        self.input.consume(std::mem::take(&mut self.lent));
        self.frames.clear();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if self.ended {
            return Ok(None);
        }
        match self.advance(BATCH_FRAMES) {
            Ok(Found::Frames | Found::NotYet) => {}
            Ok(Found::End) => {
                self.ended = true;
                return Ok(None);
            }
            Err(fault) => {
                self.ended = true;
                if self.frames.is_empty() {
                    return Err(fault);
                }
                self.fault = Some(fault);
            }
        }
        self.frames_handed_on += self.frames.len() as u64;
        Ok(Some(Batch {
            bytes: self.input.window(),
            frames: &self.frames,
            interfaces: self.decoder.interfaces(),
        }))
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters {
            frames: self.frames_handed_on,
            other_records: self.decoder.other_records(),
            beyond_snap_length: self.decoder.beyond_snap_length(),
            ..SourceCounters::default()
        }
    }

    fn progress(&self) -> Option<Progress> {
        match &self.input {
            Input::Mapped(mapped) => Some(mapped.progress(self.lent)),
            Input::Stream(stream) => stream.progress(),
        }
    }
}
