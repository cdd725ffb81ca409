//! Access to the files that the daemon opens after it has changed its user.
//!
//! As root the daemon reads its files before it drops its privileges. A reload and a dump of samples happen afterwards, as another
//! user. So the start and `thalweg check` check the access of that user.

use std::io;
use std::path::Path;

use thalweg_linux::privileges::{PrivilegeError, check_readable, check_writable, run_as_unprivileged_user};

use super::config::Config;

/// Returns what the user of the calling thread cannot read at a reload, as messages.
pub(super) fn unreadable_at_reload(config: &Config) -> Vec<String> {
    let access = &config.access;
    let files = [
        ("the configuration file", Some(Path::new(&config.file))),
        ("network.topology", config.network.state.as_ref().map(|(path, _)| path.as_path())),
        ("api.token_file", access.token_file.as_deref()),
        ("api.tls_certificate", access.tls_certificate.as_deref()),
        ("api.tls_key", access.tls_key.as_deref()),
        ("api.client_ca_file", access.client_ca_file.as_deref()),
    ];
    let message = |(name, path): (&str, Option<&Path>)| {
        let path = path?;
        let error = check_readable(path).err()?;
        Some(format!("cannot read {} ({name}): {error}; a reload would fail", path.display()))
    };
    files.into_iter().filter_map(message).collect()
}

/// Returns the directories in which the user of the calling thread cannot create files, as messages.
fn unwritable(config: &Config) -> Vec<String> {
    let folders = [
        ("samples.folder", config.samples.folder.as_deref()),
        ("records.folder", config.flow_export.folder.as_deref()),
        ("threshold.folder", config.threshold.as_ref().map(|it| it.recorder.folder.as_path())),
    ];
    let message = |(name, folder): (&str, Option<&Path>)| {
        let folder = folder?;
        let error = check_creatable(folder).err()?;
        Some(format!("cannot write to {} ({name}): {error}", folder.display()))
    };
    folders.into_iter().filter_map(message).collect()
}

/// Checks that files can be created in a directory, or the directory itself if it is missing.
fn check_creatable(folder: &Path) -> io::Result<()> {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    check_writable(existing)
}

/// Returns what the daemon could not read or write after it has changed its user, as messages.
///
/// # Errors
/// If that user does not exist.
pub(super) fn problems(config: &Config) -> Result<Vec<String>, PrivilegeError> {
    run_as_unprivileged_user(config.process.user.as_deref(), || {
        let mut problems = unreadable_at_reload(config);
        problems.extend(unwritable(config));
        problems
    })
}
