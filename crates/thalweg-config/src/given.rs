//! A value as it was given, in a file or behind a flag, and how it is written in TOML.

use std::borrow::Cow;

/// What a value looks like in TOML or JSON.
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
    /// A list of strings, or one string for a list of one.
    Texts,
}

/// A value without quotes, as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// One value.
    One(String),
    /// The elements of a list.
    Several(Vec<String>),
}

impl Given {
    /// A value from text, as flags, sweeps and declared defaults have it: lists are separated by commas.
    pub fn from_text(form: Form, text: &str) -> Given {
        match form {
            Form::List | Form::Texts if text.is_empty() => Given::Several(Vec::new()),
            Form::List | Form::Texts => {
                Given::Several(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            _ => Given::One(text.to_owned()),
        }
    }

    /// As [`Given::from_text`] reads it.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Given::One(text) => Cow::Borrowed(text),
            Given::Several(texts) => Cow::Owned(texts.join(",")),
        }
    }

    /// The elements of a list; of one value that value.
    pub fn texts(&self) -> &[String] {
        match self {
            Given::One(text) => std::slice::from_ref(text),
            Given::Several(texts) => texts,
        }
    }

    /// TOML for it.
    pub fn in_toml(&self, form: Form) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match (self, form) {
            (Given::One(text), Form::Integer | Form::Number | Form::Boolean) => text.clone(),
            (Given::One(text), _) => quoted(text),
            (Given::Several(texts), _) => {
                format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Form {
    /// TOML for a value from text, as [`Given::from_text`] reads it.
    pub fn in_toml(self, text: &str) -> String {
        Given::from_text(self, text).in_toml(self)
    }
}
