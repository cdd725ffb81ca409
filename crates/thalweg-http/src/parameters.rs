//! Parameters of a path or a query: a struct whose fields define names, types and documentation.
//!
//! ```ignore
//! #[derive(Deserialize, JsonSchema)]
//! struct Choice {
//!     /// Maximum number of flows, fastest first.
//!     #[serde(default)]
//!     #[schemars(example = 10)]
//!     limit: Count<20, 10_000>,
//! }
//! ```
//!
//! Unknown parameters are refused with a list of the known ones. So exactly the documented parameters work.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;
use thalweg_api::problem::{Code, Problem};

/// Decoded names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(String, String)>);

/// The documentation of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Whether it is a segment of the path, not a part of the query.
    pub is_in_path: bool,
    /// Meaning, default and range.
    pub description: String,
    /// Schema of its values.
    pub schema: Value,
    /// An example value; empty for none.
    pub example: String,
}

/// A value parsed from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

/// A number from 1 to `MAX`; `DEFAULT` if missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const DEFAULT: usize, const MAX: usize>(pub usize);

/// A number of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub u64);

impl FromIterator<(String, String)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Pairs {
        Pairs(pairs.into_iter().collect())
    }
}

impl Pairs {
    /// Returns names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Reads the parameters into a type.
    ///
    /// # Errors
    /// If a parameter is unknown, duplicate, missing or invalid.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        T::deserialize(PairsDeserializer(self)).map_err(|error| Problem::new(Code::BadParameter, error))
    }

    /// Checks that there are no parameters.
    ///
    /// # Errors
    /// If there are any.
    pub fn check_empty(&self) -> Result<(), Problem> {
        check(self, &[]).map_err(|error| Problem::new(Code::BadParameter, error))
    }
}

/// Returns the documentation of a type's parameters, in order.
pub fn describe<T: DeserializeOwned + JsonSchema>(
    generator: &mut SchemaGenerator,
    is_in_path: bool,
) -> Vec<Parameter> {
    let schema = T::json_schema(generator).to_value();
    let parameter = |&name: &&'static str| {
        let mut field = schema["properties"][name].clone();
        let description = field["description"].as_str().unwrap_or_default().to_owned();
        let example = match &field["examples"][0] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if let Value::Object(field) = &mut field {
            field.remove("description");
            field.remove("examples");
            // A missing parameter is absent, never null.
            if let Some(Value::Array(kinds)) = field.get("type") {
                let kind = kinds.iter().find(|kind| **kind != "null").cloned();
                field.insert("type".to_owned(), kind.unwrap_or_default());
            }
        }
        Parameter { name, is_in_path, description, schema: field, example }
    };
    names::<T>().iter().map(parameter).collect()
}

/// Returns the names of a struct's fields, in order.
fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // This only records the names, and always fails.
    let _ = T::deserialize(FieldNames(&found));
    found.get()
}

fn check(pairs: &Pairs, known: &[&str]) -> Result<(), ParameterError> {
    for (index, (name, _)) in pairs.iter().enumerate() {
        if !known.contains(&name) {
            let shown: String = name.chars().take(64).collect();
            return Err(ParameterError::new(match known {
                [] => format!("unknown parameter {shown:?}: this path has no parameters"),
                known => format!("unknown parameter {shown:?}: expected {}", known.join(", ")),
            }));
        }
        if pairs.iter().take(index).any(|(before, _)| before == name) {
            return Err(ParameterError::new(format!("duplicate parameter {name}")));
        }
    }
    Ok(())
}

/// An error of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ParameterError {
    parameter: Option<String>,
    message: String,
}

impl ParameterError {
    fn new(message: impl Display) -> ParameterError {
        ParameterError { parameter: None, message: message.to_string() }
    }
}

impl Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parameter {
            Some(parameter) => write!(f, "{parameter}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ParameterError {}

impl de::Error for ParameterError {
    fn custom<M: Display>(message: M) -> ParameterError {
        ParameterError::new(message)
    }

    fn missing_field(field: &'static str) -> ParameterError {
        ParameterError::new(format!("missing parameter {field}"))
    }
}

/// Deserializes all pairs as a struct.
struct PairsDeserializer<'a>(&'a Pairs);

impl<'de> Deserializer<'de> for PairsDeserializer<'de> {
    type Error = ParameterError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ParameterError> {
        check(self.0, fields)?;
        visitor.visit_map(FieldAccess { rest: &self.0.0, value: None })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ParameterError> {
        Err(ParameterError::new("parameters are read into a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Deserializes pairs as the fields of a struct. Errors contain the name of the field.
struct FieldAccess<'a> {
    rest: &'a [(String, String)],
    /// The pair whose value is next.
    value: Option<&'a (String, String)>,
}

impl<'de> MapAccess<'de> for FieldAccess<'de> {
    type Error = ParameterError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ParameterError> {
        let Some((next, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.value, self.rest) = (Some(next), rest);
        seed.deserialize(TextDeserializer(&next.0)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ParameterError> {
        let Some((name, value)) = self.value.take() else {
            return Err(ParameterError::new("a value without a name"));
        };
        seed.deserialize(TextDeserializer(value))
            .map_err(|error| ParameterError { parameter: Some(name.clone()), ..error })
    }
}

/// Deserializes one name or value.
#[derive(Clone, Copy)]
struct TextDeserializer<'a>(&'a str);

impl<'de> Deserializer<'de> for TextDeserializer<'de> {
    type Error = ParameterError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Records the names of a struct's fields.
struct FieldNames<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = ParameterError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ParameterError> {
        self.0.set(fields);
        Err(ParameterError::new("nothing is read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ParameterError> {
        Err(ParameterError::new("parameters are read into a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Parsed).map_err(de::Error::custom)
    }
}

impl<T> JsonSchema for Parsed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Number).map_err(|_| {
            let shown: String = text.chars().take(64).collect();
            de::Error::custom(format!("expected a number from 0 to {}, not {shown:?}", u64::MAX))
        })
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 0})
    }
}

impl<const DEFAULT: usize, const MAX: usize> Default for Count<DEFAULT, MAX> {
    fn default() -> Self {
        Count(DEFAULT)
    }
}

impl<'de, const DEFAULT: usize, const MAX: usize> Deserialize<'de> for Count<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(number) if (1..=MAX).contains(&number) => Ok(Count(number)),
            _ => {
                let shown: String = text.chars().take(64).collect();
                Err(de::Error::custom(format!("expected a number from 1 to {MAX}, not {shown:?}")))
            }
        }
    }
}

impl<const DEFAULT: usize, const MAX: usize> JsonSchema for Count<DEFAULT, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": MAX, "default": DEFAULT})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters of a list of flows.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Choice {
        /// Maximum number.
        #[serde(default)]
        #[schemars(example = 10)]
        top: Count<20, 100>,
        /// Collector.
        #[schemars(example = &"tor0")]
        collector: Option<String>,
        /// Port.
        port: Option<Parsed<u16>>,
        /// Number of the last one.
        after: Option<Number>,
    }

    fn read(pairs: &[(&str, &str)]) -> Result<Choice, String> {
        let pairs: Pairs = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        pairs.read().map_err(|problem| {
            assert_eq!(problem.status, 400);
            problem.detail
        })
    }

    #[test]
    fn missing_parameters_have_their_defaults() {
        let all = read(&[("port", "7"), ("top", "100"), ("collector", "tor0"), ("after", "0")]);
        let expected = Choice {
            top: Count(100),
            collector: Some("tor0".into()),
            port: Some(Parsed(7)),
            after: Some(Number(0)),
        };
        assert_eq!(all, Ok(expected));
        assert_eq!(read(&[]), Ok(Choice { top: Count(20), collector: None, port: None, after: None }));
    }

    #[test]
    fn unknown_and_duplicate_parameters_are_refused() {
        let known = "unknown parameter \"tpo\": expected top, collector, port, after";
        assert_eq!(read(&[("tpo", "3")]), Err(known.into()));
        assert_eq!(read(&[("top", "3"), ("top", "4")]), Err("duplicate parameter top".into()));
        let none = Pairs(vec![("a".into(), String::new())]).check_empty().unwrap_err();
        assert_eq!(none.detail, "unknown parameter \"a\": this path has no parameters");
    }

    #[test]
    fn invalid_values_are_refused_with_their_parameter() {
        for invalid in ["0", "101", "-1", "", "x", "99999999999999999999999"] {
            let expected = format!("top: expected a number from 1 to 100, not {invalid:?}");
            assert_eq!(read(&[("top", invalid)]), Err(expected));
        }
        assert_eq!(read(&[("port", "x")]), Err("port: invalid digit found in string".into()));
        let expected = "after: expected a number from 0 to 18446744073709551615, not \"abc\"";
        assert_eq!(read(&[("after", "abc")]), Err(expected.into()));
    }

    #[test]
    fn parameters_are_described_by_the_doc_comments_of_their_fields() {
        let describe = describe::<Choice>(&mut SchemaGenerator::default(), false);
        let names: Vec<_> = describe.iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, ["top", "collector", "port", "after"]);
        let [top, collector, port, after] = &describe[..] else { panic!("{describe:?}") };
        assert_eq!((top.description.as_str(), top.example.as_str()), ("Maximum number.", "10"));
        assert_eq!(top.schema["maximum"], 100);
        assert_eq!((collector.example.as_str(), &collector.schema["type"]), ("tor0", &"string".into()));
        assert_eq!((port.example.as_str(), &port.schema["type"]), ("", &"string".into()));
        assert_eq!(after.schema, serde_json::json!({"type": "integer", "minimum": 0}));
    }
}
