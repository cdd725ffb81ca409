//! What goes into the control loop, and what comes out.

use std::sync::Arc;

use thalweg_measure::collector::{AddressChange, ArrivalReport, LinkEvent, Observation};
use thalweg_network::{LinkId, LinkState, NetworkState, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::decide::Observed;
use crate::pair::Pair;
use crate::routes::{Change, Rules};

/// What the control loop is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed. To be told every few milliseconds: deadlines, polls and routes are as late as this.
    Tick,
    /// The collector of a switch reports a link.
    Link {
        /// The switch.
        router: RouterId,
        /// What it reports.
        event: LinkEvent,
    },
    /// A collector reports that packets of a flow have another address.
    AddressChange {
        /// The collector's switch, if it is known.
        router: Option<RouterId>,
        /// What it reports.
        change: AddressChange,
    },
    /// A collector reports of packets that are [observed](Command::Observe).
    Arrival(ArrivalReport),
    /// All traffic there is: the answer to [`Command::PollFlows`].
    Flows(Vec<Observed>),
    /// An action was started: its pair has been told.
    Started(ActionId),
    /// An action could not be started; nothing has changed.
    Refused(ActionId, String),
    /// Collectors know of the routes that were [announced](Command::Announce); they are to hold from this time on.
    Announced(Timestamp),
    /// Collectors could not be told of them.
    AnnounceFailed(String),
    /// The routes are in the switches, or will be as soon as these are reached.
    Installed,
    /// They are not.
    InstallFailed(String),
    /// A switch is connected; nothing is known of what it has installed.
    SwitchConnected(RouterId),
    /// Which links are up: all of them.
    Links(LinkState),
    /// One link went down, or is back.
    LinkChanged {
        /// Which.
        link: LinkId,
        /// Whether it is up.
        is_up: bool,
    },
    /// What is installed: the answer to [`Command::ReadBack`].
    Tables {
        /// At which switch; `None` for all.
        router: Option<RouterId>,
        /// The rules there.
        rules: Rules,
    },
    /// What is installed cannot be read.
    ReadBackFailed(String),
    /// [Rules](Command::Repair) have been put right.
    Repaired,
    /// They have not, or not all.
    RepairFailed(String),
    /// The network is another from now on.
    Network(Arc<NetworkState>),
    /// A user wants a pair at this address.
    Pin {
        /// The pair.
        pair: Pair,
        /// Which of the destination's addresses.
        address: u8,
    },
    /// A user lets a pair go again.
    Unpin(Pair),
    /// A user wants the loop only to watch, or to go on.
    Freeze(bool),
}

/// What is to be done. Commands are to be carried out in order.
#[derive(Clone, Debug)]
pub enum Command {
    /// Reroute a pair. [`Input::Started`] or [`Input::Refused`] answers it, at once if possible.
    Reroute(Action),
    /// Keep a pair at this address, at which it was found: another controller may have sent it there.
    Hold {
        /// Which pair.
        pair: Pair,
        /// Where it was found.
        address: u8,
        /// When.
        time: Timestamp,
    },
    /// Leave a pair where it was: an action had no effect in time.
    Abandon {
        /// The action.
        action: Action,
        /// Where the pair was before.
        from: u8,
    },
    /// Have the collectors of these switches observe a pair of addresses. Nothing answers it; a switch without a collector
    /// is left out.
    Observe {
        /// The switches of the source and of the destination.
        routers: [RouterId; 2],
        /// What is to be observed.
        observation: Observation,
    },
    /// Ask collectors for all flows. [`Input::Flows`] answers it.
    PollFlows,
    /// Tell collectors of the routes that will hold from `ahead` from now on. [`Input::Announced`] answers it, or
    /// [`Input::AnnounceFailed`].
    Announce {
        /// The network with these routes.
        state: Arc<NetworkState>,
        /// How long before they are used.
        ahead: Nanos,
    },
    /// Have all switches forward by the tables of this state. [`Input::Installed`] answers it, or
    /// [`Input::InstallFailed`].
    Install(Arc<NetworkState>),
    /// Read which links are up and what is installed. [`Input::Links`], if links can be seen, and then [`Input::Tables`]
    /// answer it, or [`Input::ReadBackFailed`].
    ReadBack {
        /// At which switch; `None` for all.
        router: Option<RouterId>,
    },
    /// Put these rules right, in order. [`Input::Repaired`] answers it, or [`Input::RepairFailed`].
    Repair(Vec<Change>),
}
