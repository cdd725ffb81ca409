//! A state and where it came from.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::Context;
use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Meta};

/// Stands for standard input and output.
const STANDARD: &str = "-";

/// A state that was read.
#[derive(Debug)]
pub(super) struct State {
    /// What people call its file.
    pub(super) name: String,
    /// Bytes of the file.
    pub(super) file_bytes: u64,
    pub(super) meta: Meta,
    pub(super) state: AnyState<KeyBytes>,
}

impl State {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> anyhow::Result<State> {
        let (name, bytes) = match path.as_os_str() == STANDARD {
            true => {
                let mut bytes = Vec::new();
                ("standard input".to_owned(), io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
            }
            false => (path.display().to_string(), fs::read(path)),
        };
        let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
        let (meta, state) = AnyState::decode(&bytes)
            .with_context(|| format!("{name} is no state of a sketch that can be read"))?;
        Ok(State { name, file_bytes: bytes.len() as u64, meta, state })
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
        if path.as_os_str() == STANDARD {
            let mut out = io::stdout().lock();
            return out
                .write_all(&bytes)
                .and_then(|()| out.flush())
                .context("cannot write to standard output");
        }
        write_whole(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Writes a file so that what is there stays until all is written: it may be one of those that were merged. What is
/// no plain file, such as a pipe, is written to as it is.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| {
        // There may be none; the first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    })
}
