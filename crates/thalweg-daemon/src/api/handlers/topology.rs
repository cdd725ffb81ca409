//! The topology and new versions of it.

use std::borrow::Cow;

use hyper::body::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use thalweg_api::problem::{BodyError, Code, Problem};
use thalweg_api::{NewTopology, Topology};
use thalweg_network::NetworkState;
use thalweg_network::topology::file::TopologyFileError;
use thalweg_network::topology::file::sections::STATE;
use thalweg_wire::Nanos;

use crate::api::{Api, convert};
use thalweg_http::input::{Accept, Content, Input};
use thalweg_http::output::{Json, OneOf, Output};
use thalweg_http::reply::{JSON, Reply};
use thalweg_http::request::Request;

/// Media type of TOML.
const TOML: &str = "application/toml";

/// A topology file in TOML.
pub(in crate::api) struct TomlNetwork(String);

/// A topology file in JSON or TOML.
pub(in crate::api) struct GivenNetwork {
    media_type: Option<String>,
    body: Bytes,
}

impl Output for TomlNetwork {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::text(TOML, generator)]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply::text(TOML, self.0))
    }
}

/// The schema of topology files in JSON. It is that of the files' own declaration.
struct TopologyFile;

impl JsonSchema for TopologyFile {
    fn schema_name() -> Cow<'static, str> {
        "TopologyFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = thalweg_config::json_schema(&STATE, "A topology file");
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("$schema");
            schema.insert("description".to_owned(), "A topology file with its forwarding.".into());
        }
        // An object is a schema.
        Schema::try_from(schema).unwrap_or_default()
    }
}

impl Input for GivenNetwork {
    const READS_BODY: bool = true;

    fn bodies(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::json::<TopologyFile>(generator), Content::text(TOML, generator)]
    }

    fn read(request: &Request) -> Result<Self, Problem> {
        Ok(GivenNetwork { media_type: request.content_type.clone(), body: request.body.clone() })
    }
}

/// `GET /v1/topology`
pub(in crate::api) fn get(api: &Api, accept: Accept) -> Result<OneOf<Json<Topology>, TomlNetwork>, Problem> {
    let Some(versions) = api.parts().network.versions() else {
        return Err(Problem::new(
            Code::NotFound,
            "no topology is configured: add [network] to the configuration, or PUT one",
        ));
    };
    let newest = versions.newest();
    if accept.names(TOML) {
        return Ok(OneOf::Other(TomlNetwork(newest.state.to_toml())));
    }
    let network = serde_json::from_str(&newest.state.to_json());
    let network = network.map_err(|error| Problem::new(Code::Internal, error))?;
    Ok(OneOf::Usual(Json(convert::topology(newest, network))))
}

/// `PUT /v1/topology`
pub(in crate::api) fn put(api: &Api, given: GivenNetwork) -> Result<Json<NewTopology>, Problem> {
    let Ok(text) = std::str::from_utf8(&given.body) else {
        return Err(Problem::new(Code::BadBody, "the body is not valid UTF-8"));
    };
    let state = match given.media_type.as_deref() {
        Some(JSON) => NetworkState::from_json(text, "body"),
        Some(TOML) => NetworkState::from_toml(text, "body"),
        _ => {
            let detail = format!("unsupported Content-Type: expected {JSON} or {TOML}");
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    };
    let state = state.map_err(|error| wrong(&error))?;
    let change = api
        .parts()
        .network
        .announce(state, Nanos::ZERO)
        .map_err(|error| Problem::new(Code::Conflict, error))?;
    tracing::info!(version = change.version, "topology changed by the API");
    Ok(Json(convert::new_topology(&change)))
}

fn wrong(error: &TopologyFileError) -> Problem {
    let problems = error.problems.iter();
    let errors =
        problems.map(|problem| BodyError { line: problem.line(), message: problem.kind.to_string() });
    Problem::new(Code::BadBody, "invalid topology, nothing changed").with_errors(errors.collect())
}
