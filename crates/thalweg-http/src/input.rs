//! What handlers take. Each input says what it reads, so that the documentation of a route is that of its handler's
//! arguments.

use std::fmt::Display;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use thalweg_api::problem::{Code, Problem};

use super::parameters::{self, Parameter};
use super::reply::JSON;
use super::request::Request;

/// Something that a handler takes.
pub trait Input: Sized + Send + 'static {
    /// Whether it reads the query.
    const READS_QUERY: bool = false;

    /// Whether it reads the body.
    const READS_BODY: bool = false;

    /// Parameters that it reads.
    fn parameters(_: &mut SchemaGenerator) -> Vec<Parameter> {
        Vec::new()
    }

    /// Bodies that it reads: one of these.
    fn bodies(_: &mut SchemaGenerator) -> Vec<Content> {
        Vec::new()
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it is missing, or not what it is to be.
    fn read(request: &Request) -> Result<Self, Problem>;
}

/// A kind of body.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What it is.
    pub media_type: &'static str,
    /// What is in it.
    pub schema: Schema,
}

/// Parameters of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<T>(pub T);

/// Parameters of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

/// A body of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonBody<T>(pub T);

/// The media types that the answer may have, if the request says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept(pub Option<String>);

/// The `id` of the last event that a subscriber has had, if it resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastEventId(pub Option<String>);

impl Content {
    /// JSON of this type.
    pub fn json<T: JsonSchema>(generator: &mut SchemaGenerator) -> Content {
        Content { media_type: JSON, schema: generator.subschema_for::<T>() }
    }

    /// Text of any kind.
    pub fn text(media_type: &'static str, generator: &mut SchemaGenerator) -> Content {
        Content { media_type, schema: generator.subschema_for::<String>() }
    }

    /// Any JSON at all.
    pub fn any_json() -> Content {
        Content { media_type: JSON, schema: Schema::default() }
    }
}

impl Accept {
    /// Whether the request asks for this media type.
    pub fn names(&self, media_type: &str) -> bool {
        self.0.as_ref().is_some_and(|accept| accept.contains(media_type))
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for Path<T> {
    fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter> {
        parameters::described::<T>(generator, true)
    }

    fn read(request: &Request) -> Result<Self, Problem> {
        request.path.read().map(Path)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for Query<T> {
    const READS_QUERY: bool = true;

    fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter> {
        parameters::described::<T>(generator, false)
    }

    fn read(request: &Request) -> Result<Self, Problem> {
        request.query.read().map(Query)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for JsonBody<T> {
    const READS_BODY: bool = true;

    fn bodies(generator: &mut SchemaGenerator) -> Vec<Content> {
        vec![Content::json::<T>(generator)]
    }

    fn read(request: &Request) -> Result<Self, Problem> {
        serde_json::from_slice(&request.body).map(JsonBody).map_err(bad_body)
    }
}

impl Input for Accept {
    fn read(request: &Request) -> Result<Self, Problem> {
        Ok(Accept(request.accept.clone()))
    }
}

impl Input for LastEventId {
    fn read(request: &Request) -> Result<Self, Problem> {
        Ok(LastEventId(request.last_event_id.clone()))
    }
}

fn bad_body(error: impl Display) -> Problem {
    Problem::new(Code::BadBody, error)
}
