//! Messages out of a stream of bytes: the length field of each header says where the next begins (RFC 7011
//! section 3.1).

use std::io::{self, Read};

use thiserror::Error;

/// Bytes of a message header.
const HEADER_LENGTH: usize = 16;

/// What an IPFIX message begins with.
const VERSION: u16 = 10;

/// A message has no more bytes: its length has 16 bits.
const LONGEST: usize = 65_535;

/// The stream does not go on with a message; there is no way to find the next one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramingError {
    /// Another version.
    #[error("version {found} at byte {offset} of the stream, expected 10 (IPFIX)")]
    Version {
        /// What stands there.
        found: u16,
        /// Byte of the stream that the message begins at.
        offset: u64,
    },
    /// Shorter than its header.
    #[error("a message of {found} bytes at byte {offset} of the stream, expected at least 16")]
    Length {
        /// What the header says.
        found: u16,
        /// Byte of the stream that the message begins at.
        offset: u64,
    },
}

/// Bytes received that are not read yet: at most two messages of the greatest length.
#[derive(Debug, Default)]
pub(super) struct Framing {
    buffer: Vec<u8>,
    /// Of `buffer`, bytes that have been given out.
    read: usize,
    /// Of `buffer`, bytes received.
    received: usize,
    /// Byte of the stream that `buffer` begins at.
    offset: u64,
}

impl Framing {
    /// Reads what has come; 0 at the end of the stream.
    pub(super) fn receive(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.buffer.copy_within(self.read..self.received, 0);
        self.offset += self.read as u64;
        self.received -= self.read;
        self.read = 0;
        self.buffer.resize(2 * LONGEST, 0);
        let count = stream.read(&mut self.buffer[self.received..])?;
        self.received += count;
        Ok(count)
    }

    /// The next message, if all of it has come.
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

    /// Whether the stream so far ends inside a message.
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

    /// Gives the stream in pieces of these lengths, one a read.
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
        fn messages_come_out_as_they_went_in_however_the_stream_is_cut(
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
    fn what_is_no_message_is_told_with_its_place_in_the_stream() {
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
