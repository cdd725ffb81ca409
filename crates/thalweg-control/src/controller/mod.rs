//! The loop: what collectors tell, what is decided of it, what is done, and what came of that.
//!
//! **Time** is an argument: packet time or the wall clock, as long as it is always the same. The emulator runs this very
//! controller in virtual time.
//!
//! **Fails safe.** Routes are in the switches and in the hosts; a controller that is gone, or frozen, leaves them as they
//! are. An action whose effect is not seen by its deadline has failed, and the pair is taken to be where it was. One whose
//! packets set out and do not arrive is taken back, and that way is barred until there are other routes: whatever the topology
//! says, it does not lead there.
//!
//! **A controller that begins** where another has ended takes pairs to be where they are seen: it moves nobody back, and
//! its actuator goes on holding pairs where they are found.
//!
//! **It has no effects.** What is to be done to hosts and switches comes out as [`PairCommand`]s, in order. Whoever carries
//! them out reports of each [reroute](PairCommand::Reroute) whether it was [started](Controller::started) or
//! [refused](Controller::refused). One of which neither is reported by its deadline has expired.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::decide::{Congestion, Decider, Decision, Observed, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::Paths;

/// What a controller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerOptions {
    /// After this an action whose effect was not seen has failed. Default 50 ms.
    pub patience: Nanos,
    /// Says what it would do, and does not do it.
    pub dry_run: bool,
    /// Decisions that are kept to be looked at, the latest. Default 1,000.
    pub kept: usize,
    /// Actions that may wait for their effect at the same time; more are refused, and counted. As many that have ended, or
    /// could not be begun, are kept for whoever takes them. Default 4,096.
    pub pending: usize,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        ControllerOptions { patience: Nanos::from_millis(50), dry_run: false, kept: 1_000, pending: 4_096 }
    }
}

/// A source is called unresponsive after so many actions in a row without effect: one flow that just ends makes none.
pub const UNRESPONSIVE: u32 = 3;

/// What a controller has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Notices of congestion.
    pub congestions: u64,
    /// Rounds in which all traffic was looked at.
    pub polls: u64,
    /// Pairs that were looked at, by [`Verdict`].
    pub decisions: [u64; 4],
    /// Of those that were to go, those that did not, since the controller is frozen or only to say so.
    pub withheld: u64,
    /// Too many others waited for their effect.
    pub crowded: u64,
    /// The actuator could not start them.
    pub refused: u64,
    /// Actions begun.
    pub begun: u64,
    /// Actions whose effect was seen.
    pub confirmed: u64,
    /// Actions whose effect was not seen in time: the host took no notice, or sends no more.
    pub expired: u64,
    /// Actions that another one of the same pair overtook.
    pub superseded: u64,
    /// Actions that were taken back, since packets set out by the new way and did not arrive.
    pub astray: u64,
}

/// An action and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The action.
    pub action: Action,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A collector saw a packet with the new address, so long after it was decided.
    Confirmed(Nanos),
    /// Nobody did by the deadline.
    Expired,
    /// The same pair was sent elsewhere before.
    Superseded,
}

/// What is to be done to a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairCommand {
    /// Reroute it. Whether that was started is to be reported.
    Reroute(Action),
    /// Keep it at this address, at which it was found: another controller may have sent it there.
    Hold {
        /// Which pair.
        pair: Pair,
        /// Where it was found.
        address: u8,
        /// When.
        time: Timestamp,
    },
    /// Leave it where it was: an action had no effect in time.
    Abandon {
        /// The action.
        action: Action,
        /// Where the pair was before.
        from: u8,
    },
}

/// Why a pair is rerouted, and so what follows if that starts or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The decider wants it, and is told if it is refused.
    Decided,
    /// Somebody pinned it.
    Pinned,
    /// Its packets went astray, and the decider is told when it is on its way back.
    Astray,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    action: Action,
    /// Where the pair was before.
    from: u8,
    reason: Reason,
}

/// An action whose effect was seen: packets have set out by the new way. Whether they arrive is to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The action.
    pub action: Action,
    /// Where the pair was before.
    pub from: u8,
    /// By this time they should have arrived.
    pub due: Timestamp,
}

/// The loop at work.
pub struct Controller {
    options: ControllerOptions,
    paths: Paths,
    decider: Box<dyn Decider>,
    pins: Pins,
    is_frozen: bool,
    commands: VecDeque<PairCommand>,
    /// Actions of which it is not known whether they were started.
    requested: BTreeMap<ActionId, Pending>,
    /// Actions that were started.
    pending: BTreeMap<Pair, Pending>,
    /// Pairs that were rerouted or told to be held; once is enough.
    held: BTreeSet<Pair>,
    /// Actions in a row that had no effect, by the source that was to take notice.
    without_effect: BTreeMap<EndpointId, u32>,
    arrivals: VecDeque<Arrival>,
    next_poll: Option<Timestamp>,
    actions: u64,
    decisions: VecDeque<Decision>,
    ended: VecDeque<Ended>,
    begun: VecDeque<Action>,
    failures: VecDeque<(Action, String)>,
    counters: ControllerCounters,
    /// Kept from call to call.
    decided: Vec<Decision>,
}

impl Controller {
    /// Steers the pairs of a network; polls, if the decider does, begin at `now`.
    pub fn new(
        options: ControllerOptions,
        paths: Paths,
        decider: Box<dyn Decider>,
        now: Timestamp,
    ) -> Controller {
        let next_poll = decider.polls().map(|interval| now + interval);
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
            without_effect: BTreeMap::new(),
            arrivals: VecDeque::new(),
            next_poll,
            actions: 0,
            decisions: VecDeque::new(),
            ended: VecDeque::new(),
            begun: VecDeque::new(),
            failures: VecDeque::new(),
            counters: ControllerCounters::default(),
            decided: Vec::new(),
        }
    }

    /// The paths that it knows.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The network is another from now on.
    pub fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
        self.arrivals.clear();
        self.decider.rerouted();
    }

    /// What is to be done next.
    pub fn next_command(&mut self) -> Option<PairCommand> {
        self.commands.pop_front()
    }

    /// What it has done so far.
    pub fn counters(&self) -> ControllerCounters {
        self.counters
    }

    /// The latest decisions, the oldest first; those to stay among them.
    pub fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> + ExactSizeIterator + '_ {
        self.decisions.iter()
    }

    /// Actions that have ended since this was last asked: the latest, [so many](ControllerOptions::pending) at most.
    pub fn take_ended(&mut self) -> VecDeque<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Actions that were started since this was last asked: the latest, [so many](ControllerOptions::pending) at most.
    pub fn take_begun(&mut self) -> VecDeque<Action> {
        std::mem::take(&mut self.begun)
    }

    /// Actions that could not be begun since this was last asked: the latest, [so many](ControllerOptions::pending) at
    /// most.
    pub fn take_failures(&mut self) -> VecDeque<(Action, String)> {
        std::mem::take(&mut self.failures)
    }

    /// Sources of which none of the last [`UNRESPONSIVE`] actions or more had an effect, and of how many in a row. They take
    /// no notice of what they are told, or send no more.
    pub fn unresponsive(&self) -> impl Iterator<Item = (EndpointId, u32)> + '_ {
        let counts = self.without_effect.iter().map(|(&source, &count)| (source, count));
        counts.filter(|&(_, count)| count >= UNRESPONSIVE)
    }

    /// Whether it only watches.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Decides and says so, and does nothing, until this is taken back.
    pub fn freeze(&mut self, is_frozen: bool) {
        self.is_frozen = is_frozen;
    }

    /// Pairs that have been pinned, and to which address.
    pub fn pins(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.pins.iter().map(|(&pair, &address)| (pair, address))
    }

    /// Sends a pair to this address, and leaves it there. A pin is carried out even by a controller that is frozen.
    pub fn pin(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.pins.insert(pair, address);
        self.decider.placed(pair, address, now, &mut self.paths);
        self.begin(pair, address, address, Reason::Pinned, now);
    }

    /// Lets a pair go again.
    pub fn unpin(&mut self, pair: Pair) {
        self.pins.remove(&pair);
    }

    /// A collector tells of congestion.
    pub fn congested(&mut self, congestion: &Congestion) {
        self.counters.congestions += 1;
        self.find(&congestion.flows, congestion.time);
        let mut decided = std::mem::take(&mut self.decided);
        self.decider.congested(congestion, &self.pins, &mut self.paths, &mut decided);
        self.carry_out(decided);
    }

    /// An action was started: its pair has been told. Gives the action, unless it has expired meanwhile.
    pub fn started(&mut self, id: ActionId, now: Timestamp) -> Option<Action> {
        let started = self.requested.remove(&id)?;
        self.counters.begun += 1;
        keep(&mut self.begun, started.action, self.options.pending);
        let pair = started.action.pair;
        if let Some(before) = self.pending.insert(pair, started) {
            self.counters.superseded += 1;
            self.end(Ended { action: before.action, outcome: Outcome::Superseded });
        }
        if started.reason == Reason::Astray {
            // Nothing may come by either way for a while, as from a sender that waits for what got lost: even if the way
            // back is not seen in time, the pair is not to be where it was sent.
            self.decider.placed(pair, started.action.address, now, &mut self.paths);
        }
        Some(started.action)
    }

    /// An action could not be started: nothing has changed.
    pub fn refused(&mut self, id: ActionId, error: String) {
        let Some(Pending { action, from, reason }) = self.requested.remove(&id) else { return };
        self.counters.refused += 1;
        keep(&mut self.failures, (action, error), self.options.pending);
        if reason == Reason::Decided {
            self.decider.placed(action.pair, from, action.issued, &mut self.paths);
        }
    }

    /// A collector has seen packets of a pair with an address that they did not have before.
    pub fn seen(&mut self, pair: Pair, address: u8, at: Timestamp) {
        let is_it =
            |requested: &&Pending| (requested.action.pair, requested.action.address) == (pair, address);
        if let Some(id) = self.requested.values().find(is_it).map(|requested| requested.action.id) {
            // It shows before it is said.
            self.started(id, at);
        }
        if self.pending.get(&pair).is_some_and(|pending| pending.action.address == address) {
            let Pending { action, from, .. } = self.pending.remove(&pair).expect("it was there");
            self.counters.confirmed += 1;
            self.without_effect.remove(&pair.source);
            let arrival = Arrival { action, from, due: at + self.options.patience };
            keep(&mut self.arrivals, arrival, self.options.pending);
            let outcome = Outcome::Confirmed(at.since(action.issued));
            self.end(Ended { action, outcome });
        }
    }

    /// Actions of which it is time to look whether packets arrive: whoever can see the switches of their destinations does
    /// so, and says [`went_astray`](Self::went_astray) of those that do not, and [`left_open`](Self::left_open) of those of which
    /// it cannot tell. Each is given once, and none whose pair has been sent elsewhere since.
    pub fn take_arrivals(&mut self, now: Timestamp) -> Vec<Arrival> {
        let due = self.arrivals.iter().take_while(|arrival| arrival.due <= now).count();
        let due = self.arrivals.drain(..due);
        due.filter(|arrival| !self.pending.contains_key(&arrival.action.pair)).collect()
    }

    /// Too few packets have set out by the way that an action sent them to say whether they arrive: it is given once more
    /// when patience is over.
    pub fn left_open(&mut self, arrival: Arrival, now: Timestamp) {
        let again = Arrival { due: now + self.options.patience, ..arrival };
        keep(&mut self.arrivals, again, self.options.pending);
    }

    /// Packets have set out by the way that an action sent them, and do not arrive: the way is barred to the pair, which
    /// goes back to where it was, unless that is barred, too, or the controller is frozen.
    pub fn went_astray(&mut self, arrival: &Arrival, now: Timestamp) {
        let &Arrival { action: Action { pair, address, .. }, from, .. } = arrival;
        self.counters.astray += 1;
        self.paths.bar(pair, address);
        if self.paths.is_barred(pair, from) {
            return;
        }
        if self.is_frozen {
            self.counters.withheld += 1;
            return;
        }
        self.begin(pair, from, from, Reason::Astray, now);
    }

    /// Traffic that others have steered: pairs that are found at other addresses than the base address are held there.
    pub fn find(&mut self, flows: &[Observed], now: Timestamp) {
        for &Observed { pair, address, .. } in flows {
            if address != 0 && !self.pending.contains_key(&pair) && self.held.insert(pair) {
                self.commands.push_back(PairCommand::Hold { pair, address, time: now });
            }
        }
    }

    /// When it wants to see all traffic; `None` for never.
    pub fn next_poll(&self) -> Option<Timestamp> {
        self.next_poll
    }

    /// All traffic there is.
    pub fn polled(&mut self, flows: &[Observed], now: Timestamp) {
        self.counters.polls += 1;
        self.find(flows, now);
        self.next_poll = self.decider.polls().map(|interval| now + interval);
        let mut decided = std::mem::take(&mut self.decided);
        self.decider.polled(flows, now, &self.pins, &mut self.paths, &mut decided);
        self.carry_out(decided);
    }

    /// Lets time pass: actions whose deadline is over have failed.
    pub fn advance(&mut self, now: Timestamp) {
        let late = |pending: &Pending| pending.action.deadline <= now;
        let expired: Vec<Pending> = self.pending.values().filter(|pending| late(pending)).copied().collect();
        for expired in expired {
            self.pending.remove(&expired.action.pair);
            self.expire(expired, now);
        }
        // Nobody said what became of these.
        let forgotten: Vec<Pending> =
            self.requested.values().filter(|requested| late(requested)).copied().collect();
        for forgotten in forgotten {
            self.requested.remove(&forgotten.action.id);
            self.expire(forgotten, now);
        }
    }

    fn expire(&mut self, expired: Pending, now: Timestamp) {
        let Pending { action, from, .. } = expired;
        self.counters.expired += 1;
        *self.without_effect.entry(action.pair.source).or_default() += 1;
        self.decider.placed(action.pair, from, now, &mut self.paths);
        self.commands.push_back(PairCommand::Abandon { action, from });
        self.end(Ended { action, outcome: Outcome::Expired });
    }

    fn carry_out(&mut self, mut decided: Vec<Decision>) {
        for decision in decided.drain(..) {
            self.counters.decisions[decision.verdict as usize] += 1;
            let &Decision { pair, from, to, time, .. } = &decision;
            if decision.verdict == Verdict::Goes && !self.go(pair, from, to, time) {
                self.decider.placed(pair, from, time, &mut self.paths);
            }
            keep(&mut self.decisions, decision, self.options.kept);
        }
        self.decided = decided;
    }

    /// Sends a pair elsewhere, unless something is against it.
    fn go(&mut self, pair: Pair, from: u8, to: u8, now: Timestamp) -> bool {
        if self.is_frozen || self.options.dry_run {
            self.counters.withheld += 1;
            return false;
        }
        self.begin(pair, from, to, Reason::Decided, now)
    }

    fn begin(&mut self, pair: Pair, from: u8, to: u8, reason: Reason, now: Timestamp) -> bool {
        let most = self.options.pending;
        let is_full = self.pending.len() + self.requested.len() >= most && !self.pending.contains_key(&pair);
        // The last two: nobody takes commands, or says what becomes of them.
        if is_full || self.requested.len() >= most || self.commands.len() >= most.saturating_mul(2) {
            self.counters.crowded += 1;
            return false;
        }
        self.actions += 1;
        let id = ActionId(self.actions);
        let action = Action { id, pair, address: to, issued: now, deadline: now + self.options.patience };
        self.requested.insert(id, Pending { action, from, reason });
        self.held.insert(pair);
        self.commands.push_back(PairCommand::Reroute(action));
        true
    }

    fn end(&mut self, ended: Ended) {
        keep(&mut self.ended, ended, self.options.pending);
    }
}

/// Adds what is newest; what is oldest makes room.
fn keep<T>(all: &mut VecDeque<T>, newest: T, most: usize) {
    if all.len() >= most.max(1) {
        all.pop_front();
    }
    all.push_back(newest);
}

#[cfg(test)]
mod tests;
