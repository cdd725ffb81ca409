//! The part of a frame that is still to be read.

use crate::parse::{Malformed, Unparsed};
use crate::source::Frame;

/// A frame from one of its headers on: what was captured of it, and how long it was on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a> {
    /// What was captured; never more than `wire_length`.
    bytes: &'a [u8],
    /// Bytes on the wire, as the layers so far have it.
    wire_length: u32,
    /// Where it begins in the frame.
    offset: u32,
}

impl<'a> Rest<'a> {
    /// The whole frame. A source that states an original length below what it captured is not believed.
    #[inline]
    pub(super) fn of_frame(frame: &Frame<'a>) -> Rest<'a> {
        let captured_length = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
        Rest { bytes: frame.bytes, wire_length: frame.original_length.max(captured_length), offset: 0 }
    }

    /// Bytes on the wire from here on.
    #[inline]
    pub(super) fn wire_length(&self) -> u32 {
        self.wire_length
    }

    /// What was captured from here on.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next `N` bytes, if they were captured.
    #[inline]
    pub(super) fn peek<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.bytes.first_chunk()
    }

    /// The next `N` bytes, or why they are missing.
    #[inline]
    pub(super) fn header<const N: usize>(&self) -> Result<&'a [u8; N], Unparsed> {
        self.bytes.first_chunk().ok_or_else(|| {
            let truncated = self.wire_length as usize >= N;
            self.malformed(if truncated { Malformed::Truncated } else { Malformed::FrameTooShort })
        })
    }

    /// What follows the next `length` bytes; nothing if it ends before them.
    #[inline]
    pub(super) fn skip(self, length: u32) -> Rest<'a> {
        Rest {
            bytes: self.bytes.get(length as usize..).unwrap_or_default(),
            wire_length: self.wire_length.saturating_sub(length),
            offset: self.offset.saturating_add(length),
        }
    }

    /// The same with the length that a header states for it. What was captured beyond it is padding or belongs
    /// to nobody.
    #[inline]
    pub(super) fn with_wire_length(self, wire_length: u32) -> Rest<'a> {
        let bytes = self.bytes.get(..wire_length as usize).unwrap_or(self.bytes);
        Rest { bytes, wire_length, offset: self.offset }
    }

    /// The error that the header which begins here breaks its format.
    #[inline]
    pub(super) fn malformed(&self, kind: Malformed) -> Unparsed {
        Unparsed::Malformed { kind, offset: self.offset }
    }
}
