//! The OpenAPI document (version 3.1.1), from the table of routes and the types of answers.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use thalweg_api as json;
use thalweg_api::problem::{self, Problem};

use super::route::{Content, EVENT_STREAM, Parameter, ROUTES, Route};

/// The document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_string().to_ascii_lowercase()] = operation(route, &mut generator);
    }
    // Not named by a route: what is told in place of lost events.
    generator.subschema_for::<json::Lost>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Thalweg",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What the collectors of `thalweg serve` know of links and flows. Rates are in bits per \
                second on the wire, framing included; times are those of packets. Fields may be added to answers.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the token file, where there is one; its scope is read or write.",
                },
            },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let answer = json!({"description": route.summary, "content": content(route.answer, generator)});
    let problem = json!({
        "description": "Why not",
        "content": {problem::MEDIA_TYPE: {"schema": generator.subschema_for::<Problem>()}},
    });
    let mut responses = json!({route.status.to_string(): answer, "default": problem});
    if route.path == "/readyz" {
        responses["503"] = responses["200"].clone();
    }
    let parameters: Vec<_> =
        route.parameters.iter().map(|parameter| describe(parameter, generator)).collect();
    let security = match route.scope {
        None => json!([]),
        Some(scope) => json!([{}, {"token": [scope.to_string()]}]),
    };
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": responses,
        "security": security,
    });
    if !route.description.is_empty() {
        operation["description"] = route.description.into();
    }
    if !route.body.is_empty() {
        operation["requestBody"] = json!({"required": true, "content": content(route.body, generator)});
    }
    operation
}

/// `get_v1_links_link_flows`
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let method = route.method.to_string().to_ascii_lowercase();
    words.fold(method, |id, word| format!("{id}_{word}"))
}

fn content(kinds: &[Content], generator: &mut SchemaGenerator) -> Value {
    let mut map = Map::new();
    for kind in kinds {
        let schema = (kind.schema)(generator);
        // What is in `data` of an event; the stream itself is text.
        let value = match kind.media_type {
            EVENT_STREAM => json!({"schema": {"type": "string"}, "x-event-data": schema}),
            _ => json!({"schema": schema}),
        };
        map.insert(kind.media_type.to_owned(), value);
    }
    Value::Object(map)
}

fn describe(parameter: &Parameter, generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": parameter.name,
        "in": if parameter.is_in_path { "path" } else { "query" },
        "required": parameter.is_in_path,
        "description": parameter.description,
        "schema": (parameter.schema)(generator),
    })
}
