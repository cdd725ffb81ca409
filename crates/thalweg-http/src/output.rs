//! Outputs of handlers. Each output type documents what it writes, and thereby the route.

use hyper::body::Bytes;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use thalweg_api::problem::Problem;

use super::input::Content;
use super::reply::{HTML, JSON, Reply};

/// The Prometheus text format.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An output of a handler.
pub trait Output {
    /// Possible status codes, the usual one first.
    const STATUSES: &'static [u16] = &[200];

    /// Returns the alternative response bodies.
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content>;

    /// Converts the output to a reply.
    ///
    /// # Errors
    /// If the output cannot be serialised, which is an internal error.
    fn into_reply(self) -> Result<Reply, Problem>;
}

/// A value as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Serialised JSON without a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenJson(pub Bytes);

/// Metrics in the Prometheus text format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsText(pub String);

/// A page. It may have styles and images within it, and neither scripts nor parts from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Html(pub String);

/// One of two outputs, selected by the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneOf<A, B> {
    /// The default.
    Usual(A),
    /// The other.
    Other(B),
}

impl<T: Serialize + JsonSchema> Output for Json<T> {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::json::<T>(generator)]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Reply::json(&self.0)
    }
}

impl Output for WrittenJson {
    fn contents(_: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::any_json()]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply::Whole { status: 200, media_type: JSON, body: self.0 })
    }
}

impl Output for MetricsText {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::text(METRICS_TEXT, generator)]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply::text(METRICS_TEXT, self.0))
    }
}

impl Output for Html {
    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::text(HTML, generator)]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply::text(HTML, self.0))
    }
}

impl<A: Output, B: Output> Output for OneOf<A, B> {
    const STATUSES: &'static [u16] = A::STATUSES;

    fn contents(generator: &mut SchemaGenerator) -> Vec<Content> {
        let mut contents = A::contents(generator);
        contents.extend(B::contents(generator));
        contents
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        match self {
            OneOf::Usual(usual) => usual.into_reply(),
            OneOf::Other(other) => other.into_reply(),
        }
    }
}
