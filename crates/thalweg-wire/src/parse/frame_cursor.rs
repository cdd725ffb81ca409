//! A position in a frame, and what follows it.

use crate::parse::{Malformed, Unparsed};
use crate::source::Frame;

/// A frame from one of its headers: the captured bytes, and the length on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameCursor<'a> {
    /// The captured bytes; at most `wire_length`.
    bytes: &'a [u8],
    /// The length on the wire, according to the parsed layers.
    wire_length: u32,
    /// The offset in the frame.
    offset: u32,
}

impl<'a> FrameCursor<'a> {
    /// Returns the whole frame. Raises an original length below the captured length.
    #[inline]
    pub(super) fn of_frame(frame: &Frame<'a>) -> FrameCursor<'a> {
        let captured_length = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
        FrameCursor { bytes: frame.bytes, wire_length: frame.original_length.max(captured_length), offset: 0 }
    }

    /// The length on the wire from here.
    #[inline]
    pub(super) fn wire_length(&self) -> u32 {
        self.wire_length
    }

    /// The captured bytes from here.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the next `N` bytes, if captured.
    #[inline]
    pub(super) fn peek<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.bytes.first_chunk()
    }

    /// Returns the next `N` bytes, or an error if they are missing.
    #[inline]
    pub(super) fn header<const N: usize>(&self) -> Result<&'a [u8; N], Unparsed> {
        self.bytes.first_chunk().ok_or_else(|| {
            let truncated = self.wire_length as usize >= N;
            self.malformed(if truncated { Malformed::Truncated } else { Malformed::FrameTooShort })
        })
    }

    /// Skips `length` bytes; empty if the frame is shorter.
    #[inline]
    pub(super) fn skip(self, length: u32) -> FrameCursor<'a> {
        FrameCursor {
            bytes: self.bytes.get(length as usize..).unwrap_or_default(),
            wire_length: self.wire_length.saturating_sub(length),
            offset: self.offset.saturating_add(length),
        }
    }

    /// Limits the rest to the length that a header states. Captured bytes beyond are padding.
    #[inline]
    pub(super) fn with_wire_length(self, wire_length: u32) -> FrameCursor<'a> {
        let bytes = self.bytes.get(..wire_length as usize).unwrap_or(self.bytes);
        FrameCursor { bytes, wire_length, offset: self.offset }
    }

    /// Returns the error that the header at this offset is malformed.
    #[inline]
    pub(super) fn malformed(&self, kind: Malformed) -> Unparsed {
        Unparsed::Malformed { kind, offset: self.offset }
    }
}
