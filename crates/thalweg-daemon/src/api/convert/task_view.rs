//! Results of measurement tasks: fields and schema follow the layouts of the task types
//! ([`thalweg_measure::tasks::LAYOUTS`]).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use thalweg_api::{BoundKind, FlowName, Period};
use thalweg_measure::tasks::{Field, FieldKind, KeyLayout, LAYOUTS, Layout, Table};
use thalweg_watch::json::{FlatEstimate, TaskResultJson};

/// The result of a measurement task. Traffic is in packets or bytes, as the task specifies.
#[derive(Debug)]
pub struct TaskView(TaskResultJson);

impl From<Table> for TaskView {
    fn from(table: Table) -> TaskView {
        TaskView(TaskResultJson::from(table))
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
            "description": "The result of a measurement task. Traffic is in packets or bytes, as the task specifies.",
            "oneOf": kinds,
        }))
    }
}

fn answer(layout: &Layout, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("type".to_owned(), json!({"type": "string", "const": layout.kind}));
    let mut required = fields(layout.facts, &mut properties, generator);
    required.insert(0, "type".into());
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

/// Returns a reference to the type of a row.
fn key_type(keys: &KeyLayout, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("key".to_owned(), json!({"description": keys.key_meaning, "type": "string"}));
    if keys.may_be_flows {
        let flow = generator.subschema_for::<Option<FlowName>>();
        properties.insert(
            "flow".to_owned(),
            described(flow, "The direction of a flow if the key is one; otherwise null."),
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

/// Adds the fields, and returns the names of those that are always present.
fn fields(
    fields: &[Field],
    properties: &mut Map<String, Value>,
    generator: &mut SchemaGenerator,
) -> Vec<Value> {
    let mut required = Vec::new();
    let is_only = TaskResultJson::has_one_estimate(fields);
    for field in fields {
        let of_kind = match field.kind {
            FieldKind::Count => generator.subschema_for::<u64>(),
            FieldKind::Share => generator.subschema_for::<f64>(),
            FieldKind::OptionalShare => generator.subschema_for::<Option<f64>>(),
            FieldKind::Estimate => {
                required.extend(estimate(field, is_only, properties, generator));
                continue;
            }
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

/// Adds the fields of an estimate, and returns their names.
fn estimate(
    field: &Field,
    is_only: bool,
    properties: &mut Map<String, Value>,
    generator: &mut SchemaGenerator,
) -> [Value; 5] {
    let names = FlatEstimate::field_names(field.name, is_only);
    let [value, lower, upper, confidence, bounds] = &names;
    let name = field.name;
    let mut add = |key: &String, schema: Schema, meaning: &str| {
        properties.insert(key.clone(), described(schema, meaning));
    };
    add(value, generator.subschema_for::<f64>(), field.meaning);
    let optional = generator.subschema_for::<Option<f64>>();
    add(lower, optional.clone(), &format!("Lower bound of `{name}`; null if there is none."));
    add(upper, optional.clone(), &format!("Upper bound of `{name}`; null if there is none."));
    let meaning =
        format!("Probability with which the bounds of `{name}` hold, at least; null if there are none.");
    add(confidence, optional, &meaning);
    add(bounds, generator.subschema_for::<BoundKind>(), &format!("Which bounds `{name}` has."));
    names.map(Value::from)
}

fn described(schema: Schema, meaning: &str) -> Value {
    let mut schema = schema.to_value();
    schema["description"] = meaning.into();
    schema
}

fn schema(value: Value) -> Schema {
    Schema::try_from(value).expect("it is an object")
}
