//! `[flow_series]` and `[queue_series]`.

use thalweg_config::Typed;
use thalweg_network::{EndpointId, PortIndex, RouterId};

use super::Stage;
use super::network::{endpoints, ports};
use crate::experiment::Problem;
use crate::experiment::table;

/// The largest number of rows that `largest` keeps in memory until the end.
pub(crate) const MAX_KEPT_ROWS: u64 = 1 << 20;

/// Which flows are sampled, and when.
#[derive(Clone, Debug)]
pub struct FlowSeriesPlan {
    /// Slots between samples.
    pub interval_slots: Option<u64>,
    /// Whether each change of a window gives a sample.
    pub changes: bool,
    /// Senders, in order.
    pub sources: Option<Vec<EndpointId>>,
    /// Receivers, in order.
    pub destinations: Option<Vec<EndpointId>>,
    /// The position of the workload, from 0.
    pub workload: Option<usize>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// The smallest flow in bytes.
    pub min_size: u64,
    /// Only this many of the largest flows.
    pub largest: Option<usize>,
}

/// Which queues are sampled, and when.
#[derive(Clone, Debug)]
pub struct QueueSeriesPlan {
    /// Slots per sample.
    pub interval_slots: u64,
    /// Ports, in order.
    pub ports: Vec<(RouterId, PortIndex)>,
    /// Whether classes are sampled apart.
    pub classes: bool,
}

/// The samples of flows; `None` if the file asks for none.
///
/// # Errors
/// If an endpoint or workload does not exist, nothing says when to sample, or there would be too many rows.
pub(super) fn flow_series(
    entry: &Typed<'_, table::FlowSeries>,
    workloads: usize,
    stage: &Stage<'_>,
) -> Result<Option<FlowSeriesPlan>, Problem> {
    use table::FlowSeries as Key;
    let named = |key, names: &Option<Vec<String>>| {
        let found = names.as_ref().map(|names| endpoints(stage.topology, names)).transpose();
        let sorted = |mut found: Vec<EndpointId>| {
            found.sort_unstable();
            found
        };
        found.map(|found| found.map(sorted)).map_err(|reason| entry.refuse(key, reason))
    };
    let interval_slots = entry.interval.map(|interval| stage.clock.slots_in(interval).max(1));
    let plan = FlowSeriesPlan {
        interval_slots,
        changes: entry.changes,
        sources: named(Key::sources, &entry.sources)?,
        destinations: named(Key::destinations, &entry.destinations)?,
        workload: entry.workload.map(|number| number as usize - 1),
        dscp: entry.dscp,
        min_size: entry.min_size.map_or(0, |size| size.0),
        largest: entry.largest.map(|most| most as usize),
    };
    if plan.workload.is_some_and(|workload| workload >= workloads) {
        let reason = format!("there are {workloads} [[workload]] sections: expected 1 to {workloads}");
        return Err(entry.refuse(Key::workload, reason));
    }
    if interval_slots.is_none() && !plan.changes {
        let filters =
            [Key::sources, Key::destinations, Key::workload, Key::dscp, Key::min_size, Key::largest];
        return match filters.into_iter().find(|key| entry.is_set(key)) {
            Some(key) => {
                Err(entry.refuse(key, "no flow is sampled: add interval = \"100us\", or changes = true"))
            }
            None => Ok(None),
        };
    }
    let kept = plan.largest.zip(interval_slots).map(|(largest, interval)| {
        let slots = stage.clock.slot_at(stage.until).0;
        (slots / interval).saturating_mul(largest as u64)
    });
    match kept.filter(|&rows| rows > MAX_KEPT_ROWS) {
        Some(rows) => Err(entry.refuse(
            Key::largest,
            format!(
                "it keeps {rows} rows until the end, at most {MAX_KEPT_ROWS} are kept: use a longer interval, fewer flows, or \
                 min_size instead"
            ),
        )),
        None => Ok(Some(plan)),
    }
}

/// The samples of queues; `None` if the file asks for none.
///
/// # Errors
/// If a port does not exist, or no interval is set.
pub(super) fn queue_series(
    entry: &Typed<'_, table::QueueSeries>,
    stage: &Stage<'_>,
) -> Result<Option<QueueSeriesPlan>, Problem> {
    use table::QueueSeries as Key;
    let topology = stage.topology;
    let all = || {
        let of_router =
            |router| (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port)));
        topology.router_ids().flat_map(of_router).collect()
    };
    let found = match &entry.ports {
        Some(names) => ports(topology, names).map_err(|reason| entry.refuse(Key::ports, reason))?,
        None => all(),
    };
    let Some(interval) = entry.interval else {
        let refuse = |key| Err(entry.refuse(key, "no queue is sampled: add interval = \"100us\""));
        return match (&entry.ports, entry.classes) {
            (Some(_), _) => refuse(Key::ports),
            (None, true) => refuse(Key::classes),
            (None, false) => Ok(None),
        };
    };
    let interval_slots = stage.clock.slots_in(interval).max(1);
    Ok(Some(QueueSeriesPlan { interval_slots, ports: found, classes: entry.classes }))
}
