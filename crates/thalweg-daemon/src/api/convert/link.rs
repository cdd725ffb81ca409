//! Links, and how they are named.

use thalweg_api::{Link, LinkName, WayName};
use thalweg_measure::collector::{LinkDirection, LinkReport, PortDirection};

use super::rate;

/// A link as the collector of this name sees it at this switch; `peer` is who is at the other end.
pub fn link(report: &LinkReport, collector: &str, switch: &str, peer: Option<&str>) -> Link {
    let LinkDirection { port, direction: way } = report.side;
    Link {
        link: link_name(switch, report.side).to_string(),
        collector: collector.to_owned(),
        switch: switch.to_owned(),
        port: port.0,
        way: way_name(way),
        peer: peer.map(str::to_owned),
        capacity_bps: report.capacity.0,
        rate_bps: rate(report.rate),
        smoothed_bps: report.smoothed,
        utilisation: report.utilisation,
        flows: report.flows,
        changed: report.changed.into(),
    }
}

fn way_name(way: PortDirection) -> WayName {
    match way {
        PortDirection::Input => WayName::In,
        PortDirection::Output => WayName::Out,
    }
}

/// The name of one direction of a link.
pub fn link_name(switch: &str, side: LinkDirection) -> LinkName {
    LinkName { switch: switch.to_owned(), port: side.port.0, way: way_name(side.direction) }
}
