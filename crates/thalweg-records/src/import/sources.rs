//! The files to import.

use std::fs;
use std::path::{Path, PathBuf};

use super::ImportError;

/// The files of nfdump, and those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The files, by name.
    pub files: Vec<PathBuf>,
    /// Files that nfcapd is still writing (`nfcapd.current.PID`).
    pub being_written: Vec<PathBuf>,
}

impl Sources {
    /// Finds the files: each path is a file, or a directory that is searched with its subdirectories for `nfcapd.*`.
    ///
    /// # Errors
    /// If a path cannot be read, or a directory has none.
    pub fn find(paths: &[PathBuf]) -> Result<Sources, ImportError> {
        let mut sources = Sources::default();
        for path in paths {
            let metadata = fs::metadata(path).map_err(ImportError::io("read", path))?;
            if !metadata.is_dir() {
                sources.files.push(path.clone());
                continue;
            }
            let before = sources.files.len() + sources.being_written.len();
            sources.search(path)?;
            if sources.files.len() + sources.being_written.len() == before {
                return Err(ImportError::Nothing(path.clone()));
            }
        }
        sources.files.sort();
        sources.files.dedup();
        Ok(sources)
    }

    fn search(&mut self, directory: &Path) -> Result<(), ImportError> {
        let entries = fs::read_dir(directory).map_err(ImportError::io("read", directory))?;
        for entry in entries {
            let entry = entry.map_err(ImportError::io("read", directory))?;
            let kind = entry.file_type().map_err(ImportError::io("read", entry.path()))?;
            let name = entry.file_name();
            if kind.is_dir() {
                self.search(&entry.path())?;
            } else if let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("nfcapd.")) {
                let files =
                    if rest.starts_with("current") { &mut self.being_written } else { &mut self.files };
                files.push(entry.path());
            }
        }
        Ok(())
    }
}
