//! Converts names in the API's JSON to the daemon's values: those in requests, and those in other daemons' events.

use thalweg_api::{Basis, CrossingName, DirectionName, LinkName};
use thalweg_measure::collector::{Crossing, LinkDirection, PortDirection};
use thalweg_measure::rates;
use thalweg_network::PortIndex;

/// How a threshold was crossed.
pub(crate) fn crossing(name: CrossingName) -> Crossing {
    match name {
        CrossingName::Upwards => Crossing::Upwards,
        CrossingName::Downwards => Crossing::Downwards,
        CrossingName::Repeated => Crossing::Remains,
    }
}

/// What the rate of a flow was derived from.
pub(crate) fn basis(basis: Basis) -> rates::Basis {
    match basis {
        Basis::Nothing => rates::Basis::Nothing,
        Basis::SequenceNumbers => rates::Basis::SequenceNumbers,
        Basis::SamplingRatio => rates::Basis::SamplingRatio,
        Basis::SamplesAlone => rates::Basis::SamplesAlone,
    }
}

/// Which side of its switch a link is.
pub(crate) fn side(name: &LinkName) -> LinkDirection {
    let direction = match name.direction {
        DirectionName::In => PortDirection::Input,
        DirectionName::Out => PortDirection::Output,
    };
    LinkDirection { port: PortIndex(name.port), direction }
}
