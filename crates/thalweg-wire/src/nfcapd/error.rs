//! What is wrong with a file of nfdump.

use thiserror::Error;

/// A problem at an offset of the file or block.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("byte {offset}: {problem}")]
pub struct NfcapdError {
    /// The offset in bytes.
    pub offset: u64,
    /// The problem.
    pub problem: NfcapdProblem,
}

/// What is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NfcapdProblem {
    /// The first bytes.
    #[error(
        "begins with {found:#06x}: expected {expected:#06x}, a file of nfdump written on a little-endian machine"
    )]
    Magic {
        /// The first two bytes.
        found: u16,
        /// Those of nfdump.
        expected: u16,
    },
    /// The layout.
    #[error(
        "layout {found}: expected 2, of nfdump 1.7; convert older files with `nfdump -r OLD -w NEW` of nfdump 1.7"
    )]
    Layout {
        /// The layout.
        found: u16,
    },
    /// The compression.
    #[error("compression {found}: expected 0 (none), 1 (LZO), 2 (bzip2), 3 (LZ4) or 4 (zstd)")]
    Compression {
        /// The number of the compression.
        found: u8,
    },
    /// The file is encrypted.
    #[error("the file is encrypted")]
    Encrypted,
    /// The end comes too early.
    #[error("{left} bytes left: expected {needed} for {what}")]
    Truncated {
        /// What was expected.
        what: &'static str,
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that are left.
        left: u64,
    },
    /// A size that is too small.
    #[error("{what} of {found} bytes: expected at least {least}")]
    Size {
        /// What has the size.
        what: &'static str,
        /// The size.
        found: u64,
        /// The least size.
        least: u64,
    },
}

pub(super) fn truncated(offset: usize, what: &'static str, needed: usize, left: usize) -> NfcapdError {
    let problem = NfcapdProblem::Truncated { what, needed: needed as u64, left: left as u64 };
    NfcapdError { offset: offset as u64, problem }
}
