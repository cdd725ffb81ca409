//! How a value is written in TOML.

use toml::de::DeValue;

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
    /// TOML for a value that is written without TOML's quotes.
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

/// A value without TOML's quotes; `None` if it is of another form.
pub fn text_of(value: &DeValue<'_>, form: Form) -> Option<String> {
    match (value, form) {
        (DeValue::String(text), Form::Text | Form::Quantity) => Some(text.to_string()),
        (DeValue::Integer(number), Form::Integer | Form::Number | Form::Quantity) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (DeValue::Float(number), Form::Number) => Some(number.as_str().to_owned()),
        (DeValue::Boolean(value), Form::Boolean) => Some(value.to_string()),
        (DeValue::Array(elements), Form::List) => {
            let texts = elements.iter().map(|element| text_of(element.get_ref(), Form::Text));
            let texts = texts.collect::<Option<Vec<String>>>()?;
            let is_plain = texts.iter().all(|text| !text.is_empty() && !text.contains(','));
            is_plain.then(|| texts.join(","))
        }
        _ => None,
    }
}
