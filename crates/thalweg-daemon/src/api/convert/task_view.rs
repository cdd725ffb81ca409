//! What a measurement task says, under the name of its kind: fields and schema are those of the layouts that the kinds
//! have ([`thalweg_measure::tasks::LAYOUTS`]).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use thalweg_api::{FlowName, Moment, Period, Rate};
use thalweg_measure::tasks::{Field, FieldKind, KeyLayout, LAYOUTS, Layout, Table};
use thalweg_sketch::Estimate;
use thalweg_wire::{FlowKey, Timestamp};

use super::rate;
use thalweg_watch::json::answer::{Style, TableJson};

/// What a task says. Traffic is in packets or bytes, as the task asks.
#[derive(Debug)]
pub struct TaskView(TableJson<ApiStyle>);

/// How the API writes what JSON has no type for.
#[derive(Debug)]
enum ApiStyle {}

impl Style for ApiStyle {
    const SPAN: [&'static str; 2] = ["start", "end"];
    const HAS_NULL_FLOWS: bool = true;

    fn moment(time: Timestamp) -> impl Serialize {
        Moment::from(time)
    }

    fn flow(key: &FlowKey) -> impl Serialize {
        FlowName::from(key)
    }

    fn estimate(estimate: &Estimate) -> impl Serialize {
        rate(*estimate)
    }
}

impl From<Table> for TaskView {
    fn from(table: Table) -> TaskView {
        TaskView(TableJson::from(table))
    }
}

impl Serialize for TaskView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for TaskView {
    fn schema_name() -> Cow<'static, str> {
        "TaskView".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Value> = LAYOUTS.iter().map(|layout| answer(layout, generator)).collect();
        schema(json!({
            "description": "What a task says. Traffic is in packets or bytes, as the task asks.",
            "oneOf": kinds,
        }))
    }
}

fn answer(layout: &Layout, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({"type": "string", "const": layout.kind}));
    let mut required = fields(layout.facts, &mut properties, generator);
    required.insert(0, "kind".into());
    if let Some(keys) = &layout.keys {
        let items = key_type(keys, generator);
        properties
            .insert("keys".to_owned(), json!({"description": keys.order, "type": "array", "items": items}));
        required.push("keys".into());
    }
    json!({
        "description": layout.meaning,
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

/// A reference to the type of a row.
fn key_type(keys: &KeyLayout, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("key".to_owned(), json!({"description": keys.key_meaning, "type": "string"}));
    if keys.may_be_flows {
        let flow = generator.subschema_for::<Option<FlowName>>();
        properties.insert(
            "flow".to_owned(),
            described(flow, "The direction of a flow, if that is what the key is."),
        );
    }
    let mut required = fields(keys.columns, &mut properties, generator);
    required.insert(0, "key".into());
    let row = json!({
        "description": keys.meaning,
        "type": "object",
        "properties": properties,
        "required": required,
    });
    generator.definitions_mut().insert(keys.type_name.to_owned(), row);
    json!({"$ref": format!("#{}/{}", generator.settings().definitions_path, keys.type_name)})
}

/// Adds the fields; those that are always there are given back.
fn fields(
    fields: &[Field],
    properties: &mut Map<String, Value>,
    generator: &mut SchemaGenerator,
) -> Vec<Value> {
    let mut required = Vec::new();
    for field in fields {
        let of_kind = match field.kind {
            FieldKind::Count => generator.subschema_for::<u64>(),
            FieldKind::Share => generator.subschema_for::<f64>(),
            FieldKind::OptionalShare => generator.subschema_for::<Option<f64>>(),
            FieldKind::Estimate => generator.subschema_for::<Rate>(),
            FieldKind::Period => generator.subschema_for::<Period>(),
            _ => Schema::default(),
        };
        properties.insert(field.name.to_owned(), described(of_kind, field.meaning));
        if field.kind != FieldKind::OptionalShare {
            required.push(field.name.into());
        }
    }
    required
}

fn described(schema: Schema, meaning: &str) -> Value {
    let mut schema = schema.to_value();
    schema["description"] = meaning.into();
    schema
}

fn schema(value: Value) -> Schema {
    Schema::try_from(value).expect("it is an object")
}
