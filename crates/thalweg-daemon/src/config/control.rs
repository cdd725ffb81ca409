//! `[control]`: who decides which way flows go, and by what means.

use std::collections::BTreeMap;

use thalweg_api::client::ClientOptions;
use thalweg_capture::Namespace;
use thalweg_control::controller::ControllerOptions;
use thalweg_control::decide::Decider;
use thalweg_control::decide::first_fit::FirstFit;
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::decide::static_routing::StaticRouting;
use thalweg_network::routing::TreeOptions;
use thalweg_network::{NetworkState, Node};
use thalweg_wire::Nanos;

use super::openflow::{self, OpenFlowConfig};
use super::table::{ActuatorName, Control, DeciderName, Emulate};
use thalweg_config::{Document, Problem, Typed};

/// What the controller is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// How it decides.
    pub decider: DeciderConfig,
    /// How it carries decisions out.
    pub actuator: ActuatorConfig,
    /// How long it waits for an effect, and whether it only says what it would do.
    pub options: ControllerOptions,
    /// Spanning trees, where it sets the routes.
    pub trees: TreeOptions,
    /// How long before they are used collectors are told of routes.
    pub settle_routes: Nanos,
    /// Flows with less than this share of a link are left out.
    pub least_share: f64,
    /// After so long it looks where pairs are.
    pub learn_after: Nanos,
    /// The network namespace that hosts, or switches, are reached from; `None` for that of the daemon.
    pub namespace: Option<Namespace>,
    /// Other daemons, whose collectors it listens to.
    pub remotes: Vec<ClientOptions>,
}

/// How the controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeciderConfig {
    /// As Planck does.
    Greedy(GreedyOptions),
    /// As Hedera does, this often.
    FirstFit(Nanos),
    /// It moves nothing but what is pinned.
    Static,
}

/// How the controller carries decisions out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActuatorConfig {
    /// Not at all.
    Log,
    /// In the daemon's emulation.
    Emulated,
    /// By ARP.
    Arp {
        /// Interface by which a host is reached, by its name.
        interfaces: BTreeMap<String, String>,
        /// That by which all others are.
        interface: Option<String>,
        /// How often hosts are told again.
        refresh: Nanos,
    },
    /// By OpenFlow.
    OpenFlow(OpenFlowConfig),
}

impl DeciderConfig {
    /// Makes one.
    pub fn decider(self) -> Box<dyn Decider> {
        match self {
            DeciderConfig::Greedy(options) => Box::new(Greedy::new(options)),
            DeciderConfig::FirstFit(interval) => Box::new(FirstFit::new(interval)),
            DeciderConfig::Static => Box::new(StaticRouting),
        }
    }

    /// As the configuration has it.
    pub const fn name(self) -> &'static str {
        match self {
            DeciderConfig::Greedy(_) => "greedy",
            DeciderConfig::FirstFit(_) => "first_fit",
            DeciderConfig::Static => "static",
        }
    }
}

impl ActuatorConfig {
    /// As the configuration has it.
    pub const fn name(&self) -> &'static str {
        match self {
            ActuatorConfig::Log => "log",
            ActuatorConfig::Emulated => "emulated",
            ActuatorConfig::Arp { .. } => "arp",
            ActuatorConfig::OpenFlow(_) => "openflow",
        }
    }

    /// Whether it sets the routes of switches; else these are what the topology says.
    pub const fn sets_routes(&self) -> bool {
        matches!(self, ActuatorConfig::Emulated | ActuatorConfig::OpenFlow(_))
    }
}

/// Reads it; `None` if nothing is to be steered, or something is wrong.
pub(super) fn read(
    document: &Document,
    network: Option<&NetworkState>,
    problems: &mut Vec<Problem>,
) -> Option<ControlConfig> {
    let entry = document.one::<Control>();
    let decider = match entry.decider? {
        DeciderName::Greedy => DeciderConfig::Greedy(GreedyOptions {
            timeout: entry.timeout,
            gain: entry.gain,
            settle: entry.settle,
            makes_room: entry.makes_room,
        }),
        DeciderName::FirstFit => DeciderConfig::FirstFit(entry.interval),
        DeciderName::Static => DeciderConfig::Static,
    };
    let Some(network) = network else {
        problems.push(entry.refuse(Control::decider, "it needs a topology: [network], or [emulate]"));
        return None;
    };
    let defaults = ControllerOptions::default();
    let options = ControllerOptions { patience: entry.patience, dry_run: entry.dry_run, ..defaults };
    let trees = TreeOptions { addresses: entry.addresses, seed: entry.seed };
    let actuator = actuator(document, &entry, network, problems)?;
    let remotes = remotes(document, &entry, decider, problems)?;
    Some(ControlConfig {
        decider,
        actuator,
        options,
        trees,
        settle_routes: entry.settle_routes,
        least_share: entry.least_share,
        learn_after: entry.learn_after,
        namespace: entry.namespace.as_deref().map(Namespace::named),
        remotes,
    })
}

/// Other daemons; `None` if something is wrong.
fn remotes(
    document: &Document,
    entry: &Typed<'_, Control>,
    decider: DeciderConfig,
    problems: &mut Vec<Problem>,
) -> Option<Vec<ClientOptions>> {
    let before = problems.len();
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let remotes: Vec<ClientOptions> = entry
        .remotes
        .iter()
        .flatten()
        .map(|api| ClientOptions {
            token_file: file(&entry.remote_token_file),
            ca: file(&entry.remote_ca).filter(|_| api.starts_with("https://")),
            ..ClientOptions::at(api)
        })
        .collect();
    if let Some(wrong) = remotes.iter().find(|remote| remote.base().is_none()) {
        let reason = format!("{:?} is not the address of an API: expected http://HOST:PORT", wrong.api);
        problems.push(entry.refuse(Control::remotes, reason));
    }
    if remotes.is_empty() {
        if let Some(key) =
            [Control::remote_token_file, Control::remote_ca].into_iter().find(|key| entry.is_set(key))
        {
            problems.push(entry.refuse(key, "there are no remotes"));
        }
    } else if matches!(decider, DeciderConfig::FirstFit(_)) {
        let reason = "first_fit looks at all flows of collectors here; remotes tell of congestion only";
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
    let set = |keys: &[&'static str]| keys.iter().copied().find(|key| entry.is_set(key));
    let needs_namespace = matches!(actuator, ActuatorName::Arp | ActuatorName::OpenFlow);
    if let Some(key) = set(&[Control::namespace]).filter(|_| !needs_namespace) {
        return refuse(key, &format!("it goes with arp and openflow, not with {name}"));
    }
    let of_arp = set(&[Control::interfaces, Control::refresh]).filter(|_| actuator != ActuatorName::Arp);
    if let Some(key) = of_arp {
        return refuse(key, &format!("it goes with arp, not with {name}"));
    }
    if let Some(key) = set(&openflow::KEYS).filter(|_| actuator != ActuatorName::OpenFlow) {
        return refuse(key, &format!("it goes with openflow, not with {name}"));
    }
    match actuator {
        ActuatorName::Log => Some(ActuatorConfig::Log),
        ActuatorName::Emulated if is_emulated => Some(ActuatorConfig::Emulated),
        ActuatorName::Emulated => refuse(Control::actuator, "nothing is emulated: [emulate] is needed"),
        _ if is_emulated => refuse(Control::actuator, "the network is emulated: expected emulated or log"),
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
                    let reason = format!("there is no host {host:?} in the topology");
                    problems.push(entry.refuse(Control::interfaces, reason));
                }
                interfaces.insert(host.to_owned(), name.to_owned());
            }
        }
    }
    if interface.is_none() && interfaces.is_empty() {
        problems.push(entry.refuse(Control::interfaces, "arp needs an interface"));
        return None;
    }
    Some(ActuatorConfig::Arp { interfaces, interface, refresh: entry.refresh })
}
