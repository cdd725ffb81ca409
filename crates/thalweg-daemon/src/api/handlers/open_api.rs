//! The OpenAPI document.

use std::sync::OnceLock;

use hyper::body::Bytes;
use thalweg_api::problem::Problem;

use crate::api::{Api, open_api};
use thalweg_http::output::WrittenJson;

/// `GET /v1/openapi.json`: serialised once, because it needs no token and is served by the API thread.
pub(in crate::api) fn get(_: &Api) -> Result<WrittenJson, Problem> {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    Ok(WrittenJson(DOCUMENT.get_or_init(|| open_api::document().to_string().into()).clone()))
}
