//! Directories for the user that root changes to ([`drop_privileges_except`](crate::privileges::drop_privileges_except)).
//!
//! Root creates a missing directory, and gives it to that user. It does the same for an existing directory only if that belongs to root
//! and is empty: another one may be there for somebody else.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use crate::privileges::{check_searchable, check_writable, next_user, run_as_unprivileged_user};

/// Checks that the next user can create files in a directory, or that [`prepare_folder`] can provide for it. Changes nothing.
///
/// # Errors
/// The reason why not.
pub fn check_folder(folder: &Path, user: Option<&str>) -> io::Result<()> {
    let existing = existing_part(folder);
    if !fs::metadata(existing)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let Err(error) = as_next_user(user, || check_writable(existing))? else { return Ok(()) };
    let is_complete = existing == folder;
    let can_prepare = next_user(user).map_err(io::Error::other)?.is_some()
        && match is_complete {
            true => open_if_free(folder).is_ok_and(|free| free.is_some()),
            false => check_writable(existing).is_ok(),
        };
    let above = if is_complete { above(folder) } else { existing };
    match can_prepare && as_next_user(user, || check_searchable(above))?.is_ok() {
        true => Ok(()),
        false => Err(error),
    }
}

/// Creates a directory if it is missing, so that the next user can create files in it. Does nothing if the process is not root.
///
/// # Errors
/// If that user cannot create files in it in the end.
pub fn prepare_folder(folder: &Path, user: Option<&str>) -> io::Result<()> {
    let Some((uid, gid)) = next_user(user).map_err(io::Error::other)? else { return Ok(()) };
    let existing = existing_part(folder);
    if existing == folder
        && as_next_user(user, || check_writable(existing))?.is_err()
        && let Some(free) = open_if_free(folder)?
    {
        fchown(&free, Some(uid), Some(gid))?;
    }
    let mut missing: Vec<&Path> = folder.ancestors().take_while(|part| *part != existing).collect();
    missing.retain(|part| !part.as_os_str().is_empty());
    for part in missing.into_iter().rev() {
        fs::create_dir(part)?;
        fchown(open_folder(part)?, Some(uid), Some(gid))?;
    }
    as_next_user(user, || check_writable(folder))?
}

/// Runs a check as the next user.
fn as_next_user(
    user: Option<&str>,
    check: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<io::Result<()>> {
    run_as_unprivileged_user(user, check).map_err(io::Error::other)
}

/// Returns the longest part of a path that exists.
fn existing_part(folder: &Path) -> &Path {
    let existing = folder.ancestors().find(|part| part.exists());
    existing.filter(|part| !part.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the directory that contains another.
fn above(folder: &Path) -> &Path {
    folder.parent().filter(|part| !part.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a directory, but not a symbolic link to one.
fn open_folder(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(folder)
}

/// Opens a directory that belongs to root and is empty; `None` for others.
fn open_if_free(folder: &Path) -> io::Result<Option<File>> {
    let opened = open_folder(folder)?;
    let is_free = opened.metadata()?.uid() == 0 && fs::read_dir(folder)?.next().is_none();
    Ok(is_free.then_some(opened))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::skip::skip;

    #[test]
    fn root_provides_directories_for_its_next_user() {
        let user = Some("nobody");
        if !matches!(next_user(user), Ok(Some(_))) {
            return skip("not root");
        }
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(root.path(), 0o755);
        let (missing, empty, taken) =
            (root.path().join("lib/state"), root.path().join("empty"), root.path().join("taken"));
        for folder in [&empty, &taken] {
            fs::create_dir(folder).unwrap();
            mode(folder, 0o755);
        }
        fs::write(taken.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&empty, root.path().join("link")).unwrap();
        for (folder, can_prepare) in [
            (&missing, true),
            (&taken, false),
            (&taken.join("file"), false),
            (&root.path().join("link"), false),
            (&empty, true),
        ] {
            assert_eq!(check_folder(folder, user).is_ok(), can_prepare, "{}", folder.display());
            assert!(!fs::metadata(&missing).is_ok_and(|_| *folder == missing), "a check changes nothing");
            assert_eq!(prepare_folder(folder, user).is_ok(), can_prepare, "{}", folder.display());
            let is_writable = run_as_unprivileged_user(user, || check_writable(folder)).unwrap().is_ok();
            assert_eq!(is_writable, can_prepare, "{}", folder.display());
        }
        assert_eq!(fs::metadata(&taken).unwrap().uid(), 0);
        prepare_folder(&missing, user).unwrap();
        check_folder(&missing, user).unwrap();
        // A directory that the user cannot reach.
        mode(root.path(), 0o700);
        check_folder(&root.path().join("other"), user).unwrap_err();
        check_folder(&missing, user).unwrap_err();
    }

    #[test]
    fn without_root_the_user_of_the_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(check_folder(&file, None).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(check_folder(&file.join("x"), None).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}
