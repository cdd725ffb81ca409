//! `[[failure]]`.

use thalweg_config::Typed;
use thalweg_network::{LinkId, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::network::node;
use crate::experiment::Problem;
use crate::experiment::table::Failure;

/// Something that happens to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub happening: FailureEvent,
}

/// What happens to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureEvent {
    /// A link goes down.
    Fails(LinkId),
    /// A link is up again.
    IsRepaired(LinkId),
    /// Routers learn of it.
    IsKnown,
}

/// What a failure brings.
///
/// # Errors
/// If there is no such link, or it is repaired before it fails.
pub(super) fn events(entry: &Typed<'_, Failure>, topology: &Topology) -> Result<Vec<Event>, Problem> {
    let link = link(entry, topology)?;
    let at = |time: Nanos| Timestamp(time.0);
    let (fails, repair) = (at(entry.at), entry.repair.map(at));
    let delay = entry.reroute_after;
    if repair.is_some_and(|repair| repair <= fails) {
        return Err(entry.refuse(Failure::repair, "it must come after the failure"));
    }
    let event = |at, happening| Event { at, happening };
    let mut events =
        vec![event(fails, FailureEvent::Fails(link)), event(fails + delay, FailureEvent::IsKnown)];
    events.extend(repair.into_iter().flat_map(|repair| {
        [event(repair, FailureEvent::IsRepaired(link)), event(repair + delay, FailureEvent::IsKnown)]
    }));
    Ok(events)
}

/// Events by time; those at the same time in the order of the file.
pub(super) fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.at);
    events
}

fn link(entry: &Typed<'_, Failure>, topology: &Topology) -> Result<LinkId, Problem> {
    let [a, b] = entry.link.as_slice() else {
        return Err(entry.refuse(Failure::link, "expected two names, as in [\"edge0\", \"agg0\"]"));
    };
    let refuse = |reason: String| entry.refuse(Failure::link, reason);
    let (a_node, b_node) = (node(topology, a).map_err(refuse)?, node(topology, b).map_err(refuse)?);
    let found = topology.links().iter().position(|link| {
        let ends = link.ends.map(|end| end.node);
        ends == [a_node, b_node] || ends == [b_node, a_node]
    });
    found.map(|link| LinkId(link as u32)).ok_or_else(|| refuse(format!("no link connects {a} and {b}")))
}
