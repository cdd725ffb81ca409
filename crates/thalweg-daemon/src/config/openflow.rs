//! The OpenFlow keys of `[control]`: datapath IDs, connections and certificates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thalweg_actuators::openflow::{Member, PortReference, Tls, TlsError};
use thalweg_network::{NetworkState, Node};
use thalweg_wire::Nanos;
use thalweg_wire::openflow::{DatapathId, PortNumber};

use thalweg_config::{Document, Problem, Typed};

use super::table::Control;

/// Keys that require this actuator.
pub(super) const KEYS: [&str; 9] = [
    Control::switches,
    Control::openflow_listen,
    Control::openflow_connect,
    Control::openflow_audit_interval,
    Control::openflow_priority,
    Control::openflow_master_timeout,
    Control::openflow_certificate,
    Control::openflow_key,
    Control::openflow_ca_file,
];

/// Keys that must be set together.
const TLS_KEYS: [&str; 3] = [Control::openflow_certificate, Control::openflow_key, Control::openflow_ca_file];

/// OpenFlow connections to switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowConfig {
    /// Datapath ID of each switch, and its monitor port if rules also mirror.
    pub members: Vec<Member>,
    /// Listen address for switches.
    pub listen: Option<SocketAddr>,
    /// Switches to connect to, and the names that their certificates must have.
    pub connect: Vec<(SocketAddr, String)>,
    /// Interval at which the rules of every switch are compared.
    pub audit_interval: Nanos,
    /// Priority of this daemon among those that control the same switches.
    pub priority: u8,
    /// Time without a heartbeat of the master after which a standby takes over.
    pub master_timeout: Nanos,
    /// TLS files; `None` for no TLS.
    pub tls: Option<TlsFiles>,
}

/// TLS files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the controller.
    pub certificate: PathBuf,
    /// Private key of the controller.
    pub key: PathBuf,
    /// CA certificates that must have issued those of switches.
    pub authority: PathBuf,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub(crate) fn read(&self) -> Result<Tls, TlsError> {
        Tls::from_files(&self.certificate, &self.key, &self.authority)
    }
}

/// Reads the keys. Returns `None` on a problem.
pub(super) fn read(
    document: &Document,
    entry: &Typed<'_, Control>,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<OpenFlowConfig> {
    let before = problems.len();
    let members = members(entry, network, problems);
    let listen = entry.openflow_listen.as_ref().and_then(|text| {
        let refused = || {
            entry.refuse(Control::openflow_listen, format!("invalid address {text:?}: expected ADDRESS:PORT"))
        };
        text.parse().map_err(|_| problems.push(refused())).ok()
    });
    let connect: Vec<(SocketAddr, String)> = entry
        .openflow_connect
        .iter()
        .flatten()
        .filter_map(|text| {
            let peer = parse_peer(text);
            peer.map_err(|reason| problems.push(entry.refuse(Control::openflow_connect, reason))).ok()
        })
        .collect();
    if listen.is_none() && connect.is_empty() && problems.len() == before {
        problems
            .push(entry.refuse(Control::actuator, "openflow requires openflow_listen or openflow_connect"));
    }
    let files = [&entry.openflow_certificate, &entry.openflow_key, &entry.openflow_ca_file];
    let tls = tls_files(&document.folder, files).unwrap_or_else(|reason| {
        let key = TLS_KEYS.iter().find(|key| entry.is_set(key)).expect("one of them is set");
        problems.push(entry.refuse(key, reason));
        None
    });
    (problems.len() == before).then_some(OpenFlowConfig {
        members,
        listen,
        connect,
        audit_interval: entry.openflow_audit_interval,
        priority: entry.openflow_priority,
        master_timeout: entry.openflow_master_timeout,
        tls,
    })
}

/// Reads a datapath ID: up to 16 hexadecimal digits, perhaps with colons or `0x`.
///
/// # Errors
/// A message.
pub(super) fn parse_datapath(text: &str) -> Result<DatapathId, String> {
    let digits: String = text.trim_start_matches("0x").chars().filter(|&c| c != ':').collect();
    let number = u64::from_str_radix(&digits, 16);
    number
        .map(DatapathId)
        .map_err(|_| format!("invalid datapath ID {text:?}: expected up to 16 hexadecimal digits"))
}

/// Reads an address and the name that the certificate there must have, by default the address.
///
/// # Errors
/// A message.
pub(super) fn parse_peer(text: &str) -> Result<(SocketAddr, String), String> {
    let (address, name) = text.split_once(' ').map_or((text, None), |(a, name)| (a, Some(name.trim())));
    match address.parse::<SocketAddr>() {
        Ok(address) => Ok((address, name.map_or(address.ip().to_string(), str::to_owned))),
        Err(_) => Err(format!("invalid address {address:?}: expected ADDRESS:PORT")),
    }
}

/// Reads certificate, key and authority. `None` if none of them is set.
///
/// # Errors
/// A message, if only some of them are set.
pub(crate) fn tls_files(
    folder: &Path,
    files: [&Option<String>; 3],
) -> Result<Option<TlsFiles>, &'static str> {
    match files.map(|file| file.as_ref().map(|file| folder.join(file))) {
        [Some(certificate), Some(key), Some(authority)] => Ok(Some(TlsFiles { certificate, key, authority })),
        [None, None, None] => Ok(None),
        _ => Err("openflow_certificate, openflow_key and openflow_ca_file must be set together"),
    }
}

/// Reads one entry per switch: `leaf0 1`, `leaf0 0000005457000001 5`.
fn members(entry: &Typed<'_, Control>, network: &NetworkState, problems: &mut Vec<Problem>) -> Vec<Member> {
    let topology = network.topology();
    let mut members: Vec<Member> = Vec::new();
    for text in entry.switches.iter().flatten() {
        let mut refuse = |reason: String| problems.push(entry.refuse(Control::switches, reason));
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, datapath, monitor) = match words.as_slice() {
            [name, datapath] => (name, datapath, None),
            [name, datapath, monitor] => (name, datapath, Some(monitor)),
            _ => {
                refuse(format!("invalid switch {text:?}: expected SWITCH DATAPATH_ID [MONITOR_PORT]"));
                continue;
            }
        };
        let Some(Node::Router(router)) = topology.node_named(name) else {
            refuse(format!("no switch {name:?} in the topology"));
            continue;
        };
        let datapath = match parse_datapath(datapath) {
            Ok(datapath) => datapath,
            Err(reason) => {
                refuse(reason);
                continue;
            }
        };
        let monitor = monitor.map(|port| match port.parse() {
            Ok(number) => PortReference::Number(PortNumber(number)),
            Err(_) => PortReference::Name((*port).to_owned()),
        });
        if members.iter().any(|other| other.router == router || other.datapath == datapath) {
            refuse(format!("duplicate switch or datapath ID in {text:?}"));
        }
        members.push(Member { router, datapath, monitor });
    }
    let is_missing = |router| !members.iter().any(|member| member.router == router);
    if let Some(router) = topology.router_ids().find(|&router| is_missing(router)) {
        let name = topology.name(Node::Router(router));
        problems.push(entry.refuse(
            Control::switches,
            format!("no datapath ID for {name}: openflow requires one for every switch"),
        ));
    }
    members
}
