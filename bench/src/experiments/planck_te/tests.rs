//! That the loop closes, on tiny runs.

use std::sync::Arc;

use thalweg_control::control_loop::{Command, Input};
use thalweg_control::decide::greedy::GreedyOptions;
use thalweg_control::decide::static_routing::StaticRouting;
use thalweg_control::routes::Change;
use thalweg_network::{LinkState, NetworkState, PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

use super::steering::{Steering, repairs};
use super::switches::Switches;
use super::trial::{Emulated, Results, Scheme, Trial};
use super::workload::Pattern;

fn two_flows(scheme: Scheme, seed: u64) -> Results {
    Trial { scheme, pattern: Pattern::TwoFlows, bytes: Bytes(24 << 20), seed, ..Trial::default() }
        .run()
        .unwrap()
}

/// A seed with which the two flows have the same way.
fn colliding() -> u64 {
    let collides = |seed: &u64| two_flows(Scheme::Static, *seed).throughput() < 6.0;
    (1..20).find(collides).expect("one of three seeds is such")
}

#[test]
fn two_flows_that_collide_are_parted_and_gain_by_it() {
    let seed = colliding();
    let planck = two_flows(Scheme::Planck(GreedyOptions::default()), seed);
    let optimal = two_flows(Scheme::Optimal, seed);
    let shared = two_flows(Scheme::Static, seed);
    assert!(
        planck.throughput() > 0.8 * optimal.throughput() && planck.throughput() > 1.25 * shared.throughput(),
        "{:?} {:?}",
        planck.throughputs(),
        optimal.throughputs()
    );
    assert_eq!(planck.steered.controller.confirmed, planck.steered.controller.started);
    assert!((1..=2).contains(&planck.steered.controller.started), "{:?}", planck.steered);
    assert!(planck.steered.responses_ms.iter().all(|ms| (2.5..3.0).contains(ms)), "{:?}", planck.steered);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || two_flows(Scheme::Planck(GreedyOptions::default()), 3);
    assert_eq!(run(), run());
}

const SWITCH: RouterId = RouterId(8);

/// What a control loop has put right of what it reads back, to come to the routes of a network.
fn to(switches: &Switches, state: &Arc<NetworkState>) -> Vec<Change> {
    let trial = Trial::default();
    let routes = repairs(trial.trees(), Nanos::ZERO);
    let mut steering = Steering::new(state, Box::new(StaticRouting), routes, Nanos::ZERO, 0.0, 1).unwrap();
    steering.tell(Timestamp(1), Input::Tick);
    assert!(matches!(steering.next_command(), Some(Command::ReadBack { router: None })));
    let rules = switches.installed().clone();
    steering.tell(Timestamp(1), Input::Tables { router: None, rules });
    match steering.next_command() {
        Some(Command::Repair(changes)) => changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_switch_has_lost_is_installed_before_anything_else() {
    let trial = Trial::default();
    let topology = trial.fat_tree().unwrap();
    let links = LinkState::new(&topology);
    let state = trial.state(&topology, links.clone()).unwrap();
    let mut emulated = Emulated::new(&trial, &topology, &[]).unwrap();
    let mut switches = Switches::new(state.topology(), state.forwarding().all_tables());
    assert_eq!(switches.astray(&links), 0);
    switches.lose(SWITCH);
    assert!(switches.astray(&links) > 0);
    switches.aim(to(&switches, &state));
    assert_eq!(switches.to_do(), state.forwarding().table(SWITCH).unwrap().entries().count());
    while switches.to_do() > 0 {
        switches.step(emulated.network.as_mut()).unwrap();
    }
    assert_eq!(switches.astray(&links), 0);
}

#[test]
fn whoever_reads_back_what_another_has_half_installed_does_the_rest() {
    let trial = Trial::default();
    let topology = trial.fat_tree().unwrap();
    let mut links = LinkState::new(&topology);
    let before = trial.state(&topology, links.clone()).unwrap();
    links.fail(topology.link_at(SWITCH, PortIndex(2))).unwrap();
    let after = trial.state(&topology, links.clone()).unwrap();
    let mut emulated = Emulated::new(&trial, &topology, &[]).unwrap();
    let mut switches = Switches::new(before.topology(), before.forwarding().all_tables());
    switches.aim(to(&switches, &after));
    let all = switches.to_do();
    (0..all / 2).for_each(|_| switches.step(emulated.network.as_mut()).unwrap());
    switches.give_up();
    assert!(switches.astray(&links) > 0, "half of it is not enough");
    switches.aim(to(&switches, &after));
    assert_eq!(switches.to_do(), all - all / 2);
    while switches.to_do() > 0 {
        switches.step(emulated.network.as_mut()).unwrap();
    }
    assert_eq!(switches.astray(&links), 0);
}

#[test]
fn one_core_switch_can_be_slower_and_all_else_stays_as_it_was() {
    let slow = Trial { core_rate: BitRate(2_500_000_000), ..Trial::default() }.fat_tree().unwrap();
    let even = Trial::default().fat_tree().unwrap();
    let ends = |topology: &thalweg_network::Topology| {
        topology.links().iter().map(|link| link.ends).collect::<Vec<_>>()
    };
    assert_eq!(ends(&slow), ends(&even));
    assert_eq!(slow.links().iter().filter(|link| link.rate.0 == 2_500_000_000).count(), 4);
}
