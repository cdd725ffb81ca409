//! Reading and writing sketch files.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::Context;
use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Meta};

/// Name of standard input and output.
const STANDARD_STREAM: &str = "-";

/// A sketch read from a file.
#[derive(Debug)]
pub(super) struct State {
    /// Name of the file for messages.
    pub(super) name: String,
    /// Size of the file.
    pub(super) file_bytes: u64,
    pub(super) meta: Meta,
    pub(super) state: AnyState<KeyBytes>,
}

impl State {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> anyhow::Result<State> {
        let (name, bytes) = match path.as_os_str() == STANDARD_STREAM {
            true => {
                let mut bytes = Vec::new();
                ("standard input".to_owned(), io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
            }
            false => (path.display().to_string(), fs::read(path)),
        };
        let cannot_read = || format!("cannot read {name}");
        let bytes = bytes.with_context(cannot_read)?;
        let (meta, state) = AnyState::decode(&bytes).with_context(cannot_read)?;
        Ok(State { name, file_bytes: bytes.len() as u64, meta, state })
    }

    /// Merges another sketch into this one.
    pub(super) fn merge(&mut self, other: &State) -> Result<(), CombineError> {
        self.meta.check(&other.meta)?;
        self.state.merge(&other.state)?;
        self.meta.merge(&other.meta)
    }

    /// Writes a file; `-` is standard output.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let bytes = self.state.encode(&self.meta);
        if path.as_os_str() == STANDARD_STREAM {
            let mut out = io::stdout().lock();
            return out
                .write_all(&bytes)
                .and_then(|()| out.flush())
                .context("cannot write to standard output");
        }
        write_atomically(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Replaces a file atomically, because it may be one of the merged files. Writes directly to anything that is not a regular
/// file, such as a pipe.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| {
        // The file may not exist. Report the first error.
        let _ = fs::remove_file(&unfinished);
    })
}
