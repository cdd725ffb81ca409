//! The OpenFlow keys of `[control]`: datapath IDs, connections and certificates.

use std::net::SocketAddr;
use std::path::PathBuf;

use thalweg_actuators::openflow::{Member, PortReference};
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
            let (address, name) =
                text.split_once(' ').map_or((text.as_str(), None), |(a, name)| (a, Some(name.trim())));
            match address.parse::<SocketAddr>() {
                Ok(address) => Some((address, name.map_or(address.ip().to_string(), str::to_owned))),
                Err(_) => {
                    problems.push(entry.refuse(
                        Control::openflow_connect,
                        format!("invalid address {address:?}: expected ADDRESS:PORT"),
                    ));
                    None
                }
            }
        })
        .collect();
    if listen.is_none() && connect.is_empty() && problems.len() == before {
        problems
            .push(entry.refuse(Control::actuator, "openflow requires openflow_listen or openflow_connect"));
    }
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let files = [&entry.openflow_certificate, &entry.openflow_key, &entry.openflow_ca_file].map(file);
    let tls = match files {
        [Some(certificate), Some(key), Some(authority)] => Some(TlsFiles { certificate, key, authority }),
        [None, None, None] => None,
        _ => {
            let reason = "openflow_certificate, openflow_key and openflow_ca_file must be set together";
            let key = TLS_KEYS.iter().find(|key| entry.is_set(key)).expect("one of them is set");
            problems.push(entry.refuse(key, reason));
            None
        }
    };
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
        let digits: String = datapath.trim_start_matches("0x").chars().filter(|&c| c != ':').collect();
        let Ok(datapath) = u64::from_str_radix(&digits, 16).map(DatapathId) else {
            refuse(format!("invalid datapath ID {datapath:?}: expected up to 16 hexadecimal digits"));
            continue;
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
