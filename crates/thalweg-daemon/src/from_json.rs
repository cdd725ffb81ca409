//! Converts names in the API's JSON to values of the daemon, for requests and for events of other daemons.

use thalweg_api::{Basis, CongestionChangeName};
use thalweg_measure::collector::CongestionChange;
use thalweg_measure::rates;

/// Converts the change of a link's congestion.
pub(crate) fn congestion_change(name: CongestionChangeName) -> CongestionChange {
    match name {
        CongestionChangeName::Began => CongestionChange::Began,
        CongestionChangeName::Cleared => CongestionChange::Cleared,
        CongestionChangeName::Repeated => CongestionChange::Repeated,
    }
}

/// Converts the basis of a rate.
pub(crate) fn basis(basis: Basis) -> rates::Basis {
    match basis {
        Basis::Nothing => rates::Basis::Nothing,
        Basis::SequenceNumbers => rates::Basis::SequenceNumbers,
        Basis::Identification => rates::Basis::Identification,
        Basis::SamplingRatio => rates::Basis::SamplingRatio,
        Basis::SamplesAlone => rates::Basis::SamplesAlone,
    }
}
