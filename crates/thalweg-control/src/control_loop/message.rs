//! Inputs and commands of the control loop.

use std::sync::Arc;

use thalweg_measure::collector::{AddressChange, ArrivalReport, CongestionEvent, Observation};
use thalweg_network::{LinkId, LinkState, NetworkState, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::link_signals::LinkSource;
use crate::action::{Action, ActionId};
use crate::decide::PairRate;
use crate::pair::Pair;
use crate::routes::{Change, RuleFaults, Rules};

/// An input of the control loop.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed. Send one every few milliseconds: deadlines, polls and routes are handled on ticks.
    Tick,
    /// The collector of a switch reports the congestion of a link.
    Congestion {
        /// The switch.
        router: RouterId,
        /// The report.
        event: CongestionEvent,
    },
    /// A collector reports that packets of a flow have another address.
    AddressChange {
        /// The collector's switch, if known.
        router: Option<RouterId>,
        /// The report.
        change: AddressChange,
    },
    /// A collector reports on [observed](Command::Observe) packets.
    Arrival(ArrivalReport),
    /// All flows: the answer to [`Command::PollFlows`].
    Flows(Vec<PairRate>),
    /// An action was started: the host or switch was instructed.
    Started(ActionId),
    /// An action was refused; nothing has changed.
    Refused(ActionId, String),
    /// Collectors know the [announced](Command::Announce) routes, which are valid from this time on.
    Announced(Timestamp),
    /// Collectors could not be informed of the routes.
    AnnounceFailed(String),
    /// The routes are installed, or will be once the switches are connected.
    Installed,
    /// The routes could not be installed.
    InstallFailed(String),
    /// A switch connected; its rules are unknown.
    SwitchConnected(RouterId),
    /// The state of all links, according to their switches.
    Links(LinkState),
    /// One link went down or came up, according to its switches.
    LinkChanged {
        /// The link.
        link: LinkId,
        /// Whether it is up.
        is_up: bool,
    },
    /// Another source reported the state of a link.
    LinkReported {
        /// The link.
        link: LinkId,
        /// The source.
        source: LinkSource,
        /// Whether it is up.
        is_up: bool,
    },
    /// The installed rules: the answer to [`Command::ReadBack`].
    Tables {
        /// The switch; `None` for all.
        router: Option<RouterId>,
        /// The rules there.
        rules: Rules,
    },
    /// The installed rules cannot be read.
    ReadBackFailed(String),
    /// The rules of [`Command::RepairRules`] were repaired.
    RulesRepaired,
    /// A switch had other rules than the driver had installed. The driver repairs them itself
    /// ([`Installation::Tables`](super::Installation::Tables)).
    RuleFaults {
        /// The switch.
        router: RouterId,
        /// What was wrong.
        faults: RuleFaults,
    },
    /// The repair failed, at least in part.
    RuleRepairFailed(String),
    /// This daemon became the master of the switches, or lost that role. Only a master may change them.
    Mastership {
        /// Whether it is the master.
        is_master: bool,
    },
    /// The network was replaced.
    Network(Arc<NetworkState>),
    /// A user pins a pair to an address.
    Pin {
        /// The pair.
        pair: Pair,
        /// Index of the destination address.
        address: u8,
    },
    /// A user unpins a pair.
    Unpin(Pair),
    /// A user freezes the loop, so that it only observes, or unfreezes it.
    Freeze(bool),
}

/// A command of the control loop. Drivers must carry commands out in order.
#[derive(Clone, Debug)]
pub enum Command {
    /// Reroute a pair. Answer with [`Input::Started`] or [`Input::Refused`], immediately if possible.
    Reroute(Action),
    /// Keep a pair at the address at which it was found: another controller may have moved it there.
    Hold {
        /// The pair.
        pair: Pair,
        /// Index of the address at which it was found.
        address: u8,
        /// Time of the report.
        time: Timestamp,
    },
    /// Keep a pair at its old address: an action had no effect in time.
    Abandon {
        /// The action.
        action: Action,
        /// Index of the old address.
        from: u8,
    },
    /// Have the collectors of these switches observe a pair of addresses. No answer; skip switches without a
    /// collector.
    Observe {
        /// The switches of the source and of the destination.
        routers: [RouterId; 2],
        /// The addresses, counts and times of the observation.
        observation: Observation,
    },
    /// Request all flows from the collectors. Answer with [`Input::Flows`].
    PollFlows,
    /// Announce routes to collectors, valid from `ahead` from now on. Answer with [`Input::Announced`] or
    /// [`Input::AnnounceFailed`].
    Announce {
        /// The network with these routes.
        state: Arc<NetworkState>,
        /// Time between announcement and first use.
        ahead: Nanos,
    },
    /// Install the tables of this state in all switches. Answer with [`Input::Installed`] or
    /// [`Input::InstallFailed`].
    Install(Arc<NetworkState>),
    /// Read the link state and the installed rules. Answer with [`Input::Links`], if links can be observed, and then
    /// [`Input::Tables`], or with [`Input::ReadBackFailed`].
    ReadBack {
        /// The switch; `None` for all.
        router: Option<RouterId>,
    },
    /// Apply these changes of rules, in order. Answer with [`Input::RulesRepaired`] or [`Input::RuleRepairFailed`].
    RepairRules(Vec<Change>),
}
