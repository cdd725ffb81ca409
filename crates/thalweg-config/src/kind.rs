//! What a key may say: how a value is written, what is accepted, and the type that it is read as.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use serde_json::{Value, json};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::given::{Form, Given};
use super::quantity::{Quantity, amount_schema, rate_schema, time_schema};

/// A name to choose, and what it stands for.
pub type Choice = (&'static str, String);

/// What a key may say.
pub trait Kind: Sync {
    /// What TOML and JSON write it as.
    fn form(&self) -> Form;

    /// What is expected, to be read after "expected".
    fn expected(&self) -> String;

    /// What is expected in a file, quotes and brackets included.
    fn in_file(&self) -> String {
        match self.form() {
            Form::Text | Form::Quantity => format!("{}, in quotes", self.expected()),
            _ => self.expected(),
        }
    }

    /// What is wrong with a value that is refused, if it has words of its own for that.
    fn complaint(&self, _given: &Given) -> Option<String> {
        None
    }

    /// The names to choose from; none if it is no choice.
    fn choices(&self) -> Vec<Choice> {
        Vec::new()
    }

    /// JSON Schema of its values.
    fn schema(&self) -> Value;
}

/// A kind whose values are read as `T`.
pub trait Reads<T>: Kind {
    /// The value; `None` if it is not as expected.
    fn read(&self, given: &Given) -> Option<T>;
}

/// Any value of a type.
pub struct Of<T>(PhantomData<fn() -> T>);

/// Any value of a type.
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

    fn in_file(&self) -> String {
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
    fn read(&self, given: &Given) -> Option<T> {
        one(given).and_then(T::read)
    }
}

fn one(given: &Given) -> Option<&str> {
    match given {
        Given::One(text) => Some(text),
        Given::Several(_) => None,
    }
}

/// Declares a kind that has no parameters.
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
            fn read(&self, given: &Given) -> Option<$type> {
                let read: fn(&str) -> Option<$type> = $read;
                one(given).and_then(read)
            }
        }
    };
}

plain_kind!(
    /// A length of time above zero.
    Time reads Nanos, Form::Text, Nanos::expected(), <Nanos as Quantity>::read, time_schema()
);
plain_kind!(
    /// A length of time that may be zero.
    Delay reads Nanos, Form::Text,
    "a length of time, such as 0s, 200us, 100ms or 1.5s".to_owned(),
    |text| text.parse().ok(), time_schema()
);
plain_kind!(
    /// Bits a second, above zero.
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
    /// A part of one, 0 and 1 included.
    Share reads f64, Form::Number,
    "a number from 0 to 1".to_owned(),
    |text| text.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
);
plain_kind!(
    /// Yes or no.
    Boolean reads bool, Form::Boolean, bool::expected(), <bool as Quantity>::read, <bool as Quantity>::schema()
);

/// An integer of this range, ends included. It is read as any integer type; what is beyond the type is refused.
#[derive(Clone, Copy, Debug)]
pub struct Whole(pub u64, pub u64);

impl Kind for Whole {
    fn form(&self) -> Form {
        Form::Integer
    }

    fn expected(&self) -> String {
        match *self {
            Whole(least, u64::MAX) => format!("an integer of at least {least}"),
            Whole(least, most) => format!("an integer from {least} to {most}"),
        }
    }

    fn schema(&self) -> Value {
        match *self {
            Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
            Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        }
    }
}

impl<T: TryFrom<u64>> Reads<T> for Whole {
    fn read(&self, given: &Given) -> Option<T> {
        let number: u64 = one(given)?.parse().ok()?;
        (self.0..=self.1).contains(&number).then(|| T::try_from(number).ok())?
    }
}

/// A number above the first and not above the second.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64, pub f64);

impl Kind for Number {
    fn form(&self) -> Form {
        Form::Number
    }

    fn expected(&self) -> String {
        match *self {
            Number(above, f64::INFINITY) => format!("a number above {above}"),
            Number(above, most) => format!("a number above {above}, at most {most}"),
        }
    }

    fn schema(&self) -> Value {
        match *self {
            Number(above, f64::INFINITY) => json!({ "type": "number", "exclusiveMinimum": above }),
            Number(above, most) => json!({ "type": "number", "exclusiveMinimum": above, "maximum": most }),
        }
    }
}

impl Reads<f64> for Number {
    fn read(&self, given: &Given) -> Option<f64> {
        one(given)?.parse().ok().filter(|&number| number > self.0 && number <= self.1)
    }
}

/// Any text, which is judged when it is used; these words say what is expected.
#[derive(Clone, Copy, Debug)]
pub struct Text(pub &'static str);

impl Kind for Text {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    fn in_file(&self) -> String {
        self.expected()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Reads<String> for Text {
    fn read(&self, given: &Given) -> Option<String> {
        one(given).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// Several texts, or one; judged as [`Text`] is. Behind a flag they are separated by commas, so none has one in it.
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
    fn read(&self, given: &Given) -> Option<Vec<String>> {
        let texts = given.texts();
        let is_plain = |text: &String| !text.is_empty() && !text.contains(',');
        let are_plain = !texts.is_empty() && texts.iter().all(is_plain);
        are_plain.then(|| texts.iter().map(|text| text.trim().to_owned()).collect())
    }
}

/// Text that is read as a type that says itself what it is written as; these words say what is expected.
pub struct Parsed<T> {
    expected: &'static str,
    form: Form,
    complains: bool,
    of: PhantomData<fn() -> T>,
}

/// Text that is read as `T`.
pub const fn parsed<T>(expected: &'static str) -> Parsed<T> {
    Parsed { expected, form: Form::Text, complains: false, of: PhantomData }
}

impl<T> Parsed<T> {
    /// A list, whose elements are read together, joined by commas.
    pub const fn as_list(self) -> Parsed<T> {
        Parsed { form: Form::List, ..self }
    }

    /// What is wrong is said in the words of the type's error.
    pub const fn in_own_words(self) -> Parsed<T> {
        Parsed { complains: true, ..self }
    }
}

impl<T: FromStr<Err: Display>> Kind for Parsed<T> {
    fn form(&self) -> Form {
        self.form
    }

    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn in_file(&self) -> String {
        match self.form {
            Form::List => format!("a list of {}, each in quotes", self.expected),
            // What has quotes in it shows how it is written in a file.
            _ if self.expected.contains('"') => self.expected.to_owned(),
            _ => format!("{}, in quotes", self.expected),
        }
    }

    fn complaint(&self, given: &Given) -> Option<String> {
        match given.text().parse::<T>() {
            Err(error) if self.complains => Some(error.to_string()),
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
    fn read(&self, given: &Given) -> Option<T> {
        let is_plain = |text: &String| !text.is_empty() && !text.contains(',');
        match given {
            Given::Several(texts) if !texts.iter().all(is_plain) => None,
            _ => given.text().parse().ok(),
        }
    }
}

/// Names of which one is chosen, and what they stand for: implemented by [`choices!`](crate::choices).
pub trait Choices: Copy + Sized + 'static {
    /// All of them, each with its name and its summary in lines.
    const ALL: &'static [(Self, &'static str, &'static [&'static str])];

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|&(choice, _, _)| choice)
    }
}

/// One of the names of a type.
pub struct OneOf<T>(PhantomData<fn() -> T>);

/// One of the names of a type.
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
        T::ALL.iter().map(|(_, name, summary)| (*name, super::text::joined(summary))).collect()
    }

    fn schema(&self) -> Value {
        names_schema(&self.choices())
    }
}

impl<T: Choices> Reads<T> for OneOf<T> {
    fn read(&self, given: &Given) -> Option<T> {
        one(given).and_then(T::named)
    }
}

/// One of these names, what they stand for said by a function.
pub struct Named {
    /// The names.
    pub names: &'static [&'static str],
    /// What a name stands for.
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
    fn read(&self, given: &Given) -> Option<&'static str> {
        let text = one(given)?;
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
