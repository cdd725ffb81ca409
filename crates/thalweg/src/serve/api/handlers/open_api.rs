//! The OpenAPI document.

use crate::serve::api::problem::Problem;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::{Api, open_api};

/// `GET /v1/openapi.json`
pub(in crate::serve::api) fn get(_: &Api, _: &Request) -> Result<Reply, Problem> {
    Reply::json(&open_api::document())
}
