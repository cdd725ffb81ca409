//! Capture files: decodes pcap and pcapng without copying, and encodes them into a vector.
//!
//! Sources: the Internet-Drafts *PCAP Capture File Format* (draft-ietf-opsawg-pcap) and *PCAP Now Generic
//! (pcapng) Capture File Format* (draft-ietf-opsawg-pcapng); section names below are theirs.
//!
//! A [`Decoder`] does no I/O and keeps no bytes. It takes a slice, and returns the positions of the frames in it and
//! the number of consumed bytes. The slice can be a memory-mapped file or a buffer that the caller refills; the frames
//! are the same however the file is split. Invalid bytes give a [`FormatError`] with the offset, never a panic.
//!
//! Tolerated, because real files contain it:
//! - Frames longer than their interface's snap length; they are returned and counted.
//! - A captured length above the original length; the original length is raised to it.
//! - Timestamps that run backwards, and sub-second parts of a second or more.
//! - Any options on any block, and blocks of unknown type; these blocks are counted.
//!
//! Memory: a few dozen bytes per interface, for at most [`MAX_INTERFACES`] interfaces. A pcap record costs a few loads
//! and one push.

mod byte_order;
mod error;
pub mod pcap;
pub mod pcapng;
#[cfg(test)]
mod tests;

pub use byte_order::ByteOrder;
pub use error::FormatError;

use crate::source::{FrameRef, Interface};

/// The maximum length of a record with its header: 64 MiB. A longer record is treated as damage.
///
/// BIG TCP captures reach 0.5 MiB per frame and USB captures a few MiB, while a random length is above this in 98 of
/// 100 cases. It also bounds the buffer that decoding a stream needs.
pub const MAX_RECORD_LENGTH: usize = 64 << 20;

/// The maximum number of interfaces in all sections of a file.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format of tcpdump.
    Pcap,
    /// Its successor.
    PcapNg,
}

/// The progress of one call of [`Decoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The length of the complete records from the start of the slice. Pass the rest again.
    pub consumed: usize,
    /// The minimum length of the incomplete record at `consumed`, as far as known; at most [`MAX_RECORD_LENGTH`]. Zero
    /// if decoding stopped at the limit.
    pub needed: usize,
}

/// Decodes a capture file of either format.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// The file header is not complete.
    #[default]
    Start,
    Pcap(pcap::Decoder),
    PcapNg(pcapng::Decoder),
}

impl Decoder {
    /// Creates a decoder at the start of a file.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The format, once known.
    pub fn format(&self) -> Option<Format> {
        match self.state {
            State::Start => None,
            State::Pcap(_) => Some(Format::Pcap),
            State::PcapNg(_) => Some(Format::PcapNg),
        }
    }

    /// Finds the frames in `bytes`, which must start where the previous call stopped consuming, at offset `base` of the
    /// file. Pushes at most `limit` frames, with offsets from the start of `bytes`. A limit of zero still decodes the
    /// header of a pcap file, so that its interface is known.
    ///
    /// # Errors
    /// If the file is invalid. `frames` then holds the frames before the error, and the decoder must not be used again.
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
            State::Start => unreachable!("the state changed above"),
            State::Pcap(decoder) => decoder.decode(bytes, at, base, limit, frames),
            State::PcapNg(decoder) => decoder.decode(bytes, base, limit, frames),
        }
    }

    /// The interfaces described so far, in file order. Indices are stable.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Start => &[],
            State::Pcap(decoder) => decoder.interfaces(),
            State::PcapNg(decoder) => decoder.interfaces(),
        }
    }

    /// The number of skipped records so far: names, statistics, unknown blocks. Excludes section headers and interface
    /// descriptions.
    pub fn other_records(&self) -> u64 {
        match &self.state {
            State::Start | State::Pcap(_) => 0,
            State::PcapNg(decoder) => decoder.other_records(),
        }
    }

    /// The number of frames so far that were longer than their interface's snap length.
    pub fn beyond_snap_length(&self) -> u64 {
        match &self.state {
            State::Start => 0,
            State::Pcap(decoder) => decoder.beyond_snap_length(),
            State::PcapNg(decoder) => decoder.beyond_snap_length(),
        }
    }
}
