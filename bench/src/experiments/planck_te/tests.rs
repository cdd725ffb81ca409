//! Small runs of the control loop.

use std::sync::Arc;

use thalweg_control::control_loop::{Command, Input};
use thalweg_control::decide::greedy::GreedyOptions;
use thalweg_control::decide::static_routing::StaticRouting;
use thalweg_control::routes::Change;
use thalweg_network::{LinkState, NetworkState, PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

use super::control::{EmulatedControl, reconciled_routes};
use super::switches::Switches;
use super::trial::{Emulated, Method, Results, Trial};
use super::workload::Pattern;

fn two_flows(method: Method, seed: u64) -> Results {
    Trial { method, pattern: Pattern::TwoFlows, bytes: Bytes(24 << 20), seed, ..Trial::default() }
        .run()
        .unwrap()
}

/// Returns a seed with which the two flows share a path.
fn colliding() -> u64 {
    let collides = |seed: &u64| two_flows(Method::Static, *seed).throughput() < 6.0;
    (1..20).find(collides).expect("one of three seeds makes them collide")
}

#[test]
fn rerouting_a_collision_increases_throughput() {
    let seed = colliding();
    let planck = two_flows(Method::Planck(GreedyOptions::default()), seed);
    let optimal = two_flows(Method::Optimal, seed);
    let shared = two_flows(Method::Static, seed);
    assert!(
        planck.throughput() > 0.8 * optimal.throughput() && planck.throughput() > 1.25 * shared.throughput(),
        "{:?} {:?}",
        planck.throughputs(),
        optimal.throughputs()
    );
    assert_eq!(planck.control_results.controller.confirmed, planck.control_results.controller.started);
    assert!((1..=2).contains(&planck.control_results.controller.started), "{:?}", planck.control_results);
    assert!(
        planck.control_results.responses_ms.iter().all(|ms| (2.5..3.0).contains(ms)),
        "{:?}",
        planck.control_results
    );
}

#[test]
fn no_flow_moves_more_than_three_times() {
    // The emulator counts the moves of each flow that is sending.
    let cases = [
        (Pattern::RandomBijection, Bytes(4 << 20)),
        (Pattern::Shuffle, Bytes(1 << 18)),
        (Pattern::LongAndShort, Bytes(2 << 20)),
    ];
    for (pattern, bytes) in cases {
        let method = Method::Planck(GreedyOptions::default());
        let results = Trial { method, pattern, bytes, seed: 1, ..Trial::default() }.run().unwrap();
        let control = &results.control_results;
        assert!(control.most_flow_moves() <= 3, "{}: {:?}", pattern.name(), control.flow_moves);
        assert!(control.controller.started > 0, "{}: {control:?}", pattern.name());
        assert_eq!(control.controller.flow_moves.iter().sum::<u64>(), control.controller.started);
    }
}

#[test]
fn same_seed_gives_the_same_run() {
    let run = || two_flows(Method::Planck(GreedyOptions::default()), 3);
    assert_eq!(run(), run());
}

const SWITCH: RouterId = RouterId(8);

/// Returns the changes of a control loop from the installed rules to the routes of a network.
fn to(switches: &Switches, state: &Arc<NetworkState>) -> Vec<Change> {
    let trial = Trial::default();
    let routes = reconciled_routes(trial.trees(), Nanos::ZERO);
    let mut control =
        EmulatedControl::new(state, Box::new(StaticRouting), routes, Nanos::ZERO, 0.0, 1).unwrap();
    control.input(Timestamp(1), Input::Tick);
    assert!(matches!(control.next_command(), Some(Command::ReadBack { router: None })));
    let rules = switches.installed().clone();
    control.input(Timestamp(1), Input::Tables { router: None, rules });
    match control.next_command() {
        Some(Command::RepairRules(changes)) => changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lost_rules_are_restored_first() {
    let trial = Trial::default();
    let topology = trial.fat_tree().unwrap();
    let links = LinkState::new(&topology);
    let state = trial.state(&topology, links.clone()).unwrap();
    let mut emulated = Emulated::new(&trial, &topology, &[]).unwrap();
    let mut switches = Switches::new(state.topology(), state.forwarding().all_tables());
    assert_eq!(switches.broken_paths(&links), 0);
    switches.clear_rules(SWITCH);
    assert!(switches.broken_paths(&links) > 0);
    switches.queue(to(&switches, &state));
    assert_eq!(switches.pending(), state.forwarding().table(SWITCH).unwrap().entries().count());
    while switches.pending() > 0 {
        switches.step(emulated.network.as_mut()).unwrap();
    }
    assert_eq!(switches.broken_paths(&links), 0);
}

#[test]
fn new_controller_completes_a_partial_installation() {
    let trial = Trial::default();
    let topology = trial.fat_tree().unwrap();
    let mut links = LinkState::new(&topology);
    let before = trial.state(&topology, links.clone()).unwrap();
    links.fail(topology.link_at(SWITCH, PortIndex(2))).unwrap();
    let after = trial.state(&topology, links.clone()).unwrap();
    let mut emulated = Emulated::new(&trial, &topology, &[]).unwrap();
    let mut switches = Switches::new(before.topology(), before.forwarding().all_tables());
    switches.queue(to(&switches, &after));
    let all = switches.pending();
    (0..all / 2).for_each(|_| switches.step(emulated.network.as_mut()).unwrap());
    switches.discard_pending();
    assert!(switches.broken_paths(&links) > 0, "a partial installation leaves broken paths");
    switches.queue(to(&switches, &after));
    assert_eq!(switches.pending(), all - all / 2);
    while switches.pending() > 0 {
        switches.step(emulated.network.as_mut()).unwrap();
    }
    assert_eq!(switches.broken_paths(&links), 0);
}

#[test]
fn slow_core_changes_only_its_links() {
    let slow = Trial { core_rate: BitRate(2_500_000_000), ..Trial::default() }.fat_tree().unwrap();
    let even = Trial::default().fat_tree().unwrap();
    let ends = |topology: &thalweg_network::Topology| {
        topology.links().iter().map(|link| link.ends).collect::<Vec<_>>()
    };
    assert_eq!(ends(&slow), ends(&even));
    assert_eq!(slow.links().iter().filter(|link| link.rate.0 == 2_500_000_000).count(), 4);
}
