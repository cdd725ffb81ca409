//! The attribution of packets, compared with a complete list of all versions.

use proptest::prelude::*;
use thalweg_wire::Protocol;

use super::*;
use crate::identity::EndpointId;
use crate::inference::Ports;
use crate::link_state::LinkState;
use crate::state::Forwarding;
use crate::state::tests::{states_of, topologies};
use crate::topology::Topology;
use crate::topology::shapes::{Tiers, racks};

/// All versions (number, start, state), and the transition time.
#[derive(Debug)]
struct FullHistory {
    all: Vec<(u64, u64, NetworkState)>,
    transition_time: u64,
}

impl FullHistory {
    /// Returns the versions that were active at some time from `time - transition_time` to `time`, newest first.
    fn candidates(&self, time: u64) -> Vec<u64> {
        let first = time.saturating_sub(self.transition_time);
        let active_at = |time| self.all.iter().rev().find(|&&(_, from, _)| from <= time).unwrap().0;
        let mut numbers: Vec<u64> = (first..=time).map(active_at).collect();
        numbers.dedup();
        numbers.reverse();
        numbers
    }

    fn state(&self, number: u64) -> &NetworkState {
        &self.all.iter().find(|version| version.0 == number).unwrap().2
    }
}

/// Any history with the same versions pushed one by one.
fn histories() -> impl Strategy<Value = (FullHistory, Versions)> {
    let parts = topologies().prop_flat_map(|topology| {
        let states = prop::collection::vec((states_of(topology.clone()), 0u64..12), 1..8);
        (states_of(topology), states, 0u64..20, 1usize..6)
    });
    parts.prop_map(|(first, pushed, transition_time, capacity)| {
        let mut history = FullHistory { all: vec![(1, 0, first.clone())], transition_time };
        let mut versions =
            Versions::new(first).with_transition_time(Nanos(transition_time)).with_capacity(capacity);
        let mut from = 0;
        for (state, gap) in pushed {
            from += gap;
            let number = versions.push(state.clone(), Timestamp(from)).unwrap();
            history.all.push((number, from, state));
        }
        (history, versions)
    })
}

/// The attribution rule of the module documentation.
fn attribute(answers: &[(u64, (Ports, Case))]) -> (u64, (Ports, Case), Certainty) {
    let (newest, answer) = answers[0];
    if answers.len() == 1 {
        return (newest, answer, Certainty::Certain);
    }
    if answers.iter().all(|other| other.1 == answer) {
        return (newest, answer, Certainty::Agreed);
    }
    let on_path: Vec<_> = answers.iter().filter(|answer| answer.1.1.is_on_path()).collect();
    match on_path.first() {
        None => (newest, answer, Certainty::Ambiguous),
        Some(&&(number, answer)) if on_path.iter().all(|other| other.1 == answer) => {
            (number, answer, Certainty::OnlyFit)
        }
        Some(&&(number, answer)) => (number, answer, Certainty::Ambiguous),
    }
}

proptest! {
    #[test]
    fn the_candidates_are_all_versions_that_may_have_forwarded_a_packet((history, versions) in histories()) {
        let oldest_kept = versions.iter().next().unwrap().number;
        for time in 0..100 {
            let candidates = history.candidates(time);
            let kept: Vec<u64> = candidates.iter().copied().filter(|&number| number >= oldest_kept).collect();
            let phase = Phase {
                newest: *kept.first().unwrap_or(&oldest_kept),
                oldest: *kept.last().unwrap_or(&oldest_kept),
                is_forgotten: kept.len() < candidates.len(),
            };
            prop_assert_eq!(versions.phase(Timestamp(time)), phase, "at {}", time);
        }
    }

    #[test]
    fn packets_are_attributed_to_network_versions_as_documented((history, versions) in histories(), flow in 0u32..1 << 28) {
        let topology = versions.newest().state.topology().clone();
        let (source_port, destination_port) = crate::routing::flow_ports::ports(flow);
        let key = FlowKey::v4(1, 2, source_port, destination_port, Protocol::TCP);
        let oldest_kept = versions.iter().next().unwrap().number;
        for (time, router) in (0..100).step_by(3).flat_map(|time| topology.router_ids().map(move |r| (time, r))) {
            let (from, to) = (EndpointId(0), EndpointId(topology.endpoints().len() as u16 - 1));
            let ethernet = EthernetAddresses { source: topology.mac(from, 0), destination: topology.mac(to, 1) };
            let candidates = history.candidates(time);
            let mut kept: Vec<u64> = candidates.iter().copied().filter(|&number| number >= oldest_kept).collect();
            let is_forgotten = kept.len() < candidates.len();
            if kept.is_empty() {
                kept.push(oldest_kept);
            }
            let answer = |&number: &u64| (number, history.state(number).ports(router, &ethernet, &key));
            let (version, (ports, case), certainty) = attribute(&kept.iter().map(answer).collect::<Vec<_>>());
            let certainty = if is_forgotten { Certainty::Forgotten } else { certainty };
            let expected = Inference { ports, case, version, certainty };
            prop_assert_eq!(versions.infer(router, &ethernet, &key, Timestamp(time)), expected, "at {}", time);
            let (here, path) = versions.infer_path(router, &ethernet, &key, Timestamp(time));
            if here.case == Case::Known {
                prop_assert_eq!(path, history.state(here.version).path(&ethernet, &key).ok());
            }
            prop_assert_eq!((here.ports, here.version), (ports, version));
            prop_assert!(here.certainty >= certainty, "paths may differ where ports do not");
        }
    }
}

fn network() -> (Topology, NetworkState) {
    let topology = racks(2, 1, Tiers::default()).unwrap();
    let state = NetworkState::new(topology.clone(), LinkState::new(&topology), Forwarding::ecmp(1)).unwrap();
    (topology, state)
}

#[test]
fn the_last_versions_are_kept_and_the_others_counted() {
    let (_, state) = network();
    let mut versions = Versions::new(state.clone());
    for time in 1..=20 {
        assert_eq!(versions.push(state.clone(), Timestamp(time)), Ok(time + 1));
    }
    assert_eq!((versions.iter().len(), versions.forgotten()), (DEFAULT_CAPACITY, 13));
    let numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
    assert_eq!(numbers, (14..=21).collect::<Vec<_>>());
    assert_eq!(versions.get(14).map(|version| version.from), Some(Timestamp(13)));
    assert_eq!(versions.get(13), None);
    assert_eq!(versions.newest().number, 21);
    assert_eq!(versions.with_capacity(0).iter().len(), 1, "one is always kept");
}

#[test]
fn a_version_with_the_same_start_replaces_the_newest() {
    let (_, state) = network();
    let mut versions = Versions::new(state.clone());
    assert_eq!(versions.push(state.clone(), Timestamp(5)), Ok(2));
    assert_eq!(versions.push(state.clone(), Timestamp(5)), Ok(3));
    let numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
    assert_eq!((numbers, versions.forgotten()), (vec![1, 3], 0));
    assert_eq!(versions.get(2), None);
}

#[test]
fn a_rejected_version_changes_nothing() {
    let (_, state) = network();
    let mut versions = Versions::new(state.clone());
    versions.push(state.clone(), Timestamp(5)).unwrap();
    let backwards = versions.push(state.clone(), Timestamp(4)).unwrap_err();
    assert_eq!(
        backwards.to_string(),
        "a version that starts at 1970-01-01T00:00:00.000000004Z cannot follow one that starts at 1970-01-01T00:00:00.000000005Z"
    );
    let swapped = state.to_toml().replace("\"tor0\"", "\"other\"").replace("\"r0\"", "\"other\"");
    let swapped = NetworkState::from_toml(&swapped, "net.toml").unwrap();
    let renumbered = versions.push(swapped, Timestamp(6)).unwrap_err();
    assert!(
        renumbered
            .to_string()
            .ends_with("would become \"other\": keep the order of routers and append new ones")
    );
    assert_eq!(versions.newest().number, 2);
}
