//! The entries of all redirected flows: what the switch has, as far as known, and what is to be sent.
//!
//! Values only: the caller sends and reads. **Bounded** by the redirections of the caller, and by the entries that the switch
//! reports with Thalweg's cookies.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_control::isolate::message::FlowCounters;
use thalweg_control::isolate::{Input, Reason, RedirectionId};
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Body, FlowRemoved, FlowRemovedReason, PortNumber};
use thalweg_wire::{Bytes, FlowKey};

use super::rule::{self, COOKIES, RulePlan};
use crate::openflow::Failure;

/// All entries.
#[derive(Debug)]
pub(super) struct Rules {
    plan: RulePlan,
    rules: BTreeMap<FlowKey, Rule>,
    outbox: Vec<Change>,
    /// Deletes entries that no flow needs and that are in nobody's way.
    strays: Vec<Body>,
    answers: Vec<Input>,
    last_number: u32,
    counters: RuleCounters,
    /// What was repaired since it was last taken.
    repaired: BTreeMap<&'static str, u64>,
}

/// Counters of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleCounters {
    /// Entries added or deleted.
    pub(super) done: u64,
    /// Entries that were not added or deleted.
    pub(super) failed: u64,
    /// Entries that others had deleted, changed or added.
    pub(super) repairs: u64,
    /// Packets of released flows between the last reading and the release.
    pub(super) late_packets: u64,
    /// Packets of flows that have been released.
    packets: u64,
}

#[derive(Debug)]
struct Rule {
    state: State,
    /// Its redirection.
    owner: Option<RedirectionId>,
    /// Whether the owner knows that the flow is redirected.
    is_in_force: bool,
    /// The number of a change that waits or is in flight.
    change: Option<u32>,
    /// The cookie of the entry.
    cookie: u64,
    /// Whether a reading has found the entry.
    is_seen: bool,
    /// Counters of its earlier entries.
    before: FlowCounters,
    /// Counters of its present entry.
    present: FlowCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is to be added.
    Adding,
    /// The switch has it.
    Installed,
    /// The switch has one of an earlier run; whether its contents are right.
    Found { is_same: bool },
    /// It is to be deleted.
    Deleting,
}

/// A change that was sent or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: FlowKey,
    number: u32,
    is_addition: bool,
    /// Whether it needs a batch of its own, because another change of its batch was refused.
    pub(super) is_alone: bool,
}

impl Rule {
    fn new(state: State, owner: Option<RedirectionId>) -> Rule {
        Rule {
            state,
            owner,
            is_in_force: false,
            change: None,
            cookie: 0,
            is_seen: false,
            before: FlowCounters::default(),
            present: FlowCounters::default(),
        }
    }

    fn total(&self) -> FlowCounters {
        let (before, present) = (self.before, self.present);
        FlowCounters {
            packets: before.packets.saturating_add(present.packets),
            bytes: Bytes(before.bytes.0.saturating_add(present.bytes.0)),
            first: None,
        }
    }

    /// Takes counters of the present entry. Counters that went back are those of an entry that someone else has reset.
    fn count(&mut self, packets: u64, bytes: u64) {
        if packets < self.present.packets {
            self.before = self.total();
        }
        self.present = FlowCounters { packets, bytes: Bytes(bytes), first: None };
    }
}

impl Rules {
    pub(super) fn new(plan: RulePlan) -> Rules {
        Rules {
            plan,
            rules: BTreeMap::new(),
            outbox: Vec::new(),
            strays: Vec::new(),
            answers: Vec::new(),
            last_number: 0,
            counters: RuleCounters::default(),
            repaired: BTreeMap::new(),
        }
    }

    pub(super) fn counters(&self) -> RuleCounters {
        self.counters
    }

    /// Returns the packets of all flows since the start.
    pub(super) fn packets(&self) -> u64 {
        self.rules.values().map(|rule| rule.total().packets).sum::<u64>() + self.counters.packets
    }

    /// Returns the counters of all redirected flows.
    pub(super) fn flows(&self) -> Vec<(FlowKey, FlowCounters)> {
        let owned = self.rules.iter().filter(|(_, rule)| rule.owner.is_some());
        owned.map(|(key, rule)| (*key, rule.total())).collect()
    }

    /// Returns the answers since the last call. Deletes entries of an earlier run that no redirection has claimed since then.
    pub(super) fn take_answers(&mut self) -> Vec<Input> {
        let is_unclaimed = |rule: &Rule| matches!(rule.state, State::Found { .. });
        let is_new = |key: &FlowKey| {
            self.answers.iter().any(|answer| matches!(answer, Input::Began { key: new, .. } if new == key))
        };
        let unclaimed = self.rules.iter().filter(|(key, rule)| is_unclaimed(rule) && !is_new(key));
        for key in unclaimed.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.delete(key);
        }
        std::mem::take(&mut self.answers)
    }

    /// Describes what was repaired since the last call.
    pub(super) fn take_repaired(&mut self) -> Vec<String> {
        let repaired = std::mem::take(&mut self.repaired);
        repaired.into_iter().map(|(what, count)| format!("rules {what}: {count}")).collect()
    }

    /// Redirects a flow. Returns the answer if it is known already.
    pub(super) fn redirect(&mut self, id: RedirectionId, key: FlowKey) -> Option<Input> {
        let rule = self.rules.entry(key).or_insert_with(|| Rule::new(State::Adding, None));
        rule.owner = Some(id);
        match rule.state {
            State::Installed | State::Found { is_same: true } => {
                (rule.state, rule.is_in_force) = (State::Installed, true);
                Some(Input::Redirected(id))
            }
            State::Adding if rule.change.is_some() => None,
            State::Adding | State::Found { .. } | State::Deleting => {
                if rule.state == State::Deleting {
                    // Its packets were those of an earlier redirection.
                    self.counters.packets += rule.total().packets;
                    (rule.before, rule.present) = (FlowCounters::default(), FlowCounters::default());
                }
                rule.is_in_force = false;
                self.add(key);
                None
            }
        }
    }

    /// Adds the entry of a redirected flow again if the switch does not have it.
    pub(super) fn refresh(&mut self, id: RedirectionId, key: FlowKey) {
        let rule = self.rules.entry(key).or_insert_with(|| Rule::new(State::Deleting, None));
        (rule.owner, rule.is_in_force) = (Some(id), true);
        if rule.state == State::Deleting {
            self.add(key);
        }
    }

    /// Releases a flow, if the number of its packets is still this one. Returns the answer if it is known already.
    pub(super) fn release(
        &mut self,
        id: RedirectionId,
        key: FlowKey,
        if_packets: Option<u64>,
    ) -> Option<Input> {
        let Some(rule) = self.rules.get_mut(&key) else { return Some(Input::Released(id)) };
        if if_packets.is_some_and(|packets| packets != rule.total().packets) {
            return Some(Input::StillSending(id));
        }
        rule.owner = Some(id);
        self.delete(key);
        None
    }

    /// Remembers that an entry is to be deleted when the switch can be reached again.
    pub(super) fn release_later(&mut self, key: &FlowKey) {
        if let Some(rule) = self.rules.get_mut(key) {
            (rule.state, rule.owner, rule.change) = (State::Deleting, None, None);
        }
    }

    fn add(&mut self, key: FlowKey) {
        let number = self.next_number();
        let Some(rule) = self.rules.get_mut(&key) else { return };
        rule.before = rule.total();
        rule.present = FlowCounters::default();
        (rule.state, rule.change, rule.cookie) = (State::Adding, Some(number), rule::cookie(number));
        rule.is_seen = false;
        self.outbox.push(Change { key, number, is_addition: true, is_alone: false });
    }

    fn delete(&mut self, key: FlowKey) {
        let number = self.next_number();
        let Some(rule) = self.rules.get_mut(&key) else { return };
        (rule.state, rule.change) = (State::Deleting, Some(number));
        self.outbox.push(Change { key, number, is_addition: false, is_alone: false });
    }

    fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    /// Returns the changes to send now, without those that a later change replaces.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = std::mem::take(&mut self.outbox);
        changes.retain(|change| self.is_pending(change));
        changes
    }

    /// Returns messages that delete entries of no flow.
    pub(super) fn take_strays(&mut self) -> Vec<Body> {
        std::mem::take(&mut self.strays)
    }

    /// Returns the message of a change; `port` is the output port.
    pub(super) fn message(&self, change: &Change, port: PortNumber) -> Option<Body> {
        let matching = rule::matching(&change.key)?;
        Some(match change.is_addition {
            true => self.plan.add(matching, change.number, port),
            false => rule::delete(self.plan.table, self.plan.priority, matching),
        })
    }

    fn is_pending(&self, change: &Change) -> bool {
        self.rules.get(&change.key).is_some_and(|rule| rule.change == Some(change.number))
    }

    /// A batch was carried out.
    pub(super) fn done(&mut self, changes: &[Change]) {
        for change in changes.iter().filter(|change| self.is_pending(change)).copied().collect::<Vec<_>>() {
            self.counters.done += 1;
            let rule = self.rules.get_mut(&change.key).expect("a pending change has a rule");
            rule.change = None;
            let owner = rule.owner;
            match change.is_addition {
                true => {
                    rule.state = State::Installed;
                    let is_new = !std::mem::replace(&mut rule.is_in_force, true);
                    self.answers.extend(owner.filter(|_| is_new).map(Input::Redirected));
                }
                false => {
                    self.forget(&change.key);
                    self.answers.extend(owner.map(Input::Released));
                }
            }
        }
    }

    /// A batch failed. Of several changes, only the refused one has certainly not been carried out; the others are sent again,
    /// each on its own.
    pub(super) fn failed(&mut self, changes: &[Change], failure: &Failure) {
        let pending: Vec<Change> = changes.iter().filter(|change| self.is_pending(change)).copied().collect();
        for change in pending {
            let is_refused = match failure {
                Failure::Refused { position, .. } => changes.get(*position as usize) == Some(&change),
                _ => false,
            };
            match failure {
                Failure::Refused { error, .. } if is_refused || changes.len() == 1 => {
                    self.refused(&change, &format!("the switch refused the rule: {error}"));
                }
                Failure::Refused { .. } => {
                    let number = self.next_number();
                    let rule = self.rules.get_mut(&change.key).expect("a pending change has a rule");
                    rule.change = Some(number);
                    if change.is_addition {
                        rule.cookie = rule::cookie(number);
                    }
                    self.outbox.push(Change { number, is_alone: true, ..change });
                }
                failure => self.not_done(&change, &format!("the rule is not confirmed: {failure}"), true),
            }
        }
    }

    fn refused(&mut self, change: &Change, error: &str) {
        self.counters.failed += 1;
        let rule = self.rules.get_mut(&change.key).expect("a pending change has a rule");
        let (owner, is_in_force) = (rule.owner, rule.is_in_force);
        rule.change = None;
        let answer = |id| match (change.is_addition, is_in_force) {
            (true, true) => Input::Lost(id, error.to_owned()),
            (true, false) => Input::Failed(id, error.to_owned()),
            (false, _) => Input::ReleaseFailed(id, error.to_owned()),
        };
        self.answers.extend(owner.map(answer));
        if change.is_addition {
            self.forget(&change.key);
        }
    }

    /// A change was not carried out, or nobody knows. The next reading of the table says which entries are there.
    pub(super) fn not_done(&mut self, change: &Change, error: &str, is_sent: bool) {
        if !self.is_pending(change) {
            return;
        }
        self.counters.failed += 1;
        let rule = self.rules.get_mut(&change.key).expect("a pending change has a rule");
        rule.change = None;
        let owner = rule.owner;
        match (change.is_addition, rule.is_in_force) {
            (true, true) => rule.state = State::Installed,
            (true, false) => {
                (rule.state, rule.owner) = (State::Deleting, None);
                if !is_sent {
                    self.forget(&change.key);
                }
                self.answers.extend(owner.map(|id| Input::Failed(id, error.to_owned())));
            }
            (false, _) => self.answers.extend(owner.map(|id| Input::ReleaseFailed(id, error.to_owned()))),
        }
    }

    /// The connection has ended: nothing in flight will be answered.
    pub(super) fn disconnected(&mut self) {
        let pending = self.rules.iter().filter_map(|(&key, rule)| {
            let is_addition = rule.state == State::Adding;
            Some(Change { key, number: rule.change?, is_addition, is_alone: false })
        });
        for change in pending.collect::<Vec<_>>() {
            self.not_done(&change, "the rule is not confirmed: the connection ended", true);
        }
    }

    /// Another controller is responsible for all entries now.
    pub(super) fn abandon(&mut self, error: &str) {
        for rule in std::mem::take(&mut self.rules).into_values() {
            self.counters.packets += rule.total().packets;
            let answer = |id| match rule.is_in_force {
                true => Input::Lost(id, error.to_owned()),
                false => Input::Failed(id, error.to_owned()),
            };
            self.answers.extend(rule.owner.map(answer));
        }
        self.outbox.clear();
        self.strays.clear();
    }

    fn forget(&mut self, key: &FlowKey) {
        if let Some(rule) = self.rules.remove(key) {
            self.counters.packets += rule.total().packets;
        }
    }

    /// Takes the entries with Thalweg's cookies that the switch has, and repairs the differences. Those of `touched` changed while
    /// they were read. If `adopts`, entries of an earlier run are offered for adoption; otherwise others have added them.
    pub(super) fn read(
        &mut self,
        flows: &[FlowStats],
        touched: &BTreeSet<FlowKey>,
        port: PortNumber,
        adopts: bool,
    ) {
        let mut found = BTreeSet::new();
        for flow in flows {
            match rule::key_of(&flow.matching).filter(|_| self.plan.replaces(flow)) {
                Some(key) => {
                    found.insert(key);
                    if !touched.contains(&key) {
                        self.found(key, flow, port, adopts);
                    }
                }
                None => {
                    self.strays.push(rule::delete(flow.table_id, flow.priority, flow.matching.clone()));
                    self.repair("unknown, deleted", !adopts);
                }
            }
        }
        let is_missing = |(key, rule): &(&FlowKey, &Rule)| {
            !found.contains(key) && !touched.contains(key) && rule.change.is_none()
        };
        for key in self.rules.iter().filter(is_missing).map(|(key, _)| *key).collect::<Vec<_>>() {
            match self.rules[&key].state {
                State::Installed => {
                    self.add(key);
                    self.repair("missing, added again", true);
                }
                _ => self.forget(&key),
            }
        }
    }

    /// The switch has this entry.
    fn found(&mut self, key: FlowKey, flow: &FlowStats, port: PortNumber, adopts: bool) {
        let is_same = self.plan.is_same_as(flow, port);
        match self.rules.get_mut(&key) {
            None => {
                let state = State::Found { is_same };
                let mut rule = Rule { cookie: flow.cookie, ..Rule::new(state, None) };
                rule.count(flow.packet_count, flow.byte_count);
                self.rules.insert(key, rule);
                // Numbers of this run differ from those of the earlier one.
                self.last_number = self.last_number.max(flow.cookie as u32);
                match adopts {
                    true => self.answers.push(Input::Began { key, reason: Reason::Adopted }),
                    false => {
                        self.delete(key);
                        self.repair("unknown, deleted", true);
                    }
                }
            }
            Some(rule) if rule.change.is_some() => {}
            Some(rule) => match rule.state {
                State::Installed if is_same && rule.cookie == flow.cookie => {
                    rule.is_seen = true;
                    rule.count(flow.packet_count, flow.byte_count);
                }
                State::Installed => {
                    self.add(key);
                    self.repair("changed by others, written again", true);
                }
                State::Deleting => self.delete(key),
                State::Adding | State::Found { .. } => {}
            },
        }
    }

    /// The switch has removed an entry: the idle timeout of a silent flow has passed, or someone has deleted it. An entry is added
    /// again at once only if a reading has found it. Otherwise the next reading finds it missing, so that somebody who deletes
    /// each entry at once does not cause one change after the other.
    pub(super) fn removed(&mut self, flow: &FlowRemoved) {
        if flow.cookie & COOKIES.mask != COOKIES.cookie {
            return;
        }
        let Some(key) = rule::key_of(&flow.matching) else { return };
        let Some(rule) = self.rules.get_mut(&key).filter(|rule| rule.cookie == flow.cookie) else { return };
        let late = flow.packet_count.saturating_sub(rule.present.packets);
        rule.count(flow.packet_count, flow.byte_count);
        match rule.state {
            State::Deleting => self.counters.late_packets += late,
            State::Installed if rule.change.is_none() && rule.is_seen => {
                self.add(key);
                self.repair("missing, added again", flow.reason != FlowRemovedReason::IDLE_TIMEOUT);
            }
            State::Found { .. } => self.forget(&key),
            State::Adding | State::Installed => {}
        }
    }

    fn repair(&mut self, what: &'static str, is_by_others: bool) {
        if is_by_others {
            self.counters.repairs += 1;
            *self.repaired.entry(what).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests;
