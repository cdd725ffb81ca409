//! A value as the user wrote it, in a file or a flag, and its TOML form.

use std::borrow::Cow;
use std::fmt;

use thalweg_wire::web_url::hide_secrets_within;

/// The form of a value in TOML or JSON.
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
    /// A list of strings: `["icmp", "icmp6"]`; comma-separated in a flag.
    List,
    /// A list of strings, or a string for a list of one.
    Texts,
    /// A string or a number for a share of 1, or a list of them: `"0.01%"`, `0.0001`, `["0.1%", "0%"]`.
    Shares,
}

/// A value as written, without quotes. `Debug` shows URLs without passwords.
#[derive(Clone, PartialEq, Eq)]
pub enum Literal {
    /// One value.
    Single(String),
    /// The elements of a list.
    List(Vec<String>),
}

impl Literal {
    /// Returns the value that `text` stands for in a flag, a sweep or a declared default. Lists are comma-separated.
    pub fn from_text(form: Form, text: &str) -> Literal {
        match form {
            Form::List | Form::Texts if text.is_empty() => Literal::List(Vec::new()),
            Form::Shares if !text.contains(',') => Literal::Single(text.to_owned()),
            Form::List | Form::Texts | Form::Shares => {
                Literal::List(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            _ => Literal::Single(text.to_owned()),
        }
    }

    /// Returns the text that [`Literal::from_text`] reads back.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Literal::Single(text) => Cow::Borrowed(text),
            Literal::List(texts) => Cow::Owned(texts.join(",")),
        }
    }

    /// Returns the elements of a list, or a single value as a list of one.
    pub fn texts(&self) -> &[String] {
        match self {
            Literal::Single(text) => std::slice::from_ref(text),
            Literal::List(texts) => texts,
        }
    }

    /// Returns the value in TOML.
    pub fn in_toml(&self, form: Form) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match (self, form) {
            (Literal::Single(text), Form::Integer | Form::Number | Form::Boolean) => text.clone(),
            (Literal::Single(text), _) => quoted(text),
            (Literal::List(texts), _) => {
                format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.texts().iter().map(|text| hide_secrets_within(text))).finish()
    }
}

impl Form {
    /// Returns in TOML the value that [`Literal::from_text`] reads from `text`.
    pub fn in_toml(self, text: &str) -> String {
        Literal::from_text(self, text).in_toml(self)
    }
}
