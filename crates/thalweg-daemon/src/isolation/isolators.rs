//! Creates the configured isolator.

use std::fs;
use std::path::Path;

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::exec::Exec;
use thalweg_actuators::isolation::log::Log;
use thalweg_actuators::isolation::tc::Tc;
use thalweg_actuators::isolation::webhook::{Webhook, WebhookOptions};
use thalweg_linux::Netlink;
use thalweg_linux::clock::monotonic;

use crate::config::IsolatorConfig;

/// Opens the configured isolator, with the privileges of the start.
///
/// # Errors
/// A message, if a privilege is missing, or the interface has a queue that could not be restored.
pub(super) fn open(config: &IsolatorConfig) -> Result<Box<dyn Isolator>, String> {
    match config {
        IsolatorConfig::Log => Ok(Box::new(Log)),
        IsolatorConfig::Exec(options) => Ok(Box::new(Exec::new(options.clone()))),
        IsolatorConfig::Webhook { options, token_file } => {
            let token = token_file.as_deref().map(read_token).transpose()?;
            Ok(Box::new(Webhook::new(WebhookOptions { token, ..options.clone() })))
        }
        IsolatorConfig::Tc { options, namespace } => {
            let netlink = match namespace {
                None => Netlink::open().map_err(|error| format!("cannot open a netlink socket: {error}"))?,
                Some(namespace) => Netlink::open_within(namespace).map_err(|error| error.to_string())?,
            };
            Ok(Box::new(Tc::open(options.clone(), netlink, monotonic())?))
        }
    }
}

/// Reads a token, which root alone may be able to read.
fn read_token(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read the token file {}: {error}", path.display()))?;
    match text.trim() {
        "" => Err(format!("the token file {} is empty", path.display())),
        token if token.chars().all(|letter| letter.is_ascii_graphic()) => Ok(token.to_owned()),
        _ => Err(format!("the token file {} must contain one line without spaces", path.display())),
    }
}
