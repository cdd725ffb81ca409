//! How each kind of value is written, in the configuration file and behind a flag alike.
//!
//! Both hand over text, so that `flight_duration = "100ms"` and `--flight-duration 100ms` are read by the same
//! lines. What TOML itself tells apart (strings, numbers, booleans, lists) is checked by [`Form`].

use std::num::NonZeroUsize;

use clap::ValueEnum;
use thalweg_measure::tasks::{Sampling, TaskList};
use thalweg_records::export::Destination;
use thalweg_wire::{BitRate, Bytes, Nanos, Protocol};

use super::settings::{BackendName, DetectorName, ShowChoice, TimesName};

/// Most flows that a table or a cache can hold: what 32-bit slot numbers can tell apart, with room for marks.
const MAX_FLOWS: u32 = 1 << 31;

/// What a value looks like in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A string: `"100ms"`.
    Text,
    /// A string, or an integer in the basic unit: `"64MiB"`, `67108864`.
    Quantity,
    /// An integer: `10`.
    Integer,
    /// An integer or a fraction: `0.5`.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings: `["icmp", "icmp6"]`; behind a flag separated by commas.
    List,
}

impl Form {
    /// TOML for a value that [`Value::write`] wrote.
    pub fn in_toml(self, text: &str) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match self {
            Form::Text | Form::Quantity => quoted(text),
            Form::Integer | Form::Number | Form::Boolean => text.to_owned(),
            Form::List if text.is_empty() => "[]".to_owned(),
            Form::List => format!("[{}]", text.split(',').map(quoted).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// A value that can be set.
pub trait Value: Sized + Clone + PartialEq {
    /// How TOML writes it.
    const FORM: Form;

    /// What is expected, to be read after "expected".
    fn expected() -> String;

    /// Reads it as a person writes it, without TOML's quotes; `None` if it is not as expected.
    fn read(text: &str) -> Option<Self>;

    /// Writes it as [`Value::read`] reads it.
    fn write(&self) -> String;

    /// What is wrong with text that [`Value::read`] refuses.
    fn complaint(_text: &str) -> Complaint {
        Complaint::Expected(Self::expected())
    }
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// Something else was expected: to be read after "expected".
    Expected(String),
    /// What is wrong, in words of the value's own.
    Own(String),
}

/// Reads a flag's value.
///
/// # Errors
/// Says what is expected.
pub(crate) fn parse<T: Value>(text: &str) -> Result<T, String> {
    T::read(text).ok_or_else(|| match T::complaint(text) {
        Complaint::Expected(expected) => format!("expected {expected}"),
        Complaint::Own(complaint) => complaint,
    })
}

/// Reads the value of a flag that says the opposite of its key, as `--no-promiscuous` does.
///
/// # Errors
/// Says what is expected.
pub(super) fn parse_negated(text: &str) -> Result<bool, String> {
    parse::<bool>(text).map(|value| !value)
}

/// A probability above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// A number of flows that a table can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCount(pub u32);

/// A list of protocols, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols(pub Vec<Protocol>);

/// Every length of time that can be set is longer than zero.
impl Value for Nanos {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "a time longer than zero, such as 200us, 100ms, 1.5s or 30min".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|&span| span > Nanos::ZERO)
    }

    fn write(&self) -> String {
        const UNITS: [(u64, &str); 4] =
            [(60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        in_whole_units(self.0, &UNITS, "ns")
    }
}

impl Value for BitRate {
    const FORM: Form = Form::Quantity;

    fn expected() -> String {
        "a bit rate, such as 800kbps, 50mbps or 1.5gbps".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "gbps"), (1_000_000, "mbps"), (1_000, "kbps")];
        in_whole_units(self.0, &UNITS, "bps")
    }
}

impl Value for Bytes {
    const FORM: Form = Form::Quantity;

    fn expected() -> String {
        "an amount of data, such as 600, 192B, 1.5GB or 64MiB".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        in_whole_units(self.0, &UNITS, "B")
    }
}

/// `value` in the largest unit of which it is a multiple.
fn in_whole_units(value: u64, units: &[(u64, &str)], basic_unit: &str) -> String {
    match units.iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", value / size),
        None => format!("{value}{basic_unit}"),
    }
}

impl Value for NonZeroUsize {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        "an integer of at least 1".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        "an integer from 0 to 2^64 - 1".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for FlowCount {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        "an integer from 1 to 2147483648".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|count| (1..=MAX_FLOWS).contains(count)).map(FlowCount)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

impl Value for Probability {
    const FORM: Form = Form::Number;

    fn expected() -> String {
        "a probability above 0 and at most 1, such as 0.5".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|&p| p > 0.0 && p <= 1.0).map(Probability)
    }

    fn write(&self) -> String {
        format!("{:?}", self.0)
    }
}

impl Value for bool {
    const FORM: Form = Form::Boolean;

    fn expected() -> String {
        "true or false".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// Any text; whoever uses it judges it.
impl Value for String {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "text".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for Protocols {
    const FORM: Form = Form::List;

    fn expected() -> String {
        "names or numbers of IP protocols, such as icmp, icmp6, 89".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Protocols(Vec::new()));
        }
        text.split(',').map(|name| name.trim().parse().ok()).collect::<Option<_>>().map(Protocols)
    }

    fn write(&self) -> String {
        let names: Vec<String> = self.0.iter().map(Protocol::to_string).collect();
        names.join(",")
    }
}

impl Value for TaskList {
    const FORM: Form = Form::List;

    fn expected() -> String {
        "measurement tasks, such as heavy:0.1%, entropy:src, distinct".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn complaint(text: &str) -> Complaint {
        text.parse::<Self>()
            .map_or_else(|error| Complaint::Own(error.to_string()), |_| Complaint::Expected(Self::expected()))
    }
}

impl Value for Sampling {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "1, 1/2, 1/4, ... 1/1024, line-rate or correct".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for ShowChoice {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        one_of::<ShowChoice>()
    }

    fn read(text: &str) -> Option<Self> {
        ValueEnum::from_str(text, false).ok()
    }

    fn write(&self) -> String {
        name_of(self)
    }
}

impl Value for TimesName {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        one_of::<TimesName>()
    }

    fn read(text: &str) -> Option<Self> {
        ValueEnum::from_str(text, false).ok()
    }

    fn write(&self) -> String {
        name_of(self)
    }
}

impl Value for BackendName {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        one_of::<BackendName>()
    }

    fn read(text: &str) -> Option<Self> {
        ValueEnum::from_str(text, false).ok()
    }

    fn write(&self) -> String {
        name_of(self)
    }
}

impl Value for Destination {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739 or tcp://[::1]".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for DetectorName {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        one_of::<DetectorName>()
    }

    fn read(text: &str) -> Option<Self> {
        ValueEnum::from_str(text, false).ok()
    }

    fn write(&self) -> String {
        name_of(self)
    }
}

fn one_of<T: ValueEnum>() -> String {
    let names: Vec<String> = T::value_variants().iter().map(name_of).collect();
    format!("one of {}", names.join(", "))
}

fn name_of<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reads_back<T: Value + std::fmt::Debug>(value: T) {
        assert_eq!(T::read(&value.write()), Some(value));
    }

    #[test]
    fn values_are_written_in_the_unit_that_fits() {
        assert_eq!(Nanos::from_millis(100).write(), "100ms");
        assert_eq!(Nanos::from_secs(1800).write(), "30min");
        assert_eq!(Nanos(1_500).write(), "1500ns");
        assert_eq!(BitRate(50_000_000).write(), "50mbps");
        assert_eq!(Bytes(64 << 20).write(), "64MiB");
        assert_eq!(Bytes(192).write(), "192B");
        assert_eq!(Bytes(0).write(), "0B");
        assert_eq!(Probability(1.0).write(), "1.0");
        assert_eq!(Protocols(vec![Protocol::ICMP, Protocol(200)]).write(), "icmp,proto-200");
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        assert_eq!(Nanos::read("0s"), None);
        assert_eq!(FlowCount::read("0"), None);
        assert_eq!(FlowCount::read("2147483648"), Some(FlowCount(MAX_FLOWS)));
        assert_eq!(FlowCount::read("2147483649"), None);
        assert_eq!(NonZeroUsize::read("0"), None);
        for text in ["0", "-0.5", "1.01", "NaN", "inf"] {
            assert_eq!(Probability::read(text), None, "{text}");
        }
        assert_eq!(Protocols::read("icmp,"), None);
        assert_eq!(ShowChoice::read("everything"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            // Quantities are read through f64, which holds integers up to 2^53.
            number in 1..1u64 << 53, flows in 1..=MAX_FLOWS, share in 1e-9..=1.0, numbers in any::<Vec<u8>>()
        ) {
            reads_back(Nanos(number));
            reads_back(BitRate(number));
            reads_back(Bytes(number));
            reads_back(number);
            reads_back(FlowCount(flows));
            reads_back(Probability(share));
            reads_back(Protocols(numbers.into_iter().map(Protocol).collect()));
        }
    }
}
