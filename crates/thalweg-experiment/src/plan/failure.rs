//! `[[failure]]`.

use thalweg_config::Typed;
use thalweg_emulator::core::events;
use thalweg_network::{LinkId, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::network::node;
use crate::experiment::Problem;
use crate::experiment::table::Failure;

/// An event in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The event.
    pub kind: FailureEvent,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureEvent {
    /// A link goes down.
    LinkDown(LinkId),
    /// A link is up again.
    LinkUp(LinkId),
    /// Routers install new paths.
    Reroute,
}

impl Event {
    /// The event of the network.
    pub fn in_network(&self) -> events::Event {
        match self.kind {
            FailureEvent::LinkDown(link) => events::Event::Fail(link),
            FailureEvent::LinkUp(link) => events::Event::Repair(link),
            FailureEvent::Reroute => events::Event::Rewire,
        }
    }
}

/// The events of a failure.
///
/// # Errors
/// If there is no such link, or it is repaired before it fails.
pub(super) fn events(entry: &Typed<'_, Failure>, topology: &Topology) -> Result<Vec<Event>, Problem> {
    let link = link(entry, topology)?;
    let at = |time: Nanos| Timestamp(time.0);
    let (fails, repair) = (at(entry.at), entry.repair.map(at));
    let delay = entry.reroute_after;
    if repair.is_some_and(|repair| repair <= fails) {
        return Err(entry.refuse(Failure::repair, "expected a time after that of the failure"));
    }
    let event = |at, kind| Event { at, kind };
    let mut events =
        vec![event(fails, FailureEvent::LinkDown(link)), event(fails + delay, FailureEvent::Reroute)];
    events.extend(repair.into_iter().flat_map(|repair| {
        [event(repair, FailureEvent::LinkUp(link)), event(repair + delay, FailureEvent::Reroute)]
    }));
    Ok(events)
}

/// Sorts events by time. Simultaneous events keep the order of the file.
pub(super) fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.at);
    events
}

fn link(entry: &Typed<'_, Failure>, topology: &Topology) -> Result<LinkId, Problem> {
    if let [port] = entry.link.as_slice() {
        return topology.find_link_at(port).map_err(|error| entry.refuse(Failure::link, error.to_string()));
    }
    let [a, b] = entry.link.as_slice() else {
        let expected = "expected two names, as in [\"edge0\", \"agg0\"], or a port, as in \"edge0:p2\"";
        return Err(entry.refuse(Failure::link, expected));
    };
    let refuse = |reason: String| entry.refuse(Failure::link, reason);
    let (a_node, b_node) = (node(topology, a).map_err(refuse)?, node(topology, b).map_err(refuse)?);
    let found = topology.links().iter().position(|link| {
        let ends = link.ends.map(|end| end.node);
        ends == [a_node, b_node] || ends == [b_node, a_node]
    });
    found.map(|link| LinkId(link as u32)).ok_or_else(|| refuse(format!("no link connects {a} and {b}")))
}
