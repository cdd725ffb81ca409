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
use super::table::{CONTROL, EMULATE};
use crate::document::{Document, Entry, Problem};

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
        }
    }

    /// Whether it sets the routes of switches; else these are what the topology says.
    pub const fn sets_routes(&self) -> bool {
        matches!(self, ActuatorConfig::Emulated)
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
    Some(ControlConfig { decider, actuator, options, trees, settle_routes: time("settle_routes") })
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
    match name {
        "log" => Some(ActuatorConfig::Log),
        "emulated" if is_emulated => Some(ActuatorConfig::Emulated),
        "emulated" => refuse("actuator", "nothing is emulated: [emulate] is needed"),
        _ if is_emulated => refuse("actuator", "the network is emulated: expected emulated or log"),
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
