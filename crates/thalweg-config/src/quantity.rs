//! Types whose values are written as one string or one number: times, rates, amounts, numbers, names.

use std::num::NonZeroUsize;

use serde_json::{Value, json};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::literal::Form;

/// A type whose values are written as one string or one number.
pub trait Quantity: Sized {
    /// The form of the values in TOML.
    const FORM: Form;

    /// Describes the accepted values, to follow the word "expected".
    fn expected() -> String;

    /// Parses a value as written, without quotes; `None` if it is invalid.
    fn read(text: &str) -> Option<Self>;

    /// Returns the JSON Schema of the accepted values.
    fn schema() -> Value;
}

/// Parses the value of a flag.
///
/// # Errors
/// If the value is invalid. The error describes the accepted values.
pub fn read_flag<T: Quantity>(text: &str) -> Result<T, String> {
    T::read(text).ok_or_else(|| format!("expected {}", T::expected()))
}

/// A time in a file is longer than zero, except a [`Delay`](super::kind::Delay).
impl Quantity for Nanos {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "a time above zero with a unit (ns, us, ms, s, min, h), such as 100ms or 1.5s".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|&span| span > Nanos::ZERO)
    }

    fn schema() -> Value {
        time_schema()
    }
}

impl Quantity for BitRate {
    const FORM: Form = Form::Quantity;

    fn expected() -> String {
        "a bit rate, such as 800kbps, 50mbps or 1.5gbps".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn schema() -> Value {
        rate_schema(0)
    }
}

impl Quantity for Bytes {
    const FORM: Form = Form::Quantity;

    fn expected() -> String {
        "an amount of data, such as 600, 192B, 1.5GB or 64MiB".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn schema() -> Value {
        amount_schema(0)
    }
}

impl Quantity for NonZeroUsize {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        "an integer of at least 1".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1 })
    }
}

impl Quantity for u64 {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        "an integer from 0 to 2^64 - 1".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}

impl Quantity for bool {
    const FORM: Form = Form::Boolean;

    fn expected() -> String {
        "true or false".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

/// Any text, validated on use.
impl Quantity for String {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "text".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

pub(crate) fn time_schema() -> Value {
    let pattern = "^\\s*[0-9.]+\\s*([nNuU\u{b5}mM]?[sS]|[sS][eE][cC]|[mM]([iI][nN])?|[hH])\\s*$";
    json!({ "type": "string", "pattern": pattern })
}

pub(crate) fn rate_schema(min: u64) -> Value {
    json!({ "anyOf": [
        { "type": "string", "pattern": "^\\s*[0-9.]+\\s*[kKmMgGtT]?([bB][iI][tT][sS]?(/[sS])?|[bB][pP][sS]|[bB]/[sS])?$" },
        { "type": "integer", "minimum": min },
    ] })
}

pub(crate) fn amount_schema(min: u64) -> Value {
    json!({ "anyOf": [
        { "type": "string", "pattern": "^\\s*[0-9.]+\\s*([bB]|[kKmMgGtT]([iI]?[bB])?)?$" },
        { "type": "integer", "minimum": min },
    ] })
}
