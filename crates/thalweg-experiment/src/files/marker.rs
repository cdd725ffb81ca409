//! A file that says that results are being written.
//!
//! A run or a sweep keeps its file locked. A file without a lock is of a program that was killed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Name of the file.
const FILE: &str = "running.json";

/// Maximum length of the file.
const MAX_BYTES: u64 = 1 << 16;

/// How often the file is tried to be locked, and how long between.
const LOCK_ATTEMPTS: usize = 5;
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// What is running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Name of the experiment.
    pub experiment: String,
    /// The swept keys; empty for a single run.
    pub sweep: Vec<String>,
    /// Number of runs.
    pub runs: u64,
}

/// The file of results that this program is writing. Dropping it removes the file.
#[derive(Debug)]
pub struct RunMarker {
    path: PathBuf,
    locked: File,
}

impl RunMarker {
    /// Creates the file in a folder.
    ///
    /// # Errors
    /// If it cannot be written, or another program writes results into the folder.
    pub fn create(folder: &Path, running: &Running) -> io::Result<RunMarker> {
        let path = folder.join(FILE);
        let mut file = lock(&path)?;
        file.set_len(0)?;
        file.write_all(serde_json::to_string(running).expect("text can be written").as_bytes())?;
        Ok(RunMarker { path, locked: file })
    }
}

impl Drop for RunMarker {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = fs::remove_file(&self.path);
        // Closing the file is not enough: a program that is being started has a copy of it.
        let _ = self.locked.unlock();
    }
}

/// Opens the file and locks it, if necessary after a moment: who asks what is running has a lock as well while it looks. A file that its
/// owner has removed meanwhile is not taken.
fn lock(path: &Path) -> io::Result<File> {
    for attempt in 0..LOCK_ATTEMPTS {
        if attempt > 0 {
            thread::sleep(LOCK_RETRY);
        }
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        // Not all file systems have locks. Results matter more.
        let is_locked_by_another = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_locked_by_another && file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another emulation writes its results here"))
}

/// Returns what is running in a folder, and whether it still is; `None` without a file.
pub fn running(folder: &Path) -> Option<(Running, bool)> {
    let path = folder.join(FILE);
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let file = File::open(&path).ok()?;
    let is_running = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !is_running {
        // As above.
        let _ = file.unlock();
    }
    let unknown = || Running { experiment: String::new(), sweep: Vec::new(), runs: 1 };
    let text = fs::read_to_string(&path).ok()?;
    Some((serde_json::from_str(&text).unwrap_or_else(|_| unknown()), is_running))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_being_written_until_the_marker_is_dropped_or_its_program_ends() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(running(folder.path()), None);
        let what = Running { experiment: "incast".to_owned(), sweep: vec!["scheme".to_owned()], runs: 2 };
        let marker = RunMarker::create(folder.path(), &what).unwrap();
        assert_eq!(running(folder.path()), Some((what.clone(), true)));
        let refused = RunMarker::create(folder.path(), &what).unwrap_err();
        assert_eq!(refused.to_string(), "another emulation writes its results here");
        drop(marker);
        assert_eq!(running(folder.path()), None);
        // As after a kill: the lock has gone, the file has not.
        fs::write(folder.path().join(FILE), serde_json::to_string(&what).unwrap()).unwrap();
        assert_eq!(running(folder.path()), Some((what.clone(), false)));
        RunMarker::create(folder.path(), &what).unwrap();
    }
}
