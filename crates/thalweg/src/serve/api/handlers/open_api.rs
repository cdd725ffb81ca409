//! The OpenAPI document.

use std::sync::OnceLock;

use hyper::body::Bytes;
use thalweg_api::problem::Problem;

use crate::serve::api::reply::{JSON, Reply};
use crate::serve::api::request::Request;
use crate::serve::api::{Api, open_api};

/// `GET /v1/openapi.json`: written once, for it needs no token and is answered between other requests.
pub(in crate::serve::api) fn get(_: &Api, _: &Request) -> Result<Reply, Problem> {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let body = DOCUMENT.get_or_init(|| open_api::document().to_string().into()).clone();
    Ok(Reply::Whole { status: 200, media_type: JSON, body })
}
