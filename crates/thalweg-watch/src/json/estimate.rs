//! Estimates as flat fields: `NAME`, `NAME_lower`, `NAME_upper`, `confidence` and `bounds`.

use serde::ser::{Serialize, SerializeMap, Serializer};
use thalweg_api::BoundKind;
use thalweg_sketch::{Bound, Estimate};

/// The bounds of an estimate. JSON has no infinity, so that an infinite upper bound is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateBounds {
    /// The lower bound.
    pub lower: Option<f64>,
    /// The upper bound.
    pub upper: Option<f64>,
    /// Probability with which the bounds hold, at least.
    pub confidence: Option<f64>,
    /// Which of them exist.
    pub kind: BoundKind,
}

impl From<&Estimate> for EstimateBounds {
    fn from(estimate: &Estimate) -> EstimateBounds {
        let upper = estimate.upper().filter(|upper| upper.is_finite());
        let kind = match estimate.bound {
            Bound::Interval { .. } if upper.is_none() => BoundKind::LowerBound,
            Bound::Interval { .. } => BoundKind::Interval,
            Bound::NotConverged => BoundKind::NotConverged,
            _ => BoundKind::Unknown,
        };
        EstimateBounds { lower: estimate.lower(), upper, confidence: estimate.confidence(), kind }
    }
}

/// An estimate that serialises as a map, for `#[serde(flatten)]`.
#[derive(Clone, Copy, Debug)]
pub struct FlatEstimate {
    name: &'static str,
    estimate: Estimate,
    is_only: bool,
}

impl FlatEstimate {
    /// The only estimate of an object: `confidence` and `bounds` have no prefix.
    pub fn only(name: &'static str, estimate: Estimate) -> FlatEstimate {
        FlatEstimate { name, estimate, is_only: true }
    }

    /// One of several estimates of an object: its name is also the prefix of `confidence` and `bounds`.
    pub fn one_of_several(name: &'static str, estimate: Estimate) -> FlatEstimate {
        FlatEstimate { name, estimate, is_only: false }
    }

    /// The names of the fields: value, lower bound, upper bound, confidence, kind of bounds.
    pub fn field_names(name: &str, is_only: bool) -> [String; 5] {
        let prefix = if is_only { String::new() } else { format!("{name}_") };
        [
            name.to_owned(),
            format!("{name}_lower"),
            format!("{name}_upper"),
            format!("{prefix}confidence"),
            format!("{prefix}bounds"),
        ]
    }

    /// Adds the fields to a map.
    ///
    /// # Errors
    /// If the serialiser fails.
    pub fn add_to<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let EstimateBounds { lower, upper, confidence, kind } = EstimateBounds::from(&self.estimate);
        let [value_name, lower_name, upper_name, confidence_name, bounds_name] =
            FlatEstimate::field_names(self.name, self.is_only);
        map.serialize_entry(&value_name, &self.estimate.value)?;
        map.serialize_entry(&lower_name, &lower)?;
        map.serialize_entry(&upper_name, &upper)?;
        map.serialize_entry(&confidence_name, &confidence)?;
        map.serialize_entry(&bounds_name, &kind)
    }
}

impl Serialize for FlatEstimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        self.add_to(&mut map)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_upper_bound_is_absent() {
        let bounds = EstimateBounds::from(&Estimate::within(5.0, 4.0, f64::INFINITY, 1.0));
        assert_eq!((bounds.kind, bounds.lower, bounds.upper), (BoundKind::LowerBound, Some(4.0), None));
        let bounds = EstimateBounds::from(&Estimate { value: 5.0, bound: Bound::Unknown });
        assert_eq!((bounds.kind, bounds.lower, bounds.confidence), (BoundKind::Unknown, None, None));
    }

    #[test]
    fn fields_of_one_of_several_estimates_have_a_prefix() {
        let names = FlatEstimate::field_names("before", false);
        assert_eq!(names, ["before", "before_lower", "before_upper", "before_confidence", "before_bounds"]);
        let names = FlatEstimate::field_names("peers", true);
        assert_eq!(names, ["peers", "peers_lower", "peers_upper", "confidence", "bounds"]);
    }
}
