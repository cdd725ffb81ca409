//! The beginning of a file, by which it is recognised when its name or its inode says nothing.
//!
//! An inode number is reused after a file was deleted, and `copytruncate` keeps the inode and moves the content. The digest of the first
//! bytes tells a file that has grown from one that was replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of bytes that are compared.
pub(super) const MAX_HEAD_BYTES: u64 = 1_024;

/// Digest of the first bytes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Number of bytes.
    pub(super) bytes: u64,
    /// First eight bytes of their SHA-256.
    pub(super) digest: u64,
}

impl Head {
    /// Reads the first bytes of a file: at most `length`, and at most [`MAX_HEAD_BYTES`].
    pub(super) fn read(file: &File, length: u64) -> io::Result<Head> {
        let mut buffer = [0; MAX_HEAD_BYTES as usize];
        let buffer = &mut buffer[..length.min(MAX_HEAD_BYTES) as usize];
        let read = read_full(file, buffer)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &buffer[..read]);
        let first = digest.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Ok(Head { bytes: read as u64, digest: first })
    }

    /// Returns whether a file begins with the same bytes.
    pub(super) fn matches(self, file: &File) -> io::Result<bool> {
        Ok(self.bytes == 0 || Head::read(file, self.bytes)? == self)
    }

    /// Returns whether more bytes can be compared when this many were read.
    pub(super) fn can_grow(self, read_to: u64) -> bool {
        self.bytes < read_to.min(MAX_HEAD_BYTES)
    }
}

fn read_full(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
