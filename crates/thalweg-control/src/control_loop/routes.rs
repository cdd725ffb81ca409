//! Computes the routes of a network, announces them to collectors, installs them in switches and reconciles them.
//!
//! ```text
//!             network, links                  announced          from then on
//!   idle ───────────────────► announcing ────────────────► due ────────────────► installing ──► idle
//!      ▲                                                           whole tables                    │
//!      │                                                                                           │
//!      └── repairing ◄── reading ◄───────────────────────────────── rule by rule, periodically ────┘
//! ```
//!
//! Collectors learn of new routes before their first use (Planck, section 4.1). Nothing is rerouted until the routes
//! are installed: decisions would use paths that do not exist yet.
//!
//! **A failed link** is urgent: packets are lost until the trees avoid it. The new ones are installed at once, before
//! collectors know them. Until then collectors attribute packets to the wrong links, and nothing is rerouted. A link that comes up is urgent only if an address had no route without it. What switches report about links outlives a network that a user sets.
//!
//! **Reconciliation** compares installed rules with wanted rules. It finds lost rules and foreign rules, however far
//! an earlier installation came. Switches without rules are repaired first.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use thalweg_network::routing::{ForwardingTable, TreeOptions, spanning_trees};
use thalweg_network::state::StateError;
use thalweg_network::{Forwarding, LinkId, LinkState, NetworkState, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::message::Command;
use crate::routes::{Change, RuleFaults, Rules};

/// A read-back or a repair without an answer is repeated after this time.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(5);

/// Which routes a loop computes, and how it installs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOptions {
    /// Spanning trees to compute if the network offers no choice of routes, or links change; `None` to use the
    /// network's routes.
    pub trees: Option<TreeOptions>,
    /// Whether the last switch writes base addresses back.
    pub writes_back: bool,
    /// Time between the announcement of routes to collectors and their first use.
    pub lead_time: Nanos,
    /// How to install routes.
    pub installation: Installation,
    /// Whether nothing is installed before the driver reports that this daemon is the master.
    pub starts_as_standby: bool,
}

/// How to install routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installation {
    /// Not by this loop.
    Never,
    /// As whole tables. The driver compares them with the rules of the switches, at installation and periodically, and
    /// reports differences that it repairs.
    Tables,
    /// Rule by rule, after a read-back of the installed rules. Repeated at this interval, if any.
    Reconcile {
        /// Time from the end of one reconciliation to the start of the next.
        interval: Option<Nanos>,
    },
}

impl Default for RouteOptions {
    fn default() -> RouteOptions {
        RouteOptions {
            trees: None,
            writes_back: true,
            lead_time: Nanos::ZERO,
            installation: Installation::Never,
            starts_as_standby: false,
        }
    }
}

/// Counters of route handling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Rules that were missing, wrong or unwanted.
    pub corrected: u64,
    /// Recomputations of routes after a change of links.
    pub rerouted: u64,
    /// Failed announcements, installations, read-backs and repairs.
    pub failed: u64,
}

/// The phase of route handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Idle.
    Idle,
    /// Announcing the routes to collectors.
    Announcing,
    /// Announced; to be installed at this time.
    Due(Timestamp),
    /// Installing whole tables.
    Installing,
    /// Reading the installed rules, since this time.
    Reading(Timestamp),
    /// Repairing rules, since this time.
    Repairing(Timestamp),
}

/// The announcement in progress. There is at most one: links may change faster than collectors answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    /// None.
    None,
    /// That of the present routes.
    Present,
    /// That of earlier routes. The present ones are announced after it.
    Outdated,
}

/// Keeps the installed routes of one network equal to the computed ones.
#[derive(Debug)]
pub struct RouteReconciler {
    options: RouteOptions,
    state: Arc<NetworkState>,
    phase: Phase,
    is_master: bool,
    are_installed: bool,
    /// Whether collectors know the routes.
    are_announced: bool,
    announcement: Announcement,
    /// When to read the installed rules next.
    next_read: Option<Timestamp>,
    /// Wrong rules were found while the loop was frozen.
    has_deferred_repair: bool,
    /// The link state, if it changed while the loop was frozen.
    deferred_links: Option<LinkState>,
    /// Links that were last reported down.
    reported_down: BTreeSet<LinkId>,
    link_changes: VecDeque<(LinkId, bool)>,
    counters: RouteCounters,
    errors: VecDeque<String>,
}

/// Maximum number of errors kept until taken.
const MAX_ERRORS: usize = 64;

/// Maximum number of link changes kept until taken.
const MAX_LINK_CHANGES: usize = 1_024;

impl RouteReconciler {
    /// Computes the routes of a network. Commands nothing before the first [`advance`](Self::advance).
    ///
    /// # Errors
    /// If the network cannot have such routes.
    pub fn new(
        options: RouteOptions,
        network: &Arc<NetworkState>,
        now: Timestamp,
    ) -> Result<RouteReconciler, StateError> {
        let reads = matches!(options.installation, Installation::Reconcile { .. });
        let mut reconciler = RouteReconciler {
            options,
            state: Arc::clone(network),
            phase: Phase::Idle,
            is_master: !options.starts_as_standby,
            are_installed: options.installation != Installation::Tables,
            are_announced: true,
            announcement: Announcement::None,
            next_read: reads.then_some(now),
            has_deferred_repair: false,
            deferred_links: None,
            reported_down: BTreeSet::new(),
            link_changes: VecDeque::new(),
            counters: RouteCounters::default(),
            errors: VecDeque::new(),
        };
        reconciler.state = reconciler.with_planned_routes(network)?;
        Ok(reconciler)
    }

    /// Returns the network with its present or planned routes.
    pub fn state(&self) -> &Arc<NetworkState> {
        &self.state
    }

    /// Returns whether the routes are installed and collectors know them, so that pairs can be rerouted.
    pub fn are_installed(&self) -> bool {
        self.are_installed && self.are_announced
    }

    /// Returns the counters.
    pub fn counters(&self) -> RouteCounters {
        self.counters
    }

    /// Returns the latest errors since the last call.
    pub fn take_errors(&mut self) -> VecDeque<String> {
        std::mem::take(&mut self.errors)
    }

    /// Returns the latest changes of links since the last call: down (`false`) or up (`true`).
    pub fn take_link_changes(&mut self) -> VecDeque<(LinkId, bool)> {
        std::mem::take(&mut self.link_changes)
    }

    /// Records the reported state of a link.
    pub fn report_link(&mut self, link: LinkId, is_up: bool) {
        match is_up {
            true => self.reported_down.remove(&link),
            false => self.reported_down.insert(link),
        };
    }

    /// Records the reported state of all links.
    pub fn report_links(&mut self, links: &LinkState) {
        self.reported_down = links.failed().collect();
    }

    /// Starts the first installation, if routes are installed as whole tables.
    pub fn begin(&mut self, commands: &mut VecDeque<Command>) {
        if self.options.installation == Installation::Tables {
            self.announce(commands);
        }
    }

    /// Returns whether this loop may change the switches.
    pub fn is_master(&self) -> bool {
        self.is_master
    }

    /// Becomes the master, and installs the routes as whole tables; or becomes a standby, which follows the state of
    /// links but installs nothing.
    pub fn set_master(&mut self, is_master: bool, commands: &mut VecDeque<Command>) {
        self.is_master = is_master;
        match is_master {
            true => self.begin(commands),
            false => (self.phase, self.are_installed) = (Phase::Idle, false),
        }
    }

    /// Replaces the network. Returns whether the new network is in use.
    pub fn set_network(&mut self, network: &Arc<NetworkState>, commands: &mut VecDeque<Command>) -> bool {
        self.deferred_links = None;
        let planned =
            self.with_reported_links(network).and_then(|network| self.with_planned_routes(&network));
        match planned {
            Ok(state) => {
                self.state = state;
                match self.options.installation {
                    Installation::Never => self.are_installed = true,
                    _ => self.announce(commands),
                }
                true
            }
            Err(error) => {
                self.fail(format!("cannot use the new network, keeping the old one: {error}"));
                false
            }
        }
    }

    /// Returns whether routes are computed again when links change.
    pub fn computes_routes(&self) -> bool {
        self.options.trees.is_some() && self.options.installation != Installation::Never
    }

    /// Updates the link state. Returns whether the paths changed. Changes nothing while the loop is frozen. If this loop
    /// does not compute routes, the paths over failed links are no longer usable.
    pub fn set_links(&mut self, links: LinkState, is_frozen: bool, commands: &mut VecDeque<Command>) -> bool {
        self.deferred_links = None;
        if links == *self.state.links() {
            return false;
        }
        if is_frozen {
            self.deferred_links = Some(links);
            return false;
        }
        let changes = link_changes(self.state.links(), &links);
        let Some(trees) = self.options.trees.filter(|_| self.computes_routes()) else {
            return self.use_links(links, changes);
        };
        let tables = spanning_trees(self.state.topology(), &links, trees);
        let forwarding = Forwarding::tables(tables).with_write_back(self.options.writes_back);
        let state = self.state.with_links(links).and_then(|state| state.with_forwarding(forwarding));
        match state {
            Ok(state) => {
                let state = Arc::new(state);
                let is_urgent = changes.iter().any(|&(_, is_up)| !is_up) || lacks_routes(&self.state);
                self.state = state;
                self.record_links(changes);
                self.counters.rerouted += 1;
                match is_urgent && self.is_master {
                    true => self.install_urgently(commands),
                    false => self.announce(commands),
                }
                true
            }
            Err(error) => {
                self.fail(format!(
                    "cannot compute routes for the links that are up, keeping the old routes: {error}"
                ));
                false
            }
        }
    }

    /// Replaces the link state, and keeps the routes.
    fn use_links(&mut self, links: LinkState, changes: Vec<(LinkId, bool)>) -> bool {
        match self.state.with_links(links) {
            Ok(state) => {
                self.state = Arc::new(state);
                self.record_links(changes);
                true
            }
            Err(error) => {
                self.fail(format!("cannot use the state of links: {error}"));
                false
            }
        }
    }

    /// Collectors know the routes, which are valid from this time on.
    pub fn announced(&mut self, from: Timestamp, commands: &mut VecDeque<Command>) {
        if self.announce_again(commands) {
            return;
        }
        self.are_announced = true;
        if self.phase == Phase::Announcing {
            self.phase = Phase::Due(from);
        }
    }

    /// Collectors could not be informed of the routes.
    pub fn announcement_failed(&mut self, error: String, now: Timestamp, commands: &mut VecDeque<Command>) {
        match self.announce_again(commands) {
            true => self.fail(error),
            false => self.failed(error, now),
        }
    }

    /// The announcement in progress has ended. Announces the present routes if it was that of earlier ones.
    fn announce_again(&mut self, commands: &mut VecDeque<Command>) -> bool {
        let is_outdated = self.announcement == Announcement::Outdated && self.is_master;
        self.announcement = Announcement::None;
        if is_outdated {
            self.send_announcement(commands);
        }
        is_outdated
    }

    fn send_announcement(&mut self, commands: &mut VecDeque<Command>) {
        self.announcement = match self.announcement {
            Announcement::None => {
                let (state, ahead) = (Arc::clone(&self.state), self.options.lead_time);
                commands.push_back(Command::Announce { state, ahead });
                Announcement::Present
            }
            Announcement::Present | Announcement::Outdated => Announcement::Outdated,
        };
    }

    /// The whole tables are installed.
    pub fn installed(&mut self) {
        if self.phase == Phase::Installing {
            (self.phase, self.are_installed) = (Phase::Idle, true);
        }
    }

    /// An installation, read-back or repair failed.
    pub fn failed(&mut self, error: String, now: Timestamp) {
        self.fail(error);
        match self.phase {
            // Nothing is rerouted until the routes are installed.
            Phase::Announcing | Phase::Installing | Phase::Reading(_) | Phase::Repairing(_) => {
                self.phase = Phase::Idle;
                self.next_read = self.next_read_at(now);
            }
            Phase::Idle | Phase::Due(_) => {}
        }
    }

    /// A switch connected: reads its rules.
    pub fn connected(&mut self, router: RouterId, now: Timestamp, commands: &mut VecDeque<Command>) {
        if self.phase == Phase::Idle && matches!(self.options.installation, Installation::Reconcile { .. }) {
            self.phase = Phase::Reading(now);
            commands.push_back(Command::ReadBack { router: Some(router) });
        }
    }

    /// Takes the installed rules of one switch or of all. Repairs the differences, unless the loop is frozen.
    pub fn read(
        &mut self,
        router: Option<RouterId>,
        installed: &Rules,
        is_frozen: bool,
        now: Timestamp,
        commands: &mut VecDeque<Command>,
    ) {
        if !matches!(self.phase, Phase::Reading(_)) {
            // Other routes were announced since the request.
            return;
        }
        let all = Rules::of_tables(self.state.topology(), self.state.forwarding().all_tables());
        let wanted = match router {
            Some(router) => all.at(router),
            None => all,
        };
        let changes = empty_switches_first(installed, installed.changes_to(&wanted));
        if changes.is_empty() {
            (self.phase, self.are_installed) = (Phase::Idle, true);
            self.next_read = self.next_read_at(now);
            return;
        }
        if is_frozen {
            (self.phase, self.has_deferred_repair) = (Phase::Idle, true);
            self.next_read = self.next_read_at(now);
            return;
        }
        self.counters.corrected += changes.len() as u64;
        self.phase = Phase::Repairing(now);
        commands.push_back(Command::RepairRules(changes));
    }

    /// Counts rules that the driver found to be wrong and repairs itself.
    pub fn found_faults(&mut self, faults: RuleFaults) {
        self.counters.corrected += faults.total();
    }

    /// The rules were repaired.
    pub fn repaired(&mut self, now: Timestamp) {
        if matches!(self.phase, Phase::Repairing(_)) {
            (self.phase, self.are_installed) = (Phase::Idle, true);
            self.next_read = self.next_read_at(now);
        }
    }

    /// Carries out what was deferred while the loop was frozen. Returns whether the routes changed.
    pub fn unfreeze(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) -> bool {
        if std::mem::take(&mut self.has_deferred_repair) {
            self.next_read = Some(now);
        }
        let links = self.deferred_links.take();
        links.is_some_and(|links| self.set_links(links, false, commands))
    }

    /// Returns the known link state.
    pub fn links(&self) -> &LinkState {
        self.deferred_links.as_ref().unwrap_or(self.state.links())
    }

    /// Installs routes that are due, and reads installed rules periodically.
    pub fn advance(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) {
        match self.phase {
            Phase::Due(from) if from <= now => match self.options.installation {
                Installation::Reconcile { .. } => self.read_back(now, commands),
                _ => {
                    self.phase = Phase::Installing;
                    commands.push_back(Command::Install(Arc::clone(&self.state)));
                }
            },
            Phase::Reading(since) | Phase::Repairing(since) if now.since(since) >= ANSWER_TIMEOUT => {
                self.fail(format!("switches did not answer within {ANSWER_TIMEOUT}, retrying"));
                self.read_back(now, commands);
            }
            Phase::Idle if self.next_read.is_some_and(|at| at <= now) => self.read_back(now, commands),
            _ => {}
        }
    }

    fn read_back(&mut self, now: Timestamp, commands: &mut VecDeque<Command>) {
        (self.phase, self.next_read) = (Phase::Reading(now), None);
        commands.push_back(Command::ReadBack { router: None });
    }

    /// Installs routes without waiting for collectors.
    fn install_urgently(&mut self, commands: &mut VecDeque<Command>) {
        let phase = self.phase;
        if self.options.installation == Installation::Tables {
            commands.push_back(Command::Install(Arc::clone(&self.state)));
        }
        self.announce(commands);
        if let Installation::Reconcile { .. } = self.options.installation {
            // Rules that are being read are compared with the new routes. Otherwise they are read now.
            match phase {
                Phase::Reading(_) => self.phase = phase,
                _ => (self.phase, self.next_read) = (Phase::Idle, Some(Timestamp(0))),
            }
        }
    }

    fn announce(&mut self, commands: &mut VecDeque<Command>) {
        if !self.is_master {
            self.are_installed = false;
            return;
        }
        (self.phase, self.are_installed, self.are_announced) = (Phase::Announcing, false, false);
        self.send_announcement(commands);
    }

    /// Returns when to read the installed rules again.
    fn next_read_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.options.installation {
            Installation::Reconcile { interval } => interval.map(|interval| now + interval),
            _ => None,
        }
    }

    /// Returns the network with the wanted routes. The network's own routes stay if they offer a choice and this loop
    /// does not install whole tables.
    fn with_planned_routes(&self, network: &Arc<NetworkState>) -> Result<Arc<NetworkState>, StateError> {
        let has_choice =
            self.options.installation != Installation::Tables && network.forwarding().addresses() > 1;
        let Some(trees) = self.options.trees.filter(|_| !has_choice) else { return Ok(Arc::clone(network)) };
        let tables = spanning_trees(network.topology(), network.links(), trees);
        let forwarding = Forwarding::tables(tables).with_write_back(self.options.writes_back);
        Ok(Arc::new(network.with_forwarding(forwarding)?))
    }

    /// Returns the network with the links down that were last reported down.
    fn with_reported_links(&self, network: &Arc<NetworkState>) -> Result<Arc<NetworkState>, StateError> {
        let mut links = network.links().clone();
        for &link in &self.reported_down {
            // Links that the network no longer has are ignored.
            let _ = links.fail(link);
        }
        match links == *network.links() {
            true => Ok(Arc::clone(network)),
            false => network.with_links(links).map(Arc::new),
        }
    }

    fn record_links(&mut self, changes: Vec<(LinkId, bool)>) {
        self.link_changes.extend(changes);
        let surplus = self.link_changes.len().saturating_sub(MAX_LINK_CHANGES);
        self.link_changes.drain(..surplus);
    }

    fn fail(&mut self, error: String) {
        self.counters.failed += 1;
        if self.errors.len() == MAX_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }
}

/// Returns the links whose state differs: down (`false`) or up (`true`) now.
fn link_changes(before: &LinkState, now: &LinkState) -> Vec<(LinkId, bool)> {
    let down = now.failed().filter(|&link| before.is_up(link)).map(|link| (link, false));
    let up = before.failed().filter(|&link| now.is_up(link)).map(|link| (link, true));
    down.chain(up).collect()
}

/// Returns whether a switch has no route to a host.
fn lacks_routes(state: &NetworkState) -> bool {
    let lacks = |table: &ForwardingTable, host| table.port(host, 0).is_none();
    let topology = state.topology();
    state.forwarding().all_tables().iter().any(|table| topology.endpoint_ids().any(|host| lacks(table, host)))
}

/// Sorts changes so that those of switches without rules come first.
fn empty_switches_first(installed: &Rules, mut changes: Vec<Change>) -> Vec<Change> {
    let mut empty: Vec<RouterId> = changes.iter().map(|change| change.router).collect();
    empty.sort_unstable();
    empty.dedup();
    empty.retain(|&router| installed.at(router).is_empty());
    changes.sort_by_key(|change| empty.binary_search(&change.router).is_err());
    changes
}
