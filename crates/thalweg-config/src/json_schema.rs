//! JSON Schema (draft 2020-12) of a kind of file, by which editors complete and check it.
//!
//! It accepts what [`Document::parse`](super::Document::parse) accepts; values that are judged when they are used, such as
//! names of hosts, are any text.

use serde_json::{Map, Value, json};

use super::given::{Form, Given};
use super::section::{Default, Key, Schema, Section};

/// The schema of a kind of file.
pub fn json_schema(schema: &Schema, title: &str) -> Value {
    let mut root = schema.top().map_or_else(|| object(&[], Map::new()), section_schema);
    let properties = root.as_object_mut().and_then(|root| root.get_mut("properties"));
    let Some(properties) = properties.and_then(Value::as_object_mut) else { return root };
    for section in schema.sections.iter().filter(|section| !section.name.is_empty()) {
        properties.insert(section.name.to_owned(), part(section));
    }
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("title".to_owned(), json!(title));
    document.extend(root.as_object().cloned().unwrap_or_default());
    Value::Object(document)
}

/// A section, or several of one name.
fn part(section: &Section) -> Value {
    match section.repeats {
        true => json!({
            "description": section.about(),
            "type": "array",
            "items": section_schema(section),
            "maxItems": section.most,
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
        properties.insert(list.name.to_owned(), part(list));
    }
    for (choice, summary) in section.choices() {
        // Keys that wait until it is selected.
        let keys: Vec<&Key> = section.keys_of(choice).collect();
        let own = keys.iter().filter(|key| !section.of(key).is_empty());
        let own: Map<String, Value> = own.map(|key| (key.name.to_owned(), key_schema(key))).collect();
        if !section.repeats && !own.is_empty() {
            let description = format!("Keys for when {choice} is selected: {summary}.");
            let mut waiting = object(&[], own);
            waiting["description"] = json!(description);
            // A key may be called as a choice is: `file` of the shape `file`.
            let waiting = match properties.remove(choice) {
                Some(key) => json!({ "anyOf": [key, waiting] }),
                None => waiting,
            };
            properties.insert(choice.to_owned(), waiting);
        }
    }
    let always = |key: &&&Key| key.default == Default::Needed && section.of(key).is_empty();
    let needed: Vec<&str> = keys.iter().filter(always).map(|key| key.name).collect();
    let mut schema = object(&needed, properties);
    schema["description"] = json!(section.about());
    let conditions: Vec<Value> =
        section.choices().iter().map(|(choice, _)| condition(section, choice)).collect();
    if !conditions.is_empty() {
        schema["allOf"] = json!(conditions);
    }
    schema
}

/// What holds when this is selected: which keys there are, and what they may say.
fn condition(section: &Section, choice: &str) -> Value {
    let Some(selector) = section.selector else { return json!({}) };
    let mut is_selected = json!({ "properties": { selector.key.name: { "const": choice } } });
    // What is selected without the key.
    if !matches!(selector.key.default, Default::Value(default) if default == choice) {
        is_selected["required"] = json!([selector.key.name]);
    }
    let mut properties = Map::new();
    let choices = section.choices();
    for key in section.keys().filter(|key| choices.iter().all(|(choice, _)| *choice != key.name)) {
        let schema = section.key(key.name, choice).map_or(json!(false), |key| key.kind.schema());
        properties.insert(key.name.to_owned(), schema);
    }
    let needed = section.keys_of(choice).filter(|key| key.default == Default::Needed);
    let needed: Vec<&str> = needed.map(|key| key.name).collect();
    json!({ "if": is_selected, "then": { "properties": properties, "required": needed } })
}

fn object(needed: &[&str], properties: Map<String, Value>) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    schema
}

fn key_schema(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    let choices: Vec<String> =
        key.kind.choices().iter().map(|(name, summary)| format!("{name}: {summary}")).collect();
    let choices = if choices.is_empty() { String::new() } else { format!("\n\n{}", choices.join("\n")) };
    let default = match key.default {
        Default::Words(words) => format!("\n\nDefault: {words}."),
        _ => String::new(),
    };
    schema["description"] = json!(format!("{}{choices}{default}", key.meaning()));
    if let Some(given) = key.default_value() {
        schema["default"] = value(&given, key.form());
    }
    schema
}

/// A value as JSON has it.
fn value(given: &Given, form: Form) -> Value {
    match (given, form) {
        (Given::One(text), Form::Integer | Form::Number | Form::Boolean) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        (Given::One(text), _) => json!(text),
        (Given::Several(texts), _) => json!(texts),
    }
}
