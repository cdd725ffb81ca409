//! What `[control]` says of OpenFlow: which switch of the topology is which datapath, who connects to whom, and
//! certificates.

use std::net::SocketAddr;
use std::path::PathBuf;

use thalweg_actuators::openflow::Member;
use thalweg_network::{NetworkState, Node};
use thalweg_wire::openflow::{DatapathId, PortNumber};

use thalweg_config::{Document, Problem, Typed};

use super::table::Control;

/// Keys that go with no other actuator.
pub(super) const KEYS: [&str; 6] = [
    Control::switches,
    Control::openflow_listen,
    Control::openflow_connect,
    Control::openflow_certificate,
    Control::openflow_key,
    Control::openflow_ca,
];

/// How switches are spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowConfig {
    /// Which switch is which datapath, and its monitor port if copies are to be made.
    pub members: Vec<Member>,
    /// Where switches connect to.
    pub listen: Option<SocketAddr>,
    /// Switches that are connected to, and the names that their certificates are to have.
    pub connect: Vec<(SocketAddr, String)>,
    /// With TLS.
    pub tls: Option<TlsFiles>,
}

/// Files, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The controller's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Of who signs switches' certificates.
    pub authority: PathBuf,
}

/// Reads it; `None` if something is wrong.
pub(super) fn read(
    document: &Document,
    entry: &Typed<'_, Control>,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<OpenFlowConfig> {
    let before = problems.len();
    let members = members(entry, network, problems);
    let listen = entry.openflow_listen.as_ref().and_then(|text| {
        let refused =
            || entry.refuse(Control::openflow_listen, format!("{text:?} is no address with a port"));
        text.parse().map_err(|_| problems.push(refused())).ok()
    });
    let connect: Vec<(SocketAddr, String)> =
        entry
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
                            format!("{address:?} is no address with a port"),
                        ));
                        None
                    }
                }
            })
            .collect();
    if listen.is_none() && connect.is_empty() && problems.len() == before {
        problems.push(entry.refuse(Control::actuator, "openflow needs openflow_listen, or openflow_connect"));
    }
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let files = [&entry.openflow_certificate, &entry.openflow_key, &entry.openflow_ca].map(file);
    let tls = match files {
        [Some(certificate), Some(key), Some(authority)] => Some(TlsFiles { certificate, key, authority }),
        [None, None, None] => None,
        _ => {
            let reason = "openflow_certificate, openflow_key and openflow_ca go together";
            let key = KEYS[3..].iter().find(|key| entry.is_set(key)).expect("one of them is there");
            problems.push(entry.refuse(key, reason));
            None
        }
    };
    (problems.len() == before).then_some(OpenFlowConfig { members, listen, connect, tls })
}

/// A line for each switch: `leaf0 1`, `leaf0 0000005457000001 5`.
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
                refuse(format!("{text:?}: expected a switch, its datapath ID, and perhaps its monitor port"));
                continue;
            }
        };
        let Some(Node::Router(router)) = topology.node_named(name) else {
            refuse(format!("there is no switch {name:?} in the topology"));
            continue;
        };
        let digits: String = datapath.trim_start_matches("0x").chars().filter(|&c| c != ':').collect();
        let Ok(datapath) = u64::from_str_radix(&digits, 16).map(DatapathId) else {
            refuse(format!("{datapath:?} is no datapath ID: expected up to 16 hexadecimal digits"));
            continue;
        };
        let monitor = match monitor.map(|port| port.parse()) {
            None => None,
            Some(Ok(port)) => Some(PortNumber(port)),
            Some(Err(_)) => {
                refuse(format!("{text:?}: the monitor port is no number"));
                continue;
            }
        };
        if members.iter().any(|other| other.router == router || other.datapath == datapath) {
            refuse(format!("{text:?}: this switch, or this datapath ID, is there already"));
        }
        members.push(Member { router, datapath, monitor });
    }
    let is_missing = |router| !members.iter().any(|member| member.router == router);
    if let Some(router) = topology.router_ids().find(|&router| is_missing(router)) {
        let name = topology.name(Node::Router(router));
        problems.push(
            entry.refuse(Control::switches, format!("no datapath ID for {name}: openflow needs all of them")),
        );
    }
    members
}
