//! How each fault goes: what befalls, when it is over, and what is special to it.

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
use crate::installed::{carry_out, installed};
use crate::scenarios::collide;
use crate::traffic::Transferred;

/// Share of what collectors tell that is lost.
const LOST: f64 = 0.2;

/// So much of it at a time arrives in any order.
const SHUFFLED: usize = 8;

/// How long a controller is watched that has just taken over.
const HEIR: Duration = Duration::from_millis(300);

/// Collisions while what is told is lost or out of order.
const COLLISIONS: usize = 3;

/// What two flows have to have at least that share a link, for nothing else can be done: each half of its fair share.
const LEAST_SHARE: f64 = 0.25;

/// A switch, whichever the seed says, loses its power for a moment.
pub(super) fn switch_restart(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    let routers: Vec<_> = testbed.topology().router_ids().collect();
    let router = routers[Random::new(seed, "switch-restart", 0).index(routers.len())];
    let sent = testbed.meanwhile(|testbed| {
        testbed.session.lab.restart_switch(router)?;
        let (entries, astray) = (installed(&testbed.session.lab)?.len(), testbed.astray()?.len());
        let name = testbed.topology().name(Node::Router(router)).to_owned();
        testbed.tell(format!(
            "{name} restarted: {entries} rules left in all switches, {astray} ways led nowhere"
        ));
        testbed.await_whole()
    })?;
    testbed.tell(transfers(sent));
    Ok(())
}

/// The controller ends after it has moved a flow, and another begins where that is. That one ends when it has carried out some
/// of what leads to other trees, and a third begins.
pub(super) fn controller_killed(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    let topology = testbed.topology();
    let other = collide::other_trees(&topology, &testbed.collision)?;
    let wanted = Rules::of_tables(&topology, state(&topology, other)?.forwarding().all_tables());
    let first = testbed.collision.seed;
    let sent = testbed.meanwhile(|testbed| {
        testbed.watched.take_trace();
        testbed.kill_controller();
        testbed.begin_controller(&topology, first)?;
        testbed.session.wait(HEIR)?;
        let told = testbed.watched.take_trace().told.len();
        testbed.hold(told == 0, "the controller that took over moved flows that were apart");
        testbed.tell("killed after the flows were apart: another one took over where they were");
        Ok(())
    })?;
    let refreshed = testbed.watched.tally().refreshed;
    testbed.hold(refreshed > 0, "it did not hold the flow that the other had moved");
    testbed.tell(transfers(sent));
    testbed.send_home()?;
    let sent = testbed.meanwhile(|testbed| {
        testbed.kill_controller();
        let changes = installed(&testbed.session.lab)?.changes_to(&wanted);
        let done =
            1 + Random::new(seed, "controller-killed", 0).index(changes.len().saturating_sub(1).max(1));
        carry_out(&testbed.session.lab, &changes[..done.min(changes.len())])?;
        let astray = testbed.astray()?.len();
        testbed.tell(format!(
            "killed after {done} of {} changes to other trees: {astray} ways led nowhere",
            changes.len()
        ));
        testbed.begin_controller(&topology, other)?;
        testbed.await_whole()
    })?;
    testbed.tell(transfers(sent));
    // Whoever has taken over has finished what the other began.
    testbed.session.wait(collide::REST)?;
    let left = installed(&testbed.session.lab)?.changes_to(&wanted).len();
    testbed.hold(left == 0, &format!("{left} rules are not those that the other controller was installing"));
    Ok(())
}

/// A fifth of what collectors tell is lost, for some collisions.
pub(super) fn events_lost(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    collide_under(testbed, Delivery::Lossy(LOST), seed)
}

/// What collectors tell arrives in another order, for some collisions.
pub(super) fn events_reordered(testbed: &mut Testbed, seed: u64) -> Result<(), ScenarioError> {
    collide_under(testbed, Delivery::Shuffled(SHUFFLED), seed)
}

fn collide_under(testbed: &mut Testbed, delivery: Delivery, seed: u64) -> Result<(), ScenarioError> {
    testbed.watched.deliver(delivery, seed);
    let mut longest = Nanos::ZERO;
    for _ in 0..COLLISIONS {
        let turn = testbed.collide()?;
        testbed.hold(turn.is_some(), "a collision meanwhile was not resolved");
        longest = longest.max(turn.map_or(Nanos::ZERO, |turn| turn.whole()));
    }
    testbed.watched.deliver(Delivery::Whole, seed);
    let tally = testbed.watched.tally();
    let [told, lost, displaced] = tally.delivered;
    testbed.tell(format!(
        "of {told} findings {lost} were lost and {displaced} out of their place; {COLLISIONS} collisions lasted {longest} at most"
    ));
    testbed.hold(lost + displaced > 0, "nothing was lost or out of its place");
    testbed.hold(tally.controller.astray == 0, "a way that leads there was taken for one that does not");
    testbed.await_whole()
}

/// The source of the flow that is asked first to go another way takes no notice; then it does again.
pub(super) fn deaf_host(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    // Whom the controller asks first is seen by what it does when both hear.
    testbed.meanwhile(|_| Ok(()))?;
    let told = testbed.watched.take_trace().told;
    let first = told.iter().map(|told| told.pair).find(|pair| testbed.collision.pairs.contains(pair));
    let Some(first) = first else {
        testbed.hold(false, "the first collision was not resolved");
        return Ok(());
    };
    testbed.send_home()?;
    let before = testbed.watched.tally().controller;
    testbed.session.lab.set_deaf_to_arp(first.source, true)?;
    let sent = testbed.meanwhile(|_| Ok(()))?;
    testbed.session.lab.set_deaf_to_arp(first.source, false)?;
    let (trace, after) = (testbed.watched.take_trace(), testbed.watched.tally().controller);
    let asked = trace.told.iter().filter(|told| told.pair == first && told.address != 0).count();
    let (name, expired) = (first.name(&testbed.topology()).to_string(), after.expired - before.expired);
    testbed.tell(format!("{name} was deaf and asked {asked} times, {expired} actions were not seen in time"));
    testbed.tell(transfers(sent));
    testbed.hold(asked == 0 || expired > 0, "what had no effect was taken to have had one");
    let moved = trace.moved.iter().any(|moved| moved.pair == first && moved.address != 0);
    testbed.hold(!moved, "a deaf host went another way");
    let other_moved = trace.moved.iter().any(|moved| moved.pair != first && moved.address != 0);
    testbed.hold(other_moved, "the other flow was not sent another way in its place");
    testbed.await_whole()
}

/// The link that the flows meet on fails while both send, and returns.
pub(super) fn link_failure(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    let topology = testbed.topology();
    let (from, to) = testbed.collision.link.clone();
    let joins = |link: &thalweg_network::Link| {
        let ends = link.ends.map(|end| topology.name(end.node));
        ends == [from.as_str(), to.as_str()] || ends == [to.as_str(), from.as_str()]
    };
    let link = topology.links().iter().position(joins).ok_or(ScenarioError::NothingCollides)?;
    let link = LinkId(link as u32);
    let sent = testbed.meanwhile(|testbed| {
        testbed.session.lab.set_link(link, false)?;
        let astray = testbed.astray()?.len();
        testbed.await_whole()?;
        testbed.tell(format!("{from}-{to} failed: {astray} ways led nowhere"));
        let isolated = testbed.unreachable()?;
        testbed.hold(isolated.is_empty(), "without the link not everybody reached everybody");
        testbed.session.lab.set_link(link, true)?;
        testbed.await_whole()
    })?;
    testbed.tell(transfers(sent));
    // The old trees are back, or flows could not meet where they did.
    testbed.session.wait(collide::REST)?;
    let wanted =
        Rules::of_tables(&topology, state(&topology, testbed.collision.seed)?.forwarding().all_tables());
    let left = installed(&testbed.session.lab)?.changes_to(&wanted).len();
    testbed.hold(left == 0, &format!("{left} rules are not those of before the failure"));
    Ok(())
}

/// Two cables are swapped on the other way of both flows. The controller sends one there, sees that nothing arrives, takes it
/// back and tells; then the topology is mended.
pub(super) fn wrong_topology(testbed: &mut Testbed) -> Result<(), ScenarioError> {
    let (real, file) = (testbed.topology(), Arc::clone(testbed.session.state.topology()));
    let astray = testbed.astray()?.len();
    testbed.hold(astray > 0, "the swapped cables do not matter");
    let before = testbed.unreachable()?;
    testbed.watched.take_trace();
    let sent = testbed.meanwhile(|_| Ok(()))?;
    let trace = testbed.watched.take_trace();
    let ways: Vec<String> = trace
        .astray
        .iter()
        .map(|(pair, address)| format!("{} by address {address}", pair.name(&file)))
        .collect();
    testbed.tell(format!(
        "{astray} ways lead nowhere; found by trying: {}",
        if ways.is_empty() { "none".to_owned() } else { ways.join(", ") }
    ));
    let elsewhere = testbed.watched.tally().elsewhere;
    testbed.tell(format!("{elsewhere} packets at switches that no route leads them by"));
    testbed.tell(transfers(sent));
    let told = trace.told.iter().filter(|told| told.address != 0).count();
    testbed.hold(told > 0, "nobody was sent the other way");
    let known = |pair: Pair| trace.astray.iter().any(|&(other, _)| other == pair);
    testbed.hold(testbed.collision.pairs.into_iter().any(known), "that nothing arrived was not found");
    let least = LEAST_SHARE * testbed.session.rate.0 as f64;
    testbed.hold(
        sent.iter().all(|sent| sent.rate > least),
        "a flow has less than a quarter of the link that both share",
    );
    let after = testbed.unreachable()?;
    let worse = after.iter().filter(|pair| !before.contains(pair)).count();
    testbed.hold(worse == 0, &format!("{worse} pairs are cut off by what the controller did"));
    // Somebody mends the file.
    testbed.kill_controller();
    testbed.begin_controller(&real, testbed.collision.seed)?;
    testbed.await_whole()
}

fn transfers([one, other]: [Transferred; 2]) -> String {
    format!("the flows had {:.1} and {:.1} Mbit/s", one.rate / 1e6, other.rate / 1e6)
}
