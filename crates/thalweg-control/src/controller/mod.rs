//! The controller: passes congestion to a decider, issues actions and follows each to its outcome.
//!
//! **Time** is an argument: packet time or the wall clock. Every call must use the same clock. The emulator runs this controller
//! in virtual time.
//!
//! **Fail-safe.** Routes stay in switches and hosts. If the controller stops or is frozen, they stay as they are. An
//! action times out if its effect is not seen by its deadline, and the pair is treated as not rerouted. If packets are
//! sent on the new path and do not arrive, the controller moves the pair back. That path stays marked broken until routes
//! change, even if the topology contains it. A *pair* is a source and a destination host; the destination address of its
//! packets selects its path.
//!
//! **A restarted controller** assumes that each pair uses the address seen in its packets. It leaves every pair on its
//! current path.
//!
//! **No side effects.** Commands for hosts and switches come out as [`PairCommand`]s, in order. The driver reports of
//! each [reroute](PairCommand::Reroute) whether it was [started](Controller::started) or
//! [refused](Controller::refused). Without either report, the action times out at its deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::decide::moves::{FlowMoves, MAX_MOVES};
use crate::decide::{Congestion, Decider, Decision, PairRate, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

/// Options of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerOptions {
    /// Time after which an action without a visible effect times out. Default 50 ms.
    pub arrival_timeout: Nanos,
    /// Whether to decide only, without issuing actions.
    pub dry_run: bool,
    /// Number of recent decisions kept for inspection. Default 1,000.
    pub history: usize,
    /// Maximum number of actions that wait for their effect at once. Further ones are refused and counted. As many
    /// finished and as many refused actions are kept until taken. Default 4,096.
    pub pending: usize,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        ControllerOptions {
            arrival_timeout: Nanos::from_millis(50),
            dry_run: false,
            history: 1_000,
            pending: 4_096,
        }
    }
}

/// A source is unresponsive after this many consecutive actions without effect. One alone proves nothing: the flow
/// may have ended.
pub const UNRESPONSIVE_AFTER: u32 = 3;

/// Counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Congestion events.
    pub congestions: u64,
    /// Polls of all traffic.
    pub polls: u64,
    /// Decisions, by [`Verdict`].
    pub decisions: [u64; 6],
    /// Moves issued, by their number for the flow that has moved most: its first, second and third. Only by deciders that
    /// count moves.
    pub flow_moves: [u64; MAX_MOVES as usize],
    /// Reroutes decided but not issued, because the controller is frozen or in a dry run.
    pub withheld: u64,
    /// Actions not issued because too many waited for their effect.
    pub throttled: u64,
    /// Actions that the actuator could not start.
    pub refused: u64,
    /// Actions started.
    pub started: u64,
    /// Actions whose effect was seen.
    pub confirmed: u64,
    /// Actions whose effect was not seen in time: the host ignored them or stopped sending.
    pub timed_out: u64,
    /// Actions superseded by another action on the same pair.
    pub superseded: u64,
    /// Actions whose packets did not arrive on the new path.
    pub broken_paths: u64,
    /// Actions that moved a pair off a path over a failed link.
    pub left_failed: u64,
}

/// A finished action and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedAction {
    /// The action.
    pub action: Action,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A collector saw a packet with the new address, this long after the decision.
    Confirmed(Nanos),
    /// No collector saw such a packet by the deadline.
    TimedOut,
    /// Another action moved the pair before this one was confirmed.
    Superseded,
}

/// A command for one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairCommand {
    /// Reroute the pair. The driver reports whether it started.
    Reroute(Action),
    /// Keep the pair at the address at which it was found: another controller may have moved it there.
    Hold {
        /// The pair.
        pair: Pair,
        /// Index of the address at which it was found.
        address: u8,
        /// Time of the report.
        time: Timestamp,
    },
    /// Keep the pair at its old address: an action had no effect in time.
    Abandon {
        /// The action.
        action: Action,
        /// Index of the old address.
        from: u8,
    },
}

/// Why a pair is rerouted, which determines how a start or a refusal is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The decider chose it, and learns of a refusal.
    Decided,
    /// A user pinned it.
    Pinned,
    /// Its packets did not arrive. The decider learns of the new placement once the action starts.
    BrokenPath,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    action: Action,
    /// Index of the old address.
    from: u8,
    reason: Reason,
}

/// An action whose packets were seen on the new path, and whose arrival is to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingArrival {
    /// The action.
    pub action: Action,
    /// Index of the old address.
    pub from: u8,
    /// The packets should have arrived by this time.
    pub due: Timestamp,
}

/// The controller.
pub struct Controller {
    options: ControllerOptions,
    paths: Paths,
    decider: Box<dyn Decider>,
    pins: Pins,
    is_frozen: bool,
    commands: VecDeque<PairCommand>,
    /// Actions not yet reported as started or refused.
    requested: BTreeMap<ActionId, Pending>,
    /// Actions that were started.
    pending: BTreeMap<Pair, Pending>,
    /// Pairs that were rerouted or held, so that each is held only once.
    held: BTreeSet<Pair>,
    /// Consecutive actions without effect, by the source that should have followed them.
    ineffective: BTreeMap<EndpointId, u32>,
    /// Number of moves of each pair that was issued one.
    moves: BTreeMap<Pair, u64>,
    arrivals: VecDeque<PendingArrival>,
    next_poll: Option<Timestamp>,
    actions: u64,
    decisions: VecDeque<Decision>,
    finished: VecDeque<FinishedAction>,
    started: VecDeque<Action>,
    refused_actions: VecDeque<(Action, String)>,
    counters: ControllerCounters,
    /// Reused from call to call.
    decided: Vec<Decision>,
}

impl Controller {
    /// Creates a controller for a network. Polls, if the decider needs them, start at `now`.
    pub fn new(
        options: ControllerOptions,
        paths: Paths,
        decider: Box<dyn Decider>,
        now: Timestamp,
    ) -> Controller {
        let next_poll = decider.poll_interval().map(|interval| now + interval);
        Controller {
            options,
            paths,
            decider,
            pins: Pins::new(),
            is_frozen: false,
            commands: VecDeque::new(),
            requested: BTreeMap::new(),
            pending: BTreeMap::new(),
            held: BTreeSet::new(),
            ineffective: BTreeMap::new(),
            moves: BTreeMap::new(),
            arrivals: VecDeque::new(),
            next_poll,
            actions: 0,
            decisions: VecDeque::new(),
            finished: VecDeque::new(),
            started: VecDeque::new(),
            refused_actions: VecDeque::new(),
            counters: ControllerCounters::default(),
            decided: Vec::new(),
        }
    }

    /// Returns the known paths.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Replaces the network.
    pub fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
        self.arrivals.clear();
        self.decider.on_new_paths();
    }

    /// Returns the next command.
    pub fn next_command(&mut self) -> Option<PairCommand> {
        self.commands.pop_front()
    }

    /// Returns the counters.
    pub fn counters(&self) -> ControllerCounters {
        self.counters
    }

    /// Returns the number of moves of a pair that were decided and issued. Pins and moves back to a working path do not
    /// count.
    pub fn moves(&self, pair: Pair) -> u64 {
        self.moves.get(&pair).copied().unwrap_or(0)
    }

    /// Returns the known flows of a pair and the moves of each; none if the decider does not count moves.
    pub fn flow_moves(&self, pair: Pair) -> Vec<FlowMoves> {
        self.decider.flow_moves(pair)
    }

    /// Returns the latest decisions, the oldest first, including those to keep a path.
    pub fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> + ExactSizeIterator + '_ {
        self.decisions.iter()
    }

    /// Returns the actions finished since the last call: the latest, at most [this many](ControllerOptions::pending).
    pub fn take_finished(&mut self) -> VecDeque<FinishedAction> {
        std::mem::take(&mut self.finished)
    }

    /// Returns the actions started since the last call: the latest, at most [this many](ControllerOptions::pending).
    pub fn take_started(&mut self) -> VecDeque<Action> {
        std::mem::take(&mut self.started)
    }

    /// Returns the actions refused since the last call, with the errors: the latest, at most [this
    /// many](ControllerOptions::pending).
    pub fn take_refused(&mut self) -> VecDeque<(Action, String)> {
        std::mem::take(&mut self.refused_actions)
    }

    /// Returns the sources whose last [`UNRESPONSIVE_AFTER`] or more actions had no effect, with the number of such
    /// actions in a row. They ignore reroutes or stopped sending.
    pub fn unresponsive(&self) -> impl Iterator<Item = (EndpointId, u32)> + '_ {
        let counts = self.ineffective.iter().map(|(&source, &count)| (source, count));
        counts.filter(|&(_, count)| count >= UNRESPONSIVE_AFTER)
    }

    /// Returns whether the controller is frozen.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Freezes or unfreezes the controller. While frozen it decides and reports, but issues no reroutes except
    /// those of [`pin`](Controller::pin).
    pub fn freeze(&mut self, is_frozen: bool) {
        if self.is_frozen && !is_frozen {
            self.decider.on_unfrozen();
        }
        self.is_frozen = is_frozen;
    }

    /// Returns the pinned pairs and their addresses.
    pub fn pins(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.pins.iter().map(|(&pair, &address)| (pair, address))
    }

    /// Moves a pair to an address and keeps it there. Works while frozen.
    pub fn pin(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.pins.insert(pair, address);
        self.decider.on_placed(pair, address, now, &mut self.paths);
        self.issue(pair, address, address, Reason::Pinned, now);
    }

    /// Unpins a pair.
    pub fn unpin(&mut self, pair: Pair) {
        self.pins.remove(&pair);
    }

    /// Handles a congestion event.
    pub fn on_congestion(&mut self, congestion: &Congestion) {
        self.counters.congestions += 1;
        self.adopt(&congestion.flows, congestion.time);
        let mut decided = std::mem::take(&mut self.decided);
        self.decider.on_congestion(congestion, &self.pins, &mut self.paths, &mut decided);
        self.carry_out(decided);
    }

    /// Handles the start of an action. Returns the action, unless it has timed out meanwhile.
    pub fn started(&mut self, id: ActionId, now: Timestamp) -> Option<Action> {
        let started = self.requested.remove(&id)?;
        self.counters.started += 1;
        push_bounded(&mut self.started, started.action, self.options.pending);
        let pair = started.action.pair;
        if let Some(before) = self.pending.insert(pair, started) {
            self.counters.superseded += 1;
            self.finish(FinishedAction { action: before.action, outcome: Outcome::Superseded });
        }
        if started.reason == Reason::BrokenPath {
            // Packets may be missing on both paths for a while, for example if the sender waits for a retransmission
            // timeout. Even if the move back is not seen in time, the pair must not count as on the broken path.
            self.decider.on_placed(pair, started.action.address, now, &mut self.paths);
        }
        Some(started.action)
    }

    /// Handles the refusal of an action: nothing has changed.
    pub fn refused(&mut self, id: ActionId, error: String) {
        let Some(Pending { action, from, reason }) = self.requested.remove(&id) else { return };
        self.counters.refused += 1;
        push_bounded(&mut self.refused_actions, (action, error), self.options.pending);
        if reason == Reason::Decided {
            self.decider.on_refused(action.pair, from, action.issued, &mut self.paths);
        }
    }

    /// Handles a report of a pair's packets with a new address.
    pub fn address_seen(&mut self, pair: Pair, address: u8, at: Timestamp) {
        let matches =
            |requested: &&Pending| (requested.action.pair, requested.action.address) == (pair, address);
        if let Some(id) = self.requested.values().find(matches).map(|requested| requested.action.id) {
            // The effect shows before the start is reported.
            self.started(id, at);
        }
        if self.pending.get(&pair).is_some_and(|pending| pending.action.address == address) {
            let Pending { action, from, .. } = self.pending.remove(&pair).expect("the entry was just found");
            self.counters.confirmed += 1;
            self.ineffective.remove(&pair.source);
            let arrival = PendingArrival { action, from, due: at + self.options.arrival_timeout };
            push_bounded(&mut self.arrivals, arrival, self.options.pending);
            let outcome = Outcome::Confirmed(at.since(action.issued));
            self.finish(FinishedAction { action, outcome });
        }
    }

    /// Returns the actions whose packets should have arrived by now. The caller checks them at the destination
    /// switches. It calls [`mark_broken`](Self::mark_broken) if packets do not arrive, and
    /// [`recheck_arrival`](Self::recheck_arrival) if it cannot tell. Returns each action once, and none whose pair
    /// has moved since.
    pub fn take_due_arrivals(&mut self, now: Timestamp) -> Vec<PendingArrival> {
        let due = self.arrivals.iter().take_while(|arrival| arrival.due <= now).count();
        let due = self.arrivals.drain(..due);
        due.filter(|arrival| !self.pending.contains_key(&arrival.action.pair)).collect()
    }

    /// Schedules another check of an action with too few packets to tell, after `arrival_timeout`.
    pub fn recheck_arrival(&mut self, arrival: PendingArrival, now: Timestamp) {
        let again = PendingArrival { due: now + self.options.arrival_timeout, ..arrival };
        push_bounded(&mut self.arrivals, again, self.options.pending);
    }

    /// Handles packets that were sent on the new path and did not arrive. Marks the path broken for the pair and
    /// moves the pair back, unless the old path is also broken or the controller is frozen.
    pub fn mark_broken(&mut self, arrival: &PendingArrival, now: Timestamp) {
        let &PendingArrival { action: Action { pair, address, .. }, from, .. } = arrival;
        self.counters.broken_paths += 1;
        self.paths.mark_broken(pair, address);
        if self.paths.is_broken(pair, from) {
            return;
        }
        if self.is_frozen {
            self.counters.withheld += 1;
            return;
        }
        self.issue(pair, from, from, Reason::BrokenPath, now);
    }

    /// Holds pairs that another controller moved: those seen at an address other than the base address.
    pub fn adopt(&mut self, flows: &[PairRate], now: Timestamp) {
        for &PairRate { pair, address, .. } in flows {
            if address != 0 && !self.pending.contains_key(&pair) && self.held.insert(pair) {
                self.commands.push_back(PairCommand::Hold { pair, address, time: now });
            }
        }
    }

    /// Moves pairs whose path has failed to another path: the one with the largest capacity, of several each pair takes
    /// another. Pinned pairs, and those without a working path, stay.
    pub fn leave_failed_paths(&mut self, flows: &[PairRate], now: Timestamp) {
        for &PairRate { pair, address, .. } in flows {
            if self.pins.contains_key(&pair) || self.paths.of(pair, address).is_some() {
                continue;
            }
            let Some(to) = self.path_beside(pair, address) else { continue };
            if self.reroute(pair, address, to, now) {
                self.counters.left_failed += 1;
                self.decider.on_placed(pair, to, now, &mut self.paths);
            }
        }
    }

    /// Returns a working path of a pair that is not marked broken.
    fn path_beside(&mut self, pair: Pair, address: u8) -> Option<u8> {
        let mut usable: Vec<(BitRate, u8)> = Vec::new();
        for other in (0..self.paths.addresses()).filter(|&other| other != address) {
            let Some(links) = self.paths.of(pair, other).map(<[_]>::to_vec) else { continue };
            let capacity = links.iter().map(|&link| self.paths.capacity(link)).min();
            let capacity = capacity.filter(|_| !self.paths.is_broken(pair, other));
            usable.extend(capacity.map(|capacity| (capacity, other)));
        }
        let largest = usable.iter().map(|&(capacity, _)| capacity).max()?;
        let best: Vec<u8> =
            usable.into_iter().filter(|&(capacity, _)| capacity == largest).map(|(_, other)| other).collect();
        let turn = usize::from(pair.source.0) + usize::from(pair.destination.0);
        Some(best[turn % best.len()])
    }

    /// Returns the time of the next poll, or `None` if never.
    pub fn next_poll(&self) -> Option<Timestamp> {
        self.next_poll
    }

    /// Handles a poll: all traffic.
    pub fn on_poll(&mut self, flows: &[PairRate], now: Timestamp) {
        self.counters.polls += 1;
        self.adopt(flows, now);
        self.next_poll = self.decider.poll_interval().map(|interval| now + interval);
        let mut decided = std::mem::take(&mut self.decided);
        self.decider.on_poll(flows, now, &self.pins, &mut self.paths, &mut decided);
        self.carry_out(decided);
    }

    /// Ends actions whose deadline has passed.
    pub fn advance(&mut self, now: Timestamp) {
        let is_late = |pending: &Pending| pending.action.deadline <= now;
        let late: Vec<Pending> = self.pending.values().filter(|pending| is_late(pending)).copied().collect();
        for pending in late {
            self.pending.remove(&pending.action.pair);
            self.time_out(pending, now);
        }
        // These were never reported as started or refused.
        let unreported: Vec<Pending> =
            self.requested.values().filter(|requested| is_late(requested)).copied().collect();
        for unreported in unreported {
            self.requested.remove(&unreported.action.id);
            self.time_out(unreported, now);
        }
    }

    fn time_out(&mut self, pending: Pending, now: Timestamp) {
        let Pending { action, from, .. } = pending;
        self.counters.timed_out += 1;
        *self.ineffective.entry(action.pair.source).or_default() += 1;
        self.decider.on_placed(action.pair, from, now, &mut self.paths);
        self.commands.push_back(PairCommand::Abandon { action, from });
        self.finish(FinishedAction { action, outcome: Outcome::TimedOut });
    }

    fn carry_out(&mut self, mut decided: Vec<Decision>) {
        for mut decision in decided.drain(..) {
            let &Decision { pair, from, to, time, .. } = &decision;
            if decision.verdict == Verdict::Reroute {
                if self.reroute(pair, from, to, time) {
                    self.count_move(&decision);
                } else {
                    self.decider.on_refused(pair, from, time, &mut self.paths);
                    decision.verdict = Verdict::Withheld;
                }
            }
            self.counters.decisions[decision.verdict as usize] += 1;
            push_bounded(&mut self.decisions, decision, self.options.history);
        }
        self.decided = decided;
    }

    fn count_move(&mut self, decision: &Decision) {
        *self.moves.entry(decision.pair).or_default() += 1;
        if let Some(number) = decision.flow_moves.checked_sub(1) {
            self.counters.flow_moves[number.min(MAX_MOVES - 1) as usize] += 1;
        }
    }

    /// Reroutes a pair, unless the controller is frozen, in a dry run or at its limit. Returns whether it did.
    fn reroute(&mut self, pair: Pair, from: u8, to: u8, now: Timestamp) -> bool {
        if self.is_frozen || self.options.dry_run {
            self.counters.withheld += 1;
            return false;
        }
        self.issue(pair, from, to, Reason::Decided, now)
    }

    fn issue(&mut self, pair: Pair, from: u8, to: u8, reason: Reason, now: Timestamp) -> bool {
        let limit = self.options.pending;
        let is_full = self.pending.len() + self.requested.len() >= limit && !self.pending.contains_key(&pair);
        // The last two conditions hold if the driver takes no commands or reports no results.
        if is_full || self.requested.len() >= limit || self.commands.len() >= limit.saturating_mul(2) {
            self.counters.throttled += 1;
            return false;
        }
        self.actions += 1;
        let id = ActionId(self.actions);
        let action =
            Action { id, pair, address: to, issued: now, deadline: now + self.options.arrival_timeout };
        self.requested.insert(id, Pending { action, from, reason });
        self.held.insert(pair);
        self.commands.push_back(PairCommand::Reroute(action));
        true
    }

    fn finish(&mut self, action: FinishedAction) {
        push_bounded(&mut self.finished, action, self.options.pending);
    }
}

/// Appends an item; drops the oldest one if there are `limit`.
fn push_bounded<T>(all: &mut VecDeque<T>, newest: T, limit: usize) {
    if all.len() >= limit.max(1) {
        all.pop_front();
    }
    all.push_back(newest);
}

#[cfg(test)]
mod tests;
