//! Creates the configured sources.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_poll::CounterSource;
use thalweg_poll::openflow::{Connections, OpenFlow};
use thalweg_poll::qdisc::Qdisc;
use thalweg_poll::snmp::{Credentials, Snmp, SnmpOptions};

use crate::config::{OpenFlowEndpoint, PollSource, TlsFiles};

/// Maximum size of a credentials file in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Connections to switches. Polls of the same address share one.
pub(super) type AllConnections = Vec<(OpenFlowEndpoint, Arc<Connections>)>;

/// Opens a source. Starts no thread and sends nothing: adds connections to switches to `connections`, unless their address is there.
///
/// # Errors
/// A message, if credentials or certificates cannot be read, or a network namespace not be entered.
pub(super) fn open(
    config: &PollSource,
    connections: &mut AllConnections,
) -> Result<Box<dyn CounterSource>, String> {
    match config {
        PollSource::OpenFlow { options, endpoint } => {
            Ok(Box::new(OpenFlow::new(options.clone(), connections_of(endpoint, connections)?)))
        }
        PollSource::Qdisc { options, namespace } => {
            Ok(Box::new(Qdisc::open(options.clone(), namespace.as_ref())?))
        }
        PollSource::Snmp(config) => {
            let options = SnmpOptions {
                target: config.target.clone(),
                interface: config.interface.clone(),
                name_object: config.name_object,
                credentials: credentials(&config.credentials_file)?,
                timeout: config.timeout,
                retries: config.retries,
                cache_time: config.cache_time,
                primary: config.primary.clone(),
                scavenger: config.scavenger.clone(),
                has_one_queue: !config.has_scavenger,
            };
            Ok(Box::new(Snmp::new(options).map_err(|error| format!("cannot create a client: {error}"))?))
        }
    }
}

/// Returns the connections of an address.
fn connections_of(
    endpoint: &OpenFlowEndpoint,
    connections: &mut AllConnections,
) -> Result<Arc<Connections>, String> {
    if let Some((_, known)) = connections.iter().find(|(other, _)| other == endpoint) {
        return Ok(Arc::clone(known));
    }
    let OpenFlowEndpoint { peer, tls, namespace } = endpoint;
    let tls = tls.as_ref().map(TlsFiles::read).transpose().map_err(|error| error.to_string())?;
    let new = Arc::new(Connections::new(peer.clone(), tls, namespace.clone()));
    connections.push((endpoint.clone(), Arc::clone(&new)));
    Ok(new)
}

/// Returns the name of the interface.
pub(super) fn interface(config: &PollSource) -> &str {
    match config {
        PollSource::Snmp(config) => &config.interface,
        PollSource::OpenFlow { options, .. } => &options.port,
        PollSource::Qdisc { options, .. } => &options.interface,
    }
}

/// Reads a credentials file. Only its owner may have access, unless systemd protects it (systemd.exec(5),
/// `$CREDENTIALS_DIRECTORY`).
pub(crate) fn credentials(path: &Path) -> Result<Credentials, String> {
    let name = path.display();
    let unreadable = |error| format!("cannot read the credentials file {name}: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.mode() & 0o7777;
    let protected = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    if mode & 0o077 != 0 && !protected.is_some_and(|folder| path.starts_with(folder)) {
        return Err(format!(
            "other users can access the credentials file {name} (mode {mode:04o}): run chmod 600 {name}"
        ));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(unreadable)?;
    Credentials::parse(&text, &name.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_credentials_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snmp");
        std::fs::write(&path, "community geheim99").unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o640);
        let error = credentials(&path).unwrap_err();
        assert!(error.contains("(mode 0640): run chmod 600"), "{error}");
        set(0o600);
        assert_eq!(credentials(&path).unwrap().level(), "v2c");
        assert!(
            credentials(&folder.path().join("none"))
                .unwrap_err()
                .contains("cannot read the credentials file")
        );
    }
}
