//! What sketches say.

use thalweg_api::Tasks;
use thalweg_api::problem::Problem;

use super::asked;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::{Api, convert};

/// `GET /v1/tasks`
pub(in crate::serve::api) fn all(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let collectors = asked(api, request)?.iter().map(convert::tasks).collect();
    Reply::json(&Tasks { collectors })
}
