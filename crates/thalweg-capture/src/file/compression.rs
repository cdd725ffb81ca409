//! Decompression while reading: gzip, bzip2 and xz with any number of members or streams, zstd and LZ4 with any number of frames.

use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;

/// The compression of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// LZ4 frames.
    Lz4,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Lz4 => "LZ4",
        })
    }
}

const MAGIC_LENGTH: usize = 4;

impl Compression {
    /// Detects the compression from the first bytes of a file.
    pub(super) fn detect(first: &[u8]) -> Option<Compression> {
        match first {
            [0x1f, 0x8b, 0x08, ..] => Some(Compression::Gzip),
            // A frame, or a skippable frame, with which parallel compressors begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
            [0xfd, b'7', b'z', b'X', ..] => Some(Compression::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Lz4),
            _ => None,
        }
    }
}

/// Compressed bytes read at a time; also the resolution of progress and of the position of damage.
const COMPRESSED_BUFFER: usize = 32 << 10;

/// The maximum bytes to decompress at a time. When a decompressor finds damage, the output of the same call is lost,
/// so the pieces are small; they are large enough to cost nothing.
const PIECE: usize = 16 << 10;

type Raw = Box<dyn Read + Send>;
/// The first bytes, which were inspected, and the rest.
type Whole = Chain<Cursor<Vec<u8>>, Raw>;

/// A stream that waits while nothing arrives, for decompressors that do not continue after an error.
pub(super) struct Patient(Whole);

impl Read for Patient {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(out) {
                // The reader below has waited already.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// Reads the decompressed bytes of a stream; the first bytes decide how. An error of the stream does not change the
/// state, so that reading can be retried after [`io::ErrorKind::WouldBlock`].
pub(super) enum Decompressor {
    /// Fewer than four bytes have been read.
    Undecided { first: Vec<u8>, rest: Option<Raw> },
    /// Not compressed.
    Plain(Whole),
    /// gzip.
    Gzip(Box<MultiGzDecoder<BufReader<Whole>>>),
    /// zstd.
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Whole>>),
    /// bzip2.
    Bzip2(Box<MultiBzDecoder<BufReader<Patient>>>),
    /// xz.
    Xz(Box<XzReader<BufReader<Patient>>>),
    /// LZ4.
    Lz4(Box<FrameDecoder<BufReader<Patient>>>),
}

impl Decompressor {
    pub(super) fn new(reader: impl Read + Send + 'static) -> Decompressor {
        Decompressor::Undecided { first: Vec::with_capacity(MAGIC_LENGTH), rest: Some(Box::new(reader)) }
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        match self {
            Decompressor::Undecided { .. } | Decompressor::Plain(_) => None,
            Decompressor::Gzip(_) => Some(Compression::Gzip),
            Decompressor::Zstd(_) => Some(Compression::Zstd),
            Decompressor::Bzip2(_) => Some(Compression::Bzip2),
            Decompressor::Xz(_) => Some(Compression::Xz),
            Decompressor::Lz4(_) => Some(Compression::Lz4),
        }
    }

    /// Reads the first bytes and detects the compression.
    fn decide(&mut self) -> io::Result<()> {
        let Decompressor::Undecided { first, rest } = self else { return Ok(()) };
        let reader = rest.as_mut().expect("taken only when decided");
        while first.len() < MAGIC_LENGTH {
            let mut bytes = [0; MAGIC_LENGTH];
            match reader.read(&mut bytes[first.len()..])? {
                0 => break,
                n => first.extend_from_slice(&bytes[first.len()..][..n]),
            }
        }
        let compression = Compression::detect(first);
        let rest = rest.take().expect("taken only here");
        let whole = Cursor::new(std::mem::take(first)).chain(rest);
        let buffered = |whole| BufReader::with_capacity(COMPRESSED_BUFFER, whole);
        let patient = |whole| BufReader::with_capacity(COMPRESSED_BUFFER, Patient(whole));
        *self = match compression {
            None => Decompressor::Plain(whole),
            Some(Compression::Gzip) => Decompressor::Gzip(Box::new(MultiGzDecoder::new(buffered(whole)))),
            Some(Compression::Zstd) => {
                Decompressor::Zstd(zstd::stream::read::Decoder::with_buffer(buffered(whole))?)
            }
            Some(Compression::Bzip2) => Decompressor::Bzip2(Box::new(MultiBzDecoder::new(patient(whole)))),
            Some(Compression::Xz) => Decompressor::Xz(Box::new(XzReader::new(patient(whole), true))),
            Some(Compression::Lz4) => Decompressor::Lz4(Box::new(FrameDecoder::new(patient(whole)))),
        };
        Ok(())
    }
}

impl Read for Decompressor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decide()?;
        let piece = out.len().min(PIECE);
        match self {
            Decompressor::Undecided { .. } => unreachable!("decided above"),
            Decompressor::Plain(reader) => reader.read(out),
            Decompressor::Gzip(reader) => reader.read(&mut out[..piece]),
            Decompressor::Zstd(reader) => reader.read(&mut out[..piece]),
            Decompressor::Bzip2(reader) => reader.read(&mut out[..piece]),
            Decompressor::Xz(reader) => reader.read(&mut out[..piece]),
            Decompressor::Lz4(reader) => match reader.read(&mut out[..piece])? {
                // The end of a frame, after which another may begin.
                0 => reader.read(&mut out[..piece]),
                length => Ok(length),
            },
        }
    }
}
