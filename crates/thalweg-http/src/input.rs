//! Inputs of handlers. Each input type documents what it reads, and thereby the route.

use std::fmt::Display;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use thalweg_api::problem::{Code, Problem};

use super::parameters::{self, Parameter};
use super::reply::JSON;
use super::request::Request;
use crate::access::Permit;

/// An input of a handler.
pub trait Input: Sized + Send + 'static {
    /// Whether it reads the query.
    const READS_QUERY: bool = false;

    /// Whether it reads the body.
    const READS_BODY: bool = false;

    /// Returns the parameters that it reads.
    fn parameters(_: &mut SchemaGenerator) -> Vec<Parameter> {
        Vec::new()
    }

    /// Returns the alternative bodies that it reads.
    fn bodies(_: &mut SchemaGenerator) -> Vec<Content> {
        Vec::new()
    }

    /// Reads the input.
    ///
    /// # Errors
    /// If the input is missing or invalid.
    fn read(request: &Request) -> Result<Self, Problem>;
}

/// A media type with its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Media type.
    pub media_type: &'static str,
    /// Schema of the content.
    pub schema: Schema,
}

/// Parameters of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<T>(pub T);

/// Parameters of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

/// A JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonBody<T>(pub T);

/// The `Accept` header, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept(pub Option<String>);

/// What the request may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permitted(pub Permit);

/// The `Last-Event-ID` header of a subscriber that resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastEventId(pub Option<String>);

impl Content {
    /// Returns the content type of JSON of type `T`.
    pub fn json<T: JsonSchema>(generator: &mut SchemaGenerator) -> Content {
        Content { media_type: JSON, schema: generator.subschema_for::<T>() }
    }

    /// Returns a content type of text.
    pub fn text(media_type: &'static str, generator: &mut SchemaGenerator) -> Content {
        Content { media_type, schema: generator.subschema_for::<String>() }
    }

    /// Returns the content type of JSON without a schema.
    pub fn any_json() -> Content {
        Content { media_type: JSON, schema: Schema::default() }
    }
}

impl Accept {
    /// Whether the header contains a media type.
    pub fn names(&self, media_type: &str) -> bool {
        self.0.as_ref().is_some_and(|accept| accept.contains(media_type))
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for Path<T> {
    fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter> {
        parameters::describe::<T>(generator, true)
    }

    fn read(request: &Request) -> Result<Self, Problem> {
        request.path.read().map(Path)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for Query<T> {
    const READS_QUERY: bool = true;

    fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter> {
        parameters::describe::<T>(generator, false)
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

impl Input for Permitted {
    fn read(request: &Request) -> Result<Self, Problem> {
        Ok(Permitted(request.permit.clone()))
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
