use std::collections::VecDeque;

use proptest::prelude::*;
use thalweg_wire::openflow::{ErrorMessage, ErrorType, FlowMod, FlowModCommand, TableId, Xid};

use super::super::rule::Forward;
use super::*;

const PORT: PortNumber = PortNumber(2);

fn plan() -> RulePlan {
    let (table, forward) = (TableId(0), Forward::Normal);
    RulePlan { table, priority: 24_576, idle_timeout: 10, dscp: Some(1), queue: None, forward }
}

fn key(number: u16) -> FlowKey {
    FlowKey::v4(1, 2, number, 443, thalweg_wire::Protocol::TCP)
}

/// A switch and its connection: changes arrive in order, are refused or get lost.
#[derive(Default)]
struct Switch {
    entries: BTreeMap<FlowKey, FlowStats>,
    flight: VecDeque<Vec<Change>>,
    /// By flow, the command that has no answer yet: whether it is a redirection.
    commanded: BTreeMap<FlowKey, bool>,
    /// The flows that are redirected, as far as the caller knows.
    redirected: BTreeSet<FlowKey>,
    /// By flow, the number of its last redirection.
    current: BTreeMap<FlowKey, u64>,
    last_id: u64,
}

impl Switch {
    fn carry_out(&mut self, rules: &Rules, change: &Change) {
        let Some(Body::FlowMod(flow)) = rules.message(change, PORT) else { panic!("a flow-mod") };
        match flow.command {
            FlowModCommand::ADD => drop(self.entries.insert(change.key, stats(flow))),
            _ => drop(self.entries.remove(&change.key)),
        }
    }

    fn execute(&mut self, rules: &mut Rules, key: FlowKey, is_redirection: bool) {
        if self.commanded.contains_key(&key) || self.redirected.contains(&key) == is_redirection {
            return;
        }
        if is_redirection {
            self.last_id += 1;
            self.current.insert(key, self.last_id);
        }
        let id = RedirectionId(self.current[&key]);
        self.commanded.insert(key, is_redirection);
        let answer = match is_redirection {
            true => rules.redirect(id, key),
            false => rules.release(id, key, None),
        };
        answer.into_iter().for_each(|answer| self.answered(key, &answer));
    }

    fn answered(&mut self, key: FlowKey, answer: &Input) {
        match answer {
            Input::Redirected(_) => assert_eq!(self.commanded.remove(&key), Some(true), "{key}"),
            Input::Failed(..) => assert_eq!(self.commanded.remove(&key), Some(true), "{key}"),
            // After a release that failed, the entry is still to be deleted, which the caller learns without a command.
            Input::Released(_) | Input::ReleaseFailed(..) => {
                assert_ne!(self.commanded.remove(&key), Some(true), "{key}");
            }
            Input::Lost(..) => drop(self.commanded.remove(&key)),
            other => panic!("{other:?}"),
        }
        match answer {
            Input::Redirected(_) => drop(self.redirected.insert(key)),
            Input::Released(_) | Input::Lost(..) => drop(self.redirected.remove(&key)),
            _ => {}
        }
    }

    /// Passes on answers, and sends changes.
    fn exchange(&mut self, rules: &mut Rules, ids: &mut BTreeMap<u64, FlowKey>) {
        for (key, rule) in &rules.rules {
            ids.extend(rule.owner.map(|id| (id.0, *key)));
        }
        for answer in rules.take_answers() {
            let id = match &answer {
                Input::Redirected(id) | Input::Released(id) => *id,
                Input::Failed(id, _) | Input::ReleaseFailed(id, _) | Input::Lost(id, _) => *id,
                other => panic!("{other:?}"),
            };
            // Answers to a redirection that has ended change nothing.
            let key = ids[&id.0];
            if self.current[&key] == id.0 {
                self.answered(key, &answer);
            }
        }
        let (alone, together): (Vec<Change>, Vec<Change>) =
            rules.take_changes().into_iter().partition(|change| change.is_alone);
        let batches = std::iter::once(together).chain(alone.into_iter().map(|change| vec![change]));
        self.flight.extend(batches.filter(|batch| !batch.is_empty()));
        rules.take_strays();
    }

    fn deliver(&mut self, rules: &mut Rules, refused: Option<usize>) {
        let Some(batch) = self.flight.pop_front() else { return };
        let refused = refused.map(|position| position % batch.len());
        for (position, change) in batch.iter().enumerate() {
            if Some(position) != refused {
                self.carry_out(rules, change);
            }
        }
        match refused {
            None => rules.done(&batch),
            Some(position) => {
                let error = ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![] };
                let failure = Failure::Refused { position: position as u32, xid: Xid(0), error };
                rules.failed(&batch, &failure);
            }
        }
    }

    fn disconnect(&mut self, rules: &mut Rules, arrived: usize) {
        for batch in std::mem::take(&mut self.flight).into_iter().take(arrived) {
            batch.iter().for_each(|change| self.carry_out(rules, change));
        }
        rules.disconnected();
    }

    fn read(&self, rules: &mut Rules) {
        if self.flight.is_empty() {
            let flows: Vec<FlowStats> = self.entries.values().cloned().collect();
            rules.read(&flows, &BTreeSet::new(), PORT, false);
        }
    }
}

fn stats(flow: FlowMod) -> FlowStats {
    FlowStats {
        table_id: flow.table_id,
        duration_sec: 0,
        duration_nsec: 0,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flow.flags,
        cookie: flow.cookie,
        packet_count: 0,
        byte_count: 0,
        matching: flow.matching,
        instructions: flow.instructions,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Redirect(u16),
    Release(u16),
    Exchange,
    Deliver,
    Refuse(usize),
    Disconnect(usize),
    Read,
    /// Others delete an entry, or add one with Thalweg's cookie.
    Delete(u16),
    Add(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let flow = 0..5_u16;
    prop_oneof![
        4 => flow.clone().prop_map(Step::Redirect),
        3 => flow.clone().prop_map(Step::Release),
        6 => Just(Step::Exchange),
        4 => Just(Step::Deliver),
        2 => (0..5_usize).prop_map(Step::Refuse),
        1 => (0..3_usize).prop_map(Step::Disconnect),
        3 => Just(Step::Read),
        1 => flow.clone().prop_map(Step::Delete),
        1 => flow.prop_map(Step::Add),
    ]
}

proptest! {
    /// Whatever is refused or lost: each command has one answer, and in the end the switch has exactly the entries of the flows that
    /// the caller believes to be redirected.
    #[test]
    fn the_switch_ends_with_the_entries_of_redirected_flows(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut rules, mut switch, mut ids) = (Rules::new(plan()), Switch::default(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Redirect(number) => switch.execute(&mut rules, key(number), true),
                Step::Release(number) => switch.execute(&mut rules, key(number), false),
                Step::Exchange => switch.exchange(&mut rules, &mut ids),
                Step::Deliver => switch.deliver(&mut rules, None),
                Step::Refuse(position) => switch.deliver(&mut rules, Some(position)),
                Step::Disconnect(arrived) => switch.disconnect(&mut rules, arrived),
                Step::Read => switch.read(&mut rules),
                Step::Delete(number) => drop(switch.entries.remove(&key(number))),
                Step::Add(number) => {
                    let added = plan().add(rule::matching(&key(number)).unwrap(), 0, PORT);
                    let Body::FlowMod(flow) = added else { panic!("a flow-mod") };
                    switch.entries.insert(key(number), stats(flow));
                }
            }
            for (key, rule) in &rules.rules {
                ids.extend(rule.owner.map(|id| (id.0, *key)));
            }
        }
        for _ in 0..4 {
            for _ in 0..8 {
                switch.exchange(&mut rules, &mut ids);
                switch.deliver(&mut rules, None);
            }
            switch.exchange(&mut rules, &mut ids);
            switch.read(&mut rules);
        }
        prop_assert!(switch.commanded.is_empty(), "{:?}", switch.commanded);
        // A release that failed leaves the caller to release it again, while the entry is deleted already.
        let wanted: BTreeSet<FlowKey> = rules.flows().into_iter().map(|(key, _)| key).collect();
        prop_assert!(wanted.is_subset(&switch.redirected), "{:?} {:?}", wanted, switch.redirected);
        prop_assert_eq!(switch.entries.keys().copied().collect::<BTreeSet<_>>(), wanted);
    }
}
