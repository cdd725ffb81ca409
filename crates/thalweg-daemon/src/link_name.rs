//! Names of link directions, from and to those of a collector.

use thalweg_api::{DirectionName, LinkName};
use thalweg_measure::collector::{LinkDirection, PortDirection};
use thalweg_network::PortIndex;

/// Returns the name of one direction of a link at a switch.
pub(crate) fn link_name(switch: &str, LinkDirection { port, direction }: LinkDirection) -> LinkName {
    LinkName::new(switch, port.0, direction_name(direction))
}

/// Returns the name of a direction.
pub(crate) fn direction_name(direction: PortDirection) -> DirectionName {
    match direction {
        PortDirection::Input => DirectionName::In,
        PortDirection::Output => DirectionName::Out,
    }
}

/// Converts the name of a link to its port and direction.
pub(crate) fn side(name: &LinkName) -> LinkDirection {
    let direction = match name.direction {
        DirectionName::In => PortDirection::Input,
        DirectionName::Out => PortDirection::Output,
    };
    LinkDirection { port: PortIndex(name.port), direction }
}
