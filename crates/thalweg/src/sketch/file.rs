//! A state and where it came from.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Meta};

/// Stands for standard input and output.
const STANDARD: &str = "-";

/// A state that was read.
#[derive(Debug)]
pub(super) struct State {
    pub(super) path: PathBuf,
    /// Bytes of the file.
    pub(super) file_bytes: u64,
    pub(super) meta: Meta,
    pub(super) state: AnyState<KeyBytes>,
}

impl State {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> anyhow::Result<State> {
        let bytes = match path.as_os_str() == STANDARD {
            true => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
            false => fs::read(path),
        };
        let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
        let (meta, state) = AnyState::decode(&bytes)
            .with_context(|| format!("{} is no state of a sketch that can be read", path.display()))?;
        Ok(State { path: path.to_owned(), file_bytes: bytes.len() as u64, meta, state })
    }

    /// Takes in another.
    pub(super) fn merge(&mut self, other: &State) -> Result<(), CombineError> {
        self.meta.check(&other.meta)?;
        self.state.merge(&other.state)?;
        self.meta.merge(&other.meta)
    }

    /// Writes it; `-` is standard output.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let bytes = self.state.encode(&self.meta);
        match path.as_os_str() == STANDARD {
            true => io::Write::write_all(&mut io::stdout().lock(), &bytes),
            false => fs::write(path, bytes),
        }
        .with_context(|| format!("cannot write {}", path.display()))
    }
}
