//! The steps of each fault, and its special conditions.

use std::sync::Arc;
use std::time::Duration;

use thalweg_control::Pair;
use thalweg_control::routes::Rules;
use thalweg_emulator::workloads::random::Random;
use thalweg_network::{LinkId, Node};
use thalweg_wire::Nanos;

use super::testbed::{Testbed, state};
use crate::delivery::Delivery;
use crate::error::ScenarioError;
use crate::installed::{apply_changes, installed};
use crate::scenarios::collide;
use crate::traffic::Transferred;

/// Probability that a report of a collector is lost.
const LOSS_PROBABILITY: f64 = 0.2;

/// Number of reports that are shuffled together.
const REORDER_WINDOW: usize = 8;

/// Observation time after a controller has taken over.
const TAKEOVER_TIME: Duration = Duration::from_millis(300);

/// Collisions while reports are lost or reordered.
const COLLISIONS: usize = 3;

/// Minimum rate of two flows that must share a link, as a share of its capacity: half of the fair share.
const MIN_SHARE: f64 = 0.25;

/// A switch, selected by the seed, loses power briefly.
pub(super) fn switch_restart(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    let routers: Vec<_> = testbed.topology().router_ids().collect();
    let router = routers[Random::new(seed, "switch-restart", 0).index(routers.len())];
    let sent = testbed.while_sending(|testbed| {
        testbed.session.lab.restart_switch(router)?;
        let (entries, broken) = (installed(&testbed.session.lab)?.len(), testbed.broken_paths()?.len());
        let name = testbed.topology().name(Node::Router(router)).to_owned();
        testbed.log(format!("{name} restarted: {entries} rules left in all switches, {broken} paths broken"));
        testbed.await_recovery()
    })?;
    testbed.log(transfers(sent));
    Ok(())
}

/// The controller is killed after a reroute, and a second one takes over the path. That one is killed after some
/// changes to other trees, and a third one starts.
pub(super) fn controller_killed(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    let topology = testbed.topology();
    let other = collide::other_trees(&topology, &testbed.collision)?;
    let wanted = Rules::of_tables(&topology, state(&topology, other)?.forwarding().all_tables());
    let first = testbed.collision.seed;
    let sent = testbed.while_sending(|testbed| {
        testbed.closed_loop.take_trace();
        testbed.kill_controller();
        testbed.start_controller(&topology, first)?;
        testbed.session.wait(TAKEOVER_TIME)?;
        let requests = testbed.closed_loop.take_trace().requests.len();
        testbed.check(requests == 0, "the new controller rerouted flows that did not collide");
        testbed.log("killed after the reroute: the new controller took over the paths");
        Ok(())
    })?;
    let refreshes = testbed.closed_loop.counters().refreshes;
    testbed.check(refreshes > 0, "the new controller did not maintain its predecessor's reroute");
    testbed.log(transfers(sent));
    testbed.reset_paths()?;
    let sent = testbed.while_sending(|testbed| {
        testbed.kill_controller();
        let changes = installed(&testbed.session.lab)?.changes_to(&wanted);
        let done =
            1 + Random::new(seed, "controller-killed", 0).index(changes.len().saturating_sub(1).max(1));
        apply_changes(&testbed.session.lab, &changes[..done.min(changes.len())])?;
        let broken = testbed.broken_paths()?.len();
        testbed.log(format!(
            "killed after {done} of {} changes to other trees: {broken} paths broken",
            changes.len()
        ));
        testbed.start_controller(&topology, other)?;
        testbed.await_recovery()
    })?;
    testbed.log(transfers(sent));
    // The new controller has finished the installation.
    testbed.session.wait(collide::DRAIN_TIME)?;
    let left = installed(&testbed.session.lab)?.changes_to(&wanted).len();
    testbed.check(
        left == 0,
        &format!("{left} rules differ from those that the killed controller was installing"),
    );
    Ok(())
}

/// A fifth of the collectors' reports is lost during several collisions.
pub(super) fn events_lost(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    collide_under(testbed, Delivery::Lossy(LOSS_PROBABILITY), seed)
}

/// The collectors' reports arrive out of order during several collisions.
pub(super) fn events_reordered(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    collide_under(testbed, Delivery::Reordered(REORDER_WINDOW), seed)
}

fn collide_under(testbed: &mut Testbed, delivery: Delivery, seed: u64) -> Result<(), ScenarioError> {
    testbed.closed_loop.set_delivery(delivery, seed);
    let mut longest = Nanos::ZERO;
    for _ in 0..COLLISIONS {
        let latency = testbed.collide()?;
        testbed.check(latency.is_some(), "a collision during the fault was not resolved");
        longest = longest.max(latency.map_or(Nanos::ZERO, |latency| latency.total()));
    }
    testbed.closed_loop.set_delivery(Delivery::InOrder, seed);
    let counters = testbed.closed_loop.counters();
    let [sent, lost, reordered] = counters.delivery_counts;
    testbed.log(format!(
                "{sent} reports sent, {lost} lost, {reordered} out of order; {COLLISIONS} collisions resolved within {longest}"
    ));
    testbed.check(lost + reordered > 0, "no report was lost or out of order");
    testbed.check(counters.controller.broken_paths == 0, "a working path was marked broken");
    testbed.await_recovery()
}

/// The source of the flow that is rerouted first ignores ARP, then reacts again.
pub(super) fn unresponsive_host(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    // A run in which both hosts react shows which one the controller reroutes first.
    testbed.while_sending(|_| Ok(()))?;
    let requests = testbed.closed_loop.take_trace().requests;
    let first =
        requests.iter().map(|request| request.pair).find(|pair| testbed.collision.pairs.contains(pair));
    let Some(first) = first else {
        testbed.check(false, "the first collision was not resolved");
        return Ok(());
    };
    testbed.reset_paths()?;
    let before = testbed.closed_loop.counters().controller;
    testbed.session.lab.set_ignores_arp(first.source, true)?;
    let sent = testbed.while_sending(|_| Ok(()))?;
    testbed.session.lab.set_ignores_arp(first.source, false)?;
    let (trace, after) = (testbed.closed_loop.take_trace(), testbed.closed_loop.counters().controller);
    let count = trace.requests.iter().filter(|request| request.pair == first && request.address != 0).count();
    let (name, timed_out) = (first.name(&testbed.topology()).to_string(), after.timed_out - before.timed_out);
    testbed.log(format!("{name} ignored ARP: {count} requests, {timed_out} actions timed out"));
    testbed.log(transfers(sent));
    testbed.check(count == 0 || timed_out > 0, "an action without effect was not reported as timed out");
    let rerouted = trace.path_changes.iter().any(|change| change.pair == first && change.address != 0);
    testbed.check(!rerouted, "the host that ignored ARP changed its path");
    let other_rerouted = trace.path_changes.iter().any(|change| change.pair != first && change.address != 0);
    testbed.check(other_rerouted, "the other flow was not rerouted instead");
    testbed.await_recovery()
}

/// The link on which the flows collide fails while both send, and is restored.
pub(super) fn link_failure(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    let topology = testbed.topology();
    let (from, to) = testbed.collision.link_ends.clone();
    let joins = |link: &thalweg_network::Link| {
        let ends = link.ends.map(|end| topology.name(end.node));
        ends == [from.as_str(), to.as_str()] || ends == [to.as_str(), from.as_str()]
    };
    let link = topology.links().iter().position(joins).ok_or(ScenarioError::NoCollision)?;
    let link = LinkId(link as u32);
    let sent = testbed.while_sending(|testbed| {
        testbed.session.lab.set_link(link, false)?;
        let broken = testbed.broken_paths()?.len();
        testbed.await_recovery()?;
        testbed.log(format!("{from}-{to} failed: {broken} paths broken"));
        let unreachable = testbed.unreachable()?;
        testbed.check(unreachable.is_empty(), "some hosts could not connect while the link was down");
        testbed.session.lab.set_link(link, true)?;
        testbed.await_recovery()
    })?;
    testbed.log(transfers(sent));
    // The old trees are restored, so that the flows can collide on the same link.
    testbed.session.wait(collide::DRAIN_TIME)?;
    let wanted =
        Rules::of_tables(&topology, state(&topology, testbed.collision.seed)?.forwarding().all_tables());
    let left = installed(&testbed.session.lab)?.changes_to(&wanted).len();
    testbed.check(left == 0, &format!("{left} rules differ from those before the failure"));
    Ok(())
}

/// Two cables on the alternative path of both flows are swapped. The controller reroutes a flow, finds that no packet
/// arrives, moves it back and reports the path; then the topology file is corrected.
pub(super) fn wrong_topology(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    let (real, file) = (testbed.topology(), Arc::clone(testbed.session.state.topology()));
    let broken = testbed.broken_paths()?.len();
    testbed.check(broken > 0, "the swapped cables break no path");
    let before = testbed.unreachable()?;
    testbed.closed_loop.take_trace();
    let sent = testbed.while_sending(|_| Ok(()))?;
    let trace = testbed.closed_loop.take_trace();
    let paths: Vec<String> = trace
        .broken_paths
        .iter()
        .map(|(pair, address)| format!("{} tree {address}", pair.name(&file)))
        .collect();
    testbed.log(format!(
        "{broken} paths broken; found by the controller: {}",
        if paths.is_empty() { "none".to_owned() } else { paths.join(", ") }
    ));
    let off_route = testbed.closed_loop.counters().off_route;
    testbed.log(format!("{off_route} packets at switches off their route"));
    testbed.log(transfers(sent));
    let requests = trace.requests.iter().filter(|request| request.address != 0).count();
    testbed.check(requests > 0, "no flow was rerouted");
    let known = |pair: Pair| trace.broken_paths.iter().any(|&(other, _)| other == pair);
    testbed
        .check(testbed.collision.pairs.into_iter().any(known), "the controller did not find the broken path");
    let least = MIN_SHARE * testbed.session.rate.0 as f64;
    testbed.check(
        sent.iter().all(|sent| sent.rate > least),
        "a flow has less than a quarter of the shared link",
    );
    let after = testbed.unreachable()?;
    let worse = after.iter().filter(|pair| !before.contains(pair)).count();
    testbed.check(worse == 0, &format!("{worse} pairs cannot connect because of the controller"));
    // The file is corrected.
    testbed.kill_controller();
    testbed.start_controller(&real, testbed.collision.seed)?;
    testbed.await_recovery()
}

fn transfers([one, other]: [Transferred; 2]) -> String {
    format!("flow rates {:.1} and {:.1} Mbit/s", one.rate / 1e6, other.rate / 1e6)
}
