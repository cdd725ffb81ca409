//! Names in the API's JSON as values of the daemon: of what is asked for, and of what another daemon tells.

use thalweg_api::{Basis, CrossingName, LinkName, WayName};
use thalweg_measure::collector::{Crossing, LinkDirection, PortDirection};
use thalweg_measure::rates;
use thalweg_network::PortIndex;

/// Which way a threshold was crossed.
pub(crate) fn crossing(name: CrossingName) -> Crossing {
    match name {
        CrossingName::Upwards => Crossing::Upwards,
        CrossingName::Downwards => Crossing::Downwards,
        CrossingName::Remains => Crossing::Remains,
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
    let way = match name.way {
        WayName::In => PortDirection::Input,
        WayName::Out => PortDirection::Output,
    };
    LinkDirection { port: PortIndex(name.port), direction: way }
}
