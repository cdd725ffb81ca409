//! `[control]`: who decides which way flows go, and by what means.

use std::collections::BTreeMap;

use thalweg_control::controller::ControllerOptions;
use thalweg_control::decide::Decider;
use thalweg_control::decide::first_fit::FirstFit;
use thalweg_control::decide::greedy::{Greedy, GreedyOptions};
use thalweg_control::decide::stay::Stay;
use thalweg_network::routing::TreeOptions;
use thalweg_network::{NetworkState, Node};
use thalweg_wire::Nanos;

use super::SURE;
use super::openflow::{self, OpenFlowConfig};
use super::table::{CONTROL, EMULATE};
use crate::client::ClientOptions;
use thalweg_config::{Document, Entry, Problem};

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
            DeciderConfig::Static => Box::new(Stay),
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
    let entry = document.entry(&CONTROL);
    let time = |key| entry.time(key).expect(SURE);
    let decider = match entry.text("decider")? {
        "greedy" => DeciderConfig::Greedy(GreedyOptions {
            timeout: time("timeout"),
            gain: entry.number("gain").expect(SURE),
            settle: time("settle"),
            ..GreedyOptions::default()
        }),
        "first_fit" => DeciderConfig::FirstFit(time("interval")),
        _ => DeciderConfig::Static,
    };
    let Some(network) = network else {
        problems.push(entry.refuse("decider", "it needs a topology: [network], or [emulate]"));
        return None;
    };
    let defaults = ControllerOptions::default();
    let options = ControllerOptions {
        patience: time("patience"),
        dry_run: entry.boolean("dry_run").expect(SURE),
        ..defaults
    };
    let addresses: u8 = entry.whole("addresses").expect(SURE);
    let trees = TreeOptions { addresses, seed: entry.whole("seed").expect(SURE) };
    let actuator = actuator(document, entry, network, problems)?;
    let remotes = remotes(document, entry, decider, problems)?;
    Some(ControlConfig { decider, actuator, options, trees, settle_routes: time("settle_routes"), remotes })
}

/// Other daemons; `None` if something is wrong.
fn remotes(
    document: &Document,
    entry: &Entry,
    decider: DeciderConfig,
    problems: &mut Vec<Problem>,
) -> Option<Vec<ClientOptions>> {
    let before = problems.len();
    let file = |key| entry.text(key).map(|file| document.folder.join(file));
    let apis = entry.texts("remotes").unwrap_or_default();
    let remotes: Vec<ClientOptions> = apis
        .into_iter()
        .map(|api| ClientOptions {
            token_file: file("remote_token_file"),
            ca: file("remote_ca").filter(|_| api.starts_with("https://")),
            ..ClientOptions::at(api)
        })
        .collect();
    if let Some(wrong) = remotes.iter().find(|remote| remote.base().is_none()) {
        let reason = format!("{:?} is not the address of an API: expected http://HOST:PORT", wrong.api);
        problems.push(entry.refuse("remotes", reason));
    }
    if remotes.is_empty() {
        if let Some(key) = ["remote_token_file", "remote_ca"].into_iter().find(|key| entry.is_set(key)) {
            problems.push(entry.refuse(key, "there are no remotes"));
        }
    } else if matches!(decider, DeciderConfig::FirstFit(_)) {
        let reason = "first_fit looks at all flows of collectors here; remotes tell of congestion only";
        problems.push(entry.refuse("remotes", reason));
    }
    (problems.len() == before).then_some(remotes)
}

fn actuator(
    document: &Document,
    entry: &Entry,
    network: &NetworkState,
    problems: &mut Vec<Problem>,
) -> Option<ActuatorConfig> {
    let name = entry.text("actuator").expect(SURE);
    let mut refuse = |key, reason: &str| {
        problems.push(entry.refuse(key, reason));
        None
    };
    let is_emulated = document.entry(&EMULATE).is_set("file");
    if let Some(key) = ["interfaces", "refresh"].into_iter().find(|key| entry.is_set(key) && name != "arp") {
        return refuse(key, &format!("it goes with arp, not with {name}"));
    }
    if let Some(key) = openflow::KEYS.into_iter().find(|key| entry.is_set(key) && name != "openflow") {
        return refuse(key, &format!("it goes with openflow, not with {name}"));
    }
    match name {
        "log" => Some(ActuatorConfig::Log),
        "emulated" if is_emulated => Some(ActuatorConfig::Emulated),
        "emulated" => refuse("actuator", "nothing is emulated: [emulate] is needed"),
        _ if is_emulated => refuse("actuator", "the network is emulated: expected emulated or log"),
        "openflow" => openflow::read(document, entry, network, problems).map(ActuatorConfig::OpenFlow),
        _ => arp(entry, network, problems),
    }
}

fn arp(entry: &Entry, network: &NetworkState, problems: &mut Vec<Problem>) -> Option<ActuatorConfig> {
    let (mut interface, mut interfaces) = (None, BTreeMap::new());
    for text in entry.texts("interfaces").unwrap_or_default() {
        match text.split_once(' ').map(|(host, name)| (host, name.trim())) {
            None => interface = Some(text.to_owned()),
            Some((host, name)) => {
                if !matches!(network.topology().node_named(host), Some(Node::Endpoint(_))) {
                    let reason = format!("there is no host {host:?} in the topology");
                    problems.push(entry.refuse("interfaces", reason));
                }
                interfaces.insert(host.to_owned(), name.to_owned());
            }
        }
    }
    if interface.is_none() && interfaces.is_empty() {
        problems.push(entry.refuse("interfaces", "arp needs an interface"));
        return None;
    }
    Some(ActuatorConfig::Arp { interfaces, interface, refresh: entry.time("refresh").expect(SURE) })
}
