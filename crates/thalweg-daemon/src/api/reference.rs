//! Generates `docs/reference/http-api.md` from the route table and the OpenAPI document.

use std::fmt::Write;

use serde_json::{Map, Value};
use thalweg_api::problem::Code;

use super::events::EVENT_STREAM;
use super::open_api;
use super::routes;
use thalweg_config::REFERENCE_WIDTH;
use thalweg_config::paragraph::wrapped;
use thalweg_http::input::Content;
use thalweg_http::route::Route;

const INTRODUCTION: &str = "\
# HTTP API

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

The HTTP API of `thalweg serve`. [The guide](../guides/api.md) covers usage, tokens, TLS and limits. A running daemon
serves the same as an OpenAPI document at `/v1/openapi.json`.

Responses are JSON unless stated otherwise. Instants are packet time as RFC 3339 text in UTC with nanoseconds. Durations
are whole nanoseconds, and their names end in `_ns`. Rates are in bits per second on the wire, framing included, and
their names end in `_bps`. Releases may add fields; the [changelog](../../CHANGELOG.md) lists all other changes. If the
daemon requires tokens, a request needs one with the stated scope; `write` includes `read`.
";

const PROBLEMS: &str = "
## Problems

Errors are [problem documents](#problem) (RFC 9457, `application/problem+json`) with one of these codes:

| code | status | when |
|---|---|---|
";

const TYPES: &str = "
## Types

Fields that can be `null` are marked so.
";

/// Returns the page.
pub fn reference() -> String {
    let document = open_api::document();
    let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| request | description |\n|---|---|\n");
    for route in routes::table() {
        let anchor = format!("{} {}", route.method, route.path).to_lowercase().replace(' ', "-");
        let anchor: String =
            anchor.chars().filter(|letter| letter.is_alphanumeric() || *letter == '-').collect();
        let _ = writeln!(
            page,
            "| [`{} {}`](#{anchor}) | {} |",
            route.method, route.path, route.operation.summary
        );
    }
    routes::table().iter().for_each(|route| describe(&mut page, route));
    page.push_str(PROBLEMS);
    let codes =
        schemas.get("Code").and_then(|schema| schema["oneOf"].as_array()).cloned().unwrap_or_default();
    for code in Code::ALL {
        let when = codes.iter().find(|known| known["const"] == code.name());
        let when = when.and_then(|known| known["description"].as_str()).unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {} | {} |", code.name(), code.status().0, line(when));
    }
    page.push_str(TYPES);
    for (name, schema) in schemas.iter().filter(|(name, _)| *name != "Code") {
        let _ = write!(page, "\n### {name}\n\n");
        paragraph(&mut page, schema["description"].as_str().unwrap_or_default());
        type_table(&mut page, schema);
    }
    page
}

fn describe(page: &mut String, route: &Route) {
    let _ = write!(page, "\n## {} {}\n\n", route.method, route.path);
    let operation = &route.operation;
    let mut generator = schemars::SchemaGenerator::default();
    let scope = match operation.scope {
        Some(scope) => format!("Scope: `{scope}`."),
        None => "No token is needed.".to_owned(),
    };
    paragraph(page, &format!("{}. {} {scope}", operation.summary, operation.description));
    let parameters = (route.parameters)(&mut generator);
    if !parameters.is_empty() {
        page.push_str("\n| parameter | in | meaning | example |\n|---|---|---|---|\n");
    }
    for parameter in &parameters {
        let place = if parameter.is_in_path { "path" } else { "query" };
        let (name, meaning, example) = (parameter.name, line(&parameter.description), &parameter.example);
        let _ = writeln!(page, "| `{name}` | {place} | {meaning} | `{example}` |");
    }
    page.push('\n');
    let bodies = (route.bodies)(&mut generator);
    if !bodies.is_empty() {
        paragraph(page, &format!("Request body: {}.", kinds(&bodies)));
        page.push('\n');
    }
    let answers = (route.answers)(&mut generator);
    paragraph(page, &format!("Response {}: {}.", route.statuses[0], kinds(&answers)));
}

/// `[Links](#links) as application/json`
fn kinds(contents: &[Content]) -> String {
    let kind = |content: &Content| {
        let schema = content.schema.as_value();
        let what = match (reference_to(schema), content.media_type) {
            (Some(name), EVENT_STREAM) => format!("a stream of [{name}](#{})", name.to_lowercase()),
            (Some(name), _) => linked(&name),
            (None, _) if schema["contentMediaType"].is_string() => "a file".to_owned(),
            (None, _) if schema["type"] == "string" => "text".to_owned(),
            (None, _) => "JSON".to_owned(),
        };
        format!("{what} as `{}`", content.media_type)
    };
    contents.iter().map(kind).collect::<Vec<_>>().join(", or ")
}

fn paragraph(page: &mut String, text: &str) {
    page.push_str(&wrapped(text, "", "", REFERENCE_WIDTH));
}

/// Text on one line, as in a table.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Fields of an object, values of an enumeration, or both, kind by kind.
fn type_table(page: &mut String, schema: &Value) {
    let choices = schema["oneOf"].as_array();
    if let Some(properties) = schema["properties"].as_object() {
        fields(page, properties);
    }
    let Some(choices) = choices else { return };
    if choices.iter().all(|choice| choice["const"].is_string()) {
        page.push_str("\n| value | meaning |\n|---|---|\n");
        for choice in choices {
            let meaning = line(choice["description"].as_str().unwrap_or_default());
            let _ = writeln!(page, "| `{}` | {meaning} |", choice["const"].as_str().unwrap_or_default());
        }
        return;
    }
    for choice in choices {
        page.push('\n');
        let tagged = choice["properties"].as_object().into_iter().flatten();
        let mut tag = tagged.filter_map(|(name, schema)| Some((name, schema["const"].as_str()?)));
        let meaning = line(choice["description"].as_str().unwrap_or_default());
        if let Some((name, value)) = tag.next() {
            paragraph(page, format!("With `{name}` `{value}`: {meaning}").trim_end_matches([' ', ':']));
        }
        if let Some(properties) = choice["properties"].as_object() {
            fields(page, properties);
        }
    }
}

fn fields(page: &mut String, properties: &Map<String, Value>) {
    page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for (name, schema) in properties {
        let meaning = line(schema["description"].as_str().unwrap_or_default());
        let _ = writeln!(page, "| `{name}` | {} | {meaning} |", type_name(schema));
    }
}

/// A type as a reader knows it: `number`, `[Rate](#rate) or null`, `array of [Flow](#flow)`.
fn type_name(schema: &Value) -> String {
    if let Some(name) = reference_to(schema) {
        return linked(&name);
    }
    if let Some(constant) = schema["const"].as_str() {
        return format!("`{constant}`");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(type_name).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("array of {}", type_name(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn reference_to(schema: &Value) -> Option<String> {
    schema["$ref"].as_str()?.rsplit('/').next().map(str::to_owned)
}

fn linked(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}
