//! The network as it is known, and new versions of it.

use thalweg_network::NetworkState;
use thalweg_network::topology::file::TopologyFileError;

use crate::serve::api::Api;
use crate::serve::api::json::{NewTopology, Topology};
use crate::serve::api::problem::{BodyError, Code, Problem};
use crate::serve::api::reply::{JSON, Reply};
use crate::serve::api::request::Request;
use crate::serve::api::route::TOML;

/// `GET /v1/topology`
pub(in crate::serve::api) fn get(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let Some(versions) = api.daemon().network() else {
        return Err(Problem::new(Code::NotFound, "no topology is configured, and none has been put here"));
    };
    let newest = versions.newest();
    if request.accept.as_ref().is_some_and(|accept| accept.contains(TOML)) {
        return Ok(Reply::text(TOML, newest.state.to_toml()));
    }
    let network = serde_json::from_str(&newest.state.to_json());
    let network = network.map_err(|error| Problem::new(Code::Internal, error))?;
    Reply::json(&Topology::new(newest, network))
}

/// `PUT /v1/topology`
pub(in crate::serve::api) fn put(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let Ok(text) = std::str::from_utf8(&request.body) else {
        return Err(Problem::new(Code::BadBody, "the body is not valid UTF-8"));
    };
    let state = match request.content_type.as_deref() {
        Some(JSON) => NetworkState::from_json(text, "body"),
        Some(TOML) => NetworkState::from_toml(text, "body"),
        _ => {
            let detail = format!("a topology is {JSON} or {TOML}: say which as Content-Type");
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    };
    let state = state.map_err(|error| wrong(&error))?;
    let change = api.daemon().set_network(state).map_err(|error| Problem::new(Code::Conflict, error))?;
    tracing::info!(version = change.version, "a new version of the network, by the API");
    Reply::json(&NewTopology::from(&change))
}

fn wrong(error: &TopologyFileError) -> Problem {
    let problems = error.problems.iter();
    let errors =
        problems.map(|problem| BodyError { line: problem.line(), message: problem.kind.to_string() });
    Problem::new(Code::BadBody, "the topology is refused, and nothing has changed")
        .with_errors(errors.collect())
}
