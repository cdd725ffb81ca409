//! Types of values, and their text in messages.

use std::str::FromStr;

use serde_json::{Value, json};
use thalweg_config::Form;
use thalweg_config::quantity::Quantity;
pub use thalweg_config::quantity::read_flag as parse;
use thalweg_measure::filter::{FlowFilter, METERED};
use thalweg_wire::{Nanos, Protocol};

/// A probability above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// A list of protocols, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols(pub Vec<Protocol>);

/// A flow filter for metered flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeteredFilter(pub FlowFilter);

impl FromStr for MeteredFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        FlowFilter::compile(text, &METERED).map(MeteredFilter).map_err(|error| {
            format!("{error} (a flow filter is in nfdump's language, a capture filter in tcpdump's)")
        })
    }
}

impl Quantity for Probability {
    const FORM: Form = Form::Number;

    fn expected() -> String {
        "a probability above 0 and at most 1, such as 0.5".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|&p| p > 0.0 && p <= 1.0).map(Probability)
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
    }
}

/// Parses `icmp,icmp6`, `89`, or empty text.
impl FromStr for Protocols {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Protocols(Vec::new()));
        }
        let protocol = |name: &str| {
            name.trim()
                .parse()
                .map_err(|()| format!("{name:?}: expected the name or number of an IP protocol"))
        };
        text.split(',').map(protocol).collect::<Result<_, _>>().map(Protocols)
    }
}

/// Formats a time exactly, in the largest unit of which it is a multiple.
pub fn format_time(time: Nanos) -> String {
    const UNITS: [(u64, &str); 4] =
        [(60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(size, _)| time.0 > 0 && time.0.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", time.0 / size),
        None => format!("{}ns", time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_config::Literal;
    use thalweg_config::kind::{Choices, Reads, Whole};

    use crate::config::settings::ShowChoice;

    #[test]
    fn times_have_the_largest_exact_unit() {
        assert_eq!(format_time(Nanos::from_millis(100)), "100ms");
        assert_eq!(format_time(Nanos::from_secs(1800)), "30min");
        assert_eq!(format_time(Nanos(1_500)), "1500ns");
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        let count = |text: &str| -> Option<u32> { Whole(1, 1 << 31).read(&Literal::Single(text.to_owned())) };
        assert_eq!(Nanos::read("0s"), None);
        assert_eq!(count("0"), None);
        assert_eq!(count("2147483648"), Some(1 << 31));
        assert_eq!(count("2147483649"), None);
        assert_eq!(std::num::NonZeroUsize::read("0"), None);
        for text in ["0", "-0.5", "1.01", "NaN", "inf"] {
            assert_eq!(Probability::read(text), None, "{text}");
        }
        assert!("icmp,".parse::<Protocols>().is_err());
        assert_eq!(ShowChoice::named("everything"), None);
    }

    proptest! {
        #[test]
        fn formatted_values_parse_to_themselves(
            // Quantities are parsed as f64, which represents integers up to 2^53 exactly.
            number in 1..1u64 << 53, numbers in any::<Vec<u8>>()
        ) {
            prop_assert_eq!(Nanos::read(&format_time(Nanos(number))), Some(Nanos(number)));
            let protocols = Protocols(numbers.into_iter().map(Protocol).collect());
            let names: Vec<String> = protocols.0.iter().map(Protocol::to_string).collect();
            prop_assert_eq!(names.join(",").parse::<Protocols>().ok(), Some(protocols));
        }
    }
}
