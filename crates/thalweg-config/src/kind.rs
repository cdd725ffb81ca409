//! Kinds of values: how a value is written, which values are accepted, and the type that it parses to.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use serde_json::{Value, json};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::literal::{Form, Literal};
use super::quantity::{Quantity, amount_schema, rate_schema, time_schema};

/// A named choice and its summary.
pub type Choice = (&'static str, String);

/// The values that a key accepts.
pub trait Kind: Sync {
    /// The form of the value in TOML and JSON.
    fn form(&self) -> Form;

    /// Describes the accepted values, to follow the word "expected".
    fn expected(&self) -> String;

    /// Describes the accepted values in a file, quotes and brackets included.
    fn expected_in_file(&self) -> String {
        match self.form() {
            Form::Text | Form::Quantity => format!("{}, in quotes", self.expected()),
            _ => self.expected(),
        }
    }

    /// Returns a specific reason why a value is rejected, if the kind has one.
    fn rejection(&self, _literal: &Literal) -> Option<String> {
        None
    }

    /// Returns the names to choose from; empty for other kinds.
    fn choices(&self) -> Vec<Choice> {
        Vec::new()
    }

    /// Returns the JSON Schema of the accepted values.
    fn schema(&self) -> Value;
}

/// A kind whose values parse to `T`.
pub trait Reads<T>: Kind {
    /// Parses a value; `None` if it is invalid.
    fn read(&self, literal: &Literal) -> Option<T>;
}

/// The kind of any value of type `T`.
pub struct Of<T>(PhantomData<fn() -> T>);

/// Returns the kind of any value of type `T`.
pub const fn of<T>() -> Of<T> {
    Of(PhantomData)
}

impl<T: Quantity> Kind for Of<T> {
    fn form(&self) -> Form {
        T::FORM
    }

    fn expected(&self) -> String {
        T::expected()
    }

    fn expected_in_file(&self) -> String {
        match T::FORM {
            Form::Quantity => format!("{}, in quotes if it has a unit", self.expected()),
            Form::Text => format!("{}, in quotes", self.expected()),
            _ => self.expected(),
        }
    }

    fn schema(&self) -> Value {
        T::schema()
    }
}

impl<T: Quantity> Reads<T> for Of<T> {
    fn read(&self, literal: &Literal) -> Option<T> {
        single(literal).and_then(T::read)
    }
}

fn single(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::Single(text) => Some(text),
        Literal::List(_) => None,
    }
}

/// Declares a kind without parameters.
macro_rules! plain_kind {
    ($(#[$meta:meta])* $name:ident reads $type:ty, $form:expr, $expected:expr, $read:expr, $schema:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Kind for $name {
            fn form(&self) -> Form {
                $form
            }

            fn expected(&self) -> String {
                $expected
            }

            fn schema(&self) -> Value {
                $schema
            }
        }

        impl Reads<$type> for $name {
            fn read(&self, literal: &Literal) -> Option<$type> {
                let read: fn(&str) -> Option<$type> = $read;
                single(literal).and_then(read)
            }
        }
    };
}

plain_kind!(
    /// A duration above zero.
    Time reads Nanos, Form::Text, Nanos::expected(), <Nanos as Quantity>::read, time_schema()
);
plain_kind!(
    /// A duration that may be zero.
    Delay reads Nanos, Form::Text,
    "a time with a unit, such as 0s, 200us, 100ms or 1.5s".to_owned(),
    |text| text.parse().ok(), time_schema()
);
plain_kind!(
    /// Bits per second, above zero.
    Rate reads BitRate, Form::Quantity,
    "a bit rate above zero, such as 40mbps or 10gbps".to_owned(),
    |text| text.parse().ok().filter(|rate: &BitRate| rate.0 > 0), rate_schema(1)
);
plain_kind!(
    /// An amount of data, above zero.
    Amount reads Bytes, Form::Quantity,
    "an amount of data above zero, such as 1500B, 1.5GB or 64KiB".to_owned(),
    |text| text.parse().ok().filter(|bytes: &Bytes| bytes.0 > 0), amount_schema(1)
);
plain_kind!(
    /// A ratio from 0 to 1, both included.
    Share reads f64, Form::Number,
    "a number from 0 to 1".to_owned(),
    |text| text.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
);
plain_kind!(
    /// `true` or `false`.
    Boolean reads bool, Form::Boolean, bool::expected(), <bool as Quantity>::read, <bool as Quantity>::schema()
);

/// An integer from the first to the second, both included. Parses to any integer type; values beyond the type are
/// rejected.
#[derive(Clone, Copy, Debug)]
pub struct Whole(pub u64, pub u64);

impl Kind for Whole {
    fn form(&self) -> Form {
        Form::Integer
    }

    fn expected(&self) -> String {
        match *self {
            Whole(min, u64::MAX) => format!("an integer of at least {min}"),
            Whole(min, max) => format!("an integer from {min} to {max}"),
        }
    }

    fn schema(&self) -> Value {
        match *self {
            Whole(min, u64::MAX) => json!({ "type": "integer", "minimum": min }),
            Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        }
    }
}

impl<T: TryFrom<u64>> Reads<T> for Whole {
    fn read(&self, literal: &Literal) -> Option<T> {
        let number: u64 = single(literal)?.parse().ok()?;
        (self.0..=self.1).contains(&number).then(|| T::try_from(number).ok())?
    }
}

/// A number above the first and at most the second.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64, pub f64);

impl Kind for Number {
    fn form(&self) -> Form {
        Form::Number
    }

    fn expected(&self) -> String {
        match *self {
            Number(above, f64::INFINITY) => format!("a number above {above}"),
            Number(above, max) => format!("a number above {above}, at most {max}"),
        }
    }

    fn schema(&self) -> Value {
        match *self {
            Number(above, f64::INFINITY) => json!({ "type": "number", "exclusiveMinimum": above }),
            Number(above, max) => json!({ "type": "number", "exclusiveMinimum": above, "maximum": max }),
        }
    }
}

impl Reads<f64> for Number {
    fn read(&self, literal: &Literal) -> Option<f64> {
        single(literal)?.parse().ok().filter(|&number| number > self.0 && number <= self.1)
    }
}

/// Another kind, with a note about its values: a unit, an example.
#[derive(Clone, Copy, Debug)]
pub struct Noted<K>(pub K, pub &'static str);

impl<K: Kind> Kind for Noted<K> {
    fn form(&self) -> Form {
        self.0.form()
    }

    fn expected(&self) -> String {
        format!("{}{}", self.0.expected(), self.1)
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }
}

impl<T, K: Reads<T>> Reads<T> for Noted<K> {
    fn read(&self, literal: &Literal) -> Option<T> {
        self.0.read(literal)
    }
}

/// Any non-empty text, with a description of what is expected. It is validated on use.
#[derive(Clone, Copy, Debug)]
pub struct Text(pub &'static str);

impl Kind for Text {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    /// A description that contains quotes already shows the form in a file.
    fn expected_in_file(&self) -> String {
        match self.0.contains('"') {
            true => self.expected(),
            false => format!("{}, in quotes", self.0),
        }
    }

    fn schema(&self) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Reads<String> for Text {
    fn read(&self, literal: &Literal) -> Option<String> {
        single(literal).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// One or more texts, validated as [`Text`] is. They contain no commas: a flag separates them by commas.
#[derive(Clone, Copy, Debug)]
pub struct Texts(pub &'static str);

impl Kind for Texts {
    fn form(&self) -> Form {
        Form::Texts
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    fn schema(&self) -> Value {
        let text = json!({ "type": "string", "minLength": 1 });
        json!({ "anyOf": [text, { "type": "array", "items": text, "minItems": 1 }] })
    }
}

impl Reads<Vec<String>> for Texts {
    fn read(&self, literal: &Literal) -> Option<Vec<String>> {
        let texts = literal.texts();
        let is_plain = |text: &String| !text.is_empty() && !text.contains(',');
        let are_plain = !texts.is_empty() && texts.iter().all(is_plain);
        are_plain.then(|| texts.iter().map(|text| text.trim().to_owned()).collect())
    }
}

/// Text that parses to `T` by its `FromStr`, with a description of what is expected.
pub struct Parsed<T> {
    expected: &'static str,
    form: Form,
    shows_own_error: bool,
    of: PhantomData<fn() -> T>,
}

/// Returns the kind of text that parses to `T`.
pub const fn parsed<T>(expected: &'static str) -> Parsed<T> {
    Parsed { expected, form: Form::Text, shows_own_error: false, of: PhantomData }
}

impl<T> Parsed<T> {
    /// Makes the value a list, whose elements are joined by commas and parsed as one text.
    pub const fn as_list(self) -> Parsed<T> {
        Parsed { form: Form::List, ..self }
    }

    /// Shows the error of `T` for an invalid value.
    pub const fn with_own_error(self) -> Parsed<T> {
        Parsed { shows_own_error: true, ..self }
    }
}

impl<T: FromStr<Err: Display>> Kind for Parsed<T> {
    fn form(&self) -> Form {
        self.form
    }

    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn expected_in_file(&self) -> String {
        match self.form {
            Form::List => format!("a list of {}, each in quotes", self.expected),
            // A description that contains quotes already shows the form in a file.
            _ if self.expected.contains('"') => self.expected.to_owned(),
            _ => format!("{}, in quotes", self.expected),
        }
    }

    fn rejection(&self, literal: &Literal) -> Option<String> {
        match literal.text().parse::<T>() {
            Err(error) if self.shows_own_error => Some(error.to_string()),
            _ => None,
        }
    }

    fn schema(&self) -> Value {
        match self.form {
            Form::List => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
            _ => json!({ "type": "string" }),
        }
    }
}

impl<T: FromStr<Err: Display>> Reads<T> for Parsed<T> {
    fn read(&self, literal: &Literal) -> Option<T> {
        let is_plain = |text: &String| !text.is_empty() && !text.contains(',');
        match literal {
            Literal::List(texts) if !texts.iter().all(is_plain) => None,
            _ => literal.text().parse().ok(),
        }
    }
}

/// An enum of named choices with summaries. Implemented by [`choices!`](crate::choices).
pub trait Choices: Copy + Sized + 'static {
    /// All choices, each with its name and the lines of its summary.
    const ALL: &'static [(Self, &'static str, &'static [&'static str])];

    /// Returns the choice of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|&(choice, _, _)| choice)
    }
}

/// The kind of a name of one of the choices of `T`.
pub struct OneOf<T>(PhantomData<fn() -> T>);

/// Returns the kind of a name of one of the choices of `T`.
pub const fn one_of<T: Choices>() -> OneOf<T> {
    OneOf(PhantomData)
}

impl<T: Choices> Kind for OneOf<T> {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        one_of_names(T::ALL.iter().map(|(_, name, _)| *name))
    }

    fn choices(&self) -> Vec<Choice> {
        T::ALL.iter().map(|(_, name, summary)| (*name, super::text::join_lines(summary))).collect()
    }

    fn schema(&self) -> Value {
        names_schema(&self.choices())
    }
}

impl<T: Choices> Reads<T> for OneOf<T> {
    fn read(&self, literal: &Literal) -> Option<T> {
        single(literal).and_then(T::named)
    }
}

/// One of a list of names, with a function that summarises a name.
pub struct Named {
    /// The names.
    pub names: &'static [&'static str],
    /// Returns the summary of a name.
    pub summary: fn(&str) -> &'static str,
}

impl Kind for Named {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        one_of_names(self.names.iter().copied())
    }

    fn choices(&self) -> Vec<Choice> {
        self.names.iter().map(|name| (*name, (self.summary)(name).to_owned())).collect()
    }

    fn schema(&self) -> Value {
        names_schema(&self.choices())
    }
}

impl Reads<&'static str> for Named {
    fn read(&self, literal: &Literal) -> Option<&'static str> {
        let text = single(literal)?;
        self.names.iter().find(|name| **name == text).copied()
    }
}

fn one_of_names(names: impl Iterator<Item = &'static str>) -> String {
    format!("one of {}", names.collect::<Vec<_>>().join(", "))
}

fn names_schema(choices: &[Choice]) -> Value {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    json!({ "enum": names })
}
