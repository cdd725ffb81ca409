//! Imports flow records of other programs into a store: files of nfdump.
//!
//! Each file becomes one Parquet file for each hour in which its records were received, usually one. Its name follows from the
//! content, so that a file that was imported before a crash replaces itself. A ledger says which files are done, so an import
//! that is repeated, or was interrupted, goes on.
//!
//! | module | contents |
//! |---|---|
//! | [`sources`] | the files to import |
//! | [`file`](mod@file) | one file: from its blocks to Parquet |
//! | [`ledger`] | what was imported |
//! | [`run`](mod@run) | several files, on several threads |
//! | `compression` | blocks |

mod compression;
pub mod file;
pub mod ledger;
pub mod run;
pub mod sources;

use std::io;
use std::path::PathBuf;

use thalweg_wire::nfcapd::NfcapdError;
use thiserror::Error;

pub use file::Imported;
pub use run::{ImportOptions, Progress, import};

/// Why a file was not imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file or directory cannot be read or written.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What failed.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not one of nfdump, or damaged.
    #[error("{}: {source}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: NfcapdError,
    },
    /// A block cannot be decompressed, or its records are wrong.
    #[error("{}: block {block} at byte {offset}: {problem}", .path.display())]
    Block {
        /// The file.
        path: PathBuf,
        /// The number of the block, from 0.
        block: u32,
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The directory has no such files.
    #[error("{}: no files of nfdump: expected names such as nfcapd.202611221300", .0.display())]
    Nothing(PathBuf),
    /// Another import writes to the directory.
    #[error("{}: another import writes here", .0.display())]
    InUse(PathBuf),
    /// A line of the ledger.
    #[error("{}:{line}: {problem}; remove the line to import its file again", .path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl ImportError {
    fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ImportError {
        let path = path.into();
        move |source| ImportError::Io { operation, path, source }
    }
}
