//! The routes of a network: which there are to be, when collectors are told of them, when they are installed, and whether they
//! are what is installed.
//!
//! ```text
//!             network, links                  announced          from then on
//!   settled ────────────────► announcing ────────────────► due ────────────────► installing ──► settled
//!      ▲                                                           whole tables                    │
//!      │                                                                                           │
//!      └── repairing ◄── reading ◄─────────────────────────────────── rule by rule, again and again ┘
//! ```
//!
//! Collectors are told of new routes before they are used (Planck, section 4.1). Nothing is steered from then on until
//! they are installed: decisions would be made by paths that are not there yet.
//!
//! **Reconciliation.** What a switch has forgotten, and what somebody else has left in it, is found by comparison of what is
//! installed with what is wanted. So it does not matter who began with an installation, or how far that one came. A switch that
//! has nothing comes first.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::state::StateError;
use thalweg_network::{Forwarding, LinkState, NetworkState, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::message::Command;
use crate::routes::{Change, Rules};

/// A read-back or a repair that was not answered for so long is begun anew.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(5);

/// Which routes a loop makes, and how they get into switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOptions {
    /// Spanning trees to make where the network has no routes to choose among, or links change; `None` to take routes as they
    /// are.
    pub trees: Option<TreeOptions>,
    /// Whether the last switch writes base addresses back.
    pub writes_back: bool,
    /// How long before they are used collectors are told of routes.
    pub settle: Nanos,
    /// How routes get into switches.
    pub installation: Installation,
}

/// How routes get into switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installation {
    /// Not by this loop.
    Never,
    /// As whole tables. Whoever carries that out compares them with what switches have.
    Whole,
    /// Rule by rule, after what is installed has been read back. That is repeated at this interval, if there is one.
    Repair {
        /// From the end of one to the beginning of the next.
        interval: Option<Nanos>,
    },
}

impl Default for RouteOptions {
    fn default() -> RouteOptions {
        RouteOptions {
            trees: None,
            writes_back: true,
            settle: Nanos::ZERO,
            installation: Installation::Never,
        }
    }
}

/// What has been done to routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Rules that were missing or wrong, and those that nobody wanted.
    pub corrected: u64,
    /// How often routes were made anew since links had changed.
    pub rerouted: u64,
    /// Announcements, installations, read-backs and repairs that failed.
    pub failed: u64,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Settled,
    /// Collectors are being told.
    Announcing,
    /// They know; routes are to be installed at this time.
    Due(Timestamp),
    /// Switches are being told.
    Installing,
    /// What is installed is being read, since then.
    Reading(Timestamp),
    /// Rules are being put right, since then.
    Repairing(Timestamp),
}

/// The routes of one network.
#[derive(Debug)]
pub struct RouteReconciler {
    options: RouteOptions,
    state: Arc<NetworkState>,
    phase: Phase,
    are_there: bool,
    /// When what is installed is read next.
    next_read: Option<Timestamp>,
    /// Rules were found wrong while nothing was to be done.
    is_held_back: bool,
    /// The links that are up, if they changed while nothing was to be done.
    held_links: Option<LinkState>,
    counters: RouteCounters,
    errors: VecDeque<String>,
}

/// Errors that are kept for whoever takes them.
const MAX_ERRORS: usize = 64;

impl RouteReconciler {
    /// The routes of a network. Nothing is commanded before the first [`advance`](Self::advance).
    ///
    /// # Errors
    /// If there can be no such routes.
    pub fn new(
        options: RouteOptions,
        network: &Arc<NetworkState>,
        now: Timestamp,
    ) -> Result<RouteReconciler, StateError> {
        let reads = matches!(options.installation, Installation::Repair { .. });
        let mut reconciler = RouteReconciler {
            options,
            state: Arc::clone(network),
            phase: Phase::Settled,
            are_there: options.installation != Installation::Whole,
            next_read: reads.then_some(now),
            is_held_back: false,
            held_links: None,
            counters: RouteCounters::default(),
            errors: VecDeque::new(),
        };
        reconciler.state = reconciler.planned(network)?;
        Ok(reconciler)
    }

    /// The network with the routes that it has, or is to have.
    pub fn state(&self) -> &Arc<NetworkState> {
        &self.state
    }

    /// Whether the routes are in the switches, so that pairs can be steered.
    pub fn are_there(&self) -> bool {
        self.are_there
    }

    /// What has been done.
    pub fn counters(&self) -> RouteCounters {
        self.counters
    }

    /// What went wrong since this was last asked, in words: the latest.
    pub fn take_errors(&mut self) -> VecDeque<String> {
        std::mem::take(&mut self.errors)
    }

    /// The first installation, for whoever installs whole tables.
    pub fn begin(&mut self, commands: &mut VecDeque<Command>) {
        if self.options.installation == Installation::Whole {
            self.announce(commands);
        }
    }

    /// The network is another. Says whether it was taken up.
    pub fn set_network(&mut self, network: &Arc<NetworkState>, commands: &mut VecDeque<Command>) -> bool {
        match self.planned(network) {
            Ok(state) => {
                self.state = state;
                match self.options.installation {
                    Installation::Never => self.are_there = true,
                    _ => self.announce(commands),
                }
                true
            }
            Err(error) => {
                self.fail(format!("cannot steer the new network: {error}"));
                false
            }
        }
    }

    /// Which links are up. Says whether there are other routes from now on. While the loop is frozen nothing changes.
    pub fn set_links(&mut self, links: LinkState, is_frozen: bool, commands: &mut VecDeque<Command>) -> bool {
        let Some(trees) = self.options.trees.filter(|_| self.options.installation != Installation::Never)
        else {
            return false;
        };
        self.held_links = None;
        if links == *self.state.links() {
            return false;
        }
        if is_frozen {
            self.held_links = Some(links);
            return false;
        }
        let tables = spanning_trees(self.state.topology(), &links, trees);
        let forwarding = Forwarding::tables(tables).with_write_back(self.options.writes_back);
        let state = self.state.with_links(links).and_then(|state| state.with_forwarding(forwarding));
        match state {
            Ok(state) => {
                self.state = Arc::new(state);
                self.counters.rerouted += 1;
                self.announce(commands);
                true
            }
            Err(error) => {
                self.fail(format!("no routes for the links that are up: {error}"));
                false
            }
        }
    }

    /// Collectors know of the routes, which hold from then on.
    pub fn announced(&mut self, from: Timestamp) {
        if self.phase == Phase::Announcing {
            self.phase = Phase::Due(from);
        }
    }

    /// Whole tables are installed.
    pub fn installed(&mut self) {
        if self.phase == Phase::Installing {
            (self.phase, self.are_there) = (Phase::Settled, true);
        }
    }

    /// An announcement, an installation, a read-back or a repair has failed.
    pub fn failed(&mut self, error: String, now: Timestamp) {
        self.fail(error);
        match self.phase {
            // As long as routes are not there nothing is steered.
            Phase::Announcing | Phase::Installing | Phase::Reading(_) | Phase::Repairing(_) => {
                self.phase = Phase::Settled;
                self.next_read = self.next(now);
            }
            Phase::Settled | Phase::Due(_) => {}
        }
    }

    /// A switch has just connected: what it has is read.
    pub fn connected(&mut self, router: RouterId, now: Timestamp, commands: &mut VecDeque<Command>) {
        if self.phase == Phase::Settled && matches!(self.options.installation, Installation::Repair { .. }) {
            self.phase = Phase::Reading(now);
            commands.push_back(Command::ReadBack { router: Some(router) });
        }
    }

    /// These rules are installed, at one switch or at all. What differs from what is wanted is put right, unless the loop is
    /// frozen.
    pub fn read(
        &mut self,
        router: Option<RouterId>,
        installed: &Rules,
        is_frozen: bool,
        now: Timestamp,
        commands: &mut VecDeque<Command>,
    ) {
        if !matches!(self.phase, Phase::Reading(_)) {
            // Other routes have been announced since it was asked for.
            return;
        }
        let all = Rules::of_tables(self.state.topology(), self.state.forwarding().all_tables());
        let wanted = match router {
            Some(router) => all.at(router),
            None => all,
        };
        let changes = in_order(installed, installed.changes_to(&wanted));
        if changes.is_empty() {
            (self.phase, self.are_there) = (Phase::Settled, true);
            self.next_read = self.next(now);
            return;
        }
        if is_frozen {
            (self.phase, self.is_held_back) = (Phase::Settled, true);
            self.next_read = self.next(now);
            return;
        }
        self.counters.corrected += changes.len() as u64;
        self.phase = Phase::Repairing(now);
        commands.push_back(Command::Repair(changes));
    }

    /// Rules have been put right.
    pub fn repaired(&mut self, now: Timestamp) {
        if matches!(self.phase, Phase::Repairing(_)) {
            (self.phase, self.are_there) = (Phase::Settled, true);
            self.next_read = self.next(now);
        }
    }

    /// The loop is not frozen any more: what was held back is done. Says whether there are other routes from now on.
    pub fn thaw(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) -> bool {
        if std::mem::take(&mut self.is_held_back) {
            self.next_read = Some(now);
        }
        let links = self.held_links.take();
        links.is_some_and(|links| self.set_links(links, false, commands))
    }

    /// Which links are up, as far as is known.
    pub fn links(&self) -> &LinkState {
        self.held_links.as_ref().unwrap_or(self.state.links())
    }

    /// Lets time pass: routes that are due are installed, and what is installed is read.
    pub fn advance(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) {
        match self.phase {
            Phase::Due(from) if from <= now => match self.options.installation {
                Installation::Repair { .. } => self.read_back(now, commands),
                _ => {
                    self.phase = Phase::Installing;
                    commands.push_back(Command::Install(Arc::clone(&self.state)));
                }
            },
            Phase::Reading(since) | Phase::Repairing(since) if now.since(since) >= ANSWER_WITHIN => {
                self.fail("switches do not answer".to_owned());
                self.read_back(now, commands);
            }
            Phase::Settled if self.next_read.is_some_and(|at| at <= now) => self.read_back(now, commands),
            _ => {}
        }
    }

    fn read_back(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) {
        (self.phase, self.next_read) = (Phase::Reading(now), None);
        commands.push_back(Command::ReadBack { router: None });
    }

    fn announce(&mut self, commands: &mut VecDeque<Command>) {
        (self.phase, self.are_there) = (Phase::Announcing, false);
        let (state, ahead) = (Arc::clone(&self.state), self.options.settle);
        commands.push_back(Command::Announce { state, ahead });
    }

    /// When what is installed is read again.
    fn next(&self, now: Timestamp) -> Option<Timestamp> {
        match self.options.installation {
            Installation::Repair { interval } => interval.map(|interval| now + interval),
            _ => None,
        }
    }

    /// The network with the routes that it is to have: those that it has, if it has some to choose among and this loop is
    /// not the one that installs them.
    fn planned(&self, network: &Arc<NetworkState>) -> Result<Arc<NetworkState>, StateError> {
        let has_choice =
            self.options.installation != Installation::Whole && network.forwarding().addresses() > 1;
        let Some(trees) = self.options.trees.filter(|_| !has_choice) else { return Ok(Arc::clone(network)) };
        let tables = spanning_trees(network.topology(), network.links(), trees);
        let forwarding = Forwarding::tables(tables).with_write_back(self.options.writes_back);
        Ok(Arc::new(network.with_forwarding(forwarding)?))
    }

    fn fail(&mut self, error: String) {
        self.counters.failed += 1;
        if self.errors.len() == MAX_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }
}

/// Changes in the order in which they are to be made: first those of switches that have nothing, then as they were.
fn in_order(installed: &Rules, mut changes: Vec<Change>) -> Vec<Change> {
    let mut empty: Vec<RouterId> = changes.iter().map(|change| change.router).collect();
    empty.sort_unstable();
    empty.dedup();
    empty.retain(|&router| installed.at(router).is_empty());
    changes.sort_by_key(|change| empty.binary_search(&change.router).is_err());
    changes
}
