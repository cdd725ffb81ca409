//! Links and their names.

use thalweg_api::Link;
use thalweg_measure::collector::{LinkDirection, LinkReport};
use thalweg_wire::Timestamp;

use super::rate;
use crate::link_name::{direction_name, link_name};

/// What the topology says about a link at a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLink<'a> {
    /// Name of the node at the other end.
    pub peer: Option<&'a str>,
    /// The switch's own name of the port.
    pub port_name: Option<&'a str>,
}

/// Converts a link as this collector sees it at this switch.
pub fn link(report: &LinkReport, collector: &str, switch: &str, known: KnownLink<'_>) -> Link {
    let LinkDirection { port, direction } = report.side;
    Link {
        link: link_name(switch, report.side).to_string(),
        collector: collector.to_owned(),
        switch: switch.to_owned(),
        port: port.0,
        port_name: known.port_name.map(str::to_owned),
        direction: direction_name(direction),
        peer: known.peer.map(str::to_owned),
        capacity_bps: report.capacity.0,
        rate: rate(report.rate),
        smoothed_bps: report.smoothed,
        peak_bps: report.peak,
        utilisation: report.utilisation,
        flows: report.flows,
        changed: (report.changed != Timestamp::default()).then(|| report.changed.into()),
    }
}
