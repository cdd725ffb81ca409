//! Parameters of a path or a query: a struct whose fields are their names, types and documentation.
//!
//! ```ignore
//! #[derive(Deserialize, JsonSchema)]
//! struct Choice {
//!     /// How many, the fastest first.
//!     #[serde(default)]
//!     #[schemars(example = 10)]
//!     top: Count<20, 10_000>,
//! }
//! ```
//!
//! What the struct does not name is refused with the names that it has, so that no parameter works that is not
//! documented, and none is documented that does not work.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;
use thalweg_api::problem::{Code, Problem};

/// Names and values, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(String, String)>);

/// What is said of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a segment of the path; else of the query.
    pub is_in_path: bool,
    /// What it is, its default and range.
    pub description: String,
    /// What values it has.
    pub schema: Value,
    /// One of them; empty if there is none.
    pub example: String,
}

/// A value that is read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

/// A number from 1 to `MOST`; `DEFAULT` if it is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const DEFAULT: usize, const MOST: usize>(pub usize);

impl FromIterator<(String, String)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Pairs {
        Pairs(pairs.into_iter().collect())
    }
}

impl Pairs {
    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The parameters as this type has them.
    ///
    /// # Errors
    /// If one is unknown, there twice, missing, or not what it is to be.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        T::deserialize(Named(self)).map_err(|wrong| Problem::new(Code::BadParameter, wrong))
    }

    /// That there are none.
    ///
    /// # Errors
    /// If there are.
    pub fn check_empty(&self) -> Result<(), Problem> {
        check(self, &[]).map_err(|wrong| Problem::new(Code::BadParameter, wrong))
    }
}

/// What is said of the parameters that this type has, in their order.
pub fn described<T: DeserializeOwned + JsonSchema>(
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
            // One that is not given is not there; it is never null.
            if let Some(Value::Array(kinds)) = field.get("type") {
                let kind = kinds.iter().find(|kind| **kind != "null").cloned();
                field.insert("type".to_owned(), kind.unwrap_or_default());
            }
        }
        Parameter { name, is_in_path, description, schema: field, example }
    };
    names::<T>().iter().map(parameter).collect()
}

/// Names of the fields that a struct is read from, in their order.
fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // It only looks, and reads nothing.
    let _ = T::deserialize(Probe(&found));
    found.get()
}

fn check(pairs: &Pairs, known: &[&str]) -> Result<(), Wrong> {
    for (place, (name, _)) in pairs.iter().enumerate() {
        if !known.contains(&name) {
            let shown: String = name.chars().take(64).collect();
            return Err(Wrong::new(match known {
                [] => format!("unknown parameter {shown:?}: there are none here"),
                known => format!("unknown parameter {shown:?}: there are {}", known.join(", ")),
            }));
        }
        if pairs.iter().take(place).any(|(before, _)| before == name) {
            return Err(Wrong::new(format!("{name} is there twice")));
        }
    }
    Ok(())
}

/// What is wrong with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    parameter: Option<String>,
    message: String,
}

impl Wrong {
    fn new(message: impl Display) -> Wrong {
        Wrong { parameter: None, message: message.to_string() }
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parameter {
            Some(parameter) => write!(f, "{parameter}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<M: Display>(message: M) -> Wrong {
        Wrong::new(message)
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong::new(format!("{field} is missing"))
    }
}

/// All pairs, as a struct.
struct Named<'a>(&'a Pairs);

impl<'de> Deserializer<'de> for Named<'de> {
    type Error = Wrong;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        check(self.0, fields)?;
        visitor.visit_map(Fields { rest: &self.0.0, value: None })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::new("parameters are read into a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Pairs as the fields of a struct. What is wrong with a value is told with its name.
struct Fields<'a> {
    rest: &'a [(String, String)],
    /// The pair whose value is next.
    value: Option<&'a (String, String)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some((next, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.value, self.rest) = (Some(next), rest);
        seed.deserialize(Text(&next.0)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some((name, value)) = self.value.take() else { return Err(Wrong::new("a value without a name")) };
        seed.deserialize(Text(value)).map_err(|wrong| Wrong { parameter: Some(name.clone()), ..wrong })
    }
}

/// One name or value.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Notes the names of a struct's fields.
struct Probe<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Wrong;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Wrong> {
        self.0.set(fields);
        Err(Wrong::new("nothing is read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::new("parameters are read into a struct"))
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

impl<const DEFAULT: usize, const MOST: usize> Default for Count<DEFAULT, MOST> {
    fn default() -> Self {
        Count(DEFAULT)
    }
}

impl<'de, const DEFAULT: usize, const MOST: usize> Deserialize<'de> for Count<DEFAULT, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(number) if (1..=MOST).contains(&number) => Ok(Count(number)),
            _ => {
                let shown: String = text.chars().take(64).collect();
                Err(de::Error::custom(format!("expected a number from 1 to {MOST}, not {shown:?}")))
            }
        }
    }
}

impl<const DEFAULT: usize, const MOST: usize> JsonSchema for Count<DEFAULT, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As flows have them.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Choice {
        /// How many.
        #[serde(default)]
        #[schemars(example = 10)]
        top: Count<20, 100>,
        /// Whose.
        #[schemars(example = &"tor0")]
        collector: Option<String>,
        /// From where.
        port: Option<Parsed<u16>>,
    }

    fn read(pairs: &[(&str, &str)]) -> Result<Choice, String> {
        let pairs: Pairs = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        pairs.read().map_err(|problem| {
            assert_eq!(problem.status, 400);
            problem.detail
        })
    }

    #[test]
    fn parameters_are_read_into_a_struct_and_those_that_are_not_given_have_their_defaults() {
        let all = read(&[("port", "7"), ("top", "100"), ("collector", "tor0")]);
        let expected = Choice { top: Count(100), collector: Some("tor0".into()), port: Some(Parsed(7)) };
        assert_eq!(all, Ok(expected));
        assert_eq!(read(&[]), Ok(Choice { top: Count(20), collector: None, port: None }));
    }

    #[test]
    fn a_parameter_that_is_not_known_is_refused_with_those_that_are() {
        let known = "unknown parameter \"tpo\": there are top, collector, port";
        assert_eq!(read(&[("tpo", "3")]), Err(known.into()));
        assert_eq!(read(&[("top", "3"), ("top", "4")]), Err("top is there twice".into()));
        let none = Pairs(vec![("a".into(), String::new())]).check_empty().unwrap_err();
        assert_eq!(none.detail, "unknown parameter \"a\": there are none here");
    }

    #[test]
    fn a_number_beyond_its_range_and_text_that_cannot_be_read_are_refused_by_name() {
        for wrong in ["0", "101", "-1", "", "x", "99999999999999999999999"] {
            let expected = format!("top: expected a number from 1 to 100, not {wrong:?}");
            assert_eq!(read(&[("top", wrong)]), Err(expected));
        }
        assert_eq!(read(&[("port", "x")]), Err("port: invalid digit found in string".into()));
    }

    #[test]
    fn what_is_said_of_parameters_is_what_their_fields_say() {
        let described = described::<Choice>(&mut SchemaGenerator::default(), false);
        let names: Vec<_> = described.iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, ["top", "collector", "port"]);
        let [top, collector, port] = &described[..] else { panic!("{described:?}") };
        assert_eq!((top.description.as_str(), top.example.as_str()), ("How many.", "10"));
        assert_eq!(top.schema["maximum"], 100);
        assert_eq!((collector.example.as_str(), &collector.schema["type"]), ("tor0", &"string".into()));
        assert_eq!((port.example.as_str(), &port.schema["type"]), ("", &"string".into()));
    }
}
