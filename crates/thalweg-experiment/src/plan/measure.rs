//! `[measure]`.

use thalweg_config::Typed;
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::Nanos;

use super::Stage;
use super::network::ports;
use crate::experiment::Problem;
use crate::experiment::table;

/// The largest number of queue samples and link intervals, which are kept until the end.
const MAX_ROWS: u64 = 1 << 21;

/// What is recorded.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Slots between queue samples.
    pub queue_slots: u64,
    /// Slots per link interval.
    pub link_slots: u64,
    /// Ports whose queues are sampled, in order.
    pub ports: Vec<(RouterId, PortIndex)>,
    /// The time between queue samples, if the file says it.
    pub queue_interval: Option<Nanos>,
    /// Whether the file names the ports.
    pub names_ports: bool,
}

/// What is recorded.
///
/// # Errors
/// If a port does not exist, or there would be too many rows.
pub(super) fn measure(
    entry: &Typed<'_, table::Measure>,
    duration: Nanos,
    stage: &Stage<'_>,
) -> Result<Measure, Problem> {
    let topology = stage.topology;
    let all = || {
        topology
            .router_ids()
            .flat_map(|router| (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port))))
    };
    let ports = match &entry.ports {
        Some(names) => {
            ports(topology, names).map_err(|reason| entry.refuse(table::Measure::ports, reason))?
        }
        None => all().collect(),
    };
    let slots = stage.clock.slots_in(duration);
    let directions = 2 * topology.links().len() as u64;
    let interval = |key: &'static str, given: Option<Nanos>, parts: u64, series: u64| {
        let most = (MAX_ROWS / series.max(1)).max(1);
        let interval = match given {
            Some(interval) => stage.clock.slots_in(interval),
            None => slots.div_ceil(parts.min(most)),
        }
        .max(1);
        let rows = (slots / interval).saturating_mul(series);
        match rows > MAX_ROWS && given.is_some() {
            true => Err(entry.refuse(
                key,
                format!("it gives {rows} rows, more than {MAX_ROWS}: use a longer interval or fewer ports"),
            )),
            false => Ok(interval),
        }
    };
    Ok(Measure {
        queue_slots: interval(
            table::Measure::queue_interval,
            entry.queue_interval,
            1_000,
            ports.len() as u64,
        )?,
        link_slots: interval(table::Measure::link_interval, entry.link_interval, 100, directions)?,
        ports,
        queue_interval: entry.queue_interval,
        names_ports: entry.ports.is_some(),
    })
}
