//! Validates values against a schema (the subset of JSON Schema 2020-12 that our documents use).
//!
//! Stricter than the standard: an object must not have fields that its schema does not name, so that undocumented fields
//! are found.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the errors of a value. References are resolved in `document`.
pub(crate) fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "$", &mut faults);
    if let (Some(known), Some(object)) = (fields(document, schema, value), value.as_object()) {
        unknown(&known, object, "$", &mut faults);
    }
    faults
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            assert!(schema["properties"].is_null(), "a reference with fields of its own: {schema}");
            let pointer = reference.strip_prefix('#').expect("references are within the document");
            document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => schema,
    }
}

fn fits(document: &Value, schema: &Value, value: &Value) -> bool {
    let mut faults = Vec::new();
    check(document, schema, value, "", &mut faults);
    faults.is_empty()
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let schema = resolved(document, schema);
    let mut fault = |what: String| faults.push(format!("{at}: {what}"));
    let is_of = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "string" => value.is_string(),
        other => panic!("type {other}"),
    };
    let has_type = match &schema["type"] {
        Value::Null => true,
        Value::String(name) => is_of(name),
        Value::Array(names) => names.iter().any(|name| is_of(name.as_str().unwrap())),
        other => panic!("type {other}"),
    };
    if !has_type {
        return fault(format!("{value} is not {}", schema["type"]));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        fault(format!("{value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        fault(format!("{value} is none of {}", schema["enum"]));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        fault(format!("{value} is below {least}"));
    }
    for (name, many) in [("oneOf", false), ("anyOf", true)] {
        let Some(choices) = schema[name].as_array() else { continue };
        let fitting = choices.iter().filter(|choice| fits(document, choice, value)).count();
        if fitting == 0 || (fitting > 1 && !many) {
            fault(format!("{fitting} of {name} fit {value}"));
        }
    }
    if let Some(items) = value.as_array() {
        for (place, item) in items.iter().enumerate() {
            part(document, &schema["items"], item, &format!("{at}[{place}]"), faults);
        }
    }
    if let Some(object) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()) {
            if !object.contains_key(name) {
                faults.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = object.get(name) {
                part(document, schema, value, &format!("{at}.{name}"), faults);
            }
        }
    }
}

/// Checks a nested value, whose fields must also be known.
fn part(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    check(document, schema, value, at, faults);
    if let (Some(known), Some(object)) = (fields(document, schema, value), value.as_object()) {
        unknown(&known, object, at, faults);
    }
}

fn unknown(
    known: &BTreeSet<String>,
    object: &serde_json::Map<String, Value>,
    at: &str,
    faults: &mut Vec<String>,
) {
    let names = object.keys().filter(|name| !known.contains(*name));
    faults.extend(names.map(|name| format!("{at}: {name} is not in the schema")));
}

/// Returns the fields that a schema allows; `None` if it does not restrict them.
fn fields(document: &Value, schema: &Value, value: &Value) -> Option<BTreeSet<String>> {
    let schema = resolved(document, schema);
    let own = schema["properties"].as_object().map(|fields| fields.keys().cloned().collect::<BTreeSet<_>>());
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
    let fitting = choices.filter(|choice| fits(document, choice, value));
    let of_choices: Vec<_> = fitting.filter_map(|choice| fields(document, choice, value)).collect();
    if own.is_none() && of_choices.is_empty() {
        return None;
    }
    Some(own.into_iter().chain(of_choices).flatten().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mismatches_are_found() {
        let document = json!({"defs": {
            "Way": {"oneOf": [{"const": "in", "type": "string"}, {"const": "out", "type": "string"}]},
            "Link": {
                "type": "object",
                "properties": {"way": {"$ref": "#/defs/Way"}, "rate": {"type": ["number", "null"]}, "flows": {
                    "type": "array", "items": {"type": "integer", "minimum": 0},
                }},
                "required": ["way", "flows"],
            },
        }});
        let found = |value: Value| faults(&document, &json!({"$ref": "#/defs/Link"}), &value);
        assert_eq!(found(json!({"way": "in", "rate": null, "flows": [1, 2]})), Vec::<String>::new());
        assert_eq!(found(json!({"way": "up", "flows": []})).len(), 1);
        assert_eq!(found(json!({"way": "in"})), ["$: flows is missing"]);
        assert_eq!(found(json!({"way": "in", "flows": [-1]})), ["$.flows[0]: -1 is below 0"]);
        assert_eq!(found(json!({"way": "in", "flows": [0.5]})).len(), 1);
        assert_eq!(found(json!({"way": "in", "flows": [], "new": 1})), ["$: new is not in the schema"]);
        assert_eq!(found(json!([])), ["$: [] is not \"object\""]);
    }
}
