//! Generates the OpenAPI document (version 3.1.1) from the route table and the response types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use thalweg_api::Lost;
use thalweg_api::problem::{self, Problem};

use super::events::EVENT_STREAM;
use super::routes;
use thalweg_http::input::Content;
use thalweg_http::parameters::Parameter;
use thalweg_http::route::Route;

/// Returns the document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes::table() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_string().to_ascii_lowercase()] = operation(route, &mut generator);
    }
    // Not named by a route: sent instead of lost events.
    generator.subschema_for::<Lost>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Thalweg",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Links, flows and events measured by `thalweg serve`. Rates are in bits per second on the \
                wire, framing included. Instants are packet time in UTC. Releases may add fields.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the token file, if configured; its scope is read or write.",
                },
            },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let described = &route.operation;
    let answer = json!({
        "description": described.summary,
        "content": content(&(route.answers)(generator)),
    });
    let mut responses = Map::new();
    for code in described.errors {
        // Of codes with the same status all are named.
        let response = responses.entry(code.status().0.to_string()).or_insert_with(|| problem("", generator));
        let others = response["description"].as_str().unwrap_or_default();
        let separator = if others.is_empty() { "" } else { ", " };
        response["description"] = format!("{others}{separator}`{}`", code.name()).into();
    }
    for status in route.statuses {
        responses.insert(status.to_string(), answer.clone());
    }
    responses.insert("default".to_owned(), problem("Error", generator));
    let parameters: Vec<_> = (route.parameters)(generator).iter().map(describe).collect();
    let security = match described.scope {
        None => json!([]),
        Some(scope) => json!([{}, {"token": [scope.to_string()]}]),
    };
    let mut operation = json!({
        "summary": described.summary,
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": responses,
        "security": security,
    });
    if !described.description.is_empty() {
        operation["description"] = described.description.into();
    }
    let bodies = (route.bodies)(generator);
    if !bodies.is_empty() {
        operation["requestBody"] = json!({"required": true, "content": content(&bodies)});
    }
    operation
}

/// `get_v1_links_link_flows`
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let method = route.method.to_string().to_ascii_lowercase();
    words.fold(method, |id, word| format!("{id}_{word}"))
}

fn problem(description: &str, generator: &mut SchemaGenerator) -> Value {
    json!({
        "description": description,
        "content": {problem::MEDIA_TYPE: {"schema": generator.subschema_for::<Problem>()}},
    })
}

fn content(kinds: &[Content]) -> Value {
    let mut map = Map::new();
    for kind in kinds {
        let schema = &kind.schema;
        // What is in `data` of an event; the stream itself is text.
        let value = match kind.media_type {
            EVENT_STREAM => json!({"schema": {"type": "string"}, "x-event-data": schema}),
            _ => json!({"schema": schema}),
        };
        map.insert(kind.media_type.to_owned(), value);
    }
    Value::Object(map)
}

fn describe(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": if parameter.is_in_path { "path" } else { "query" },
        "required": parameter.is_in_path,
        "description": parameter.description,
        "schema": parameter.schema,
    })
}
