//! The keys of source openflow.

use thalweg_config::{Document, Problem, Typed};
use thalweg_linux::Namespace;
use thalweg_poll::openflow::{MAX_PORT_NAME, OpenFlowOptions, Peer};
use thalweg_wire::openflow::QueueId;

use super::{PollConfig, PollSource};
use crate::config::openflow::{TlsFiles, parse_datapath, parse_peer, tls_files};
use crate::config::table::Poll;
use crate::config::{ActuatorConfig, ControlConfig, IsolationConfig, IsolatorConfig};

/// Keys of this source only.
pub(super) const KEYS: [&str; 8] = [
    Poll::switch,
    Poll::openflow_listen,
    Poll::openflow_connect,
    Poll::primary_queue,
    Poll::scavenger_queue,
    Poll::openflow_certificate,
    Poll::openflow_key,
    Poll::openflow_ca_file,
];

/// Where connections to switches come from. Polls with the same one share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowEndpoint {
    /// Who connects to whom.
    pub peer: Peer,
    /// TLS files; `None` for no TLS.
    pub tls: Option<TlsFiles>,
    /// Network namespace of the connections; `None` for that of the daemon.
    pub namespace: Option<Namespace>,
}

/// Reads the keys. Returns `None` on a problem.
pub(super) fn read(
    entry: &Typed<'_, Poll>,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Option<PollSource> {
    let before = problems.len();
    let mut refuse = |key, reason: String| problems.push(entry.refuse(key, reason));
    let switch = match entry.switch.as_deref().map(parse_datapath) {
        Some(Ok(switch)) => Some(switch),
        Some(Err(reason)) => {
            refuse(Poll::switch, reason);
            None
        }
        None => {
            let reason = "required by source openflow: the datapath ID of the switch";
            refuse(Poll::switch, reason.to_owned());
            None
        }
    };
    let peer = match (&entry.openflow_listen, &entry.openflow_connect) {
        (Some(text), None) => {
            let invalid = |_| {
                let reason = format!("invalid address {text:?}: expected ADDRESS:PORT");
                refuse(Poll::openflow_listen, reason);
            };
            text.parse().map_err(invalid).map(Peer::Listen).ok()
        }
        (None, Some(text)) => {
            let invalid = |reason| refuse(Poll::openflow_connect, reason);
            parse_peer(text).map_err(invalid).map(|(address, name)| Peer::Connect(address, name)).ok()
        }
        _ => {
            let reason = "openflow requires either openflow_listen or openflow_connect";
            refuse(Poll::source, reason.to_owned());
            None
        }
    };
    if entry.interface.len() > MAX_PORT_NAME {
        let reason = format!("expected at most {MAX_PORT_NAME} bytes, as names of ports in OpenFlow have");
        refuse(Poll::interface, reason);
    }
    let (primary, scavenger) = (entry.primary_queue.map(QueueId), entry.scavenger_queue.map(QueueId));
    if scavenger.is_some() && primary.is_none() {
        let reason = "requires primary_queue: the port of a switch need not count the drops of its queues";
        refuse(Poll::scavenger_queue, reason.to_owned());
    } else if scavenger.is_some() && scavenger == primary {
        refuse(Poll::scavenger_queue, "expected another queue than primary_queue".to_owned());
    }
    let files = [&entry.openflow_certificate, &entry.openflow_key, &entry.openflow_ca_file];
    let tls = tls_files(&document.folder, files).unwrap_or_else(|reason| {
        let keys = [Poll::openflow_certificate, Poll::openflow_key, Poll::openflow_ca_file];
        let key = keys.iter().find(|key| entry.is_set(key)).expect("one of them is set");
        refuse(key, reason.to_owned());
        None
    });
    if problems.len() > before {
        return None;
    }
    let options = OpenFlowOptions {
        switch: switch?,
        port: entry.interface.clone(),
        primary,
        scavenger,
        has_one_queue: !entry.has_scavenger,
        timeout: entry.timeout.into(),
    };
    let namespace = entry.namespace.as_deref().map(Namespace::named);
    Some(PollSource::OpenFlow { options, endpoint: OpenFlowEndpoint { peer: peer?, tls, namespace } })
}

/// Reports a listen address that two parts of the daemon would need.
pub(super) fn check_listen(
    entry: &Typed<'_, Poll>,
    source: &PollSource,
    others: &[PollConfig],
    control: Option<&ControlConfig>,
    isolation: Option<&IsolationConfig>,
    problems: &mut Vec<Problem>,
) {
    let PollSource::OpenFlow { endpoint, .. } = source else { return };
    let Peer::Listen(address) = endpoint.peer else { return };
    let by_control = control.and_then(|control| match &control.actuator {
        ActuatorConfig::OpenFlow(openflow) => openflow.listen,
        _ => None,
    });
    let by_isolation = isolation.and_then(|isolation| match &isolation.isolator {
        IsolatorConfig::OpenFlow(openflow) => openflow.options.listen,
        _ => None,
    });
    for (taken, section) in [(by_control, "[control]"), (by_isolation, "[isolation]")] {
        if taken == Some(address) {
            let reason = format!(
                "the same address as openflow_listen of {section}: expected another port, for a connection of its own"
            );
            problems.push(entry.refuse(Poll::openflow_listen, reason));
        }
    }
    let is_in_conflict = |other: &&PollConfig| match &other.source {
        PollSource::OpenFlow { endpoint: other, .. } => {
            (&other.peer, &other.namespace) == (&endpoint.peer, &endpoint.namespace)
                && other.tls != endpoint.tls
        }
        _ => false,
    };
    if let Some(other) = others.iter().find(is_in_conflict) {
        let reason = format!(
            "poll {} listens at the same address with other TLS files: expected the same files or another port",
            other.name
        );
        problems.push(entry.refuse(Poll::openflow_listen, reason));
    }
}
