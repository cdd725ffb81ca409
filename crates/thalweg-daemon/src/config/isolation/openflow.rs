//! The keys of actuator openflow.

use thalweg_actuators::isolation::openflow::OpenFlowOptions;
use thalweg_actuators::isolation::openflow::rule::{Forward, RulePlan};
use thalweg_actuators::openflow::{Config, PortReference};
use thalweg_capture::Namespace;
use thalweg_config::{Document, Problem, Typed};
use thalweg_control::isolate::message::ScavengerName;
use thalweg_wire::Nanos;
use thalweg_wire::openflow::{PortNumber, QueueId, TableId};

use super::IsolatorConfig;
use crate::config::names::{AtStopName, MethodName};
use crate::config::openflow::{TlsFiles, parse_datapath, parse_peer, tls_files};
use crate::config::table::Isolation;
use crate::config::{ActuatorConfig, ControlConfig};

/// Keys of this actuator only.
pub(super) const KEYS: [&str; 17] = [
    Isolation::switch,
    Isolation::port,
    Isolation::queue,
    Isolation::method,
    Isolation::forward,
    Isolation::rule_table,
    Isolation::rule_priority,
    Isolation::idle_timeout,
    Isolation::drain_time,
    Isolation::openflow_listen,
    Isolation::openflow_connect,
    Isolation::openflow_audit_interval,
    Isolation::openflow_priority,
    Isolation::openflow_master_timeout,
    Isolation::openflow_certificate,
    Isolation::openflow_key,
    Isolation::openflow_ca_file,
];

/// Minimum times: switches may update the counters of rules only every second.
const MIN_QUIET: Nanos = Nanos::from_secs(2);
const MIN_IDLE_TIMEOUT: Nanos = Nanos::from_secs(3);

/// How many seconds longer than `quiet` the idle timeout of rules is by default.
const IDLE_MARGIN: u64 = 4;

/// Maximum idle timeout of a rule: 16 bits of seconds.
const MAX_IDLE_TIMEOUT: Nanos = Nanos::from_secs(65_535);

/// Isolation by a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowIsolation {
    /// The switch, its rules and connections.
    pub options: OpenFlowOptions,
    /// TLS files; `None` for no TLS.
    pub tls: Option<TlsFiles>,
    /// Network namespace of the connections; `None` for that of the daemon.
    pub namespace: Option<Namespace>,
}

impl OpenFlowIsolation {
    /// Names the scavenger queue, and says what to check if it receives nothing.
    pub(super) fn scavenger(&self) -> ScavengerName {
        let OpenFlowOptions { queue, port, rules, .. } = &self.options;
        let advice = match (rules.dscp, rules.queue) {
            (None, _) => {
                "The switch accepts set_queue and may ignore it, as Open vSwitch in user space does: set method to dscp and let the port \
                 classify by DSCP."
                    .to_owned()
            }
            (Some(dscp), _) => format!("Check that the port puts packets with DSCP {dscp} into this queue."),
        };
        ScavengerName { name: format!("scavenger queue {} of port {port}", queue.0), advice }
    }
}

/// Reads the keys. Returns `None` on a problem.
pub(super) fn read(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    control: Option<&ControlConfig>,
    quiet: Nanos,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let before = problems.len();
    let mut refuse = |key, reason: String| problems.push(entry.refuse(key, reason));
    for (key, is_set, what) in [
        (Isolation::switch, entry.switch.is_some(), "the datapath ID of the switch"),
        (Isolation::port, entry.port.is_some(), "the port that leads to the link"),
        (Isolation::queue, entry.queue.is_some(), "the number of the scavenger queue"),
    ] {
        if !is_set {
            refuse(key, format!("required by actuator openflow: {what}"));
        }
    }
    let switch = entry.switch.as_deref().and_then(|text| {
        let parsed = parse_datapath(text);
        parsed.map_err(|reason| refuse(Isolation::switch, reason)).ok()
    });
    let listen = entry.openflow_listen.as_ref().and_then(|text| {
        let invalid = |_| format!("invalid address {text:?}: expected ADDRESS:PORT");
        text.parse().map_err(invalid).map_err(|reason| refuse(Isolation::openflow_listen, reason)).ok()
    });
    let connect = entry
        .openflow_connect
        .as_ref()
        .and_then(|text| parse_peer(text).map_err(|reason| refuse(Isolation::openflow_connect, reason)).ok());
    if entry.openflow_listen.is_some() == entry.openflow_connect.is_some() {
        let reason = "openflow requires either openflow_listen or openflow_connect";
        refuse(Isolation::actuator, reason.to_owned());
    }
    let forward = forward(&entry.forward)
        .map_err(|reason| refuse(Isolation::forward, reason))
        .unwrap_or(Forward::Normal);
    match forward {
        Forward::Table(table) if table.0 <= entry.rule_table => {
            let reason = format!("expected a table after {}, that of the rules", entry.rule_table);
            refuse(Isolation::forward, reason);
        }
        _ => {}
    }
    check_times(entry, quiet, &mut refuse);
    let files = [&entry.openflow_certificate, &entry.openflow_key, &entry.openflow_ca_file];
    let tls = tls_files(&document.folder, files).unwrap_or_else(|reason| {
        let keys = [Isolation::openflow_certificate, Isolation::openflow_key, Isolation::openflow_ca_file];
        let key = keys.iter().find(|key| entry.is_set(key)).expect("one of them is set");
        refuse(key, reason.to_owned());
        None
    });
    let other = control.and_then(|control| match &control.actuator {
        ActuatorConfig::OpenFlow(other) => Some(other),
        _ => None,
    });
    if let Some(other) = other {
        if other.members.iter().any(|member| Some(member.datapath) == switch) {
            let reason = "a switch of [control]: a switch has one master, so one daemon cannot be its master on two connections. \
                          Isolate at a switch that [control] does not reroute at";
            refuse(Isolation::switch, reason.to_owned());
        }
        if listen.is_some() && other.listen == listen {
            let reason = "the same address as openflow_listen of [control]: expected another port";
            refuse(Isolation::openflow_listen, reason.to_owned());
        }
    }
    let port = entry.port.as_ref()?;
    let queue = QueueId(entry.queue?);
    let options = OpenFlowOptions {
        switch: switch?,
        port: match port.parse() {
            Ok(number) => PortReference::Number(PortNumber(number)),
            Err(_) => PortReference::Name(port.clone()),
        },
        queue,
        rules: RulePlan {
            table: TableId(entry.rule_table),
            priority: entry.rule_priority,
            idle_timeout: u16::try_from(idle_timeout(entry, quiet).0 / Nanos::from_secs(1).0)
                .unwrap_or(u16::MAX),
            dscp: (entry.method != MethodName::SetQueue).then_some(entry.dscp),
            queue: (entry.method != MethodName::Dscp).then_some(queue),
            forward,
        },
        listen,
        connect,
        connection: Config {
            audit_interval: entry.openflow_audit_interval,
            priority: entry.openflow_priority,
            master_timeout: entry.openflow_master_timeout,
            ..Config::default()
        },
        keeps_at_stop: entry.at_stop == AtStopName::Keep,
    };
    let namespace = entry.namespace.as_deref().map(Namespace::named);
    let config = OpenFlowIsolation { options, tls, namespace };
    (problems.len() == before).then(|| IsolatorConfig::OpenFlow(Box::new(config)))
}

/// Returns the idle timeout of rules.
fn idle_timeout(entry: &Typed<'_, Isolation>, quiet: Nanos) -> Nanos {
    entry.idle_timeout.unwrap_or(Nanos::from_secs(quiet.0.div_ceil(1_000_000_000) + IDLE_MARGIN))
}

fn check_times(entry: &Typed<'_, Isolation>, quiet: Nanos, refuse: &mut impl FnMut(&'static str, String)) {
    let second = Nanos::from_secs(1);
    if quiet < MIN_QUIET {
        let reason =
            "expected at least 2s with openflow, because switches may update counters only every second";
        refuse(Isolation::quiet, reason.to_owned());
    }
    let least = MIN_IDLE_TIMEOUT.max(quiet);
    let idle_timeout = idle_timeout(entry, quiet);
    if !idle_timeout.0.is_multiple_of(second.0) || !(least..=MAX_IDLE_TIMEOUT).contains(&idle_timeout) {
        let reason = format!("expected whole seconds from {least} (the larger of 3 s and quiet) to 65535 s");
        refuse(Isolation::idle_timeout, reason);
    }
    if entry.confirm_timeout < second {
        refuse(Isolation::confirm_timeout, "expected at least 1s".to_owned());
    }
    if entry.drain_time >= entry.release_timeout {
        let reason = "expected less than release_timeout, after which a flow is released in any case";
        refuse(Isolation::drain_time, reason.to_owned());
    }
    if entry.method == MethodName::SetQueue && entry.is_set(Isolation::dscp) {
        refuse(Isolation::dscp, "requires method dscp or both, not set_queue".to_owned());
    }
}

fn forward(text: &str) -> Result<Forward, String> {
    let table = |number: &str| number.trim().parse().ok().filter(|number| *number < u8::MAX);
    match text.split_once(' ') {
        None if text == "normal" => Ok(Forward::Normal),
        None if text == "output" => Ok(Forward::Output),
        Some(("table", number)) if table(number).is_some() => {
            Ok(Forward::Table(TableId(table(number).unwrap_or_default())))
        }
        _ => Err(format!("invalid value {text:?}: expected normal, output or a table such as \"table 1\"")),
    }
}
