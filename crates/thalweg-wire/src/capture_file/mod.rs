//! Capture files: pcap and pcapng, decoded without copying and encoded into a vector.
//!
//! Sources: the Internet-Drafts *PCAP Capture File Format* (draft-ietf-opsawg-pcap) and *PCAP Now Generic
//! (pcapng) Capture File Format* (draft-ietf-opsawg-pcapng); section names below are theirs.
//!
//! A [`Decoder`] never reads and never keeps bytes: it is given a slice, says where the frames in it lie, and
//! how much of it is done with. The slice can be a whole file mapped into memory or a buffer that is refilled:
//! cut the same file where you like, the same frames come out. Any bytes give frames or a [`FormatError`] that
//! names the offset; none give a panic.
//!
//! Tolerated, because files in the wild have it:
//! - A frame longer than its interface's snap length is handed on and counted.
//! - A captured length above the original length: the original length is raised to it, since so many bytes
//!   certainly were on the wire.
//! - Time stamps that run backwards, and sub-second parts of a second or more.
//! - Options of any kind on any block, and blocks of unknown type (counted).
//!
//! Memory: a few dozen bytes an interface, at most [`MAX_INTERFACES`] of them. A pcap record costs a handful of
//! loads and one push.

mod byte_order;
mod error;
pub mod pcap;
pub mod pcapng;
#[cfg(test)]
mod tests;

pub use byte_order::ByteOrder;
pub use error::FormatError;

use crate::source::{FrameRef, Interface};

/// Longest record, header included, that is believed: 64 MiB. A longer one is taken for damage.
///
/// BIG TCP captures reach 0.5 MiB a frame and USB captures a few MiB, while a length field hit by damage is
/// above this in 98 of 100 cases. It also bounds the buffer of whoever decodes a stream.
pub const MAX_RECORD_LENGTH: usize = 64 << 20;

/// Most interfaces that a file may describe, over all its sections.
pub const MAX_INTERFACES: usize = 1 << 16;

/// Which of the formats a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format of tcpdump.
    Pcap,
    /// Its successor, made of blocks.
    PcapNg,
}

/// How far one call of [`Decoder::decode`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of whole records from the start of the slice. What follows must be given again.
    pub consumed: usize,
    /// Least length of the record at `consumed`, as far as can be told, if it is incomplete; at most
    /// [`MAX_RECORD_LENGTH`]. Zero if decoding stopped because of the limit.
    pub needed: usize,
}

/// Decodes a capture file of either format from its first byte on.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// The file header has not been seen in whole.
    #[default]
    Start,
    Pcap(pcap::Decoder),
    PcapNg(pcapng::Decoder),
}

impl Decoder {
    /// For a file of which nothing has been read yet.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The format, once enough bytes were seen to tell.
    pub fn format(&self) -> Option<Format> {
        match self.state {
            State::Start => None,
            State::Pcap(_) => Some(Format::Pcap),
            State::PcapNg(_) => Some(Format::PcapNg),
        }
    }

    /// Finds the frames in `bytes`, which begin where the call before stopped consuming, at offset `base` of
    /// the file. Pushes at most `limit` frames, their offsets counted from the start of `bytes`. With a limit
    /// of zero a pcap file's header is still read, so that its interface becomes known.
    ///
    /// # Errors
    /// When the file breaks its format. `frames` then holds what came before the fault, and the decoder is
    /// not to be used again.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        base: u64,
        limit: usize,
        frames: &mut Vec<FrameRef>,
    ) -> Result<Decoded, FormatError> {
        let mut at = 0;
        if let State::Start = self.state {
            let Some(magic) = bytes.first_chunk::<4>() else {
                return Ok(Decoded { consumed: 0, needed: pcap::FILE_HEADER_LENGTH });
            };
            if *magic == pcapng::SECTION_HEADER {
                self.state = State::PcapNg(pcapng::Decoder::default());
            } else {
                let variant = pcap::Variant::from_magic(*magic);
                let variant = variant.ok_or(FormatError::NotACapture { found: *magic })?;
                let Some(header) = bytes.first_chunk() else {
                    return Ok(Decoded { consumed: 0, needed: pcap::FILE_HEADER_LENGTH });
                };
                self.state = State::Pcap(pcap::Decoder::new(variant, header)?);
                at = pcap::FILE_HEADER_LENGTH;
            }
        }
        match &mut self.state {
            State::Start => unreachable!("left above"),
            State::Pcap(decoder) => decoder.decode(bytes, at, base, limit, frames),
            State::PcapNg(decoder) => decoder.decode(bytes, base, limit, frames),
        }
    }

    /// Interfaces described so far, in the order of the file; an index never changes its meaning.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Start => &[],
            State::Pcap(decoder) => decoder.interfaces(),
            State::PcapNg(decoder) => decoder.interfaces(),
        }
    }

    /// Records so far that hold no frame and describe none: names, statistics, unknown blocks. Section headers
    /// and interface descriptions are not among them.
    pub fn other_records(&self) -> u64 {
        match &self.state {
            State::Start | State::Pcap(_) => 0,
            State::PcapNg(decoder) => decoder.other_records(),
        }
    }

    /// Frames so far that were longer than their interface's snap length.
    pub fn beyond_snap_length(&self) -> u64 {
        match &self.state {
            State::Start => 0,
            State::Pcap(decoder) => decoder.beyond_snap_length(),
            State::PcapNg(decoder) => decoder.beyond_snap_length(),
        }
    }
}
