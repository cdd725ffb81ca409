//! `[control]`: the rerouting algorithm and its actuator.

use std::collections::BTreeMap;

use thalweg_api::client::ClientOptions;
use thalweg_capture::Namespace;
use thalweg_control::control_loop::DampingOptions;
use thalweg_control::controller::ControllerOptions;
use thalweg_control::decide::Decider;
use thalweg_control::decide::first_fit::FirstFit;
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::decide::static_routing::StaticRouting;
use thalweg_network::routing::TreeOptions;
use thalweg_network::{NetworkState, Node};
use thalweg_wire::Nanos;

use super::names::{ActuatorName, DeciderName};
use super::openflow::{self, OpenFlowConfig};
use super::table::{Control, Emulate};
use thalweg_config::{Document, Problem, Typed};

/// The configuration of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// Rerouting algorithm.
    pub decider: DeciderConfig,
    /// Actuator of reroutes.
    pub actuator: ActuatorConfig,
    /// Confirmation timeout and dry run.
    pub options: ControllerOptions,
    /// Spanning trees, if the actuator installs routes.
    pub trees: TreeOptions,
    /// How long before their use collectors learn of new routes.
    pub route_lead_time: Nanos,
    /// Flows below this share of a link are ignored.
    pub min_share: f64,
    /// Time after its start at which the controller reads the present paths of all pairs.
    pub learn_after: Nanos,
    /// Network namespace of hosts or switches; `None` for that of the daemon.
    pub namespace: Option<Namespace>,
    /// Other daemons whose events the controller receives.
    pub remotes: Vec<ClientOptions>,
    /// Local interfaces whose carrier is monitored: a port of the topology, and the interface.
    pub link_interfaces: Vec<(String, String)>,
    /// When flapping links are held down.
    pub damping: DampingOptions,
}

/// A rerouting algorithm and its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeciderConfig {
    /// The greedy algorithm of Planck.
    Greedy(GreedyOptions),
    /// The first-fit placement of Hedera, at this interval.
    FirstFit(Nanos),
    /// Moves pinned flows only.
    Static,
}

/// How reroutes are carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActuatorConfig {
    /// Decisions are only logged.
    Log,
    /// In the emulated network of the daemon.
    Emulated,
    /// By ARP.
    Arp {
        /// Interfaces of single hosts, by host name.
        interfaces: BTreeMap<String, String>,
        /// Interface of all other hosts.
        interface: Option<String>,
        /// Interval at which ARP entries of hosts are refreshed.
        refresh: Nanos,
    },
    /// By OpenFlow.
    OpenFlow(OpenFlowConfig),
}

impl DeciderConfig {
    /// Creates the algorithm.
    pub fn decider(self) -> Box<dyn Decider> {
        match self {
            DeciderConfig::Greedy(options) => Box::new(Greedy::new(options)),
            DeciderConfig::FirstFit(interval) => Box::new(FirstFit::new(interval)),
            DeciderConfig::Static => Box::new(StaticRouting),
        }
    }

    /// Returns the name used in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            DeciderConfig::Greedy(_) => "greedy",
            DeciderConfig::FirstFit(_) => "first_fit",
            DeciderConfig::Static => "static",
        }
    }
}

impl ActuatorConfig {
    /// Returns the name used in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            ActuatorConfig::Log => "log",
            ActuatorConfig::Emulated => "emulated",
            ActuatorConfig::Arp { .. } => "arp",
            ActuatorConfig::OpenFlow(_) => "openflow",
        }
    }

    /// Whether the actuator installs the routes of switches. Otherwise the topology file defines them.
    pub const fn installs_routes(&self) -> bool {
        matches!(self, ActuatorConfig::Emulated | ActuatorConfig::OpenFlow(_))
    }
}

/// Reads the section. Returns `None` if there is no controller, or on a problem.
pub(super) fn read(
    document: &Document,
    network: Option<&NetworkState>,
    problems: &mut Vec<Problem>,
) -> Option<ControlConfig> {
    let entry = document.one::<Control>();
    let decider = match entry.decider? {
        DeciderName::Greedy => DeciderConfig::Greedy(GreedyOptions {
            report_timeout: entry.report_timeout,
            gain: entry.gain,
            hold_down: entry.hold_down,
            makes_room: entry.makes_room,
        }),
        DeciderName::FirstFit => DeciderConfig::FirstFit(entry.interval),
        DeciderName::Static => DeciderConfig::Static,
    };
    let Some(network) = network else {
        problems
            .push(entry.refuse(Control::decider, "requires a topology: set network.topology, or [emulate]"));
        return None;
    };
    let defaults = ControllerOptions::default();
    let options =
        ControllerOptions { arrival_timeout: entry.arrival_timeout, dry_run: entry.dry_run, ..defaults };
    let trees = TreeOptions { addresses: entry.addresses, seed: entry.seed };
    let actuator = actuator(document, &entry, network, problems)?;
    let remotes = remotes(document, &entry, decider, problems)?;
    Some(ControlConfig {
        decider,
        actuator,
        options,
        trees,
        route_lead_time: entry.route_lead_time,
        min_share: entry.min_share,
        learn_after: entry.learn_after,
        namespace: entry.namespace.as_deref().map(Namespace::named),
        remotes,
        link_interfaces: link_interfaces(&entry, network, problems)?,
        damping: damping(&entry, problems)?,
    })
}

/// Reads the interfaces whose carrier is monitored. Returns `None` on a problem.
fn link_interfaces(
    entry: &Typed<'_, Control>,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<Vec<(String, String)>> {
    let mut interfaces = Vec::new();
    for text in entry.link_interfaces.iter().flatten() {
        let mut refuse = |reason| problems.push(entry.refuse(Control::link_interfaces, reason));
        let words = text.rsplit_once(' ').map(|(port, interface)| (port.trim(), interface));
        match words.filter(|(port, interface)| !port.is_empty() && !interface.is_empty()) {
            None => refuse(format!("invalid interface {text:?}: expected SWITCH:PORT INTERFACE")),
            Some((port, interface)) => match network.topology().find_port(port) {
                Ok(_) => interfaces.push((port.to_owned(), interface.to_owned())),
                Err(error) => refuse(error.to_string()),
            },
        }
    }
    (interfaces.len() == entry.link_interfaces.iter().flatten().count()).then_some(interfaces)
}

/// Reads when flapping links are held down. Returns `None` on a problem.
fn damping(entry: &Typed<'_, Control>, problems: &mut Vec<Problem>) -> Option<DampingOptions> {
    if entry.link_max_hold < entry.link_hold {
        let key = match entry.is_set(Control::link_max_hold) {
            true => Control::link_max_hold,
            false => Control::link_hold,
        };
        let reason = format!(
            "link_hold is {}, link_max_hold {}: expected a link_max_hold of at least link_hold",
            entry.link_hold, entry.link_max_hold
        );
        problems.push(entry.refuse(key, reason));
        return None;
    }
    Some(DampingOptions {
        failures: entry.link_failures,
        window: entry.link_failure_window,
        hold: entry.link_hold,
        max_hold: entry.link_max_hold,
    })
}

/// Returns the other daemons. Their addresses may be invalid.
pub(crate) fn client_options(document: &Document, entry: &Control) -> Vec<ClientOptions> {
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let options = |api: &String| ClientOptions {
        token_file: file(&entry.remote_token_file),
        ca: file(&entry.remote_ca_file).filter(|_| api.starts_with("https://")),
        ..ClientOptions::at(api)
    };
    entry.remotes.iter().flatten().map(options).collect()
}

/// Reads the other daemons. Returns `None` on a problem.
fn remotes(
    document: &Document,
    entry: &Typed<'_, Control>,
    decider: DeciderConfig,
    problems: &mut Vec<Problem>,
) -> Option<Vec<ClientOptions>> {
    let before = problems.len();
    let remotes = client_options(document, entry);
    if let Some(wrong) = remotes.iter().find(|remote| remote.base().is_none()) {
        let reason = format!(
            "invalid API address {:?}: expected http://HOST:PORT or https://HOST:PORT, port 1-65535, and no user",
            wrong.shown_api()
        );
        problems.push(entry.refuse(Control::remotes, reason));
    }
    if remotes.is_empty() {
        if let Some(key) =
            [Control::remote_token_file, Control::remote_ca_file].into_iter().find(|key| entry.is_set(key))
        {
            problems.push(entry.refuse(key, "requires remotes"));
        }
    } else if matches!(decider, DeciderConfig::FirstFit(_)) {
        let reason = "not supported with first_fit, which needs all flows; remotes report congestion only";
        problems.push(entry.refuse(Control::remotes, reason));
    }
    (problems.len() == before).then_some(remotes)
}

fn actuator(
    document: &Document,
    entry: &Typed<'_, Control>,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<ActuatorConfig> {
    let (actuator, name) = (entry.actuator, entry.actuator.name());
    let mut refuse = |key, reason: &str| {
        problems.push(entry.refuse(key, reason));
        None
    };
    let is_emulated = document.one::<Emulate>().file.is_some();
    let first_set = |keys: &[&'static str]| keys.iter().copied().find(|key| entry.is_set(key));
    let needs_namespace = matches!(actuator, ActuatorName::Arp | ActuatorName::OpenFlow);
    let needs_namespace = needs_namespace || entry.is_set(Control::link_interfaces);
    if let Some(key) = first_set(&[Control::namespace]).filter(|_| !needs_namespace) {
        return refuse(key, &format!("requires actuator arp or openflow, not {name}, or link_interfaces"));
    }
    let arp_key =
        first_set(&[Control::interfaces, Control::refresh]).filter(|_| actuator != ActuatorName::Arp);
    if let Some(key) = arp_key {
        return refuse(key, &format!("requires actuator arp, not {name}"));
    }
    if let Some(key) = first_set(&openflow::KEYS).filter(|_| actuator != ActuatorName::OpenFlow) {
        return refuse(key, &format!("requires actuator openflow, not {name}"));
    }
    match actuator {
        ActuatorName::Log => Some(ActuatorConfig::Log),
        ActuatorName::Emulated if is_emulated => Some(ActuatorConfig::Emulated),
        ActuatorName::Emulated => refuse(Control::actuator, "emulated requires [emulate]"),
        _ if is_emulated => refuse(Control::actuator, "with [emulate], expected emulated or log"),
        ActuatorName::OpenFlow => {
            openflow::read(document, entry, network, problems).map(ActuatorConfig::OpenFlow)
        }
        ActuatorName::Arp => arp(entry, network, problems),
    }
}

fn arp(
    entry: &Typed<'_, Control>,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<ActuatorConfig> {
    let (mut interface, mut interfaces) = (None, BTreeMap::new());
    for text in entry.interfaces.iter().flatten() {
        match text.split_once(' ').map(|(host, name)| (host, name.trim())) {
            None => interface = Some(text.to_owned()),
            Some((host, name)) => {
                if !matches!(network.topology().node_named(host), Some(Node::Endpoint(_))) {
                    let reason = format!("no host {host:?} in the topology");
                    problems.push(entry.refuse(Control::interfaces, reason));
                }
                interfaces.insert(host.to_owned(), name.to_owned());
            }
        }
    }
    if interface.is_none() && interfaces.is_empty() {
        problems.push(entry.refuse(
            Control::interfaces,
            "actuator arp requires interfaces: expected a list such as [\"eth1\"]",
        ));
        return None;
    }
    Some(ActuatorConfig::Arp { interfaces, interface, refresh: entry.refresh })
}
