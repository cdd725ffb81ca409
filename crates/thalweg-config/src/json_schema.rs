//! JSON Schema (draft 2020-12) of a file schema, for completion and validation in editors.
//!
//! It accepts what [`Document::parse`](super::Document::parse) accepts. Values that are validated on use, such as host
//! names, are any string.

use serde_json::{Map, Value, json};

use super::literal::{Form, Literal};
use super::section::{Default, Key, Schema, Section};

/// Returns the JSON Schema of a file schema.
pub fn json_schema(schema: &Schema, title: &str) -> Value {
    let mut root = schema.top().map_or_else(|| object(&[], Map::new()), section_schema);
    let properties = root.as_object_mut().and_then(|root| root.get_mut("properties"));
    let Some(properties) = properties.and_then(Value::as_object_mut) else { return root };
    for section in schema.sections.iter().filter(|section| !section.name.is_empty()) {
        properties.insert(section.name.to_owned(), property_schema(section));
    }
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("title".to_owned(), json!(title));
    document.extend(root.as_object().cloned().unwrap_or_default());
    Value::Object(document)
}

/// Returns the schema of a section, or of an array of sections if it repeats.
fn property_schema(section: &Section) -> Value {
    match section.repeats {
        true => json!({
            "description": section.about(),
            "type": "array",
            "items": section_schema(section),
            "maxItems": section.max_count,
        }),
        false => section_schema(section),
    }
}

fn section_schema(section: &Section) -> Value {
    let keys: Vec<&Key> = section.keys().collect();
    let mut properties = Map::new();
    for key in &keys {
        let same: Vec<&Key> = keys.iter().copied().filter(|other| other.name == key.name).collect();
        let schema = match &same[..] {
            [only] => key_schema(only),
            several => json!({ "anyOf": several.iter().map(|key| key_schema(key)).collect::<Vec<_>>() }),
        };
        properties.insert(key.name.to_owned(), schema);
    }
    for list in section.lists {
        properties.insert(list.name.to_owned(), property_schema(list));
    }
    for (choice, summary) in section.choices() {
        // Keys for a choice may be set while another choice is selected.
        let keys: Vec<&Key> = section.keys_for(choice).collect();
        let own = keys.iter().filter(|key| !section.choices_with(key).is_empty());
        let own: Map<String, Value> = own.map(|key| (key.name.to_owned(), key_schema(key))).collect();
        if !section.repeats && !own.is_empty() {
            let description = format!("Keys that apply when {choice} is selected: {summary}.");
            let mut choice_keys = object(&[], own);
            choice_keys["description"] = json!(description);
            // A key may have the name of a choice: `file` of the shape `file`.
            let choice_keys = match properties.remove(choice) {
                Some(key) => json!({ "anyOf": [key, choice_keys] }),
                None => choice_keys,
            };
            properties.insert(choice.to_owned(), choice_keys);
        }
    }
    let is_required = |key: &&&Key| key.default == Default::Required && section.choices_with(key).is_empty();
    let required: Vec<&str> = keys.iter().filter(is_required).map(|key| key.name).collect();
    let mut schema = object(&required, properties);
    schema["description"] = json!(section.about());
    let conditions: Vec<Value> =
        section.choices().iter().map(|(choice, _)| condition(section, choice)).collect();
    if !conditions.is_empty() {
        schema["allOf"] = json!(conditions);
    }
    schema
}

/// Returns the condition for one choice: the keys that apply, and their values.
fn condition(section: &Section, choice: &str) -> Value {
    let Some(selector) = section.selector else { return json!({}) };
    let mut is_selected = json!({ "properties": { selector.key.name: { "const": choice } } });
    // The default choice holds without the key.
    if !matches!(selector.key.default, Default::Value(default) if default == choice) {
        is_selected["required"] = json!([selector.key.name]);
    }
    let mut properties = Map::new();
    let choices = section.choices();
    for key in section.keys().filter(|key| choices.iter().all(|(choice, _)| *choice != key.name)) {
        let schema = section.key(key.name, choice).map_or(json!(false), |key| key.kind.schema());
        properties.insert(key.name.to_owned(), schema);
    }
    let required = section.keys_for(choice).filter(|key| key.default == Default::Required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({ "if": is_selected, "then": { "properties": properties, "required": required } })
}

fn object(required: &[&str], properties: Map<String, Value>) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn key_schema(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    let choices: Vec<String> =
        key.kind.choices().iter().map(|(name, summary)| format!("{name}: {summary}")).collect();
    let choices = if choices.is_empty() { String::new() } else { format!("\n\n{}", choices.join("\n")) };
    let default = match key.default {
        Default::Description(text) => format!("\n\nDefault: {text}."),
        _ => String::new(),
    };
    schema["description"] = json!(format!("{}{choices}{default}", key.meaning()));
    if let Some(literal) = key.default_value() {
        schema["default"] = value(&literal, key.form());
    }
    schema
}

/// Returns a value in JSON.
fn value(literal: &Literal, form: Form) -> Value {
    match (literal, form) {
        (Literal::Single(text), Form::Integer | Form::Number | Form::Boolean) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        (Literal::Single(text), _) => json!(text),
        (Literal::List(texts), _) => json!(texts),
    }
}
