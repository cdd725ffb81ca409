//! Files that one process at a time uses.

use std::fs::{File, TryLockError};
use std::ops::Deref;

/// An open file that no other process has locked (flock(2)), unlocked when dropped or when the process ends.
///
/// Closing the file would not always unlock it: a program that another thread starts has a copy of every open file until it is loaded,
/// and the lock stays as long as any copy.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Locks a file.
    ///
    /// # Errors
    /// If it is locked, or the file system has no locks.
    pub(crate) fn new(file: File) -> Result<LockedFile, TryLockError> {
        file.try_lock().map(|()| LockedFile(file))
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // An error cannot be reported here. The lock ends with the process then.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_is_unlocked_even_if_a_copy_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let open = || File::create(&path).unwrap();
        let locked = LockedFile::new(open()).unwrap();
        // As the one that a program has which is being started.
        let _copy = locked.try_clone().unwrap();
        assert!(matches!(LockedFile::new(open()), Err(TryLockError::WouldBlock)));
        drop(locked);
        assert!(LockedFile::new(open()).is_ok());
    }
}
