//! Files that are replaced as a whole: a crash at any time, even a power failure, leaves the old or the new contents.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces the contents of a file, or creates it. Returns when they are on the disk. A crash may leave a file of the same name with
/// `.part` appended.
///
/// # Errors
/// If it cannot be written. The file is unchanged then.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let mut file = File::create(part)?;
    file.write_all(contents)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(part, path))
        .inspect_err(|_| {
            // Frees the space of a full disk.
            let _ = fs::remove_file(part);
        })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_new_contents_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::create_dir(folder.path().join("folder")).unwrap();
        assert!(replace(&folder.path().join("folder"), b"").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
