//! Creates the configured isolator.

use std::fs;
use std::path::Path;

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::exec::Exec;
use thalweg_actuators::isolation::flowspec::{Flowspec, FlowspecOptions};
use thalweg_actuators::isolation::log::Log;
use thalweg_actuators::isolation::openflow::{OpenFlow, OpenFlowOptions};
use thalweg_actuators::isolation::tc::Tc;
use thalweg_actuators::isolation::webhook::{Webhook, WebhookOptions};
use thalweg_actuators::openflow::Config;
use thalweg_linux::clock::monotonic;
use thalweg_linux::tcp::MAX_PASSWORD;
use thalweg_wire::Secret;

use crate::config::{IsolatorConfig, OpenFlowIsolation, TlsFiles};
use crate::control::instance;
use crate::emulation::Emulation;
use crate::isolation::emulated::Emulated;

/// Opens the configured isolator, with the privileges of the start. A dry run calls no command and no router. It has the queues of an interface
/// or a switch, whose counters it reads.
///
/// # Errors
/// A message, if a privilege is missing, or the interface cannot be used.
pub(super) fn open(
    config: &IsolatorConfig,
    emulation: Option<&Emulation>,
    is_dry_run: bool,
) -> Result<Box<dyn Isolator>, String> {
    match config {
        IsolatorConfig::Emulated => emulated(emulation),
        IsolatorConfig::Log => Ok(Box::new(Log)),
        IsolatorConfig::Exec(_) | IsolatorConfig::Webhook { .. } | IsolatorConfig::Flowspec { .. }
            if is_dry_run =>
        {
            Ok(Box::new(Log))
        }
        IsolatorConfig::Exec(options) => Ok(Box::new(Exec::new(options.clone()))),
        IsolatorConfig::Webhook { options, token_file } => {
            let token = token_file.as_deref().map(read_token).transpose()?;
            Ok(Box::new(Webhook::new(WebhookOptions { token, ..options.clone() })))
        }
        IsolatorConfig::Flowspec { options, password_file } => {
            let password = password_file.as_deref().map(read_password).transpose()?;
            Ok(Box::new(Flowspec::new(FlowspecOptions { password, ..options.clone() })))
        }
        IsolatorConfig::Tc { options, namespace } => {
            Ok(Box::new(Tc::open(options.clone(), namespace.as_ref(), monotonic())?))
        }
        IsolatorConfig::OpenFlow(config) => {
            let OpenFlowIsolation { options, tls, namespace } = &**config;
            let tls = tls.as_ref().map(TlsFiles::read).transpose().map_err(|error| error.to_string())?;
            let connection = Config { instance: instance(), ..options.connection.clone() };
            let options = OpenFlowOptions { connection, ..options.clone() };
            Ok(Box::new(OpenFlow::new(options, tls, namespace.clone())))
        }
    }
}

fn emulated(emulation: Option<&Emulation>) -> Result<Box<dyn Isolator>, String> {
    let emulation = emulation.ok_or_else(|| "requires [emulate]".to_owned())?;
    Ok(Box::new(Emulated::new(emulation.clone())))
}

/// Reads the token of a webhook.
///
/// # Errors
/// A message without the token, if the file cannot be read, or contains none.
pub(crate) fn read_token(path: &Path) -> Result<Secret, String> {
    read_secret("token", path)
}

/// Reads the password of a BGP session.
///
/// # Errors
/// A message without the password, if the file cannot be read, or contains none.
pub(crate) fn read_password(path: &Path) -> Result<Secret, String> {
    let password = read_secret("password", path)?;
    match password.expose().len() <= MAX_PASSWORD {
        true => Ok(password),
        false => Err(format!(
            "the password file {} must contain at most {MAX_PASSWORD} characters",
            path.display()
        )),
    }
}

/// Reads a secret, which root alone may be able to read.
fn read_secret(kind: &str, path: &Path) -> Result<Secret, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read the {kind} file {}: {error}", path.display()))?;
    match text.trim() {
        "" => Err(format!("the {kind} file {} is empty", path.display())),
        secret if secret.chars().all(|letter| letter.is_ascii_graphic()) => Ok(Secret::new(secret)),
        _ => Err(format!("the {kind} file {} must contain one line without spaces", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_of_at_most_80_characters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (text, expected) in [
            (&*"x".repeat(80), Ok(())),
            ("secret\n", Ok(())),
            ("", Err("is empty")),
            ("two words", Err("must contain one line without spaces")),
            (&*"x".repeat(81), Err("must contain at most 80 characters")),
        ] {
            fs::write(&path, text).unwrap();
            match (read_password(&path), expected) {
                (Ok(password), Ok(())) => assert_eq!(password.expose(), text.trim()),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (read, _) => panic!("{text:?}: {read:?}"),
            }
        }
    }
}
