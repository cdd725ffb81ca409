//! Splits a byte stream into messages by the length field of each header (RFC 7011 section 3.1).

use std::io::{self, Read};

use thiserror::Error;

/// Length of a message header in bytes.
const HEADER_LENGTH: usize = 16;

/// Version number of IPFIX.
const VERSION: u16 = 10;

/// Maximum length of a message: the length field has 16 bits.
const MAX_MESSAGE_LENGTH: usize = 65_535;

/// The stream does not continue with a message, so the next one cannot be found.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramingError {
    /// Another version.
    #[error("invalid message version {found} at byte {offset} of the stream: expected 10 (IPFIX)")]
    Version {
        /// The version found.
        found: u16,
        /// Offset of the message in the stream.
        offset: u64,
    },
    /// A length shorter than the header.
    #[error("invalid message length {found} at byte {offset} of the stream: expected at least 16")]
    Length {
        /// The length in the header.
        found: u16,
        /// Offset of the message in the stream.
        offset: u64,
    },
}

/// The receive buffer of a connection; holds at most two messages of maximum length.
#[derive(Debug, Default)]
pub(super) struct Framing {
    buffer: Vec<u8>,
    /// Bytes of `buffer` already returned.
    read: usize,
    /// Bytes of `buffer` received.
    received: usize,
    /// Offset of `buffer` in the stream.
    offset: u64,
}

impl Framing {
    /// Reads available bytes and returns their number; 0 at the end of the stream.
    pub(super) fn receive(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.buffer.copy_within(self.read..self.received, 0);
        self.offset += self.read as u64;
        self.received -= self.read;
        self.read = 0;
        self.buffer.resize(2 * MAX_MESSAGE_LENGTH, 0);
        let count = stream.read(&mut self.buffer[self.received..])?;
        self.received += count;
        Ok(count)
    }

    /// Returns the next message, if it has arrived completely.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FramingError> {
        let rest = &self.buffer[self.read..self.received];
        let Some(&[v0, v1, l0, l1]) = rest.first_chunk() else { return Ok(None) };
        let (version, length) = (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([l0, l1]));
        let offset = self.offset + self.read as u64;
        if version != VERSION {
            return Err(FramingError::Version { found: version, offset });
        }
        if usize::from(length) < HEADER_LENGTH {
            return Err(FramingError::Length { found: length, offset });
        }
        let message = rest.get(..usize::from(length));
        self.read += message.map_or(0, <[u8]>::len);
        Ok(message)
    }

    /// Returns whether the bytes received so far end inside a message.
    pub(super) fn is_inside_message(&self) -> bool {
        self.read < self.received
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(length: u16) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    /// Returns the stream in pieces of the given lengths, one per read.
    struct Pieces<'a>(&'a [u8], std::iter::Cycle<std::slice::Iter<'a, usize>>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = *self.1.next().unwrap();
            let (now, later) = self.0.split_at(piece.min(self.0.len()).min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    proptest! {
        #[test]
        fn messages_are_independent_of_how_the_stream_is_split(
            lengths in proptest::collection::vec(prop_oneof![16u16..40, 65_000u16..=65_535], 1..8),
            pieces in proptest::collection::vec(prop_oneof![1usize..20, 60_000usize..140_000], 1..5),
        ) {
            let messages: Vec<Vec<u8>> = lengths.iter().map(|&length| message(length)).collect();
            let stream = messages.concat();
            let mut stream = Pieces(&stream, pieces.iter().cycle());
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            while framing.receive(&mut stream).unwrap() > 0 {
                while let Some(message) = framing.next().unwrap() {
                    found.push(message.to_vec());
                }
            }
            prop_assert!(!framing.is_inside_message());
            prop_assert_eq!(found, messages);
        }
    }

    #[test]
    fn errors_state_the_offset_in_the_stream() {
        let error_after = |bytes: &[u8]| {
            let stream = [&message(20)[..], bytes].concat();
            let mut framing = Framing::default();
            framing.receive(&mut &stream[..]).unwrap();
            assert!(framing.next().unwrap().is_some());
            framing.next().map(|message| message.map(<[u8]>::to_vec))
        };
        assert_eq!(error_after(&[0, 9, 0, 20]), Err(FramingError::Version { found: 9, offset: 20 }));
        assert_eq!(error_after(&[0, 10, 0, 15]), Err(FramingError::Length { found: 15, offset: 20 }));
        assert_eq!(error_after(&[0, 10, 0]), Ok(None));
    }
}
