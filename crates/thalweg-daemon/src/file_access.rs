//! Access to the files that the daemon opens after it has changed its user.
//!
//! As root the daemon reads its files before it drops its privileges. A reload and a dump of samples happen afterwards, as another
//! user. So the start and `thalweg check` check the access of that user, and the start creates directories for it.

use std::path::Path;

use thalweg_linux::folders::{check_folder, prepare_folder};
use thalweg_linux::privileges::{PrivilegeError, check_readable, run_as_unprivileged_user};

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

/// Creates the directories of a file for the user that the daemon changes to. Call it as root, before any thread starts.
///
/// # Errors
/// A message, if the daemon cannot work without one of them.
pub(super) fn prepare_folders(config: &Config) -> Result<(), String> {
    let user = config.process.user.as_deref();
    for (name, folder) in [
        ("event_log.folder", config.event_log.as_ref().map(|it| it.folder.as_path())),
        ("records.folder", config.flow_export.folder.as_deref()),
        ("threshold.folder", config.threshold.as_ref().map(|it| it.recorder.folder.as_path())),
    ] {
        if let Some(folder) = folder {
            prepare_folder(folder, user)
                .map_err(|error| format!("cannot create {} ({name}): {error}", folder.display()))?;
        }
    }
    if let Some(folder) = &config.samples.folder {
        // If it fails, the daemon warns when it has changed its user.
        let _ = prepare_folder(folder, user);
    }
    Ok(())
}

/// Returns what the daemon could not read or write after it has changed its user, as messages. Without it, the daemon starts all the
/// same.
///
/// # Errors
/// If that user does not exist.
pub(super) fn problems(config: &Config) -> Result<Vec<String>, PrivilegeError> {
    let user = config.process.user.as_deref();
    let mut problems = run_as_unprivileged_user(user, || unreadable_at_reload(config))?;
    for (name, folder) in [
        ("samples.folder", config.samples.folder.as_deref()),
        ("event_log.folder", config.event_log.as_ref().map(|it| it.folder.as_path())),
    ] {
        if let Some(folder) = folder
            && let Err(error) = check_folder(folder, user)
        {
            problems.push(format!("cannot write to {} ({name}): {error}", folder.display()));
        }
    }
    Ok(problems)
}
