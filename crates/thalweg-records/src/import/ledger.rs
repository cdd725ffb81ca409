//! What was imported: a line of JSON for each file.

use std::collections::HashSet;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::ImportError;
use super::file::Imported;
use crate::locked_file::LockedFile;

/// The identity of a file: another size or time of change is another file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    path: PathBuf,
    bytes: u64,
    modified_ns: u64,
}

impl Identity {
    /// Returns the identity of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(path: &Path) -> Result<Identity, ImportError> {
        let metadata = fs::metadata(path).map_err(ImportError::io("read", path))?;
        let modified = metadata.modified().map_err(ImportError::io("read", path))?;
        let modified_ns = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let path = path.canonicalize().map_err(ImportError::io("read", path))?;
        Ok(Identity { path, bytes: metadata.len(), modified_ns })
    }

    /// Returns its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The ledger of a store, locked while it is open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: LockedFile,
    done: HashSet<Identity>,
}

impl Ledger {
    /// Opens `DIR/import/nfcapd.jsonl`, or creates it. A line that a crash has cut short is removed.
    ///
    /// # Errors
    /// If another import has it open, it cannot be read or written, or a line is wrong.
    pub fn open(directory: &Path) -> Result<Ledger, ImportError> {
        let folder = directory.join("import");
        fs::create_dir_all(&folder).map_err(ImportError::io("create the directory", &folder))?;
        let path = folder.join("nfcapd.jsonl");
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = file.map_err(ImportError::io("open", &path))?;
        let file = LockedFile::new(file).map_err(|error| match error {
            TryLockError::WouldBlock => ImportError::InUse(directory.to_owned()),
            TryLockError::Error(source) => ImportError::io("lock", &path)(source),
        })?;
        let mut ledger = Ledger { path, file, done: HashSet::new() };
        ledger.read()?;
        Ok(ledger)
    }

    fn read(&mut self) -> Result<(), ImportError> {
        let (mut lines, mut line, mut whole) = (BufReader::new(&*self.file), Vec::new(), 0);
        for number in 1.. {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(ImportError::io("read", &self.path))?;
            if length == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') {
                break;
            }
            let identity =
                serde_json::from_slice(&line).map_err(|error| error.to_string()).and_then(|value| {
                    identity(&value).ok_or("expected source, bytes and modified_ns".to_owned())
                });
            match identity {
                Ok(identity) => self.done.insert(identity),
                Err(problem) => {
                    return Err(ImportError::Ledger { path: self.path.clone(), line: number, problem });
                }
            };
            whole += length as u64;
        }
        self.file.set_len(whole).map_err(ImportError::io("shorten", &self.path))
    }

    /// Whether a file was imported.
    pub fn has(&self, identity: &Identity) -> bool {
        self.done.contains(identity)
    }

    /// Records that a file was imported, on the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, identity: Identity, imported: &Imported) -> Result<(), ImportError> {
        let mut line = json!({
            "source": identity.path.to_string_lossy(),
            "bytes": identity.bytes,
            "modified_ns": identity.modified_ns,
            "flows": imported.tally.flows,
            "packets": imported.packets,
            "octets": imported.octets,
            "files": imported.files.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        })
        .to_string();
        line.push('\n');
        let written = (&*self.file).write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(ImportError::io("write", &self.path))?;
        self.done.insert(identity);
        Ok(())
    }
}

fn identity(line: &Value) -> Option<Identity> {
    Some(Identity {
        path: line["source"].as_str()?.into(),
        bytes: line["bytes"].as_u64()?,
        modified_ns: line["modified_ns"].as_u64()?,
    })
}
